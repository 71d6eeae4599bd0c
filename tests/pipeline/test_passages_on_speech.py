"""Passages of several speakers, on synthetic speech."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import resample_poly

from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.passages import align_passages
from isotone.transcripts import Passage
from tests.paths import ROOT


@pytest.mark.skipif(
    not (ROOT / "plugins/isotone_english/model").is_dir(), reason="the pack's weights are not built"
)
def test_a_speaker_who_says_what_another_says_keeps_their_own_time() -> None:
    pytest.importorskip("espeakng_loader", reason="espeak-ng is an extra")
    from isotone.text.espeak import SAMPLE_RATE, Engine

    lines = (
        "The letters were found under the floor.",
        "Nobody heard the bell.",
        "A cold rain fell on the town.",
    )
    engine, rng = Engine(1), np.random.default_rng(0)
    said = [engine.say(line).samples.astype(np.float32) / 32768 for line in lines]
    seconds = round(2.4 * SAMPLE_RATE)
    turns = [np.pad(own, (0, seconds - len(own))) for own in said]
    # Ann is harder to hear than Bob, who says the same; then both talk at once
    ann = turns[0] + rng.normal(0, 0.03, seconds).astype(np.float32)
    pipeline = Pipeline(Model.load("english"))
    rate = pipeline.model.encoder.sample_rate
    samples = resample_poly(np.concatenate([ann, turns[0], turns[1] + turns[2]]), rate, SAMPLE_RATE)
    passages = [
        Passage(lines[0], 0.0, 2.4, "Ann"),
        Passage(lines[0], 2.4, 4.8, "Bob"),
        Passage(lines[1], 4.8, 7.2, "Ann"),
        Passage(lines[2], 4.8, 7.2, "Bob"),
    ]
    found = align_passages(pipeline, "talk", samples, passages)
    first = found.alignment.tier("Ann - words").segments[:7]
    assert first[-1].label == "floor."
    assert first[-1].end < 2.5
    assert found.outside == 0
