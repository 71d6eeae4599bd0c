"""isotone: speech recognition whose time stamps can be trusted, and alignment of any sequence to any other.

The plural names are registries: ``isotone.losses.names()``, ``isotone.losses.build("ottc")``.
"""

from typing import TYPE_CHECKING

from isotone.kernels.numba_cache import ensure_cache
from isotone.kernels.waiting import ensure_sleep
from isotone.late import late
from isotone.registries import (
    aligners,
    corpora,
    decoders,
    encoders,
    formats,
    heads,
    indexes,
    losses,
    packs,
    relaxations,
    searchers,
    warpers,
)

ensure_cache()
ensure_sleep()

__version__ = "0.1.0"

if TYPE_CHECKING:
    from isotone.quick import align, align_dataset
    from isotone.quick.streaming import StreamingAligner
    from isotone.warping import align_sequences

__all__ = [
    "StreamingAligner", "align", "align_dataset", "align_sequences", "aligners", "corpora", "decoders", "encoders",
    "formats", "heads", "indexes", "losses", "packs", "relaxations", "searchers", "warpers",
]  # fmt: skip

__getattr__ = late(
    __name__,
    {
        "quick": ("align", "align_dataset"),
        "quick.streaming": ("StreamingAligner",),
        "warping": ("align_sequences",),
    },
)
