"""Models: an encoder with heads, the configuration of decoding, loading, saving and the hub.

Names are imported at their first use: commands that need no torch (``--help``, checking a name) start without it.
"""

from typing import TYPE_CHECKING

from isotone.late import late

if TYPE_CHECKING:
    from isotone.model.decoding import DecodingConfig, ModelError
    from isotone.model.model import Model

__all__ = ["DecodingConfig", "Model", "ModelError"]

__getattr__ = late(__name__, {"model": __all__})
