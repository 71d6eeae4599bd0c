"""Texts in another order, read again, or said in part: real sentences, joined, with the English pack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotone import audio
from isotone.alignment import AlignmentError
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.given import align_text
from isotone.pipeline.result import Result
from isotone.transcripts import Passage
from tests.paths import DATA

LJSPEECH = DATA / "ljspeech"
pytestmark = pytest.mark.skipif(not LJSPEECH.is_dir(), reason="no sample data (ISOTONE_TEST_DATA)")
NAMES = ("LJ001-0010", "LJ003-0026", "LJ003-0034", "LJ003-0052")


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline(Model.load("english"))


@pytest.fixture(scope="module")
def sentences() -> list[tuple[np.ndarray, str]]:
    rows = (line.split("|") for line in (LJSPEECH / "metadata.csv").read_text("utf-8").splitlines())
    texts = {row[0]: row[1] for row in rows}
    return [(audio.load(LJSPEECH / f"{name}.flac", 16_000), texts[name]) for name in NAMES]


def aligned(pipeline: Pipeline, samples: list[np.ndarray], texts: list[str]) -> Result:
    result, _ = align_text(pipeline, "a", np.concatenate(samples), [Passage(" ".join(texts))], 1.0)
    assert isinstance(result, Result)
    return result


def test_swapped_sentences_have_their_own_times(pipeline: Pipeline, sentences: list) -> None:
    samples, texts = zip(*sentences)
    right = aligned(pipeline, list(samples), list(texts))
    found = aligned(pipeline, list(samples), [texts[0], texts[2], texts[1], texts[3]])
    assert right.alignment.verdict == "right"
    assert found.alignment.verdict == "partly"
    assert any("in another place than in the text" in warning for warning in found.warnings)
    assert found.alignment.tier("words").labels == right.alignment.tier("words").labels
    text = " ".join([texts[0], texts[2], texts[1], texts[3]])
    for one, other in zip(found.alignment.tier("words"), right.alignment.tier("words")):
        assert abs(one.start - other.start) <= 0.1
        assert one.origin is not None
        assert text[one.origin.start : one.origin.end] == one.origin.text


def test_a_second_take_is_a_star(pipeline: Pipeline, sentences: list) -> None:
    samples, texts = zip(*sentences)
    found = aligned(pipeline, [*samples[:3], samples[2], samples[3]], list(texts)).alignment
    begin = sum(map(len, samples[:3])) / 16_000
    (star,) = (segment for segment in found.tier("words") if segment.label == "*")
    assert begin <= star.start <= begin + 1
    assert begin + len(samples[2]) / 16_000 - 1 <= star.end <= begin + len(samples[2]) / 16_000
    assert not found.absent
    assert len(found.tier("words")) == len(" ".join(texts).split()) + 1


def test_of_a_long_text_the_part_that_is_said_has_times(pipeline: Pipeline, sentences: list) -> None:
    samples, texts = zip(*sentences)
    other = Path(LJSPEECH / "metadata.csv").read_text("utf-8").splitlines()
    more = [row.split("|")[1] for row in other if row.split("|")[0] not in NAMES][:12]
    found = aligned(
        pipeline, [samples[1], samples[2]], [texts[0], *more, texts[1], texts[2], *more[6:], texts[3]]
    )
    assert found.alignment.verdict == "partly"
    assert found.alignment.tier("words").labels == f"{texts[1]} {texts[2]}".split()
    before = [word for word in found.alignment.absent if word.after == 0]
    assert len(before) == len(" ".join([texts[0], *more]).split())
    assert {word.after for word in found.alignment.absent} == {0, len(found.alignment.tier("words"))}


def long_text(own: str = "") -> str:
    """The texts of all recordings, with one in their midst."""
    lines = (LJSPEECH / "metadata.csv").read_text("utf-8").splitlines()
    texts = [text for text in (line.split("|")[1] for line in lines) if text != own]
    return " ".join([*texts[:20], own, *texts[20:]])


def test_of_a_text_that_nobody_could_say_in_time_a_short_recording_has_its_part(
    pipeline: Pipeline, sentences: list
) -> None:
    """As of an utterance that comes with the text of its whole chapter."""
    samples, own = sentences[0]
    found = aligned(pipeline, [samples], [long_text(own)])
    labels = found.alignment.tier("words").labels
    assert " ".join(own.split()) in " ".join(labels)
    assert len(labels) <= len(own.split()) + 2


def test_of_a_text_that_nobody_could_say_in_time_and_did_not_the_reason_is_told(
    pipeline: Pipeline, sentences: list
) -> None:
    samples = sentences[0][0]
    with pytest.raises(
        AlignmentError, match=r"^a: the text is too long .* words and the recording 0\.5 s.*--book"
    ):
        aligned(pipeline, [samples[:8000]], [long_text()])
    with pytest.raises(AlignmentError, match="too short for a single frame"):
        aligned(pipeline, [samples[:100]], [long_text()])
