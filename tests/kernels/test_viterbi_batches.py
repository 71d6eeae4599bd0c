"""Batches of rows: padding, threads, types, layouts, and errors that name the row."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotone.alignment import AlignmentError
from isotone.kernels import threads as threading
from isotone.kernels.viterbi import check_ctc, ctc_path, monotone_path, segmental_decode
from tests.kernels.viterbi_parts import (
    EXACT,
    lengths,
    ragged,
    random_log_probs,
)


def spoil(log_probs: np.ndarray, labels: np.ndarray, n: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same batch with padding that must not be read."""
    log_probs, labels = log_probs.copy(), labels.copy()
    for b in range(len(n)):
        log_probs[b, n[b] :] = np.nan
        labels[b, m[b] :] = -(10**6)
    return log_probs, labels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_is_its_rows_and_padding_is_never_read(
    dtype: type, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "SERIAL_CELLS", 0)
    log_probs, labels, n, m = ragged(np.random.default_rng(2), 30, 400, 60, 20)
    log_probs = log_probs.astype(dtype)
    spoilt, spoilt_labels = spoil(log_probs, labels, n, m)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        ctc, ctc_scores = ctc_path(spoilt, spoilt_labels, n, m, 0)
        mono, mono_scores = monotone_path(spoilt, spoilt_labels, n, m)
        texts, free = segmental_decode(spoilt, n, 1.0)
    finally:
        torch.set_num_threads(before)
    assert ctc_scores.dtype == mono_scores.dtype == dtype
    assert ctc.dtype == mono.dtype == np.int64
    for b in range(len(n)):
        row = (log_probs[b : b + 1, : n[b]], labels[b : b + 1, : m[b]], n[b : b + 1], m[b : b + 1])
        for together, scores, (path, score) in (
            (ctc, ctc_scores, ctc_path(*row, 0)),
            (mono, mono_scores, monotone_path(*row)),
        ):
            np.testing.assert_array_equal(together[b, : n[b]], path[0])
            assert (together[b, n[b] :] == -2).all()
            assert scores[b] == score[0]
        text, path = segmental_decode(row[0], row[2], 1.0)
        assert texts[b] == text[0]
        np.testing.assert_array_equal(free[b, : n[b]], path[0])


def test_tensors_give_tensors() -> None:
    log_probs, labels, n, m = ragged(np.random.default_rng(3), 2, 40, 9, 5)
    as_tensors = [torch.from_numpy(x) for x in (log_probs, labels, n, m)]
    half = as_tensors[0].to(torch.bfloat16).requires_grad_()
    paths, scores = ctc_path(half, *as_tensors[1:], 0)
    expected, expected_scores = ctc_path(half.detach().float().numpy(), labels, n, m, 0)
    assert isinstance(paths, torch.Tensor)
    assert scores.dtype == torch.float32
    np.testing.assert_array_equal(paths.numpy(), expected)
    np.testing.assert_array_equal(scores.numpy(), expected_scores)
    paths, _ = monotone_path(*as_tensors)
    assert isinstance(paths, torch.Tensor)
    assert isinstance(segmental_decode(as_tensors[0], as_tensors[2], 1.0)[1], torch.Tensor)


def test_memory_layout_does_not_matter() -> None:
    log_probs, labels, n, m = ragged(np.random.default_rng(4), 3, 40, 9, 5)
    turned = np.ascontiguousarray(log_probs.transpose(1, 2, 0)).transpose(2, 0, 1)
    assert not turned.flags.c_contiguous
    np.testing.assert_array_equal(
        ctc_path(turned, labels, n, m, 0)[0], ctc_path(log_probs, labels, n, m, 0)[0]
    )


def test_empty_targets_and_empty_batches() -> None:
    log_probs = random_log_probs(np.random.default_rng(5), 2, 6, 4)
    paths, scores = ctc_path(log_probs, np.zeros((2, 0), int), lengths(6, 0), lengths(0, 0), 2)
    np.testing.assert_array_equal(paths, [[-1] * 6, [-2] * 6])
    np.testing.assert_allclose(scores, [log_probs[0, :, 2].sum(), 0.0], atol=EXACT)
    paths, scores = ctc_path(log_probs[:0], np.zeros((0, 3), int), lengths(), lengths(), 2)
    assert paths.shape == (0, 6)
    with pytest.raises(AlignmentError, match=r"Row 1: no tokens"):
        monotone_path(log_probs, np.zeros((2, 3), int), lengths(6, 6), lengths(3, 0))


def test_infeasible_rows_are_named() -> None:
    labels = np.zeros((4, 31), int) + np.arange(31) % 5 + 1
    labels[3, [5, 11, 17, 23]] = labels[3, [4, 10, 16, 22]]
    log_probs = np.zeros((4, 40, 7))
    message = "Row 3: 31 tokens (4 repeats) need at least 35 frames, got 28."
    with pytest.raises(AlignmentError) as caught:
        ctc_path(log_probs, labels, lengths(31, 31, 40, 28), lengths(31, 31, 31, 31), 0)
    assert str(caught.value) == message
    check_ctc(labels, lengths(31, 31, 40, 35), lengths(31, 31, 31, 31), 7, 0)
    with pytest.raises(AlignmentError) as caught:
        monotone_path(log_probs, labels, lengths(40, 30, 40, 40), lengths(31, 31, 31, 31))
    assert str(caught.value) == "Row 1: 31 tokens need at least 31 frames, got 30."
    with pytest.raises(AlignmentError) as caught:
        monotone_path(log_probs, labels, lengths(40, 40, 40, 40), lengths(3, 3, 20, 3), None, 3)
    assert str(caught.value) == "Row 2: 20 tokens of 3 frames need at least 60 frames, got 40."


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_with_nan_are_named(value: float) -> None:
    log_probs, labels, n, m = ragged(np.random.default_rng(6), 3, 40, 9, 5)
    spoilt = log_probs.copy()
    spoilt[1, n[1] - 1] = value
    for run in (
        lambda: ctc_path(spoilt, labels, n, m, 0),
        lambda: monotone_path(spoilt, labels, n, m),
        lambda: segmental_decode(spoilt, n, 1.0),
    ):
        with pytest.raises(AlignmentError, match="Row 1: its log-probabilities hold NaN"):
            run()
    spoilt = log_probs.copy()
    spoilt[1, 0, 0] = value  # the blank, which the first frame may carry
    with pytest.raises(AlignmentError, match="Row 1"):
        ctc_path(spoilt, labels, n, m, 0)


def test_arguments_are_checked() -> None:
    x, y, n, m = np.zeros((1, 5, 3)), np.array([[1, 2]]), lengths(5), lengths(2)
    for run, message in (
        (lambda: ctc_path(x[0], y, n, m, 0), r"shape \(B, T, V\); got \(5, 3\)"),
        (lambda: ctc_path(x, y[0], n, m, 0), r"labels of shape \(1, U\)"),
        (lambda: ctc_path(x, y, lengths(6), m, 0), "1 frame lengths from 0 to 5"),
        (lambda: ctc_path(x, y, n, lengths(3), 0), "1 label lengths from 0 to 2"),
        (lambda: ctc_path(x, y, n, m, 3), "blank from 0 to 2; got 3"),
        (lambda: ctc_path(x, y, n, m, 2), r"token 1 is the blank \(2\)"),
        (lambda: ctc_path(x, y + 1, n, m, 0), "token 1 has label 3; expected labels from 0 to 2"),
        (lambda: monotone_path(x, -y, n, m), "token 0 has label -1; expected labels from 0 to 2"),
        (lambda: monotone_path(x, y, n, m, np.zeros((1, 3), bool)), r"optional of shape \(1, 2\)"),
        (lambda: monotone_path(x, y, n, m, None, 0), "min_frames >= 1"),
        (lambda: segmental_decode(x, n, -1.0), "change_penalty >= 0"),
        (lambda: segmental_decode(x, n, 1.0, blank=3), "blank from 0 to 2; got 3"),
    ):
        with pytest.raises(ValueError, match=message):
            run()
