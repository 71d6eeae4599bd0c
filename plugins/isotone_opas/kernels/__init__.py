"""Scores of ordered-subsequence selection (OPAS), on the CPU: similarity, reward, Sinkhorn and both scores in one go.

Similarities are one matrix product per block of queries and items. The rest is compiled, sixteen items at a time, and
runs on ``torch.get_num_threads()`` threads. For a pair nothing larger than its ``(m, n)`` plan exists, and that stays
in the cache.

Modules: ``scores`` (the functions on tensors), ``items`` and ``options`` (their arguments). The compiled loops:
``_scores`` and ``_norms`` (both scores), ``_sinkhorn`` and ``_stabilised`` (the plan), ``_network`` (penalties),
``_selection`` (the exact limit).
"""

from __future__ import annotations

from isotone_opas.kernels.items import Items
from isotone_opas.kernels.options import PenaltyNetwork, Sinkhorn
from isotone_opas.kernels.scores import fit_all, fit_pairs, score_all, score_pairs

__all__ = ["Items", "PenaltyNetwork", "Sinkhorn", "fit_all", "fit_pairs", "score_all", "score_pairs"]
