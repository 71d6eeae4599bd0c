import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import Alignment, Segment, Tier
from isotone.format.ctm import CTMFormat
from isotone.format.reading import FormatError
from tests.format.strategies import alignments, close


def words(*segments, id="utt", duration=10.0, name="words"):
    return Alignment(id, duration, (Tier(name, segments),))


def test_writes_the_lines_that_sclite_and_kaldi_read():
    alignment = words(
        Segment("hello", 0.1234, 0.5, math.log(0.5)), Segment("", 0.5, 0.7), Segment("big world", 0.7, 1.0)
    )
    assert CTMFormat().dumps(alignment) == "utt 1 0.123 0.377 hello 0.5\nutt 1 0.700 0.300 big_world\n"
    assert CTMFormat(channel="A", decimals=5).dumps(alignment).startswith("utt A 0.12340 0.37660 hello 0.5\n")


@given(alignments(names=("words",), silence=True), st.sampled_from([3, 4, 6]))
@settings(max_examples=120, deadline=None)
def test_write_then_read_gives_the_same_words(alignment, decimals):
    text = CTMFormat(decimals=decimals).dumps(alignment)
    found = CTMFormat().loads(text, "utt").tier("words")
    expected = [s for s in alignment.tier("words") if s.label]
    assert found.labels == [re.sub(r"\s", "_", s.label) for s in expected]
    close(found.segments, expected, 0.5 * 10**-decimals + 1e-9)
    for a, b in zip(found, expected):
        known = b.confidence if b.confidence is not None or b.score is None else math.exp(b.score)
        assert a.score is None
        assert a.confidence == (None if known is None else pytest.approx(max(known, 1e-6), rel=1e-4))
    assert all(a.end <= b.start for a, b in zip(found.segments, found.segments[1:]))


@given(st.text(max_size=5))
@settings(max_examples=60, deadline=None)
def test_any_id_is_one_field_and_is_found_again(id):
    alignment = words(Segment("a", 0.0, 1.0), id=id, duration=1.0)
    text = CTMFormat().dumps(alignment)
    assert len(text.split()) == 5
    assert CTMFormat().loads(text, id) == alignment


def test_reads_many_utterances_and_channels_in_order():
    text = """;; a comment
b 1 0.00 0.50 hello 0.90
b 1 0.50 0.20 you NA

a A 1 2 x 1.00 lex spk1
a B 0.5 0.5 y
"""
    b, a_a, a_b = CTMFormat().loads_all(text)
    assert (b.id, a_a.id, a_b.id) == ("b", "a:A", "a:B")
    assert b.tier("words").segments == (Segment("hello", 0.0, 0.5, confidence=0.9), Segment("you", 0.5, 0.7))
    assert a_a.tier("words").segments == (Segment("x", 1.0, 3.0, confidence=1.0),)
    assert a_b.duration == 1.0
    assert CTMFormat().loads(text, "b") == b
    with pytest.raises(FormatError, match="one named 'c'; got 3, from 'b' on: read them with loads_all"):
        CTMFormat().loads(text, "c")


def test_the_only_utterance_keeps_its_own_id():
    assert CTMFormat(tier="phones").loads("rec_1 1 0 1 a", "file").id == "rec_1"
    assert CTMFormat().loads("", "file") == Alignment("file", 0.0, (Tier("words", ()),))


def test_an_end_is_the_decimal_sum_of_start_and_duration():
    found = CTMFormat().loads("u 1 0.1 0.2 a\nu 1 0.3 0.1 b", "u")  # 0.1 + 0.2 > 0.3 in binary
    assert found.tier("words").segments == (Segment("a", 0.1, 0.3), Segment("b", 0.3, 0.4))
    assert CTMFormat().loads("u 1 0.1 0.2 a", "u").duration == 0.3


def test_concatenated_files_are_one_file():
    one, two = (
        words(Segment("a", 0.0, 1.0), id="1", duration=1.0),
        words(Segment("b", 0.0, 2.0), id="2", duration=2.0),
    )
    text = CTMFormat().dumps(one) + CTMFormat().dumps(two)
    assert CTMFormat().loads_all(text) == [one, two]


def test_ends_rounded_apart_from_starts_are_cut_and_overlaps_refused():
    found = CTMFormat().loads("u 1 0.00 0.51 a\nu 1 0.50 0.50 b", "u")
    assert found.tier("words").segments == (Segment("a", 0.0, 0.5), Segment("b", 0.5, 1.0))
    with pytest.raises(FormatError, match=r"line 2: expected 'b' to start at 0\.51 s or later"):
        CTMFormat().loads("u 1 0.000 0.510 a\nu 1 0.500 0.500 b", "u")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("u 1 0.0 1.0", "line 1: expected 'id channel start duration label"),
        ("\nu 1 -0.5 1.0 a", "line 2: expected a start in seconds, 0 or later; got '-0.5'"),
        ("u 1 0.5 -1.0 a", "line 1: expected a duration"),
        ("u 1 0.5 one a", "line 1: expected a duration"),
        ("u 1 0.5 1.0 a 90", "line 1: expected a confidence from 0 to 1, or NA; got '90'"),
        ("u 1 0.5 1.0 a x", "line 1: expected a confidence"),
        ("u 1 0.5 1.0 a nan", "line 1: expected a confidence"),
        ("u 1 1.0 0.5 a\nu 1 0.0 0.5 b", "line 2: expected 'b' to start"),
    ],
)
def test_bad_lines_are_named(text, message):
    with pytest.raises(FormatError, match=message):
        CTMFormat().loads_all(text)


def test_needs_its_tier_and_sensible_options():
    with pytest.raises(KeyError, match="no tier 'words'"):
        CTMFormat().dumps(words(name="phones"))
    with pytest.raises(ValueError, match="3 decimals or more"):
        CTMFormat(decimals=2)
    with pytest.raises(ValueError, match="channel is a word"):
        CTMFormat(channel="a b")


def test_confidences_that_rounding_puts_above_one_are_one() -> None:
    found = CTMFormat().loads("u 1 0.5 1.0 a 1.00001\n", "u")
    assert [s.confidence for s in found.tier("words")] == [1.0]
