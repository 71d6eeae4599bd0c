"""Boundaries that are moved to the largest change of the spectrum."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import butter, sosfilt

from isotone.audio import boundaries
from isotone.audio.boundaries import LEAST_S, REACH_S, moved, spectral_change
from isotone.model import Model
from isotone.model.decoding import DecodingConfig, ModelError
from isotone.pipeline import Pipeline
from tests.pipeline.parts import model_of_characters, noise

RATE = 16_000


def hisses(*lengths: float, rate: int = RATE) -> np.ndarray:
    """Return noise below and above 1500 Hz in turn."""
    rng, parts = np.random.default_rng(0), []
    for kind, length in zip(itertools.cycle(("lowpass", "highpass")), lengths):
        sections = butter(4, 1500, kind, fs=rate, output="sos")
        parts.append(sosfilt(sections, rng.standard_normal(round(length * rate) + 500))[500:])
    return (0.1 * np.concatenate(parts)).astype(np.float32)


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 44_100])
@pytest.mark.parametrize("error", [-0.02, -0.01, 0.0, 0.013, 0.02])
def test_a_boundary_moves_to_the_change(rate: int, error: float) -> None:
    # late in the recording, where steps of another length than 2 ms would have added up
    sound = hisses(4.0, 0.2, 0.3, rate=rate)
    (_, first), (second, end) = moved([(3.0, 4.2 + error), (4.2 + error, 4.5)], sound, rate, 50.0)
    assert first == second == pytest.approx(4.2, abs=0.008)
    assert end == 4.5
    # with the weight of the English pack distance counts as well
    some = moved([(3.0, 4.2 + error), (4.2 + error, 4.5)], sound, rate, 2.0)[0][1]
    assert abs(some - 4.2) <= 0.6 * abs(error) + 0.008


def test_a_boundary_stays_where_nothing_changes_near() -> None:
    sound = hisses(0.5, 0.5)
    spans = [(0.0, 0.3), (0.3, 0.4), (0.7, 1.0)]
    assert moved(spans, np.zeros(RATE, np.float32), RATE, 2.0) == spans
    assert moved(spans, sound, RATE, 0.0) == spans
    for (start, end), (old_start, old_end) in zip(moved(spans, sound, RATE, 2.0), spans):
        assert abs(start - old_start) < 0.02
        assert abs(end - old_end) < 0.02


def test_ends_of_the_recording_and_empty_tokens_stay() -> None:
    sound = hisses(0.02, 0.46, 0.02)
    assert moved([(0.0, 0.5)], sound, RATE, 5.0) == [(0.0, 0.5)]
    assert moved([], sound, RATE, 2.0) == []
    assert moved([(0.2, 0.2)], sound, RATE, 2.0) == [(0.2, 0.2)]
    (_, end), empty, (start, _) = moved([(0.0, 0.03), (0.03, 0.03), (0.03, 0.5)], sound, RATE, 50.0)
    assert empty == (end, end)
    assert end == start < 0.025
    assert moved([(0.1, 0.1), (0.2, 0.3), (0.35, 0.35)], np.zeros(RATE, np.float32), RATE, 2.0) == [
        (0.1, 0.1), (0.2, 0.3), (0.3, 0.3),
    ]  # fmt: skip


@given(st.lists(st.floats(1e-3, 0.08), min_size=2, max_size=12), st.floats(0.0, 20.0), st.integers(0, 9))
def test_order_lengths_and_reach(lengths: list[float], weight: float, seed: int) -> None:
    sound = np.random.default_rng(seed).standard_normal(RATE).astype(np.float32)
    edges = np.cumsum([0.01, *lengths])
    spans = list(itertools.pairwise(edges.tolist()))[::2]  # with gaps
    found = moved(spans, sound, RATE, weight)
    flat, old = np.array(found).ravel(), np.array(spans).ravel()
    assert (np.abs(flat - old) <= REACH_S + 1e-9).all()
    assert (np.diff(flat) >= np.minimum(np.diff(old), LEAST_S) - 1e-9).all()


@given(st.data())
def test_the_moves_are_the_best_of_all(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 3))
    step = 0.002
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boundaries, "_MOVES", 4)
        scores = np.random.default_rng(data.draw(st.integers(0, 999))).standard_normal((size, 9))
        lengths = np.array(data.draw(st.lists(st.floats(0.0, 0.03), min_size=size - 1, max_size=size - 1)))
        found = boundaries._best_moves(lengths, scores, step)
    least = np.minimum(lengths, LEAST_S) - 1e-8
    allowed = [
        moves
        for moves in itertools.product(range(-4, 5), repeat=size)
        if (lengths + np.diff(moves) * step >= least).all()
    ]
    totals = [sum(scores[i, m + 4] for i, m in enumerate(moves)) for moves in allowed]
    assert tuple(found.tolist()) in allowed
    assert sum(scores[i, m + 4] for i, m in enumerate(found)) == pytest.approx(max(totals))


def test_blocks_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = hisses(*[0.11] * 20)
    whole = spectral_change(sound, RATE)
    assert len(whole) == len(sound) // 32 + 1
    monkeypatch.setattr(boundaries, "_BLOCK", 100)
    # floors are of a block
    assert np.abs(np.exp(spectral_change(sound, RATE)) - np.exp(whole)).mean() < 0.1 * np.exp(whole).mean()


def test_memory_is_that_of_a_block() -> None:
    sound = np.zeros(20 * 60 * RATE, np.float32)
    tracemalloc.start()
    spectral_change(sound, RATE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < sound.nbytes


def test_only_the_models_own_aligner_is_refined() -> None:
    model = Model.load("english")
    assert Pipeline(model).refine == 2.0
    assert Pipeline(model, aligner=model.aligner_of("ottc")).refine == 0.0


def test_given_and_recognised_texts_are_refined_alike() -> None:
    joint = Pipeline(model_of_characters(), check=False)
    samples = noise(1.5)
    text = joint.transcribe("u", samples).text
    plain = joint.transcribe("u", samples).alignment, joint.align("u", samples, joint.encode(text)).alignment
    joint.refine = 20.0
    refined = (
        joint.transcribe("u", samples).alignment,
        joint.align("u", samples, joint.encode(text)).alignment,
    )
    for before, after in zip(plain, refined):
        old, new = (np.array([(s.start, s.end) for s in a.tiers[-1]]) for a in (before, after))
        assert 0 < np.abs(old - new).max() <= REACH_S + 1e-9
        assert [s.label for s in before.tiers[-1]] == [s.label for s in after.tiers[-1]]


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_an_unusable_weight_is_refused(weight: float) -> None:
    config = DecodingConfig("ctc", {"name": "ctc-greedy"}, refine=weight)
    with pytest.raises(ModelError, match=r"reading\.refine is a weight of 0 or more"):
        config.check_heads(["ctc"])
