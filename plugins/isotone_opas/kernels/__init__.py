"""Scores of ordered-subsequence selection (OPAS), on the CPU: similarity, reward, Sinkhorn and both scores in one go.

Similarities are one matrix product a block of queries and items; the rest is compiled, sixteen items at a time, tasks
on ``torch.get_num_threads()`` threads. Of a pair nothing larger than its ``(m, n)`` plan exists, and that in cache.
"""

from __future__ import annotations

from isotone_opas.kernels.items import Items
from isotone_opas.kernels.options import PenaltyNetwork, Sinkhorn
from isotone_opas.kernels.scores import fit_all, fit_pairs, score_all, score_pairs

__all__ = ["Items", "PenaltyNetwork", "Sinkhorn", "fit_all", "fit_pairs", "score_all", "score_pairs"]
