"""``isotone.StreamingAligner``: samples of any kind in, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isotone
from isotone.audio import AudioError
from isotone.quick.streaming import Spoken
from tests.tiny_models import save_character_model, save_phone_model

TEXT = "well then, go on"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("models") / "characters", guide="ctc")


def noise(seconds: float, rate: int = 16_000) -> np.ndarray:
    """Noise that swells twice per second."""
    time = np.arange(round(seconds * rate)) / rate
    loud = 0.01 + 0.1 * (np.sin(4 * np.pi * time) > 0)
    return (loud * np.random.default_rng(0).normal(size=len(time))).clip(-1, 1).astype(np.float32)


def given(model: Path, samples: np.ndarray, **options: float) -> list[Spoken]:
    aligner = isotone.StreamingAligner(TEXT, model, **options)  # type: ignore[arg-type]
    found = [
        word for start in range(0, len(samples), 999) for word in aligner.feed(samples[start : start + 999])
    ]
    return found + aligner.finish()


def test_every_word_comes_once_and_in_order(model: Path) -> None:
    found = [word for word in given(model, noise(4)) if not word.corrects]
    assert [(word.number, word.text) for word in found] == [*enumerate(TEXT.split())]
    assert [TEXT[word.start_char : word.end_char] for word in found] == TEXT.split()


def test_whole_numbers_and_channels_are_the_same_samples(model: Path) -> None:
    samples = np.round(noise(3) * 32767).astype(np.int16)
    expected = given(model, samples.astype(np.float32) / 32768)
    assert given(model, samples) == expected
    assert given(model, np.stack([samples, samples], 1)) == expected
    tiny = isotone.StreamingAligner(TEXT, model)
    for piece in np.stack([samples[:50], samples[:50]], 1)[:, None]:  # (1, 2)
        assert tiny.feed(piece) == []
    rest = tiny.feed(samples[50:])
    assert [*rest, *tiny.finish()] == expected


def test_channels_of_opposite_signs_are_heard(model: Path) -> None:
    samples = np.concatenate([np.zeros(1000, np.float32), noise(3)])
    assert given(model, np.stack([samples, -samples], 1)) == given(model, samples)


def test_other_rates_are_resampled(model: Path) -> None:
    import soxr

    samples = noise(3, 48_000)
    at_once = isotone.StreamingAligner(TEXT, model)
    expected = [*at_once.feed(soxr.resample(samples, 48_000, 16_000, quality="HQ")), *at_once.finish()]
    found = given(model, samples, rate=48_000)
    assert [word.number for word in found] == [word.number for word in expected]
    for ours, theirs in zip(found, expected):
        assert (ours.start is None) == (theirs.start is None)
        if ours.start is not None and theirs.start is not None:
            assert abs(ours.start - theirs.start) < 0.02


def test_a_stream_ends_once(model: Path) -> None:
    aligner = isotone.StreamingAligner(TEXT, model)
    assert aligner.feed([]) == []
    assert [word.segment for word in aligner.finish()] == [None] * 4
    assert aligner.done
    assert aligner.finish() == []
    with pytest.raises(ValueError, match="The stream is over"):
        aligner.feed(noise(1))


def test_pieces_without_samples_change_nothing(model: Path) -> None:
    samples = noise(3)
    aligner = isotone.StreamingAligner(TEXT, model)
    found = []
    for start in range(0, len(samples), 999):
        found += [*aligner.feed([]), *aligner.feed(samples[start : start + 999])]
        assert aligner.feed(np.zeros((0, 2), np.int16)) == []
    assert [*found, *aligner.finish()] == given(model, samples)


def test_a_piece_that_is_refused_is_not_taken(model: Path) -> None:
    samples = noise(3)
    aligner = isotone.StreamingAligner(TEXT, model)
    found = aligner.feed(samples[:20_000])
    with pytest.raises(AudioError, match="not finite"):
        aligner.feed([np.inf])
    assert [*found, *aligner.feed(samples[20_000:]), *aligner.finish()] == given(model, samples)


def test_bad_samples_and_rates_are_refused(model: Path) -> None:
    for rate in (0, -16_000, 16, 1e9, np.nan, np.inf):
        with pytest.raises(ValueError, match="A sample rate is between 1,000 and 1,000,000"):
            isotone.StreamingAligner(TEXT, model, rate=rate)
    with pytest.raises(AudioError, match="1 samples are not finite"):
        isotone.StreamingAligner(TEXT, model).feed([0.0, np.nan])
    with pytest.raises(AudioError, match="Audio has the shape"):
        isotone.StreamingAligner(TEXT, model).feed(np.zeros((2, 3, 4)))


def test_models_without_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a text with words"):
        isotone.StreamingAligner("aa s iy t", save_phone_model(tmp_path / "phones"))
