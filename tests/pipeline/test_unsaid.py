"""Words of passages that were likely not said are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import isotone
from isotone.alignment import Segment
from isotone.pipeline.unsaid import LEAST_PASSAGES, LEAST_WORDS, runs, told, unlikely
from isotone.pipeline.verdict import PARTLY
from tests.paths import ROOT


def words(*presence: float | None) -> list[Segment]:
    """Words of a second each, with their presence."""
    return [Segment(f"w{i}", i, i + 1, presence=p) for i, p in enumerate(presence)]


def test_runs_are_of_one_passage_and_of_two_words_one_of_which_is_sure() -> None:
    given = words(*[0.5] * 8)
    sure = dict.fromkeys((1, 2, 4, 6, 7), True)
    assert list(runs(given, sure, [0, 0, 0, 0, 1, 1, 1, None])) == [(0, given[1:3])]
    assert list(runs(given, {1: False, 2: True}, [0] * 8)) == [(0, given[1:3])]
    assert list(runs(given, {1: False, 2: False, 5: True}, [0] * 8)) == []


def test_a_passage_is_unlikely_beside_the_best_ones() -> None:
    said = {n: words(*[0.99] * LEAST_WORDS) for n in range(5)}
    assert unlikely(said) == frozenset()
    assert unlikely({**said, 7: words(*[0.7] * LEAST_WORDS)}) == {7}
    # also where most are
    assert unlikely({**said, **{n: words(*[0.7] * LEAST_WORDS) for n in range(7, 20)}}) == set(range(7, 20))
    # what is likely by itself was said, however clear the others are
    clear = {n: words(*[0.99999] * LEAST_WORDS) for n in range(5)}
    assert unlikely({**clear, 7: words(*[0.875] * LEAST_WORDS)}) == frozenset()
    assert unlikely({**clear, 7: words(*[0.865] * LEAST_WORDS)}) == {7}
    # all of them are as bad in noise
    noisy = {n: words(*[0.7] * LEAST_WORDS) for n in range(5)}
    assert unlikely({**noisy, 7: words(*[0.6] * LEAST_WORDS)}) == frozenset()
    assert unlikely({**noisy, 7: words(*[0.4] * LEAST_WORDS)}) == {7}


def test_too_few_words_or_passages_say_nothing() -> None:
    said = {n: words(*[0.99] * LEAST_WORDS) for n in range(LEAST_PASSAGES - 1)}
    assert unlikely({**said, 7: words(*[0.1] * (LEAST_WORDS - 1))}) == frozenset()
    assert unlikely({**said, 7: words(*[0.1] * LEAST_WORDS)}) == {7}
    assert unlikely({0: words(*[0.1] * LEAST_WORDS), 1: said[1]}) == frozenset()
    assert unlikely({**said, 7: words(*[None] * LEAST_WORDS), 8: []}) == frozenset()


def test_the_sentence_names_words_and_places() -> None:
    assert told([("cue 3", words(0.1, 0.1))]) == (
        "words that were likely not said, and have times all the same: 'w0 w1' at 0.0 s (cue 3)"
    )


@pytest.fixture(scope="module")
def align() -> Callable[[Path, list[str]], isotone.Aligned]:
    """Align five lines by a synthetic voice with subtitles of five cues."""
    pytest.importorskip("espeakng_loader", reason="espeak-ng is an extra")
    from isotone.text.espeak import SAMPLE_RATE, Engine

    engine = Engine(1)
    parts, times = [np.zeros(SAMPLE_RATE, np.int16)], []
    for line in LINES:
        start = sum(map(len, parts)) / SAMPLE_RATE
        parts += [engine.say(line).samples, np.zeros(SAMPLE_RATE // 2, np.int16)]
        times.append((start, sum(map(len, parts)) / SAMPLE_RATE - 0.5))
    samples = np.concatenate(parts).astype(np.float32) / 32768

    def aligned(path: Path, lines: list[str]) -> isotone.Aligned:
        cues = [
            f"{i}\n00:00:{start:06.3f} --> 00:00:{end:06.3f}\n{line}\n".replace(".", ",", 2)
            for i, ((start, end), line) in enumerate(zip(times, lines), 1)
        ]
        path.write_text("\n".join(cues), encoding="utf-8")
        return isotone.align((samples, SAMPLE_RATE), path, model="english")

    return aligned


LINES = [
    "The boat left the harbour at nine in the morning",
    "A cold rain fell on the town until the evening",
    "My sister has kept bees for more than twenty years",
    "Nobody heard the small bell ring at dawn",
    "The letters were found under the floor of the old school",
]


@pytest.mark.skipif(
    not (ROOT / "plugins/isotone_english/model").is_dir(), reason="the pack's weights are not built"
)
def test_a_cue_that_nobody_says_is_told(tmp_path: Path, align: Callable) -> None:
    right = align(tmp_path / "right.srt", LINES)
    assert right.alignment.verdict == ""
    assert not [note for note in right.warnings if "not said" in note]
    assert all(word.presence is not None for word in right.words)
    wrong = align(tmp_path / "wrong.srt", [*LINES[:2], "Bananas are yellow elephants", *LINES[3:]])
    assert wrong.alignment.verdict == PARTLY
    (note,) = [note for note in wrong.warnings if "not said" in note]
    assert "Bananas are yellow elephants" in note
    assert note.endswith("(cue 3)")
    assert "elephants" in wrong.words.labels
