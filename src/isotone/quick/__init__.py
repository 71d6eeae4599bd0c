"""One call for one recording or for a data set: ``isotone.align`` and ``isotone.align_dataset``."""

from isotone.quick.aligned import Aligned
from isotone.quick.calls import align
from isotone.quick.datasets import align_dataset

__all__ = ["Aligned", "align", "align_dataset"]
