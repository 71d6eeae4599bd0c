"""Speakers are aligned on their own channels, where the levels or the user say which they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from isotone.audio import AudioError, channels_of, load
from isotone.pipeline import Pipeline
from isotone.pipeline import channels as module
from isotone.pipeline.given import align_text
from isotone.pipeline.passage_times import timed
from isotone.pipeline.passages import Passages
from isotone.transcripts import Passage

RATE = 16_000
TALK = [
    Passage("so it", 0.5, 2.0, "Ann", "cue 1"),
    Passage("is on", 3.0, 4.5, "Bob", "cue 2"),
    Passage("at", 4.0, 5.5, "Ann", "cue 3"),
]


def record(
    folder: Path, places: dict[str, int], count: int = 2, gains: tuple[float, ...] = (), bleed: float = 0.05
) -> Path:
    """Write noise in the times of the passages: of each speaker on a channel, and softer on the others."""
    rng = np.random.default_rng(0)
    samples = rng.normal(0, 1e-4, (6 * RATE, count))
    for passage in TALK:
        span = slice(round(passage.start * RATE), round(passage.end * RATE))
        voice = rng.normal(0, 0.05, span.stop - span.start)
        levels = np.full(count, bleed)
        levels[places[passage.speaker]] = 1.0
        samples[span] += voice[:, None] * levels
    path = folder / "talk.wav"
    soundfile.write(path, samples * np.array(gains or [1.0] * count), RATE, subtype="FLOAT")
    return path


def found(path: Path, way: str = "auto", passages: list[Passage] = TALK) -> dict[str | None, int] | None:
    channels = module.channels_of(path, passages, RATE, way)
    return None if channels is None else dict(channels.of)


@pytest.mark.parametrize("places", [{"Ann": 0, "Bob": 1}, {"Ann": 1, "Bob": 0}])
@pytest.mark.parametrize("gains", [(1.0, 1.0), (0.01, 1.0), (1.0, 0.01)])
def test_levels_tell_whatever_the_order_and_the_gains(
    tmp_path: Path, places: dict[str, int], gains: tuple[float, ...]
) -> None:
    assert found(record(tmp_path, places, gains=gains)) == places


def test_unclear_levels_are_mixed(tmp_path: Path) -> None:
    assert found(record(tmp_path, {"Ann": 0, "Bob": 1}, bleed=0.8)) is None
    assert found(record(tmp_path, {"Ann": 0, "Bob": 0})) is None, "both on one channel"
    assert found(record(tmp_path, {"Ann": 0, "Bob": 1}, count=3)) is None, "a channel of nobody"
    late = [*TALK, Passage("late", 50.0, 51.0, "Cid")]
    assert found(record(tmp_path, {"Ann": 0, "Bob": 1}), passages=late) is None, "nobody hears Cid"


def test_one_channel_one_speaker_and_the_wish_to_mix(tmp_path: Path) -> None:
    path = record(tmp_path, {"Ann": 0, "Bob": 1})
    assert found(path, "mix") is None
    assert found(path, passages=TALK[:1]) is None
    assert found(record(tmp_path, {"Ann": 0, "Bob": 0}, count=1), "order") is None


def test_another_way_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="auto, order, mix; got 'left'"):
        found(record(tmp_path, {"Ann": 0, "Bob": 1}), "left")


def test_the_order_of_speakers_as_in_mfa_and_levels_that_contradict(tmp_path: Path) -> None:
    path = record(tmp_path, {"Ann": 1, "Bob": 0})
    channels = module.channels_of(path, TALK, RATE, "order")
    assert channels is not None
    assert channels.of == {"Ann": 0, "Bob": 1}
    assert channels.notes == (
        "each speaker is on a channel: Ann 1, Bob 2, by their order",
        "the levels say otherwise: Ann 2, Bob 1 (--channels auto)",
    )
    four = [Passage("so", i, i + 0.9, name) for i, name in enumerate("abcd")]
    assert found(path, "order", four) == {"a": 0, "b": 0, "c": 1, "d": 1}, "halves, as in MFA"
    wide = record(tmp_path, {"Ann": 0, "Bob": 1}, count=4)
    assert found(wide, "order") == {"Ann": 0, "Bob": 1}


def test_the_order_of_speakers_is_that_of_the_transcript_and_not_of_time(tmp_path: Path) -> None:
    passages = timed([TALK[1], TALK[0], TALK[2]], 6.0)
    assert [p.speaker for p in passages] == ["Ann", "Bob", "Ann"]
    assert found(record(tmp_path, {"Ann": 0, "Bob": 1}), "order", passages) == {"Bob": 0, "Ann": 1}


def test_every_speaker_is_aligned_with_the_samples_of_their_channel(
    characters: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = record(tmp_path, {"Ann": 1, "Bob": 0})
    heard: dict[str, np.ndarray] = {}
    align = characters.align

    def spy(id, samples, transcript, **options):
        heard[transcript.source] = samples
        return align(id, samples, transcript, **options)

    monkeypatch.setattr(characters, "align", spy)
    result, transcript = align_text(characters, "talk", load(path), TALK, 0.5, path)
    assert isinstance(result, Passages)
    assert result.text == transcript.source == "so it\nis on\nat"
    names = [f"{s} - {kind}" for s in ("Bob", "Ann") for kind in ("words", "characters")]
    assert [tier.name for tier in result.alignment.tiers] == names
    assert result.alignment.tier("Ann - words").labels == ["so", "it", "at"]
    assert result.alignment.tier("Bob - words").labels == ["is", "on"]
    assert result.warnings[0] == "each speaker is on a channel: Ann 2, Bob 1, by their levels"
    (bob,) = (samples for text, samples in heard.items() if text == "is on")
    np.testing.assert_array_equal(bob, load(path, channel=0)[round(2.5 * RATE) : round(5.0 * RATE)])
    mixed, _ = align_text(characters, "talk", load(path), TALK, 0.5, path, "mix")
    assert isinstance(mixed, Passages)
    assert not any("channel" in warning for warning in mixed.warnings)


def test_the_text_is_in_the_order_of_the_source(characters: Pipeline, tmp_path: Path) -> None:
    given = [Passage("is on", 4.0, 5.0), Passage("so it", 1.0, 2.0)]
    result, _ = align_text(characters, "talk", load(record(tmp_path, {"Ann": 0, "Bob": 1})), given, 0.5)
    assert result.text == "is on\nso it"
    assert result.alignment.tier("words").labels == ["so", "it", "is", "on"]


def test_a_channel_whose_passages_all_fail_is_a_warning(characters: Pipeline, tmp_path: Path) -> None:
    path = record(tmp_path, {"Ann": 0, "Bob": 1})
    given = [TALK[0], TALK[2], Passage("far too many words for this " * 40, 3.0, 4.5, "Bob", "cue 2")]
    result, _ = align_text(characters, "talk", load(path), given, 0.2, path)
    assert isinstance(result, Passages)
    assert {tier.name for tier in result.alignment.tiers} == {"Ann - words", "Ann - characters"}
    assert any("not aligned: all of channel 2: " in warning for warning in result.warnings)


def test_channels_of_a_file(tmp_path: Path) -> None:
    path = record(tmp_path, {"Ann": 0, "Bob": 1}, count=3)
    assert channels_of(path) == 3
    samples, _ = soundfile.read(path, dtype="float32")
    for channel in range(3):
        np.testing.assert_array_equal(load(path, RATE, channel=channel), samples[:, channel])
    np.testing.assert_array_equal(load(path, RATE), samples.mean(axis=1))
    with pytest.raises(AudioError, match=r"no channel 4; it has 3"):
        load(path, channel=3)
