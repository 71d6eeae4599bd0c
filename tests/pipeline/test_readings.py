"""Readings of written forms are chosen by the audio, and words keep their place in the text."""
# ruff: noqa: RUF001

from __future__ import annotations

import math
from pathlib import Path

import pytest

from isotone import formats
from isotone.alignment import Origin, Segment
from isotone.model import DecodingConfig, Model
from isotone.model.encoder import SpeechEncoder
from isotone.pipeline import Pipeline
from isotone.pipeline.lattices import unfold
from isotone.pipeline.result import Result
from isotone.text.dictionary import Dictionary
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer
from tests.pipeline.parts import give, model_of_characters, noise
from tests.pipeline.test_lattices import ENCODER, LABELS, Said, heard, readings, text_of
from tests.pipeline.test_lattices import TOKENIZER as CLOSED

SAID = Said(a=[("m", 0.0)], twenty=[("s iy", 0.0)], two=[("ae", 0.0)], oh=[("iy", 0.0)], to=[("m iy", 0.0)])
TOKENIZER = PhoneTokenizer(LABELS, SAID, "sil")


def pipeline_of(tokenizer: PhoneTokenizer, aligner: str = "segmental") -> Pipeline:
    reading = DecodingConfig("ctc", {"name": "ctc-greedy"}, "ctc", {"name": aligner})
    return Pipeline(Model(SpeechEncoder(ENCODER), {"ctc": {"name": "ctc"}}, tokenizer, reading))


def aligned(text: str, frames: str, aligner: str = "segmental") -> Result:
    pipeline = pipeline_of(TOKENIZER, aligner)
    emissions = heard(frames)
    give(pipeline, emissions)
    return pipeline.align("x", noise(emissions.logits.shape[1] * 0.02), pipeline.encode(text))


def words(result: Result) -> list[tuple[str, int, int, str]]:
    tier = result.alignment.tier("words")
    assert all(s.origin for s in tier)
    return [(s.label, round(s.start / 0.02), round(s.end / 0.02), s.origin.reading) for s in tier if s.origin]


@pytest.mark.parametrize("aligner", ["segmental", "ctc"])
@pytest.mark.parametrize(
    ("frames", "reading", "span"),
    [
        ("m 4 s 3 iy 4 m 4", "twenty", (4, 11)),
        ("m 4 ae 4 iy 4 m 4", "two oh", (4, 12)),
        # a pause between the spoken words of one written word
        ("m 4 ae 4 sil 9 iy 4 m 4", "two oh", (4, 21)),
        ("m 4 sil 8 s 3 iy 4 sil 8 m 4", "twenty", (12, 19)),
    ],
)
def test_the_reading_that_is_heard(frames: str, reading: str, span: tuple[int, int], aligner: str) -> None:
    found = words(aligned("A 20, a.", frames, aligner))
    assert [(label, said) for label, _, _, said in found] == [("A", "a"), ("20,", reading), ("a.", "a")]
    if aligner == "segmental":
        assert found[1][1:3] == span


def test_words_keep_their_place_in_the_text() -> None:
    text = "\n SPEAKER 1: A [laughs] <b>2</b>0 – a."
    result = aligned(text, "m 4 s 3 iy 4 m 4")
    tier = result.alignment.tier("words")
    assert [s.label for s in tier] == ["A", "20 –", "a."]
    for segment in tier:
        assert segment.origin
        assert text[segment.origin.start : segment.origin.end] == segment.origin.text
    assert [s.origin for s in tier] == [
        Origin("A", 13, 14, "a"), Origin("2</b>0 –", 27, 35, "twenty"), Origin("a.", 36, 38, "a"),
    ]  # fmt: skip
    assert not any(s.origin for s in result.alignment.tier("phones"))
    stored = formats.build("json").dumps(result.alignment)
    assert (
        '"text": "2</b>0 –",\n     "start_char": 27,\n     "end_char": 35,\n     "reading": "twenty"'
        in stored
    )
    assert formats.build("json").loads(stored, "x") == result.alignment


def test_a_word_of_another_script_has_a_place_and_no_reading() -> None:
    result = aligned("a 日本 20", "m 4 k 9 s 3 iy 4")
    star = result.alignment.tier("words").segments[1]
    assert (star.label, star.origin) == ("日本", Origin("日本", 2, 4, ""))


def test_models_of_characters_choose_as_well() -> None:
    model = model_of_characters()
    assert isinstance(model.tokenizer, CharacterTokenizer)
    transcript = model.tokenizer.encode("1905")
    (graph,) = transcript.graphs
    assert graph is not None
    ends = [part for part in graph if part.to_speech is not None]
    assert {transcript.words[0].readings[part.reading] for part in ends} >= {
        "nineteen oh five", "nineteen hundred five",
    }  # fmt: skip
    assert transcript.words[0].normal == "nineteen oh five"


def test_a_reading_without_pronunciation_is_no_choice() -> None:
    """Of "zero" and "oh", which "20" is read with, the pronouncer knows one."""
    (word,) = TOKENIZER.encode("20").words
    assert word.readings == ("twenty", "two oh")


def test_costs_of_silences_in_a_dictionary(tmp_path: Path) -> None:
    """Columns of the Montreal Forced Aligner: each way costs minus the logarithm of its probability."""
    (tmp_path / "mfa.dict").write_text("a\t0.8\t0.25\t2.0\t0.5\tae\na\t0.2\t0.5\t1.0\t1.0\tiy\nb\tm\n")
    for saved in (False, True):
        dictionary = Dictionary(tmp_path / "mfa.dict")
        if saved:
            dictionary = Dictionary(tmp_path / "saved" / dictionary.save(tmp_path / "saved")["file"])
        tokenizer = PhoneTokenizer(LABELS, dictionary, "sil")
        found = readings(text_of("b a b", tokenizer))
        least = found["sil m sil ae m"]

        def more(said: str, found: dict[str, float] = found, least: float = least) -> float:
            return found[said] - least

        before, after = math.log(2 / 0.5), math.log(0.75 / 0.25)
        assert more("sil m sil ae sil m") == pytest.approx(after, abs=1e-4)
        assert more("sil m ae m") == pytest.approx(before, abs=1e-4)
        rarer = math.log(0.8 / 0.2) + math.log(0.75 / 0.5)
        assert more("sil m sil iy m") == pytest.approx(rarer + math.log(2), abs=1e-4)


def test_many_readings_side_by_side_stay_within_the_kernels_limit() -> None:
    text = text_of("20 20 20", TOKENIZER)
    lattice = unfold(text)
    assert max(map(len, lattice.ways)) <= 120
    many = Said(
        **{
            w: [(" ".join(["ae", *["m"] * n]), 0.0) for n in range(9)]
            for w in ("twenty", "two", "oh", "zero")
        }
    )
    crowded = unfold(text_of("20 20", PhoneTokenizer(LABELS, many, "sil", closures=CLOSED.closures)))
    assert max(map(len, crowded.ways)) <= 120


def test_segments_with_an_origin_compare_by_it() -> None:
    assert Segment("a", 0, 1, origin=Origin("a", 0, 1)) != Segment("a", 0, 1, origin=Origin("a", 2, 3))
