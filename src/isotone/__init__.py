"""isotone: speech recognition whose time stamps can be trusted, and alignment of any sequence to any other.

The plural names are registries: ``isotone.losses.names()``, ``isotone.losses.build("ottc")``.
"""

from isotone.kernels.numba_cache import ensure_cache
from isotone.registries import (
    aligners,
    corpora,
    decoders,
    encoders,
    formats,
    heads,
    indexes,
    losses,
    relaxations,
    searchers,
)

ensure_cache()

__version__ = "0.1.0"

__all__ = [
    "aligners", "corpora", "decoders", "encoders", "formats", "heads", "indexes", "losses", "relaxations",
    "searchers",
]  # fmt: skip
