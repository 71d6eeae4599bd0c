"""Counts of items by Hamming distance, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.evaluation import ranking
from isotone.kernels import hamming


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 150), st.integers(1, 60), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_histogram_counts_the_distances(bits, items, queries, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.random((queries, bits)) < 0.5, rng.random((items, bits)) < 0.5
    affinity = rng.integers(-1, 4, (queries, items))
    distance = (a[:, None] != b).sum(2)
    packed = hamming.pack(a), hamming.pack(b)
    assert (hamming.distances(*packed) == distance).all()
    counts = hamming.histogram(*packed, affinity, bits)
    for v in range(counts.shape[2]):
        for d in range(bits + 1):
            expected = ((distance == d) & (affinity == v)).sum(1)
            assert (counts[:, d, v] == expected).all()
    by_scores = ranking.tie_counts(-distance, affinity)
    np.testing.assert_allclose(
        ranking.average_precision_of(counts), ranking.average_precision_of(by_scores), rtol=1e-12
    )
    np.testing.assert_allclose(ranking.ndcg_of(counts), ranking.ndcg_of(by_scores), rtol=1e-12)


@pytest.mark.parametrize(
    ("items", "queries"), [(10_001, 19), (140_001, 9)]
)  # the second counts pairs of items
def test_histogram_of_many_blocks_and_threads(items, queries):
    rng = np.random.default_rng(0)
    words = rng.integers(0, 1 << 64, (items, 1), np.uint64)
    chosen, affinity = words[:queries], rng.choice([-1, 0, 1], (queries, items), p=[0.1, 0.8, 0.1])
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        counts = hamming.histogram(chosen, words, affinity, 64)
    finally:
        torch.set_num_threads(threads)
    for q in range(queries):
        distance = np.bitwise_count(words[:, 0] ^ chosen[q, 0])
        for value in (0, 1):
            expected = np.bincount(distance[affinity[q] == value], minlength=65)
            assert (counts[q, :, value] == expected).all()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: hamming.pack(np.zeros((2, 0))), "b >= 1"),
        (lambda: hamming.distances(np.zeros((1, 1)), np.zeros((1, 1))), "type uint64"),
        (
            lambda: hamming.histogram(np.zeros((1, 1), "u8"), np.zeros((1, 1), "u8"), [[1]], 65),
            "do not have 65 bits",
        ),
        (
            lambda: hamming.histogram(np.zeros((1, 1), "u8"), np.full((1, 1), 7, "u8"), [[1]], 2),
            "more than 2 bits",
        ),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
