"""The benchmark of pauses: its recordings, not its numbers."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.pauses import HESITATION_S, PAUSE_S, RATE, Sentence, joined, lengthened, pauses, voiced
from isotone.alignment import Segment

HUM = np.sin(2 * np.pi * 120 / RATE * np.arange(2 * RATE)).astype(np.float32)
HISS = np.random.default_rng(0).normal(0, 1, 2 * RATE).astype(np.float32)


def sentence(gap: np.ndarray) -> Sentence:
    """Two words of half a second with something between."""
    word = 0.1 * HUM[: RATE // 2]
    samples = np.concatenate([word, gap, word])
    second = 0.5 + len(gap) / RATE
    words = (Segment("one", 0.0, 0.5), Segment("two", second, second + 0.5))
    return Sentence("1", samples, "one two", words, ())


def test_what_repeats_itself_is_voiced() -> None:
    assert voiced(HUM[:RATE], 0.1)
    assert not voiced(HISS[:RATE], 0.1)
    assert not voiced(0.01 * HUM[:RATE], 0.1)  # too quiet to matter


def test_only_pauses_without_voice_are_cut() -> None:
    (pause,) = pauses([sentence(0.01 * HISS[:RATE]), sentence(0.1 * HUM[:RATE]), sentence(HISS[:800])])
    np.testing.assert_array_equal(pause, 0.01 * HISS[int(0.1 * RATE) : int(0.9 * RATE)])


def test_sentences_keep_their_samples_and_their_words() -> None:
    rest, some = [0.01 * HISS], [sentence(0.01 * HISS[:RATE]) for _ in range(3)]
    samples, words = joined(some, rest, [HUM[:2000]], np.random.default_rng(0))
    assert [word.label for word in words] == ["one", "two"] * 3
    for word in words:
        part = samples[round(word.start * RATE) : round(word.end * RATE)]
        np.testing.assert_array_equal(part, 0.1 * HUM[: len(part)])
    between = [after.start - before.end for before, after in zip(words[1::2], words[2::2])]
    assert PAUSE_S[0] + 2 * HESITATION_S[0] <= between[0] <= PAUSE_S[1] + 2 * HESITATION_S[1]
    assert PAUSE_S[0] <= between[1] <= PAUSE_S[1]


@pytest.mark.parametrize("size", [4_000, 8_001])
def test_a_lengthened_vowel_keeps_its_pitch_and_its_level(size: int) -> None:
    found = lengthened(HUM[:2000], size, np.random.default_rng(0))
    assert len(found) == size
    assert voiced(found, 0.1)
    assert found[1000:-1000].std() == pytest.approx(HUM.std(), rel=0.3)
