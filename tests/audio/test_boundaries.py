"""Boundaries that are moved to where the sound changes."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import butter, sosfilt
from scipy.stats import cauchy, norm

from isotone.audio import boundaries
from isotone.audio.boundaries import (
    REACH_S,
    SLOW_SPREAD_S,
    SLOW_WINDOW_S,
    SPREAD_S,
    WINDOW_S,
    changes_at,
    moved_edges,
)
from isotone.model import Model
from isotone.model.decoding import DecodingConfig, ModelError
from isotone.pipeline import Pipeline
from tests.pipeline.parts import model_of_characters, noise

RATE = 16_000


def moved(times, sound, rate, weight, slow=None):
    return boundaries.moved(times, slow or [False] * len(times), sound, rate, weight)[0]


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
    (_, first), (second, end) = moved([(3.0, 4.2 + error), (4.2 + error, 4.5)], sound, rate, 10.0)
    assert first == second == pytest.approx(4.2, abs=0.007)
    assert end == 4.5


def test_a_boundary_in_a_slow_change_moves_to_its_middle() -> None:
    low, high = hisses(1.0), hisses(1e-9, 1.0)[-RATE:]
    share = np.clip((np.arange(RATE) / RATE - 0.48) / 0.04, 0, 1)  # from 0.48 to 0.52 s
    sound = ((1 - share) * low + share * high).astype(np.float32)
    for start in (0.485, 0.5, 0.515):
        found = moved_edges(np.array([start]), sound, RATE, 10.0, np.array([True]))
        assert found[0] == pytest.approx(0.5, abs=0.012)


def test_a_boundary_stays_where_nothing_changes() -> None:
    edges = np.array([0.1, 0.2503, 0.4])
    np.testing.assert_array_equal(moved_edges(edges, hisses(0.5, 0.5), RATE, 0.0), edges)
    np.testing.assert_allclose(moved_edges(edges, np.zeros(RATE, np.float32), RATE, 10.0), edges, atol=0.0011)


def test_a_clear_change_is_sure_and_no_change_is_not() -> None:
    low, high = hisses(1.0), hisses(1e-9, 1.0)[-RATE:]
    share = np.clip((np.arange(RATE) / RATE - 0.47) / 0.06, 0, 1)
    sounds = hisses(0.5, 0.5), ((1 - share) * low + share * high).astype(np.float32), low
    abrupt, gradual, none = (changes_at(np.array([0.505]), sound, RATE, 10.0) for sound in sounds)
    assert 0 < abrupt.deviations[0] < gradual.deviations[0] < none.deviations[0]
    assert abrupt.deviations[0] < 0.003
    # the aligner's place alone says something: Cauchy's distribution, cut off where the window leaves two frames
    cut_off = (WINDOW_S - 0.004) / SPREAD_S
    assert none.deviations[0] == pytest.approx(SPREAD_S * np.sqrt(cut_off / np.arctan(cut_off) - 1), rel=0.1)
    assert abrupt.gains[0] > gradual.gains[0] > none.gains[0] >= 0
    assert abrupt.distances[0] > 2 * none.distances[0]


def test_boundaries_without_a_choice_say_nothing() -> None:
    sound = hisses(0.5, 0.5)
    for weight, edges in ((0.0, [0.3, 0.5]), (10.0, [0.0, 1.0])):
        found = changes_at(np.array(edges), sound, RATE, weight)
        np.testing.assert_array_equal(found.times, edges)
        assert np.isnan(found.deviations).all()
        assert not found.gains.any()
        assert not found.distances.any()
    assert [len(values) for values in changes_at(np.array([]), sound, RATE, 10.0)] == [0, 0, 0, 0]


def test_ends_of_the_recording_and_empty_tokens_stay() -> None:
    sound = hisses(0.02, 0.46, 0.02)
    assert moved([(0.0, 0.5)], sound, RATE, 10.0) == [(0.0, 0.5)]
    assert moved([], sound, RATE, 10.0) == []
    assert moved([(0.2, 0.2)], sound, RATE, 10.0) == [(0.2, 0.2)]
    (_, end), empty, (start, _) = moved([(0.0, 0.03), (0.03, 0.03), (0.03, 0.5)], sound, RATE, 10.0)
    assert empty == (end, end)
    assert end == start < 0.028
    silence = np.zeros(RATE, np.float32)
    assert moved([(0.1, 0.1), (0.2, 0.3), (0.36, 0.36)], silence, RATE, 10.0) == [
        (0.1, 0.1), (0.2, 0.3), (0.3, 0.3),
    ]  # fmt: skip


edges_of = st.lists(st.floats(2e-3, 0.3), min_size=1, max_size=12).map(lambda x: np.cumsum([0.01, *x]))


@given(edges_of, st.floats(0.0, 200.0), st.integers(0, 9))
def test_order_and_reach(edges: np.ndarray, weight: float, seed: int) -> None:
    sound = np.random.default_rng(seed).standard_normal(2 * RATE).astype(np.float32)
    edges = edges[edges < 2.0]
    found, _, gains, distances = changes_at(edges, sound, RATE, weight)
    assert (gains >= -1e-9).all()  # two means are never farther from the frames than one
    assert (distances >= 0).all()
    assert (np.abs(found - edges) <= REACH_S + 0.001).all()
    assert (np.diff(found) > 0).all()


@given(edges_of, st.integers(0, 9), st.integers(0, 2**14))
def test_every_place_is_the_best_by_the_formula(edges: np.ndarray, seed: int, kinds: int) -> None:
    rng = np.random.default_rng(seed)
    sound = (rng.standard_normal(4 * RATE) * np.repeat(rng.uniform(0.1, 1, 80), 800)).astype(np.float32)
    slow = np.array([bool(kinds >> i & 1) for i in range(len(edges))])
    window = np.where(slow, SLOW_WINDOW_S, WINDOW_S)
    found = moved_edges(edges, sound, RATE, 10.0, slow)
    around = np.array([-edges[0], *edges, 8.0 - edges[-1]])
    middles = (around[1:] + around[:-1]) / 2
    limits = np.maximum(middles[:-1], edges - window), np.minimum(middles[1:], edges + window)
    low, high, centres = (np.floor(x / 0.002 + 0.501).astype(int) for x in (*limits, edges))
    reach = round(REACH_S / 0.002)
    frames = boundaries._levels(sound, low[0], high[-1], 32, RATE)
    for edge, glides, start, stop, centre, ours in zip(edges, slow, low, high, centres, found):
        scores = {}
        for t in range(max(start + 2, centre - reach), min(stop - 2, centre + reach) + 1):
            sides = frames[start - low[0] : t - low[0]], frames[t - low[0] : stop - low[0]]
            total = sum(((side - side.mean(0)) ** 2).sum() for side in sides)
            r = total / (stop - start) / frames.shape[1]
            away = t * 0.002 - edge
            prior = norm.logpdf(away, 0, SLOW_SPREAD_S) if glides else cauchy.logpdf(away, 0, SPREAD_S)
            scores[t] = prior - 10 * np.log(r + 0.01)
        if scores:
            assert scores[round(ours / 0.002)] == pytest.approx(max(scores.values()), abs=1e-6)
        else:
            assert ours == edge


def test_a_hairs_breadth_decides_nothing() -> None:
    # boundaries on frames of the aligner, as another library computes them; two places may be equally good by chance
    apart, count = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        edges = np.unique(np.round(np.cumsum(rng.uniform(2e-3, 0.3, 12)) / 0.01)) * 0.01
        sound = rng.standard_normal(4 * RATE).astype(np.float32)
        found = moved_edges(edges, sound, RATE, 10.0)
        for hair in (1e-7, -1e-7):
            apart += int((np.abs(moved_edges(edges + hair, sound, RATE, 10.0) - found) > 1e-6).sum())
        count += 2 * len(edges)
    assert apart <= 0.002 * count


def test_boundaries_that_meet_move_as_one() -> None:
    sound = hisses(0.5, 0.5)
    (_, end), (start, _) = moved([(0.2, 0.49), (0.49 + 1e-12, 0.8)], sound, RATE, 10.0)
    assert end != 0.49
    assert start - end == pytest.approx(1e-12, abs=1e-15)
    found = moved_edges(np.array([0.2, 0.49, 0.4902, 0.8]), sound, RATE, 10.0)
    np.testing.assert_allclose(found[[0, 1, 3]], moved_edges(np.array([0.2, 0.49, 0.8]), sound, RATE, 10.0))
    assert found[2] - found[1] == pytest.approx(0.0002)


def test_between_two_slow_sounds_more_of_the_sound_decides() -> None:
    sound = hisses(0.3, 0.06, 0.3)  # a glide from 0.3 to 0.36 s
    times = [(0.0, 0.33), (0.33, 0.66)]
    for slow in ([False, False], [True, False], [False, True], [True, True]):
        (_, end), (start, _) = moved(times, sound, RATE, 10.0, slow)
        edges = np.array([0.0, 0.33, 0.66])
        assert end == start == moved_edges(edges, sound, RATE, 10.0, np.array([False, all(slow), False]))[1]
    assert moved(times, sound, RATE, 10.0, [True, True]) != moved(times, sound, RATE, 10.0)
    # ends and starts that differ in their last digits meet
    apart = [(0.0, 0.33), (0.33 + 1e-12, 0.66)]
    assert moved(apart, sound, RATE, 10.0, [True, True])[0][1] == pytest.approx(
        moved(times, sound, RATE, 10.0, [True, True])[0][1]
    )


def test_blocks_join(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = hisses(*[0.11] * 20)
    edges = np.arange(1, 20) * 0.11 + 0.012
    whole = moved_edges(edges, sound, RATE, 10.0)
    assert np.abs(whole - np.arange(1, 20) * 0.11).max() < 0.007
    monkeypatch.setattr(boundaries, "_BLOCK", 150)
    # the floor is of a block
    np.testing.assert_allclose(moved_edges(edges, sound, RATE, 10.0), whole, atol=0.0041)


def test_memory_is_that_of_a_block() -> None:
    sound = np.zeros(20 * 60 * RATE, np.float32)
    edges = np.arange(1, 12_000) * 0.1
    tracemalloc.start()
    moved_edges(edges, sound, RATE, 10.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < sound.nbytes


def test_only_the_models_own_aligner_is_refined() -> None:
    model = Model.load("english")
    assert Pipeline(model).refine == 5.0
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
        assert 0 < np.abs(old - new).max() <= REACH_S + 0.001
        assert [s.label for s in before.tiers[-1]] == [s.label for s in after.tiers[-1]]


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_an_unusable_weight_is_refused(weight: float) -> None:
    config = DecodingConfig("ctc", {"name": "ctc-greedy"}, refine=weight)
    with pytest.raises(ModelError, match=r"reading\.refine is a weight of 0 or more"):
        config.check_heads(["ctc"])
