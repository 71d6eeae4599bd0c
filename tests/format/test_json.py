import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from isotone.alignment import Absent, Alignment, Margin, Origin, Segment, Tier
from isotone.format.json import JSONFormat
from isotone.format.reading import FormatError
from tests.format.strategies import alignments

EXAMPLE = {
    "format": "isotone-alignment",
    "version": 1,
    "id": "a/b",
    "duration": 1.5,
    "tiers": [{"name": "words", "segments": [{"label": "ŋ", "start": 0, "end": 0.5, "score": -0.25}]}],
}
SCORED = EXAMPLE | {
    "score": -0.5,
    "tiers": [
        {
            "name": "words",
            "segments": [{"label": "ŋ", "start": 0, "end": 0.5, "score": -0.25, "confidence": 0.75}],
        }
    ],
}


@given(alignments(silence=True))
@settings(max_examples=120, deadline=None)
def test_write_then_read_gives_the_very_same(alignment):
    text = JSONFormat().dumps(alignment)
    assert JSONFormat().loads(text, "another id") == alignment
    assert JSONFormat(indent=None).loads(JSONFormat(indent=None).dumps(alignment), "") == alignment


def test_margins_are_objects_with_three_numbers():
    segment = Segment("a", 0.1, 0.5, start_margin=Margin(0.01, 0.02, 0.9))
    alignment = Alignment("u", 1.0, (Tier("words", (segment,)),))
    document = json.loads(JSONFormat().dumps(alignment))
    row = document["tiers"][0]["segments"][0]
    assert row == {
        "label": "a", "start": 0.1, "end": 0.5, "start_margin": {"before": 0.01, "after": 0.02, "near": 0.9},
    }  # fmt: skip
    row["start_margin"]["near"] = 2
    with pytest.raises(
        FormatError, match=r"tiers\[0\]\.segments\[0\]: A margin expects .* a probability; got"
    ):
        JSONFormat().loads(json.dumps(document), "")
    row["start_margin"] = [0.01]
    with pytest.raises(FormatError, match=r"segments\[0\]\.start_margin: expected 'before', a number"):
        JSONFormat().loads(json.dumps(document), "")


def test_the_document_is_what_the_schema_says():
    alignment = Alignment("a/b", 1.5, (Tier("words", (Segment("ŋ", 0.0, 0.5, -0.25),)),))
    text = JSONFormat().dumps(alignment)
    assert json.loads(text) == EXAMPLE
    assert "ŋ" in text
    assert JSONFormat().loads(json.dumps(EXAMPLE | {"more": 1}), "") == alignment
    scored = Alignment("a/b", 1.5, (Tier("words", (Segment("ŋ", 0.0, 0.5, -0.25, 0.75),)),), -0.5)
    assert json.loads(JSONFormat().dumps(scored)) == SCORED
    assert JSONFormat().loads(json.dumps(SCORED), "") == scored


@pytest.mark.parametrize("score", [-math.inf, math.inf])
def test_scores_that_are_not_finite_survive_in_valid_json(score):
    alignment = Alignment("u", 1.0, (Tier("t", (Segment("a", 0.0, 1.0, score),)),))
    text = JSONFormat().dumps(alignment)
    json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
    assert JSONFormat().loads(text, "u") == alignment


def test_nan_scores_survive():
    text = JSONFormat().dumps(Alignment("u", 1.0, (Tier("t", (Segment("a", 0.0, 1.0, math.nan),)),)))
    score = JSONFormat().loads(text, "u").tier("t").segments[0].score
    assert score is not None
    assert math.isnan(score)


def test_numpy_and_torch_numbers_become_plain_ones():
    segment = Segment("a", np.float32(0.25), torch.tensor(0.5), np.float64(-1.0))
    text = JSONFormat().dumps(Alignment("u", np.float64(1.0), (Tier("t", (segment,)),)))
    assert JSONFormat().loads(text, "u").tier("t").segments == (Segment("a", 0.25, 0.5, -1.0),)


def changed(**changes):
    return json.dumps(EXAMPLE | changes)


def with_segments(*segments):
    return changed(tiers=[{"name": "words", "segments": list(segments)}])


GOOD = {"label": "a", "start": 0, "end": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": \n', "line 2: expected JSON"),
        ("[]", "expected an object with .*isotone-alignment.*; got other JSON"),
        (changed(format="praat"), 'expected "format": "isotone-alignment"; got \'praat\''),
        (changed(version=2), "expected version 1; got 2"),
        (changed(version=True), "expected 'version', a whole number; got true"),
        (changed(duration="1"), "the document: expected 'duration', a number; got \"1\""),
        (changed(duration=-1), "duration of 0 s or more; got -1"),
        (changed(id=None), "expected 'id', a text; got null"),
        (changed(tiers={}), "expected 'tiers', a list"),
        (changed(tiers=[3]), r"tiers\[0\]: expected 'segments', a list; got 3"),
        (
            with_segments(GOOD, {"label": "b", "start": 0.5, "end": 2}),
            "'b' starts at 0.5 s, before 'a' ends at 1.0",
        ),
        (
            with_segments({"label": "b", "start": -0.5, "end": 1}),
            r"tiers\[0\].segments\[0\]: .*0 <= start <= end",
        ),
        (
            with_segments(GOOD, {"label": "b", "start": "x", "end": 1}),
            r"segments\[1\]: expected 'start', a number",
        ),
        (with_segments({"label": "b", "start": 1}), r"segments\[0\]: expected 'end', a number; got null"),
        (json.dumps(EXAMPLE | {"score": "high"}), r"the document: expected 'score', a number; got \"high\""),
        (with_segments(GOOD | {"confidence": "high"}), r"segments\[0\]: expected 'confidence', a number"),
        (with_segments(GOOD | {"score": "high"}), r"segments\[0\]: expected 'score', a number; got \"high\""),
        (with_segments(GOOD | {"start": math.nan}), "expected finite numbers; got NaN"),
        (with_segments(GOOD | {"end": 7}), "'a' ends at 7.0 s, after the audio"),
    ],
)
def test_bad_documents_are_named_by_place(text, message):
    with pytest.raises(FormatError, match=message):
        JSONFormat().loads(text, "u")


def test_absent_words_the_verdict_and_presence_survive():
    said = Segment("she", 0.0, 0.5, -0.25, 0.75, Origin("She", 0, 3, "she"), 0.99)
    absent = (Absent("old", 1, 0.01, Origin("old", 4, 7, "old")), Absent("dog", 1, 0.5))
    alignment = Alignment("u", 1.5, (Tier("words", (said,)),), absent=absent, verdict="partly")
    text = JSONFormat().dumps(alignment)
    assert JSONFormat().loads(text, "u") == alignment
    content = json.loads(text)
    assert content["verdict"] == "partly"
    assert content["tiers"][0]["segments"][0]["presence"] == 0.99
    assert content["absent"][0] == {
        "label": "old", "after": 1, "presence": 0.01, "text": "old", "start_char": 4, "end_char": 7, "reading": "old",
    }  # fmt: skip
    assert content["absent"][1] == {"label": "dog", "after": 1, "presence": 0.5}
    with pytest.raises(FormatError, match=r"absent\[0\]: expected 'after'"):
        JSONFormat().loads(json.dumps(content | {"absent": [{"label": "old"}]}), "u")


def test_the_bytes_are_those_of_the_text() -> None:
    alignment = Alignment("ü", 1.5, (Tier("words", (Segment("naïve", 0.0, 1.0, -0.5),)),), verdict="right")
    format = JSONFormat()
    assert format.encoded(alignment) == format.dumps(alignment).encode()
    strange = Alignment("a", 1.5, (Tier("words", (Segment("\ud800", 0.0, 1.0),)),))
    assert "\ud800" in format.dumps(strange)
    with pytest.raises(UnicodeEncodeError):
        format.encoded(strange)
