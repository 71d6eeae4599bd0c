"""Models: an encoder with heads, the configuration of decoding, loading, saving and the hub.

Names are imported at their first use: commands that need no torch (``--help``, checking a name) start without it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotone.model.decoding import DecodingConfig, ModelError
    from isotone.model.model import Model

__all__ = ["DecodingConfig", "Model", "ModelError"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from isotone.model import model

    return getattr(model, name)
