from __future__ import annotations

import pytest
import torch
from isotone_opas.kernels import Items, PenaltyNetwork, Sinkhorn, score_all
from isotone_opas.penalty import ConvolutionalPenalty, LinearPenalty, penalties

from isotone.registry import OptionError
from tests.plugins.opas.parts import unit


def test_kernels_of_the_paper() -> None:
    def taps(columns: int) -> list[int]:
        model = ConvolutionalPenalty(rows=6, columns=columns)
        return [c.weight.shape[-1] for c in (*model.convolutions, model.last)]

    assert taps(20) == [5, 2, 1, 1]
    assert taps(40) == [10, 5, 2, 2]
    # n / 16 of 500 columns are 31, of which 16 are left
    assert taps(500) == [125, 62, 31, 16]
    assert ConvolutionalPenalty(rows=6, columns=20).last.weight.shape[0] == 6


@pytest.mark.parametrize("stagger", [0, 2])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 2), (3, 5), (6, 20), (5, 40), (4, 100), (3, 500)])
def test_compiled_network_is_the_module(rows: int, columns: int, stagger: int) -> None:
    torch.manual_seed(columns)
    model = ConvolutionalPenalty(rows=rows, columns=columns, stagger=stagger)
    rng = torch.Generator().manual_seed(0)
    q, c = unit(rng, 3, rows, 8), unit(rng, 4, columns, 8)
    m = torch.randint(1, rows + 1, (3,), generator=rng)
    n = torch.randint(rows, columns + 1, (4,), generator=rng)
    for i in range(3):
        q[i, m[i] :] = 0
    for j in range(4):
        c[j, n[j] :] = 0
    network = model.compiled()
    assert isinstance(network, PenaltyNetwork)
    options = Sinkhorn(torch.arange(float(columns)))
    with torch.no_grad():
        lam = torch.stack(
            [model(q[i] @ c.mT, q[i].expand(4, -1, -1), c, m[i].expand(4), n).mT for i in range(3)]
        )
    items = Items.prepare(c, n)
    for found, expected in zip(
        score_all(q, items, network, options, m), score_all(q, items, lam, options, m)
    ):
        torch.testing.assert_close(found, expected, rtol=2e-5, atol=2e-5 * columns)


@pytest.mark.parametrize(
    "spec",
    [
        {"name": "convolutional", "rows": 5, "columns": 12, "stagger": 1},
        {"name": "linear", "rows": 5, "columns": 12, "size": 6},
        {"name": "constant", "value": 0.4},
    ],
)
def test_zero_in_the_first_row_and_beyond_the_lengths(spec: dict[str, object]) -> None:
    torch.manual_seed(0)
    model = penalties.create(spec)
    rng = torch.Generator().manual_seed(1)
    q, c = unit(rng, 3, 5, 6), unit(rng, 3, 12, 6)
    lengths = torch.tensor([5, 3, 1])
    for i in range(3):
        q[i, lengths[i] :] = 0
    lam = model(q @ c.mT, q, c, lengths)
    assert lam.shape == (3, 5)
    assert (lam[:, 0] == 0).all()
    for i, size in enumerate(lengths.tolist()):
        assert (lam[i, 1:size] > 0).all()
        assert (lam[i, max(1, size) :] == 0).all()
    # a shorter query alone, and a shorter item, give what they give padded
    alone = model(q[1:2, :3] @ c[1:2].mT, q[1:2, :3], c[1:2])
    torch.testing.assert_close(alone[0], lam[1, :3])


def test_stagger_lets_the_network_see_the_order() -> None:
    torch.manual_seed(0)
    rng = torch.Generator().manual_seed(0)
    similarity = unit(rng, 1, 6, 8) @ unit(rng, 1, 20, 8).mT
    swapped = similarity[:, [0, 2, 1, 3, 5, 4]]
    nothing = torch.zeros(1, 6, 8), torch.zeros(1, 20, 8)
    blind, seeing = (ConvolutionalPenalty(rows=6, columns=20, stagger=s) for s in (0, 2))
    torch.testing.assert_close(blind(similarity, *nothing), blind(swapped, *nothing))
    assert not torch.allclose(seeing(similarity, *nothing), seeing(swapped, *nothing), atol=1e-6)


def test_bad_sizes() -> None:
    long = torch.zeros(1, 3, 9)
    for model in (ConvolutionalPenalty(rows=3, columns=8), LinearPenalty(rows=3, columns=8, size=2)):
        with pytest.raises(ValueError, match="items of 8 at most; got 3 and 9"):
            model(long, torch.zeros(1, 3, 2), torch.zeros(1, 9, 2))
    with pytest.raises(ValueError, match="at least 1"):
        ConvolutionalPenalty(rows=0, columns=8)
    with pytest.raises(ValueError, match="at least 0"):
        penalties.build("constant", value=-1.0)
    with pytest.raises(OptionError, match="stagger"):
        penalties.build("convolutional", rows=1, columns=2, stager=1)
