"""Lengths that are no integers are refused by all kernels: some would round them up, others down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from isotone.kernels.assignment import ordered_assignment, ordered_minimum
from isotone.kernels.beam import prefix_beam_search
from isotone.kernels.coupling import couple, frame_weights
from isotone.kernels.cross_entropy import pair_cross_entropy
from isotone.kernels.paths import coupling_from_paths, subframe_coupling
from isotone.kernels.posteriors import token_posteriors
from isotone.kernels.softdtw import (
    dtw,
    expected_alignment,
    soft_dtw,
    soft_dtw_sqeuclidean,
    squared_distances,
    subsequence_dtw,
)
from isotone.kernels.viterbi import banded_path, ctc_path, ctc_score, monotone_path, segmental_decode
from isotone.kernels.viterbi.graph import Arcs, fewest_frames
from isotone.types import check_integers, length_mask

B, T, U, V = 2, 6, 3, 4
X, Y = torch.rand(B, T, 5), torch.rand(B, U, 5)
COSTS = torch.rand(B, T, U)
LOG_PROBS = torch.rand(B, T, V).log_softmax(2)
LABELS = torch.tensor([[1, 2, 3], [3, 1, 2]])
PATHS = torch.zeros(B, T, dtype=torch.int64)
ENTRIES = torch.zeros(B, 2, dtype=torch.int64)
ARCS = Arcs(np.array([[0, 1, 2, 3, 4]] * B), np.array([[-1, 0, 1, 2]] * B), np.zeros((B, 4)))

Lengths = Any
KERNELS: dict[str, Callable[[Lengths, Lengths], object]] = {
    "soft_dtw": lambda n, m: soft_dtw(COSTS, 1.0, n, m),
    "expected_alignment": lambda n, m: expected_alignment(COSTS, 1.0, n, m),
    "dtw": lambda n, m: dtw(COSTS, n, m),
    "subsequence_dtw": lambda n, m: subsequence_dtw(COSTS.mT, m, n),
    "soft_dtw_sqeuclidean": lambda n, m: soft_dtw_sqeuclidean(X, Y, 1.0, n, m),
    "squared_distances": lambda n, m: squared_distances(X, Y, m),
    "ordered_minimum": lambda n, m: ordered_minimum(COSTS, None, n, m),
    "ordered_assignment": lambda n, m: ordered_assignment(COSTS.mT, m, n),
    "couple": lambda n, m: couple(COSTS[:, :, 0], COSTS[:, 0], n, m),
    "frame_weights": lambda n, m: frame_weights(COSTS[:, :, 0], n),
    "pair_cross_entropy": lambda n, m: pair_cross_entropy(LOG_PROBS, COSTS[:, 0, :2], ENTRIES, ENTRIES, n),
    "coupling_from_paths": lambda n, m: coupling_from_paths(PATHS, n, m),
    "subframe_coupling": lambda n, m: subframe_coupling(PATHS, LOG_PROBS, LABELS, n, m),
    "prefix_beam_search": lambda n, m: prefix_beam_search(LOG_PROBS, n, 0),
    "ctc_path": lambda n, m: ctc_path(LOG_PROBS, LABELS, n, m, 0),
    "ctc_score": lambda n, m: ctc_score(LOG_PROBS, LABELS, n, m, 0),
    "monotone_path": lambda n, m: monotone_path(LOG_PROBS, LABELS, n, m),
    "banded_path": lambda n, m: banded_path(LOG_PROBS, LABELS, n, m, 4),
    "segmental_decode": lambda n, m: segmental_decode(LOG_PROBS, n, 1.0),
    "token_posteriors": lambda n, m: token_posteriors(LOG_PROBS, _path(n, m), LABELS, n, m, 0),
    "fewest_frames": lambda n, m: fewest_frames(ARCS, m, LABELS),
    "length_mask": lambda n, m: length_mask(n, T),
}


def _path(n: Lengths, m: Lengths) -> torch.Tensor:
    return ctc_path(LOG_PROBS, LABELS, n.long(), m.long(), 0)[0]


@pytest.mark.parametrize("name", KERNELS)
def test_lengths_are_integers(name: str) -> None:
    n, m = torch.tensor([4, 6]), torch.tensor([2, 3])
    KERNELS[name](n, m)
    KERNELS[name](n.int(), m.int())
    for kind in (torch.float32, torch.float64, torch.bool):
        with pytest.raises(
            ValueError, match=f"Expected lengths as integers, .* got (torch.)?{str(kind)[6:]}"
        ):
            KERNELS[name](n.to(kind), m.to(kind))


def test_arrays_and_lists_of_lengths() -> None:
    x, y = LOG_PROBS.numpy(), LABELS.numpy()
    assert (ctc_path(x, y, [4, 6], np.array([2, 3], ">i4"), 0)[0] >= -2).all()
    with pytest.raises(ValueError, match="as integers, such as int64; got float64"):
        ctc_path(x, y, [4.7, 6], [2, 3], 0)
    assert ctc_path(x[:0], y[:0], [], [], 0)[0].shape == (0, T), "the type of none is any"
    check_integers(None, np.array([], np.float32), torch.tensor([]))
