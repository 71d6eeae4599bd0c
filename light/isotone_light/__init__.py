"""isotone-light: forced alignment of speech and text without torch.

The aligner is isotone's own, from the same source: :mod:`isotone_light.core` is built from ``isotone``, with arrays of
numpy in place of tensors, and a graph of ONNX in place of the model.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from isotone.kernels.numba_cache import ensure_cache

if TYPE_CHECKING:
    from isotone_light.calls import align

ensure_cache()

__version__ = "0.1.0"

__all__ = ["align"]


def __getattr__(name: str) -> Any:
    # imported at its first use, so that --help needs no numba
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("isotone_light.calls"), name)
