"""isotone-light: forced alignment of speech and text without torch.

The aligner is isotone's own, from the same source: :mod:`isotone_light.core` is built from ``isotone``.
"""

from typing import TYPE_CHECKING

from isotone.kernels.numba_cache import ensure_cache
from isotone.late import late
from isotone.tensors import never_torch

if TYPE_CHECKING:
    from isotone_light.calls import align

ensure_cache()
never_torch()

__version__ = "0.1.0"

__all__ = ["align"]

# --help needs no numba
__getattr__ = late(__name__, {"calls": __all__})
