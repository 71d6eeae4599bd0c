"""Relaxations of tie-aware measures against the measures themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from isotone_hashing import functional
from isotone_hashing.loss import TALRLoss

from isotone.evaluation import ranking
from isotone.kernels import hamming


def binary_batch(seed, queries=7, items=40, bits=8, levels=3):
    rng = np.random.default_rng(seed)
    a, b = rng.random((queries, bits)) < 0.5, rng.random((items, bits)) < 0.5
    affinity = rng.integers(0, levels, (queries, items))
    affinity[:, 0], affinity[:, 1] = 1, -1
    counts = hamming.histogram(hamming.pack(a), hamming.pack(b), affinity, bits)
    signs = [torch.tensor(x * 2.0 - 1, dtype=torch.float64) for x in (a, b)]
    return counts, signs, torch.tensor(affinity)


@pytest.mark.parametrize("width", [1.0, 0.5])
def test_soft_counts_of_binary_codes_are_counts(width):
    counts, (a, b), affinity = binary_batch(0)
    soft = functional.soft_histogram(functional.relaxed_distances(a, b), affinity, 8, counts.shape[2], width)
    np.testing.assert_allclose(soft.numpy(), counts, atol=1e-12)


def test_both_ways_to_count_softly_agree():
    generator = torch.Generator().manual_seed(0)
    distance = 8 * torch.rand(5, 30, generator=generator, dtype=torch.float64)
    distance[0, :3] = torch.tensor([0.0, 8.0, 4.0])
    affinity = torch.randint(-1, 3, (5, 30), generator=generator)
    one = functional.soft_histogram(distance, affinity, 8, 3)
    other = functional.soft_histogram(distance, affinity, 8, 3, 1 + 1e-12)
    torch.testing.assert_close(one, other, rtol=0, atol=1e-9)
    torch.testing.assert_close(one.sum((1, 2)), (affinity >= 0).sum(1).double())


def test_relaxed_ap_of_whole_counts_is_exact():
    counts, _, _ = binary_batch(1)
    relevant = torch.tensor(counts[:, :, 1:].sum((1, 2)))
    relaxed = functional.relaxed_ap(torch.tensor(counts, dtype=torch.float64), relevant)
    np.testing.assert_allclose(relaxed.numpy(), ranking.average_precision_of(counts), rtol=1e-12)


def test_relaxed_dcg_and_the_simplified_forms_are_near():
    counts, _, _ = binary_batch(2, items=400)
    soft = torch.tensor(counts, dtype=torch.float64)
    relevant = soft[:, :, 1:].sum((1, 2))
    dcg, ap = ranking.dcg_of(counts), ranking.average_precision_of(counts)
    np.testing.assert_allclose(functional.relaxed_dcg(soft).numpy(), dcg, rtol=5e-3)
    np.testing.assert_allclose(functional.simplified_dcg(soft).numpy(), dcg, rtol=5e-2)
    assert (functional.simplified_dcg(soft).numpy() <= dcg + 1e-9).all()  # Jensen
    np.testing.assert_allclose(functional.simplified_ap(soft, relevant).numpy(), ap, rtol=2e-2)
    ideal = functional.ideal_dcg(soft.sum(1).long()).numpy()
    np.testing.assert_allclose(dcg / ideal, ranking.ndcg_of(counts), rtol=1e-12)


def test_simplified_forms_are_exact_without_ties():
    rng = np.random.default_rng(4)
    counts = np.eye(4, dtype=int)[rng.integers(0, 4, (5, 30))]
    soft = torch.tensor(counts, dtype=torch.float64)
    np.testing.assert_allclose(
        functional.simplified_ap(soft, soft[:, :, 1:].sum((1, 2))).numpy(),
        ranking.average_precision_of(counts),
    )
    np.testing.assert_allclose(functional.simplified_dcg(soft).numpy(), ranking.dcg_of(counts))


@pytest.mark.parametrize("width", [1.0, 1.7])
@pytest.mark.parametrize("relaxation", ["simplified", "integral"])
@pytest.mark.parametrize("metric", ["ap", "ndcg"])
def test_gradients(metric, relaxation, width):
    generator = torch.Generator().manual_seed(5)
    codes = torch.tanh(torch.randn(9, 6, generator=generator, dtype=torch.float64)).requires_grad_()
    affinity = torch.randint(0, 3 if metric == "ndcg" else 2, (9, 9), generator=generator)

    loss = TALRLoss(metric=metric, relaxation=relaxation, width=width)
    assert torch.autograd.gradcheck(lambda c: loss(c, affinity), (codes,))


def test_integral_ap_stays_finite_near_single_items():
    """Eq. 11 is singular at c = 1, and its logarithm where nothing came before."""
    for near in (0.0, 1e-9, 0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 1 + 1e-4):
        counts = torch.tensor([[[0.3, near], [0.0, 0.0], [1.0, near]]], dtype=torch.float64).requires_grad_()
        value = functional.relaxed_ap(counts, torch.tensor([2]))
        value.sum().backward()
        assert torch.isfinite(value).all()
        assert torch.isfinite(counts.grad).all()
        assert counts.grad.abs().max() < 1e3


def test_loss_tends_to_the_exact_measure_as_the_scale_grows():
    generator = torch.Generator().manual_seed(6)
    raw = torch.randn(20, 12, generator=generator)
    affinity = torch.randint(0, 2, (20, 20), generator=generator)
    words = hamming.pack(raw)
    itself = affinity.masked_fill(torch.eye(20, dtype=torch.bool), -1)
    exact = torch.tensor(ranking.average_precision_of(hamming.histogram(words, words, itself, 12)))
    loss = TALRLoss(relaxation="integral")
    errors = [
        (1 - loss(torch.tanh(alpha * raw), affinity).double() - exact).abs().max().item()
        for alpha in (1, 10, 1e3, 1e6)
    ]
    assert errors[0] > errors[2] > errors[3]
    assert errors[3] < 1e-4


def test_a_batch_gives_what_its_rows_give_alone():
    generator = torch.Generator().manual_seed(7)
    queries, corpus = (torch.rand(n, 8, generator=generator) * 2 - 1 for n in (6, 15))
    affinity = torch.randint(-1, 2, (6, 15), generator=generator)
    affinity[2] = 0
    loss = TALRLoss()
    together = loss(queries, affinity, corpus)
    for row in range(6):
        there = affinity[row] >= 0
        alone = loss(queries[[row]], affinity[[row]][:, there], corpus[there])
        torch.testing.assert_close(together[row], alone[0])
    assert together[2] == 0
