"""Viterbi kernels against enumeration of all paths, a plain dynamic programme and torchaudio."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import AlignmentError
from isotone.kernels import threads as threading
from isotone.kernels.paths import coupling_from_paths, fill_blanks
from isotone.kernels.viterbi import check_ctc, ctc_path, monotone_path, segmental_decode

CASES = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32 - 1)
EXACT = 1e-9  # float64 sums of at most a few hundred terms
FLOAT32 = 1e-5  # relative: scores are rounded to float32 once, torchaudio also sums in it


def random_log_probs(rng: np.random.Generator, *shape: int) -> np.ndarray:
    x = rng.normal(size=shape) * 2
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def lengths(*n: int) -> np.ndarray:
    return np.array(n)


def merge(labels: tuple[int, ...]) -> list[int]:
    return [label for label, _ in itertools.groupby(labels)]


def frame_labels(path: np.ndarray, labels: np.ndarray, blank: int) -> tuple[int, ...]:
    return tuple(blank if u < 0 else int(labels[u]) for u in path)


def path_score(log_probs: np.ndarray, chosen: tuple[int, ...]) -> float:
    return float(sum(log_probs[t, v] for t, v in enumerate(chosen)))


def runs(path: tuple[int, ...]) -> list[int]:
    return [len(list(group)) for _, group in itertools.groupby(path)]


def monotone_paths(frames: int, tokens: int, optional: np.ndarray, least: int) -> list[tuple[int, ...]]:
    """Every path that :func:`monotone_path` may choose from."""
    required = set(np.flatnonzero(~optional).tolist())
    return [
        a
        for a in itertools.combinations_with_replacement(range(tokens), frames)
        if required <= set(a) and min(runs(a)) >= least
    ]


@CASES
@given(seeds, st.integers(1, 5), st.integers(0, 3), st.integers(0, 2))
def test_ctc_path_is_the_best_of_all_paths(seed: int, frames: int, tokens: int, blank: int) -> None:
    rng = np.random.default_rng(seed)
    log_probs = random_log_probs(rng, 1, frames, 3)
    labels = rng.choice([v for v in range(3) if v != blank], size=(1, tokens))
    scores = [
        path_score(log_probs[0], chosen)
        for chosen in itertools.product(range(3), repeat=frames)
        if [v for v in merge(chosen) if v != blank] == labels[0].tolist()
    ]
    if not scores:
        with pytest.raises(AlignmentError, match="Row 0"):
            ctc_path(log_probs, labels, lengths(frames), lengths(tokens), blank)
        return
    paths, score = ctc_path(log_probs, labels, lengths(frames), lengths(tokens), blank)
    chosen = frame_labels(paths[0], labels[0], blank)
    assert score[0] == pytest.approx(max(scores), abs=EXACT)
    assert path_score(log_probs[0], chosen) == pytest.approx(score[0], abs=EXACT)
    assert [v for v in merge(chosen) if v != blank] == labels[0].tolist()
    # the numbers in the path are those of the tokens in turn
    assert merge(tuple(u for u in paths[0] if u >= 0)) == list(range(tokens))


@CASES
@given(seeds, st.integers(1, 7), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_monotone_path_is_the_best_of_all_paths(
    seed: int, frames: int, tokens: int, least: int, some_optional: bool
) -> None:
    rng = np.random.default_rng(seed)
    log_probs = random_log_probs(rng, 1, frames, 3)
    labels = rng.integers(0, 3, (1, tokens))
    optional = rng.random((1, tokens)) < (0.6 if some_optional else 0.0)
    allowed = monotone_paths(frames, tokens, optional[0], least)
    arguments = (log_probs, labels, lengths(frames), lengths(tokens), optional, least)
    if not allowed:
        with pytest.raises(AlignmentError, match="Row 0"):
            monotone_path(*arguments)
        return
    paths, score = monotone_path(*arguments)
    best = max(path_score(log_probs[0], frame_labels(np.array(a), labels[0], -1)) for a in allowed)
    assert tuple(paths[0].tolist()) in allowed
    assert score[0] == pytest.approx(best, abs=EXACT)
    assert path_score(log_probs[0], frame_labels(paths[0], labels[0], -1)) == pytest.approx(best, abs=EXACT)


def far(path: np.ndarray | tuple[int, ...], near: np.ndarray) -> int:
    """Frames whose token is not near."""
    return sum(not first <= u <= last for u, (first, last) in zip(path, near.tolist()))


@CASES
@given(
    seeds,
    st.integers(1, 7),
    st.integers(1, 4),
    st.integers(1, 2),
    st.booleans(),
    st.sampled_from([0.0, 0.7, 30.0]),
)
def test_frames_with_far_tokens_cost(
    seed: int, frames: int, tokens: int, least: int, some_optional: bool, cost: float
) -> None:
    rng = np.random.default_rng(seed)
    log_probs = random_log_probs(rng, 1, frames, 3)
    labels = rng.integers(0, 3, (1, tokens))
    optional = rng.random((1, tokens)) < (0.6 if some_optional else 0.0)
    near = np.sort(rng.integers(-1, tokens + 2, (1, frames, 2)), -1)
    allowed = monotone_paths(frames, tokens, optional[0], least)
    if not allowed:
        return
    paths, score = monotone_path(
        log_probs, labels, lengths(frames), lengths(tokens), optional, least, near=near, far_cost=cost
    )

    def value(path: tuple[int, ...]) -> float:
        return path_score(log_probs[0], frame_labels(np.array(path), labels[0], -1)) - cost * far(
            path, near[0]
        )

    found = tuple(paths[0].tolist())
    assert found in allowed
    assert value(found) == pytest.approx(max(map(value, allowed)), abs=EXACT)
    assert score[0] == pytest.approx(value(found), abs=EXACT)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_far_tokens_where_the_trellis_is_not_kept(share: float) -> None:
    """Several blocks and tiles, ragged rows: as if the cost were in the scores of labels that are all different."""
    rng = np.random.default_rng(3)
    frames, tokens = lengths(700, 300), lengths(600, 90)
    log_probs = random_log_probs(rng, 2, 700, 600).astype(np.float32)
    labels = np.stack([np.arange(600)] * 2)
    optional = rng.random((2, 600)) < share
    near = np.sort(rng.integers(0, 600, (2, 700, 2)), 1)
    near[:, :, 1] += 20
    outside = (np.arange(600) < near[:, :, :1]) | (np.arange(600) > near[:, :, 1:])
    expected, score = monotone_path(log_probs - 2 * outside, labels, frames, tokens, optional)
    paths, found = monotone_path(log_probs, labels, frames, tokens, optional, near=near, far_cost=2.0)
    assert (paths == expected).all()
    np.testing.assert_allclose(found, score, rtol=FLOAT32)
    free = monotone_path(log_probs, labels, frames, tokens, optional)
    for same in ({"near": near, "far_cost": 0.0}, {"near": near * 0 + [-5, 999], "far_cost": 9.0}):
        assert (monotone_path(log_probs, labels, frames, tokens, optional, **same)[0] == free[0]).all()
    assert (free[0] != paths).any()


@pytest.mark.parametrize(
    ("shape", "cost"), [((1, 3, 2), 1.0), ((1, 4), 1.0), ((1, 4, 2), -1.0), ((1, 4, 2), np.inf)]
)
def test_near_tokens_are_checked(shape: tuple[int, ...], cost: float) -> None:
    log_probs, labels = np.zeros((1, 4, 3)), np.array([[1, 2]])
    with pytest.raises(ValueError, match=r"near of shape \(1, 4, 2\) and a finite far_cost"):
        monotone_path(log_probs, labels, lengths(4), lengths(2), near=np.zeros(shape), far_cost=cost)


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


def plain_monotone_score(log_probs: np.ndarray, labels: np.ndarray, optional: np.ndarray) -> float:
    """Best score without blanks, cell by cell, every predecessor tried."""
    frames, tokens = len(log_probs), len(labels)
    table = np.full((frames, tokens), -np.inf)
    for t, u in itertools.product(range(frames), range(tokens)):
        before = [0.0] if t == 0 and optional[:u].all() else []
        if t > 0:
            before = [table[t - 1, v] for v in range(u + 1) if optional[v + 1 : u].all()]
        table[t, u] = max(before, default=-np.inf) + log_probs[t, labels[u]]
    return float(max(table[-1, u] for u in range(tokens) if optional[u + 1 :].all()))


@pytest.mark.parametrize("frames", [25, 26, 40, 90])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_monotone_path_equals_a_plain_dynamic_programme(frames: int, share: float) -> None:
    rng = np.random.default_rng(frames)
    log_probs = random_log_probs(rng, 1, frames, 6)
    labels = rng.integers(0, 6, (1, 25))
    optional = rng.random((1, 25)) < share
    paths, score = monotone_path(log_probs, labels, lengths(frames), lengths(25), optional)
    assert score[0] == pytest.approx(plain_monotone_score(log_probs[0], labels[0], optional[0]), abs=EXACT)
    assert path_score(log_probs[0], frame_labels(paths[0], labels[0], -1)) == pytest.approx(
        score[0], abs=EXACT
    )
    assert set(np.flatnonzero(~optional[0])) <= set(paths[0].tolist())
    assert (np.diff(paths[0]) >= 0).all()


def test_ctc_path_scores_equal_torchaudio() -> None:
    functional = pytest.importorskip("torchaudio.functional")
    rng = np.random.default_rng(1)
    for case in range(1000):
        tokens = int(rng.integers(1, 30))
        labels = rng.integers(1, 6, (1, tokens))
        least = tokens + int((labels[0, 1:] == labels[0, :-1]).sum())
        # as tight as can be, every other time
        frames = least + (0 if case % 2 else int(rng.integers(0, 100)))
        log_probs = torch.from_numpy(random_log_probs(rng, 1, frames, 6)).float()
        _, score = ctc_path(
            log_probs, torch.from_numpy(labels), torch.tensor([frames]), torch.tensor([tokens]), 0
        )
        _, theirs = functional.forced_align(log_probs, torch.from_numpy(labels), blank=0)
        assert float(score) == pytest.approx(float(theirs.sum()), rel=FLOAT32)


def ragged(
    rng: np.random.Generator, rows: int, frames: int, tokens: int, vocab: int
) -> tuple[np.ndarray, ...]:
    log_probs = random_log_probs(rng, rows, frames, vocab)
    labels = rng.integers(1, vocab, (rows, tokens))
    n = rng.integers(2 * tokens, frames + 1, rows)
    m = rng.integers(1, tokens + 1, rows)
    return log_probs, labels, n, m


def spoil(log_probs: np.ndarray, labels: np.ndarray, n: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same batch with padding that nobody may read."""
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
    monkeypatch.setattr(threading, "_SERIAL_CELLS", 0)
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


def test_forbidden_labels_are_avoided() -> None:
    log_probs = np.log(np.full((1, 5, 3), 1 / 3))
    log_probs[0, [0, 1, 4], 1] = -np.inf
    paths, _ = ctc_path(log_probs, np.array([[1, 2]]), lengths(5), lengths(2), 0)
    assert [t for t in range(5) if paths[0, t] == 0] in ([2], [3], [2, 3])
    log_probs[0, :, 1] = -np.inf
    with pytest.raises(AlignmentError, match="Row 0: every path has probability 0"):
        ctc_path(log_probs, np.array([[1, 2]]), lengths(5), lengths(2), 0)
    with pytest.raises(AlignmentError, match="probability 0"):
        monotone_path(log_probs, np.array([[1, 2]]), lengths(5), lengths(2))


def test_the_path_stays_on_ties() -> None:
    level = np.zeros((1, 4, 3))
    np.testing.assert_array_equal(
        monotone_path(level, np.array([[1, 2]]), lengths(4), lengths(2))[0], [[0, 1, 1, 1]]
    )


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
def test_what_is_not_a_number_is_named(value: float) -> None:
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


def filled_by_hand(path: list[int], rule: str, edges: str) -> list[int]:
    """Blanks given away one run at a time."""
    out, t = list(path), 0
    while t < len(path):
        end = t
        while end < len(path) and path[end] == -1:
            end += 1
        left = path[t - 1] if t > 0 else None
        right = path[end] if end < len(path) and path[end] >= 0 else None
        size = end - t
        if left is not None and right is not None:
            kept = size if rule == "previous" else (size + 1) // 2
            out[t:end] = [left] * kept + [right] * (size - kept)
        elif edges == "fill" and (left, right) != (None, None):
            out[t:end] = [right if left is None else left] * size
        t = max(end, t + 1)
    return out


@CASES
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=5),
    st.integers(0, 4),
    st.integers(0, 3),
)
def test_fill_blanks_equals_filling_by_hand(tokens: list[tuple[int, int]], tail: int, padding: int) -> None:
    path = [u for i, (blanks, frames) in enumerate(tokens) for u in [-1] * blanks + [i] * frames] + [
        -1
    ] * tail
    paths = torch.tensor([path + [-2] * padding], dtype=torch.long).reshape(1, -1)
    assert fill_blanks(paths, "leave").tolist() == paths.tolist()
    for rule, edges in itertools.product(("previous", "split"), ("fill", "leave")):
        result = fill_blanks(paths, rule, edges)[0].tolist()
        assert result == filled_by_hand(path, rule, edges) + [-2] * padding
        if edges == "fill" and tokens:
            assert -1 not in result


def test_fill_blanks_examples() -> None:
    paths = torch.tensor([[-1, 0, -1, -1, -1, 1, -1, -2]])
    assert fill_blanks(paths, "previous").tolist() == [[0, 0, 0, 0, 0, 1, 1, -2]]
    assert fill_blanks(paths, "split").tolist() == [[0, 0, 0, 0, 1, 1, 1, -2]]
    assert fill_blanks(paths, "split", edges="leave").tolist() == [[-1, 0, 0, 0, 1, 1, -1, -2]]
    with pytest.raises(ValueError, match="rule for blanks"):
        fill_blanks(paths, "next")  # type: ignore[arg-type]


@CASES
@given(seeds, st.integers(1, 4), st.integers(0, 8))
def test_coupling_from_paths_holds_the_path(seed: int, rows: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(0, size + 1, rows), rng.integers(1, 5, rows)
    paths = np.full((rows, size), -2)
    for b in range(rows):
        paths[b, : n[b]] = np.where(rng.random(n[b]) < 0.4, -1, np.sort(rng.integers(0, m[b], n[b])))
    scores = torch.from_numpy(rng.normal(size=rows))
    coupling = coupling_from_paths(torch.from_numpy(paths), torch.from_numpy(n), torch.from_numpy(m), scores)
    expected = [[(t, u, 1.0) for t, u in enumerate(row) if u >= 0] for row in paths.tolist()]
    width = max([1, *map(len, expected)])
    assert coupling.source.shape == coupling.target.shape == coupling.mass.shape == (rows, width)
    for b, entries in enumerate(expected):
        columns = (coupling.source[b], coupling.target[b], coupling.mass[b])
        got = list(zip(*(x.tolist() for x in columns)))
        assert got[: len(entries)] == entries
        assert all(mass == 0.0 for *_, mass in got[len(entries) :])
        assert all(entry[:2] == entries[-1][:2] for entry in got[len(entries) :] if entries)
    assert coupling.score is scores
    assert coupling.source_lengths.tolist() == n.tolist()
    assert coupling.target_lengths.tolist() == m.tolist()
