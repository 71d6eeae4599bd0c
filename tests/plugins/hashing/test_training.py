"""Losses of hyperplanes, and the codes that training makes better."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from isotone_hashing import functional
from isotone_hashing.head import HashHead
from isotone_hashing.loss import HyperplaneLoss, TALRLoss
from isotone_hashing.training import Pairs, fit_hyperplanes, fit_talr

from isotone.evaluation import ranking
from isotone.kernels import hamming


def test_collision_loss_is_the_sum_over_triplets():
    generator = torch.Generator().manual_seed(8)
    q = torch.randn(4, 3, generator=generator, dtype=torch.float64).requires_grad_()
    c = torch.randn(9, 3, generator=generator, dtype=torch.float64).requires_grad_()
    positive = torch.rand(4, 9, generator=generator) < 0.4
    positive[3] = False
    value, terms = functional.collision_loss(q, c, positive)
    score = q @ c.T
    direct = sum(
        torch.relu(1 + score[i, n] - score[i, p])
        for i in range(4)
        for p in range(9)
        for n in range(9)
        if positive[i, p] and not positive[i, n]
    )
    torch.testing.assert_close(value, direct)
    assert terms == sum(int(p.sum() * (~p).sum()) for p in positive)
    for got, expected in zip(torch.autograd.grad(value, (q, c)), torch.autograd.grad(direct, (q, c))):
        torch.testing.assert_close(got, expected)


def test_fence_and_balance():
    codes = torch.tensor([[1.0, -1.0], [-0.5, 1.0]])
    assert functional.fence_loss(codes).item() == 0.5
    first, pairs = functional.balance_loss(codes)
    assert first.item() == 0.5
    assert pairs.item() == 1.25 + 2.0 + 2 * 1.5


def test_hyperplane_loss_means_do_not_depend_on_sizes():
    codes = torch.rand(6, 4, generator=torch.Generator().manual_seed(0)) * 2 - 1
    positive = torch.eye(6, dtype=torch.bool)
    loss = HyperplaneLoss(collision=0)
    torch.testing.assert_close(
        loss(codes, codes, positive), loss(codes, codes.repeat(3, 1), positive.repeat(1, 3))
    )


def clusters(seed, items=400, size=16):
    """Vectors around centres, away from the origin: random hyperplanes put most on one side."""
    generator = torch.Generator().manual_seed(seed)
    centre = torch.randn(items // 8, size, generator=generator) + 2
    corpus = centre.repeat_interleave(8, 0) + 0.5 * torch.randn(items, size, generator=generator)
    chosen = torch.randint(0, items // 8, (80,), generator=generator)
    queries = centre[chosen] + 0.5 * torch.randn(80, size, generator=generator)
    pairs = torch.stack(
        [torch.arange(80).repeat_interleave(8), (chosen[:, None] * 8 + torch.arange(8)).ravel()], 1
    )
    return corpus, queries, pairs


def mean_ap(head, corpus, queries, pairs):
    affinity = np.zeros((len(queries), len(corpus)), np.int8)
    affinity[pairs[:, 0], pairs[:, 1]] = 1
    words = [hamming.pack(head.codes(x)) for x in (queries, corpus)]
    return ranking.average_precision_of(hamming.histogram(*words, affinity, head.bits)).mean()


def drawn(corpus, queries, pairs, seed=0):
    length = corpus.norm(dim=1).mean()
    return Pairs(corpus / length, queries / length, pairs, batch_queries=32, batch_items=200, seed=seed)


def test_learning_to_rank_raises_ap_on_other_queries():
    corpus, queries, pairs = clusters(0)
    training, test = pairs[pairs[:, 0] < 50], pairs[pairs[:, 0] >= 50] - torch.tensor([50, 0])
    head = HashHead(16, bits=16)
    before = mean_ap(head, corpus, queries[50:], test)
    seen = []
    losses = fit_talr(
        head,
        TALRLoss(),
        drawn(corpus, queries, training),
        steps=120,
        progress=lambda *step: seen.append(step),
    )
    assert [s[:2] for s in seen[:2]] == [(1, 120), (2, 120)]
    assert len(losses) == 120
    length = corpus.norm(dim=1).mean()
    assert mean_ap(head, corpus / length, queries[50:] / length, test) > before + 0.1
    assert head.alpha == 40


@pytest.mark.parametrize("gold", [True, False])
def test_trained_hyperplanes_balance_their_bits_and_find_more(gold):
    corpus, queries, pairs = clusters(1)
    length = corpus.norm(dim=1).mean()
    head = HashHead(16, bits=16, bias=False, scale=5.0, first_scale=None)
    share = np.abs(head.codes(corpus).mean(0) - 0.5).mean()
    before = mean_ap(head, corpus, queries, pairs)
    fit_hyperplanes(
        head, HyperplaneLoss(), drawn(corpus, queries, pairs if gold else None), tables=2, steps=100
    )
    assert np.abs(head.codes(corpus).mean(0) - 0.5).mean() < share / 2
    assert mean_ap(head, corpus / length, queries / length, pairs) > before + 0.05


def test_training_repeats_with_its_seed():
    corpus, queries, pairs = clusters(2)
    runs = []
    for seed in (0, 0, 1):
        head = HashHead(16, bits=8)
        fit_talr(head, TALRLoss(), drawn(corpus, queries, pairs, seed), steps=5)
        runs.append(head.weight.detach())
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])


def test_batches_hold_a_positive_of_every_query():
    corpus, queries, pairs = clusters(3)
    graded = torch.cat([pairs, torch.full((len(pairs), 1), 3)], 1)
    source = Pairs(corpus, queries, graded, batch_queries=20, batch_items=60, seed=0)
    for _ in range(5):
        batch = source.draw()
        assert batch.corpus.shape == (60, 16)
        assert set(batch.affinity.unique().tolist()) == {0, 3}
        assert (batch.affinity > 0).any(1).all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: TALRLoss(metric="map"), "metric 'ap' or 'ndcg'"),
        (lambda: TALRLoss(width=0), "width above 0"),
        (lambda: TALRLoss()(torch.zeros(2, 4), torch.zeros(2, 3)), "affinities of shape"),
        (lambda: HashHead(4, bits=0), "one bit"),
        (lambda: HashHead(4, bits=4, scale=0), "scales above 0"),
        (lambda: HyperplaneLoss(silver=0), "silver"),
        (lambda: HyperplaneLoss(reduction="none"), "'mean' or 'sum'"),
        (lambda: functional.soft_histogram(torch.zeros(1, 1), torch.zeros(1, 1), 4, 2, -1), "above 0"),
        (
            lambda: Pairs(torch.zeros(2, 3), torch.zeros(2, 3), torch.tensor([[0, 2]]), batch_queries=1,
                          batch_items=1, seed=0),
            r"got \[0, 2, 1\]",
        ),
        (
            lambda: fit_talr(HashHead(3, bits=4), TALRLoss(), Pairs(torch.zeros(2, 3), torch.zeros(2, 3), None,
                             batch_queries=1, batch_items=1, seed=0)),
            "expects positives",
        ),
    ],
)  # fmt: skip
def test_wrong_options_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
