"""Passages with times that are off are moved to where their words are heard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isotone
from isotone.alignment import Origin, Segment
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


def test_times_that_no_words_explain_stay() -> None:
    said = [30.0 + 3 * i for i in range(30)]
    anywhere = np.random.default_rng(0).permutation(said).tolist()
    assert moved(passages(said), heard(anywhere), SLACK_S) is None
    assert moved(passages(said), [], SLACK_S) is None


@pytest.mark.skipif(
    not (ROOT / "plugins/isotone_english/model").is_dir(), reason="the pack's weights are not built"
)
@pytest.mark.parametrize("late_s", [12.0, -5.0])
def test_subtitles_of_another_cut(tmp_path: Path, late_s: float) -> None:
    pytest.importorskip("espeakng_loader", reason="espeak-ng is an extra")
    from isotone.text.espeak import SAMPLE_RATE, Engine

    lines = [
        "The boat left the harbour at nine in the morning.",
        "A cold rain fell on the town until the evening.",
        "My sister has kept bees for more than twenty years.",
        "Nobody heard the small bell ring at dawn.",
        "The letters were found under the floor of the old school.",
    ]
    engine = Engine(1)
    parts = [np.zeros(6 * SAMPLE_RATE, np.int16)]
    starts = []
    for line in lines:
        starts.append(sum(map(len, parts)) / SAMPLE_RATE)
        parts += [engine.say(line).samples, np.zeros(SAMPLE_RATE // 2, np.int16)]
    samples = np.concatenate(parts).astype(np.float32) / 32768

    def clock(seconds: float) -> str:
        return f"00:00:{seconds:06.3f}".replace(".", ",")

    cues = [
        f"{i}\n{clock(start + late_s)} --> {clock(start + late_s + 2.5)}\n{line}\n"
        for i, (start, line) in enumerate(zip(starts, lines), 1)
    ]
    path = tmp_path / "late.srt"
    path.write_text("\n".join(cues), encoding="utf-8")
    found = isotone.align((samples, SAMPLE_RATE), path, model="english")
    firsts = {
        word.label: word.start for word in found.words if word.label in {line.split()[0] for line in lines}
    }
    expected = {line.split()[0]: pytest.approx(start, abs=0.2) for line, start in zip(lines, starts)}
    assert firsts == expected
    assert any("its passages were moved by" in note for note in found.warnings)
