"""The first stage against brute force over all ordered selections."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.search.codes import SILENCE, encode, fit_centroids, nearest_centroids, scan
from isotone.search.searcher import best_selection


def unit(*shape: int, seed: int) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(*shape, generator=rng), dim=-1)


def brute(table: np.ndarray, codes: np.ndarray) -> float:
    m = table.shape[1]
    rows = table[codes]
    return max(sum(rows[j, i] for i, j in enumerate(path)) for path in combinations(range(len(codes)), m))


@settings(max_examples=25, deadline=None)
@given(
    m=st.integers(1, 9),  # nine windows need the wider loop
    n=st.integers(1, 10),
    items=st.integers(1, 20),
    top=st.integers(1, 8),
    seed=st.integers(0, 99),
)
def test_the_scan_finds_the_items_with_the_best_ordered_sums(
    m: int, n: int, items: int, top: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    centroids, query = unit(6, 4, seed=seed), unit(m, 4, seed=seed + 1)
    if seed % 3 == 0:
        query[0] = 0  # a silent window of the query
    codes = rng.integers(0, 7, (items, n)).astype(np.uint16)
    lengths = rng.integers(1, n + 1, items).astype(np.uint16)
    if seed % 2:
        lengths[:] = n  # items of one length are taken together
    silent = (~query.any(1)).float()[None]  # silence is like silence alone
    table = torch.cat([silent, centroids @ query.T]).numpy()
    whole = np.round(table * 1000)
    best = {
        i: brute(whole, codes[i, : lengths[i]]) for i in range(items) if lengths[i] >= m
    }  # shorter items cannot hold the query
    found, means = scan(query, centroids, codes, lengths, top)
    assert len(found) == min(top, len(best))
    assert sorted((best[i] for i in found.tolist()), reverse=True) == pytest.approx(
        sorted(best.values(), reverse=True)[: len(found)], abs=1.001 * m
    )  # ties by rounding in the table
    assert means.tolist() == pytest.approx([best[i] / (1000 * m) for i in found.tolist()], abs=1.001e-3)
    assert (np.diff(means) <= 0).all()


def test_the_scan_takes_sixteen_windows_and_says_no_to_more() -> None:
    centroids = unit(300, 8, seed=0)
    items = unit(40, 30, 8, seed=1)
    codes = encode(items, centroids)
    lengths = np.full(40, 30, np.uint16)
    chosen = np.sort(np.random.default_rng(0).permutation(30)[:16])
    assert 7 in scan(items[7, chosen], centroids, codes, lengths, 1)[0]
    with pytest.raises(ValueError, match="1 to 16"):
        scan(unit(17, 8, seed=2), centroids, codes, lengths, 1)


def test_codes_are_the_nearest_centroids_and_silence_is_its_own() -> None:
    centroids, items = unit(50, 6, seed=3), unit(9, 7, 6, seed=4)
    items[2, 3:] = 0
    codes = encode(items, centroids)
    apart = torch.cdist(items, centroids[None])
    heard = items.abs().sum(-1) > 0
    np.testing.assert_array_equal(codes[heard], apart.argmin(-1)[heard].numpy() + 1)
    assert (codes[~heard] == SILENCE).all()


def test_centroids_of_separate_clusters_are_their_means() -> None:
    rng = torch.Generator().manual_seed(5)
    places = torch.eye(6) * 10
    vectors = places.repeat_interleave(40, 0) + 0.1 * torch.randn(240, 6, generator=rng)
    centroids = fit_centroids(vectors, 60)
    spread = (vectors - centroids[nearest_centroids(vectors, centroids)]).norm(dim=1)
    assert spread.max() < 1.0
    assert len(fit_centroids(vectors[:3], 60)) == 3


@pytest.mark.parametrize("seed", range(4))
def test_the_best_selection_is_that_of_all(seed: int) -> None:
    """Against enumeration; silence agrees with silence alone."""
    query, items = unit(3, 5, seed=seed), unit(6, 7, 5, seed=seed + 10)
    items[0, 2] = items[3, :3] = 0
    if seed == 3:
        query[1] = 0
    lengths = torch.tensor([7, 6, 5, 4, 3, 7])
    path, score = best_selection(query, items, lengths)
    for c in range(6):

        def value(chosen: tuple[int, ...], item: int = c) -> float:
            pairs = zip(query, items[item, list(chosen)])
            return sum(float(x @ y) if x.any() or y.any() else 1.0 for x, y in pairs)

        best = max(map(value, combinations(range(int(lengths[c])), 3)))
        assert value(tuple(path[c].tolist())) == pytest.approx(best, abs=1e-5)
        assert float(score[c]) == pytest.approx(best / 3, abs=1e-5)
