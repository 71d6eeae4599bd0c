"""One call for one recording: ``isotone.align`` in Python and in notebooks."""

from isotone.quick.aligned import Aligned
from isotone.quick.calls import align

__all__ = ["Aligned", "align"]
