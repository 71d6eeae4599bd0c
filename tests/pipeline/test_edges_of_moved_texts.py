"""Texts in another order, or without a part, are told by the English pack, and not put into an edge."""

from __future__ import annotations

import numpy as np
import pytest

import isotone
from isotone import audio
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.inside import LEAST_GAIN, Inside, inside
from isotone.pipeline.verdict import PARTLY
from tests.paths import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "plugins/isotone_english/model").is_dir(), reason="the pack's weights are not built"
)

LINES = (
    "The boat left the harbour at nine in the morning.",
    "A cold rain fell on the town until the evening.",
    "My sister has kept bees for more than twenty years.",
    "Nobody heard the small bell ring at dawn.",
)


def said() -> tuple[tuple[np.ndarray, int], np.ndarray]:
    """The lines by a synthetic voice: samples and rate, and the seconds at which each line begins, and the end."""
    pytest.importorskip("espeakng_loader", reason="espeak-ng is an extra")
    from isotone.text.espeak import SAMPLE_RATE, Engine

    engine = Engine(1)
    pause = np.zeros(SAMPLE_RATE // 3, np.int16)
    parts = [np.concatenate([engine.say(line).samples, pause]) for line in LINES]
    starts = np.cumsum([0, *map(len, parts)]) / SAMPLE_RATE
    return (np.concatenate(parts).astype(np.float32) / 32768, SAMPLE_RATE), starts


@pytest.mark.parametrize(
    ("order", "verdict"),
    [((0, 3), PARTLY), ((1, 0, 3, 2), PARTLY), ((3, 0, 1, 2), PARTLY), ((1, 2, 3), "")],
    ids=["middle missing", "swapped", "last first", "an edge"],
)
def test_every_line_is_where_it_is_said(order: tuple[int, ...], verdict: str) -> None:
    recording, starts = said()
    found = isotone.align(recording, "\n\n".join(LINES[i] for i in order), model="english")
    assert (found.alignment.verdict or "") == verdict
    firsts = {line.split()[0]: start for line, start in zip(LINES, starts)}
    heard = {word.label: word.start for word in found.words if word.label in firsts}
    expected = {LINES[i].split()[0]: pytest.approx(starts[i], abs=0.3) for i in order}
    assert heard == expected


def test_stars_inside_tell_a_missing_middle_from_an_edge() -> None:
    (samples, rate), _ = said()
    pipeline = Pipeline(Model.load("english"))
    samples = audio.from_array(samples, rate, pipeline.model.encoder.sample_rate)

    def gain(order: tuple[int, ...]) -> Inside:
        texts = [pipeline._with_pauses(pipeline.encode(" ".join(LINES[i] for i in order)))]
        with pipeline.model.tensors():
            emissions = pipeline.emitter(["x"], [samples], pipeline.placer.heads)
            return inside(pipeline.placer_of(emissions), emissions, texts[0])

    missing = gain((0, 3))
    assert missing.gain >= LEAST_GAIN
    assert missing.places == {len(LINES[0].split())}
    assert max(gain((1, 2)).gain, gain((0, 1)).gain) < LEAST_GAIN
