"""Margins of boundaries."""

from __future__ import annotations

import itertools
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from isotone.alignment import Alignment, AlignmentError, Margin, Segment, Tier
from isotone.audio.boundaries import Changes
from isotone.corpus.voices import SAMPLE_RATE, record, speakers
from isotone.model import Model
from isotone.model.check import Check, Margins, known_margins
from isotone.pipeline import Pipeline
from isotone.pipeline.margins import (
    FEATURES,
    HELD,
    LEVELS,
    features_of,
    interval,
    scales,
    shares_near,
    sides_of,
    with_margins,
)
from isotone.pipeline.result import Result
from isotone.text.espeak import Engine
from isotone.types import Grid
from tests.paths import ROOT
from tests.pipeline.parts import model_of_characters, noise

WEIGHTS = (-4.0, *(0.0,) * len(FEATURES))
#: Errors are normal, with the scale as their standard deviation.
NORMAL = Margins(WEIGHTS, tuple(map(float, norm.ppf(LEVELS))), "made up", 1)


def result_of(
    words: list[Segment], phones: list[Segment], changes: Changes | None, score: float = -1.0
) -> Result:
    alignment = Alignment("u", 1.0, (Tier("words", tuple(words)), Tier("phones", tuple(phones))), score)
    return Result(alignment, "", 50, (), Grid(0.02), score, changes=changes)


def changes_at(*times: float) -> Changes:
    n = len(times)
    return Changes(np.array(times), np.full(n, 0.004), np.full(n, 2.0), np.full(n, 0.3))


PHONES = [
    Segment("a", 0.2, 0.3, -0.5, 0.9), Segment("b", 0.3, 0.45, -1.0, 0.6), Segment("c", 0.6, 0.8, None, None),
]  # fmt: skip
WORDS = [Segment("ab", 0.2, 0.45), Segment("c", 0.6, 0.8)]


def test_segments_that_touch_share_their_sides() -> None:
    a, b, c = PHONES
    assert sides_of(PHONES) == [((None, a), (a, b)), ((a, b), (b, None)), ((None, c), (c, None))]
    assert sides_of([]) == []


def test_features_are_of_the_sound_the_segments_and_the_text() -> None:
    # the end of b was not moved, and that of c had no choice
    changes = changes_at(0.2, 0.3, 0.6, 0.8)
    changes.deviations[3] = np.nan
    found = features_of(result_of(WORDS, PHONES, changes, -1.5))
    assert found.shape == (3, 2, len(FEATURES))
    by_name = dict(zip(FEATURES, found.transpose(2, 0, 1)))
    np.testing.assert_allclose(by_name["log deviation"][:2, 0], np.log(0.005))
    np.testing.assert_array_equal(by_name["no change"], [[0, 0], [0, 1], [0, 1]])
    np.testing.assert_array_equal(by_name["gain"], [[2, 2], [2, 0], [2, 0]])
    np.testing.assert_array_equal(by_name["nothing left"], [[1, 0], [0, 0], [1, 0]])
    np.testing.assert_array_equal(by_name["nothing right"], [[0, 0], [0, 1], [0, 1]])
    np.testing.assert_allclose(by_name["log left seconds"][0], [0, np.log(0.11)])
    np.testing.assert_allclose(by_name["right score"][0], [-0.5, -1.0])
    np.testing.assert_allclose(by_name["doubt"], np.log([[0.1, 0.4], [0.4, 0.4], [0.005, 0.005]]))
    np.testing.assert_array_equal(by_name["fit"], -1.5)
    # both segments of a boundary see the same
    np.testing.assert_array_equal(found[0, 1], found[1, 0])


def test_features_need_boundaries_that_were_moved() -> None:
    with pytest.raises(ValueError, match="moved to where the sound changes"):
        features_of(result_of(WORDS, PHONES, None))
    unmoved = result_of(WORDS, PHONES, None)
    assert with_margins(unmoved, NORMAL) is unmoved
    none = features_of(result_of([], [], changes_at()))
    assert none.shape == (0, 2, len(FEATURES))
    assert (features_of(result_of(WORDS, PHONES, changes_at()))[..., 1] == 1).all()


def test_margins_of_normal_errors_are_those_of_the_normal_distribution() -> None:
    found = with_margins(result_of(WORDS, PHONES, changes_at(0.2, 0.3, 0.45, 0.6, 0.8)), NORMAL)
    words, phones = found.alignment.tiers
    scale = np.exp(-4)
    for segment in (*words, *phones):
        for margin in (segment.start_margin, segment.end_margin):
            assert margin is not None
            assert margin.before == pytest.approx(1.645 * scale, rel=1e-3)
            assert margin.after == pytest.approx(1.645 * scale, rel=1e-3)
            assert margin.near == pytest.approx(2 * norm.cdf(0.02 / scale) - 1, abs=0.02)
    assert words.segments[0].end_margin is phones.segments[1].end_margin


def test_margins_end_where_the_recording_does() -> None:
    wide = replace(NORMAL, weights=(-1.0, *WEIGHTS[1:]))
    phones = [Segment("a", 0.0, 0.3), Segment("b", 0.3, 1.0)]
    first, last = with_margins(result_of([], phones, changes_at(0.3)), wide).alignment.tiers[1]
    assert first.start_margin
    assert first.start_margin.before == 0.0 < first.start_margin.after
    assert last.end_margin
    assert last.end_margin.after == 0.0 < last.end_margin.before
    assert last.start_margin
    assert last.start_margin.before == 0.3


@given(st.floats(-30, 30), st.floats(0.0, 1.0))
def test_scales_and_shares_stay_in_bounds(constant: float, distance_s: float) -> None:
    scale = scales((constant, *WEIGHTS[1:]), np.zeros((3, 2, len(FEATURES))))
    assert scale.shape == (3, 2)
    assert (scale >= 0.001 - 1e-12).all()
    assert (scale <= 1 + 1e-12).all()
    share = shares_near(NORMAL, scale, distance_s)
    assert (share >= 0).all()
    assert (share <= 1).all()
    assert (shares_near(NORMAL, scale, distance_s + 0.01) >= share).all()


def test_weights_of_other_features_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"of 3 features, and there are \d+: they were fitted by another version"
    ):
        with_margins(result_of(WORDS, PHONES, changes_at(0.3)), replace(NORMAL, weights=WEIGHTS[:4]))


@given(st.floats(0.1, 0.98))
def test_an_interval_holds_its_share(held: float) -> None:
    low, high = interval(NORMAL, held)
    assert norm.cdf(high) - norm.cdf(low) == pytest.approx(held, abs=0.01)
    assert interval(replace(NORMAL, errors=tuple(x + 9 for x in NORMAL.errors)))[0] == 0.0


@pytest.mark.parametrize("numbers", [(-1, 0, 0), (0, np.inf, 0), (0, 0, 1.1), (np.nan, 0, 0)])
def test_a_margin_is_checked(numbers: tuple[float, float, float]) -> None:
    with pytest.raises(AlignmentError, match="A margin expects seconds of 0 or more before and after"):
        Margin(*numbers)


def test_margins_survive_json_and_are_of_the_models_own_alignments() -> None:
    check = Check(0.2, "dev", 10, 0.0, 0.9, margins=NORMAL)
    assert Check.from_dict(asdict(check)) == check
    assert Check.from_dict({k: v for k, v in asdict(check).items() if k != "margins"}).margins is None
    assert known_margins(check) is NORMAL
    with pytest.raises(ValueError, match="does not know how sure its boundaries are"):
        known_margins(replace(check, margins=None))
    model = model_of_characters()
    model.check = check
    model.decoding.refine = 10.0
    with pytest.raises(ValueError, match="leave out --aligner and --times"):
        Pipeline(model, aligner="ctc", margins=True)
    pipeline = Pipeline(model, margins=True, presence=False)
    found = pipeline.align("u", noise(1.0), pipeline.encode("AB")).alignment
    assert found.has_margins
    assert (
        not Pipeline(model, presence=False)
        .align("u", noise(1.0), pipeline.encode("AB"))
        .alignment.has_margins
    )


@pytest.mark.skipif(
    not (ROOT / "plugins/isotone_english/model").is_dir(), reason="the pack's weights are not built"
)
def test_the_packs_margins_hold_the_synthesisers_boundaries() -> None:
    pytest.importorskip("espeakng_loader", reason="espeak-ng is an extra")
    pipeline, engine = Pipeline(Model.load("english"), presence=False, margins=True), Engine(5)
    held, near, close = [], [], []
    sentences = (
        "nobody heard the small bell ring at dawn",
        "the old clock in the hall stopped during the night",
        "please send the parcel to my sister before friday",
        "we walked along the river until the rain began",
    )
    for text, (number, person) in itertools.product(sentences, enumerate(speakers(4, 12, 77)[1])):
        said = record(engine, person, number, text, np.random.default_rng(number))
        samples = said.samples.astype(np.float32) / 32768
        words = pipeline.align("", samples, pipeline.encode(said.text)).alignment.tier("words")
        for ours, theirs in zip(words, said.words, strict=True):
            for time, margin, true in (
                (ours.start, ours.start_margin, theirs.start / SAMPLE_RATE),
                (ours.end, ours.end_margin, theirs.end / SAMPLE_RATE),
            ):
                assert margin is not None
                held.append(-margin.before <= true - time <= margin.after)
                near.append(margin.near)
                close.append(abs(true - time) <= 0.02)
    # single sentences of one clear synthesiser: the packs so far have held 79 and 81 % of them, where they promise 90
    assert HELD - 0.15 < np.mean(held) < HELD + 0.05
    assert np.mean(near) == pytest.approx(np.mean(close), abs=0.1)
