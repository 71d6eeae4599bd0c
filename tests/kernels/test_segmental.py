"""Segmental decoding against enumeration of all label sequences, and its limits."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isotone.kernels.viterbi import segmental_decode
from tests.kernels.viterbi_parts import (
    CASES,
    frame_labels,
    lengths,
    merge,
    path_score,
    random_log_probs,
    runs,
    seeds,
)


@CASES
@given(seeds, st.integers(1, 6), st.sampled_from([0.0, 0.3, 1.5, 50.0]), st.integers(1, 3), st.booleans())
def test_segmental_decode_is_the_best_of_all_label_sequences(
    seed: int, frames: int, penalty: float, least: int, with_blank: bool
) -> None:
    rng = np.random.default_rng(seed)
    log_probs = random_log_probs(rng, 1, frames, 3)

    def value(chosen: tuple[int, ...]) -> float:
        return path_score(log_probs[0], chosen) - penalty * (len(merge(chosen)) - 1)

    allowed = [c for c in itertools.product(range(3), repeat=frames) if min(runs(c)) >= min(least, frames)]
    best = max(allowed, key=value)
    blank = 1 if with_blank else None
    labels, paths = segmental_decode(log_probs, lengths(frames), penalty, blank, least)
    # random scores have no ties: the best sequence is unique
    assert labels[0] == [v for v in merge(best) if v != blank]
    assert frame_labels(paths[0], np.array([*labels[0], 0]), 1) == best


def test_segmental_decode_limits() -> None:
    rng = np.random.default_rng(0)
    log_probs = random_log_probs(rng, 2, 50, 7)
    labels, paths = segmental_decode(log_probs, lengths(50, 0), 0.0)
    assert labels == [merge(tuple(log_probs[0].argmax(1).tolist())), []]
    assert (paths[1] == -2).all()
    labels, _ = segmental_decode(log_probs, lengths(50, 50), np.inf)
    assert labels == [[int(x.sum(0).argmax())] for x in log_probs]
    counts = [len(segmental_decode(log_probs, lengths(50, 50), c)[0][0]) for c in (0.0, 0.5, 1.0, 2.0, 4.0)]
    assert counts == sorted(counts, reverse=True)
