"""isotone: speech recognition whose time stamps can be trusted, and alignment of any sequence to any other.

The plural names are registries: ``isotone.losses.names()``, ``isotone.losses.build("ottc")``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from isotone.kernels.numba_cache import ensure_cache
from isotone.kernels.waiting import ensure_sleep
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

# Names that are imported at their first use, for they import torch.
_LATE = {
    "StreamingAligner": "isotone.quick.streaming",
    "align": "isotone.quick",
    "align_dataset": "isotone.quick",
    "align_sequences": "isotone.warping",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)
