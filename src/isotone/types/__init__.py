"""The tensors that pass between the parts: frames, emissions, targets and couplings.

One alphabet everywhere: B batch, T frames, U target tokens, V vocabulary, D features, K coupling entries.
Borders between parts carry lengths, never masks. Times stay frame numbers until :meth:`Grid.seconds`.
"""

from isotone.types.batch import Batch, check_integers, length_mask, marks, mask_rows, row_index, widened
from isotone.types.coupling import Coupling
from isotone.types.emissions import Emissions, Encoded, Frames, Grid
from isotone.types.graph import TokenGraph
from isotone.types.targets import NO_TOKEN, PAST_END, FramePath, Targets
from isotone.types.warp import Warp, Window

__all__ = [
    "NO_TOKEN", "PAST_END", "Batch", "Coupling", "Emissions", "Encoded", "FramePath", "Frames", "Grid", "Targets",
    "TokenGraph", "Warp", "Window", "check_integers", "length_mask", "marks", "mask_rows", "row_index", "widened",
]  # fmt: skip
