"""Passages with times that are off are moved to where their words are heard."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

import isotone
from isotone.alignment import AlignmentError, Origin, Segment
from isotone.audio import load
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.given import align_text
from isotone.pipeline.moved import moved
from isotone.transcripts import Passage
from tests.paths import ROOT

WORDS = ("one", "three", "seven", "eleven")
SLACK_S = 1.0


def passages(starts: list[float]) -> list[Passage]:
    """Passages of four words, two seconds long."""
    return [Passage(" ".join(WORDS), start, start + 2.0) for start in starts]


def heard(starts: list[float]) -> list[Segment]:
    """The words of these passages, each for half a second."""
    out, place = [], 0
    for start in starts:
        for i, word in enumerate(WORDS):
            origin = Origin(word, place, place + len(word))
            out.append(Segment(word, start + i / 2, start + (i + 1) / 2, origin=origin))
            place += len(word) + 1
    return out


@settings(max_examples=50, deadline=None)
@given(
    gaps=st.lists(st.floats(0.1, 3.0), min_size=3, max_size=40),
    offset=st.floats(-20.0, 60.0),
    rate=st.sampled_from([1.0, 25 / 23.976, 23.976 / 25]),
    lost=st.integers(0, 9),
)
def test_an_offset_and_another_frame_rate_are_taken_away(
    gaps: list[float], offset: float, rate: float, lost: int
) -> None:
    said = list(np.cumsum(gaps) + 2.0 * np.arange(len(gaps)) + 30.0)
    shown = passages([rate * start + offset for start in said])
    words = [word for i, word in enumerate(heard(said)) if i % 10 >= lost // 2]
    off = max(abs(rate * start + offset - start) for start in said)
    found = moved(shown, words, SLACK_S)
    if off > 2 * SLACK_S:
        assert found is not None
    if found is not None:
        # neighbours of nine passages drift by less than the slack
        assert [p.start for p in found.passages] == pytest.approx(said, abs=SLACK_S + 0.5)
        assert [p.text for p in found.passages] == [p.text for p in shown]


def test_a_cut_in_the_middle_moves_what_follows() -> None:
    said = [30.0 + 3 * i for i in range(30)]
    shown = passages([start if start < 60 else start + 15 for start in said])
    found = moved(shown, heard(said), SLACK_S)
    assert found is not None
    assert [p.start for p in found.passages] == pytest.approx(said, abs=0.2)
    assert found.note.endswith("moved by -14.9 to +0.1 s")


def test_right_times_stay_where_one_passage_is_heard_somewhere_else() -> None:
    said = [30.0 + 3 * i for i in range(30)]
    heard_twice = [*said[:4], said[4] + 40.0, *said[5:]]  # another speaker says the same
    assert moved(passages(said), heard(heard_twice), SLACK_S) is None


def test_times_that_no_words_explain_stay() -> None:
    said = [30.0 + 3 * i for i in range(30)]
    anywhere = np.random.default_rng(0).permutation(said).tolist()
    assert moved(passages(said), heard(anywhere), SLACK_S) is None
    assert moved(passages(said), [], SLACK_S) is None


LINES = [
    "The boat left the harbour at nine in the morning.",
    "A cold rain fell on the town until the evening.",
    "My sister has kept bees for more than twenty years.",
    "Nobody heard the small bell ring at dawn.",
    "The letters were found under the floor of the old school.",
]

needs_pack = pytest.mark.skipif(
    not (ROOT / "plugins/isotone_english/model").is_dir(), reason="the pack's weights are not built"
)


class Spoken(NamedTuple):
    """The lines said one after the other, by two voices in turn: on a channel each, with the times of their starts."""

    channels: np.ndarray
    rate: int
    starts: list[float]

    @property
    def expected(self) -> dict[str, Any]:
        """The first word of every line, with about when it starts."""
        return {line.split()[0]: pytest.approx(s, abs=0.2) for line, s in zip(LINES, self.starts)}


@pytest.fixture(scope="module")
def spoken() -> Spoken:
    pytest.importorskip("espeakng_loader", reason="espeak-ng is an extra")
    from isotone.text.espeak import SAMPLE_RATE, Engine

    engine = Engine(1)
    said = [engine.say(line).samples for line in LINES]
    starts = [6.0]
    for samples in said:
        starts.append(starts[-1] + len(samples) / SAMPLE_RATE + 0.5)
    channels = np.zeros((round(starts.pop() * SAMPLE_RATE), 2), np.float32)
    for i, (start, samples) in enumerate(zip(starts, said)):
        first = round(start * SAMPLE_RATE)
        channels[first : first + len(samples), i % 2] = samples / 32768
    return Spoken(channels, SAMPLE_RATE, starts)


def firsts(words: Iterable[Segment]) -> dict[str, float]:
    """Return when the first word of every line starts."""
    return {word.label: word.start for word in words if word.label in {line.split()[0] for line in LINES}}


# by 40 s every cue is after the recording's end
@needs_pack
@pytest.mark.parametrize("late_s", [12.0, -5.0, 40.0])
def test_subtitles_of_another_cut(tmp_path: Path, spoken: Spoken, late_s: float) -> None:
    def clock(seconds: float) -> str:
        return f"00:{int(seconds // 60):02}:{seconds % 60:06.3f}".replace(".", ",")

    cues = [
        f"{i}\n{clock(start + late_s)} --> {clock(start + late_s + 2.5)}\n{line}\n"
        for i, (start, line) in enumerate(zip(spoken.starts, LINES), 1)
    ]
    path = tmp_path / "late.srt"
    path.write_text("\n".join(cues), encoding="utf-8")
    found = isotone.align((spoken.channels.sum(axis=1), spoken.rate), path, model="english")
    assert firsts(found.words) == spoken.expected
    assert any("its passages were moved by" in note for note in found.warnings)


@needs_pack
def test_subtitles_of_another_recording_are_after_its_end(tmp_path: Path, spoken: Spoken) -> None:
    passages = [Passage(f"Wholly other words number {n} are said there.", 70 + n, 71 + n) for n in range(9)]
    pipeline = Pipeline(Model.load("english"))
    soundfile.write(tmp_path / "talk.wav", spoken.channels, spoken.rate)
    samples = load(tmp_path / "talk.wav", pipeline.model.encoder.sample_rate)
    with pytest.raises(AlignmentError, match="no passage is within the recording"):
        align_text(pipeline, "other", samples, passages, SLACK_S)


# by 3 s, the turns of one speaker are where the other talks
@needs_pack
@pytest.mark.parametrize("late_s", [3.0, 1.8])
def test_speakers_on_channels_of_another_cut(tmp_path: Path, spoken: Spoken, late_s: float) -> None:
    path = tmp_path / "talk.wav"
    soundfile.write(path, spoken.channels, spoken.rate)
    passages = [
        Passage(line, start + late_s, start + late_s + 2.5, "Ann" if i % 2 == 0 else "Bob")
        for i, (line, start) in enumerate(zip(LINES, spoken.starts))
    ]
    pipeline = Pipeline(Model.load("english"))
    samples = load(path, pipeline.model.encoder.sample_rate)
    found, _ = align_text(pipeline, "talk", samples, passages, SLACK_S, path)
    tiers = found.alignment.tiers
    assert [t.name for t in tiers if "words" in t.name] == ["Ann - words", "Bob - words"]
    words = [s for t in tiers if "words" in t.name for s in t if s.label]
    assert firsts(words) == spoken.expected
    assert any("moved by" in note for note in found.warnings)
    assert "each speaker is on a channel: Ann 1, Bob 2, by their levels" in found.warnings
