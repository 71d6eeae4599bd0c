"""Prefix beam search against enumeration of all paths, the CTC loss and flashlight's decoder."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import AlignmentError
from isotone.kernels import threads
from isotone.kernels.beam import prefix_beam_search

CASES = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def random_log_probs(rng: np.random.Generator, *shape: int, scale: float = 2.0) -> np.ndarray:
    x = rng.normal(size=shape) * scale
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def all_sequences(log_probs: np.ndarray, blank: int) -> dict[tuple[int, ...], float]:
    """The log-probability of every label sequence, by summing over every path."""
    sums: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(log_probs.shape[1]), repeat=len(log_probs)):
        labels = tuple(v for v, _ in itertools.groupby(path) if v != blank)
        score = sum(log_probs[t, v] for t, v in enumerate(path))
        sums[labels] = np.logaddexp(sums.get(labels, -np.inf), score)
    return sums


def rows(found: tuple, b: int) -> list[tuple[tuple[int, ...], float]]:
    """The hypotheses of a row and their scores."""
    triples = zip(*(np.asarray(x)[b].tolist() for x in found))
    return [(tuple(labels[:n]), score) for labels, n, score in triples if score > -np.inf]


def ctc_log_prob(log_probs: np.ndarray, labels: tuple[int, ...], blank: int) -> float:
    """By torch's own CTC loss."""
    loss = torch.nn.functional.ctc_loss(
        torch.from_numpy(log_probs), torch.tensor([labels]), torch.tensor([len(log_probs)]),
        torch.tensor([len(labels)]), blank, reduction="sum",
    )  # fmt: skip
    return -float(loss)


@CASES
@given(seeds, st.integers(0, 5), st.integers(2, 4), st.integers(0, 3), st.booleans())
def test_a_wide_beam_finds_every_sequence_with_its_probability(
    seed: int, frames: int, vocab: int, blank: int, holes: bool
) -> None:
    rng = np.random.default_rng(seed)
    blank %= vocab
    log_probs = random_log_probs(rng, frames, vocab)
    if holes:  # labels of probability 0, but never all of a frame's
        log_probs[rng.random(log_probs.shape) < 0.3] = -np.inf
        log_probs[np.arange(frames), rng.integers(0, vocab, frames)] = -1.0
    expected = {y: s for y, s in all_sequences(log_probs, blank).items() if s > -np.inf}
    beam = len(expected) + 1 + 3**5
    found = prefix_beam_search(
        log_probs[None], np.array([frames]), blank, beam=beam, count=beam, prune=np.inf
    )
    got = rows(found, 0)
    assert dict(got).keys() == expected.keys()
    assert len(got) == len(expected)
    np.testing.assert_allclose([s for _, s in got], [expected[y] for y, _ in got], atol=1e-9)
    assert [s for _, s in got] == sorted((s for _, s in got), reverse=True)


@CASES
@given(seeds, st.integers(1, 12), st.floats(0.5, 30.0))
def test_scores_of_any_beam_are_lower_bounds_and_its_sequences_differ(
    seed: int, beam: int, prune: float
) -> None:
    log_probs = random_log_probs(np.random.default_rng(seed), 25, 6)
    found = prefix_beam_search(log_probs[None], np.array([25]), 2, beam=beam, count=beam, prune=prune)
    got = rows(found, 0)
    assert 1 <= len(dict(got)) == len(got) <= beam
    for labels, score in got:
        assert 2 not in labels
        assert score <= ctc_log_prob(log_probs, labels, 2) + 1e-9


def test_scores_approach_the_ctc_loss_as_the_beam_widens() -> None:
    log_probs = random_log_probs(np.random.default_rng(3), 60, 8, scale=8.0)
    missing = []
    for beam in (30, 300, 3000):
        found = prefix_beam_search(log_probs[None], np.array([60]), 0, beam=beam, prune=np.inf)
        ((labels, score),) = rows(found, 0)
        missing.append(ctc_log_prob(log_probs, labels, 0) - score)
    assert missing[0] > missing[1] > missing[2] >= 0
    assert missing[2] < 1e-3


def test_summing_over_paths_beats_the_best_path() -> None:
    # the best path is all blanks (0.36), the best sequence "a" has three paths (0.24 + 0.24 + 0.16)
    log_probs = np.log([[[0.6, 0.4], [0.6, 0.4]]])
    found = prefix_beam_search(log_probs, np.array([2]), 0, count=2)
    assert rows(found, 0) == [((1,), pytest.approx(np.log(0.64))), ((), pytest.approx(np.log(0.36)))]


def test_a_prefix_that_comes_back_is_the_one_that_left() -> None:
    rng = np.random.default_rng(5)
    log_probs = random_log_probs(rng, 1, 200, 5, scale=0.5)  # flat: prefixes come and go
    found = prefix_beam_search(log_probs, np.array([200]), 0, beam=8, count=8)
    got = rows(found, 0)
    assert len(dict(got)) == len(got) == 8


@pytest.mark.parametrize("seed", range(8))
def test_the_best_hypothesis_is_flashlights(seed: int) -> None:
    decoder = pytest.importorskip("flashlight.lib.text.decoder", reason="flashlight-text is not installed")
    log_probs = random_log_probs(np.random.default_rng(seed), 20, 5, scale=5.0).astype(np.float32)
    options = decoder.LexiconFreeDecoderOptions(
        beam_size=200, beam_size_token=5, beam_threshold=1e9, lm_weight=0.0, sil_score=0.0, log_add=True,
        criterion_type=decoder.CriterionType.CTC,
    )  # fmt: skip
    theirs = decoder.LexiconFreeDecoder(options, decoder.ZeroLM(), -1, 0, []).decode(
        log_probs.ctypes.data, 20, 5
    )
    ((labels, score),) = rows(prefix_beam_search(log_probs[None], np.array([20]), 0, beam=200), 0)
    assert labels == tuple(v for v, _ in itertools.groupby(theirs[0].tokens[1:21]) if v != 0)
    # its beam holds a sequence up to twice: it loses more
    assert theirs[0].score - 1e-3 <= score <= theirs[0].score + 0.1


def test_rows_do_not_depend_on_padding_threads_or_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    log_probs = torch.from_numpy(random_log_probs(np.random.default_rng(0), 4, 30, 6))
    lengths = torch.tensor([30, 7, 0, 19])
    expected = prefix_beam_search(log_probs, lengths, 1, count=3)
    assert isinstance(expected.labels, torch.Tensor)
    assert expected.lengths[2, 0] == 0
    assert expected.scores[2].tolist() == [0.0, -np.inf, -np.inf]
    poisoned = log_probs.clone()
    for b, n in enumerate(lengths.tolist()):
        poisoned[b, n:] = torch.nan
    monkeypatch.setattr(threads, "SERIAL_CELLS", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    again = prefix_beam_search(poisoned, lengths, 1, count=3)
    for one, other in zip(expected, again):
        assert torch.equal(one, other)
    for b, n in enumerate(lengths.tolist()):
        alone = prefix_beam_search(log_probs[b : b + 1, :n].float(), lengths[b : b + 1], 1, count=3)
        assert [y for y, _ in rows(alone, 0)] == [y for y, _ in rows(expected, b)]


def test_pruned_labels_begin_no_token_and_still_repeat() -> None:
    log_probs = np.log([[[0.2, 0.79, 0.01], [0.9, 0.02, 0.08], [0.05, 0.05, 0.9]]])
    wide = prefix_beam_search(log_probs, np.array([3]), 0, count=9, prune=np.inf)
    narrow = prefix_beam_search(log_probs, np.array([3]), 0, count=9, prune=1.0)
    assert {y for y, _ in rows(narrow, 0)} == {(), (1,), (2,), (1, 2)}
    assert dict(rows(narrow, 0))[1, 2] < dict(rows(wide, 0))[1, 2]
    # the 2 of the second frame is pruned; the 1 there is a repeat, or leads to a prefix that is there already
    assert dict(rows(narrow, 0))[1, 2] == pytest.approx(np.log((0.79 * 0.92 + 0.2 * 0.02) * 0.9))


@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "NaN"), (np.inf, "NaN or \\+inf"), (-np.inf, "probability 0")]
)
def test_rows_that_are_not_finite_are_named(value: float, message: str) -> None:
    log_probs = random_log_probs(np.random.default_rng(0), 2, 4, 3)
    log_probs[1, 2] = value
    with pytest.raises(AlignmentError, match=f"Row 1.*{message}"):
        prefix_beam_search(log_probs, np.array([4, 4]), 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "count 1, beam 0"),
        ({"beam": 2, "count": 3}, "count 3"),
        ({"prune": -1.0}, "prune -1"),
        ({"prune": np.nan}, "prune nan"),
        ({"blank": 3}, "blank from 0 to 2"),
    ],
)
def test_options_outside_their_range_are_refused(options: dict, message: str) -> None:
    blank = options.pop("blank", 0)
    with pytest.raises(ValueError, match=message):
        prefix_beam_search(np.zeros((1, 2, 3)), np.array([2]), blank, **options)
