import pytest

from isotone.alignment import Segment
from isotone.format.reading import FormatError, Row, build_tier, decode, numbered_lines, parse_seconds


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_decode_reads_every_encoding_that_praat_writes(encoding):
    assert decode("ŋ שלום 👩\r\n".encode(encoding)) == "ŋ שלום 👩\r\n"


def test_decode_reads_both_byte_orders():
    assert decode(b"\xfe\xff" + "ŋa".encode("utf-16-be")) == "ŋa"
    assert decode(b"\xff\xfe" + "ŋa".encode("utf-16-le")) == "ŋa"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a\ncafé".encode("latin-1"), "line 2: expected UTF-8.* 0xe9"),
        (b"\xff\xfea", "expected UTF-16"),
        (b"ooBinaryFile\x08TextGrid", "binary Praat file"),
    ],
)
def test_decode_says_what_it_cannot_read(data, message):
    with pytest.raises(FormatError, match=message):
        decode(data)


def test_numbered_lines_skip_blank_ones_and_keep_the_count():
    assert list(numbered_lines("a\r\n\n \nb\u2028c")) == [(1, "a"), (4, "b\u2028c")]


@pytest.mark.parametrize("field", ["-0.1", "x", "nan", "inf", ""])
def test_parse_seconds_refuses_what_is_no_time(field):
    with pytest.raises(FormatError, match="line 7: expected a start in seconds"):
        parse_seconds(field, 7, "a start")


def test_parse_seconds_has_no_negative_zero():
    assert str(parse_seconds("-0", 1, "a start")) == "0.0"


def test_build_tier_cuts_an_overlap_within_its_slack_and_refuses_a_larger_one():
    rows = [Row(1, "a", 0.0, 0.51), Row(2, "b", 0.5, 1.0)]
    assert build_tier("t", rows, 0.015).segments == (Segment("a", 0.0, 0.5), Segment("b", 0.5, 1.0))
    with pytest.raises(FormatError, match=r"line 2: expected 'b' to start at 0\.51 s or later"):
        build_tier("t", rows)


def test_build_tier_never_reorders():
    with pytest.raises(FormatError, match="line 2"):
        build_tier("t", [Row(1, "a", 0.5, 1.0), Row(2, "b", 0.0, 1.0)], float("inf"))


def test_build_tier_refuses_a_segment_that_runs_backwards():
    with pytest.raises(FormatError, match="line 3: expected 'a' to end after it starts"):
        build_tier("t", [Row(3, "a", 0.5, 0.4)])
