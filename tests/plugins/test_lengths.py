"""Functions of the plugins refuse lengths that are no integers, as the kernels do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from isotone_ctc.functional import ctc
from isotone_opas.checks import check_embeddings
from isotone_opas.kernels.items import Items
from isotone_ottc.functional import ottc_loss
from isotone_permutation.relax import Hungarian
from isotone_softdtw.costs import label_costs
from isotone_softdtw.functional import soft_dtw

from isotone.evaluation import ranking

LOGITS, LABELS = torch.rand(1, 6, 4), torch.tensor([[1, 2, 3]])
X, Y = torch.rand(1, 6, 5), torch.rand(1, 3, 5)
N, M = torch.tensor([5]), torch.tensor([2])


@pytest.mark.parametrize(
    "call",
    [
        lambda n, m: ctc(LOGITS, LABELS, n, m, 0),
        lambda n, m: ottc_loss(LOGITS, torch.ones(1, 6), LABELS, torch.ones(1, 3), n, m),
        lambda n, m: soft_dtw(X, Y, 1.0, n, m),
        lambda n, m: label_costs(LOGITS, LABELS, n, M),
        lambda n, m: label_costs(LOGITS, LABELS, N, m),
        lambda n, m: Hungarian()(X.mT[:, :3], m, n),
        lambda n, m: check_embeddings(Y, X, m, n, paired=True),
        lambda n, m: Items.prepare(X, n + 1),
        lambda n, m: ranking.average_precision(LOGITS[:, 0], LABELS[:, [0, 1, 2, 0]] > 1, m),
    ],
)
def test_lengths_are_integers(call: Callable[..., object]) -> None:
    call(N, M)
    with pytest.raises(ValueError, match=r"Expected lengths as integers, such as int64; got .*float32"):
        call(N.float(), M.float())
