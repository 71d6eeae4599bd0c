"""Best paths through a lattice of label scores.

On the CPU the loops are compiled by numba and release Python's lock; the rows of a batch run on
``torch.get_num_threads()`` threads. Scores are summed in float64 whatever the input is, so that an hour of frames keeps
its decimals.

On CUDA, :func:`ctc_path` and :func:`monotone_path` stay on the device and find the same paths and scores, bit for bit.
They wait for it once, at the end, to know whether all rows have paths. That is so without optional tokens, ``near`` and
``min_frames``. With these, in the other functions, and for rows whose decisions would take more than 4 GiB (half a byte
per frame and token), tensors travel to the CPU and results back.

Ties: of two paths with equal scores, the one that is further along in the last frame in which they differ wins. Later
tokens are further along than earlier ones, and a blank further than the token before it. Where all scores are equal,
tokens come as early as they can. Scores are equal if their float64 sums, frame by frame, are.

Inputs are arrays or tensors. Results are of the same kind, tensors on the device of ``log_probs``. Frames and labels
past their lengths are never read. In a path, frame t has the number (0 .. U - 1) of the token that it carries, -1 for
blank, and -2 past the end.

Memory, on the CPU: instead of a trellis, one row of scores is kept every so many frames. From these the back-trace
computes again the cells that it needs; decisions are those of a whole trellis. Beyond inputs and paths a row of a batch
takes at most about 40 MiB while T U < 2e9 or so (an hour of 20 ms frames and 15,000 tokens: 2.7e9, 27 MiB), and
O(T^0.5 U) bytes above.

Where tokens are optional, time grows with the length of their runs as well.

For speech that a transcript leaves out, a star, give ``log_probs`` one column more, as
:func:`isotone.pipeline.stars.star_scores` makes it. Its number is the star's label, which may be optional like others.
"""

from __future__ import annotations

from isotone.kernels._inputs import check_ctc
from isotone.kernels.viterbi.banded import BandedPaths, banded_path
from isotone.kernels.viterbi.ctc import ctc_path, ctc_score
from isotone.kernels.viterbi.graph import Arcs, fewest_frames, graph_path
from isotone.kernels.viterbi.monotone import monotone_path
from isotone.kernels.viterbi.segmental import segmental_decode

__all__ = [
    "Arcs",
    "BandedPaths",
    "banded_path",
    "check_ctc",
    "ctc_path",
    "ctc_score",
    "fewest_frames",
    "graph_path",
    "monotone_path",
    "segmental_decode",
]
