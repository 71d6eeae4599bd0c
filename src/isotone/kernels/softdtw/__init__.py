r"""Dynamic time warping and its soft minimum, for batches of cost matrices, with gradients.

Of all alignments A of n and m positions (paths from (1, 1) to (n, m) by steps (1, 0), (0, 1) and (1, 1)),

.. math:: \mathrm{sdtw}_\gamma(C) = -\gamma \log \sum_A \exp(-\langle A, C \rangle / \gamma),
   \qquad E_\gamma(C) = \nabla \mathrm{sdtw}_\gamma(C) = \mathbb{E}[A]

(Cuturi & Blondel, "Soft-DTW: a differentiable loss function for time-series", ICML 2017); at gamma = 0 the cost of the
best alignment and that alignment.

On the CPU the loops are compiled, run in float64 whatever the costs are, and deal the rows of a batch to
``torch.get_num_threads()`` threads. The forward pass keeps two numbers per cell, the weights of its soft minimum, and
the backward pass only adds and multiplies. On CUDA a Triton kernel does the same in the type of the costs, one
programme per row. Elsewhere tensor operations do. Entries beyond the lengths are never read and have no gradient.

Modules: ``soft`` and ``hard`` (of costs), ``sequences`` and ``distances`` (of vectors); ``cpu``, ``cuda`` and
``tensors`` (the implementations, chosen by ``backends``); ``inputs`` and ``plan`` (checks, and the order of cells).
"""

from __future__ import annotations

from isotone.kernels.softdtw.distances import check_sequences, squared_distances
from isotone.kernels.softdtw.hard import SubsequenceMatch, dtw, subsequence_dtw
from isotone.kernels.softdtw.sequences import soft_dtw_sqeuclidean
from isotone.kernels.softdtw.soft import expected_alignment, soft_dtw

__all__ = [
    "SubsequenceMatch",
    "check_sequences",
    "dtw",
    "expected_alignment",
    "soft_dtw",
    "soft_dtw_sqeuclidean",
    "squared_distances",
    "subsequence_dtw",
]
