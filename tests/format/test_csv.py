import csv
import io

import pytest
from hypothesis import given, settings

from isotone.alignment import Alignment, Margin, Segment, Tier
from isotone.format.csv import CSVFormat
from isotone.format.reading import FormatError
from tests.format.strategies import alignments

HEADER = "tier,label,start,end,score,confidence\n"
LONG = HEADER.strip() + ",start_before,start_after,start_near,end_before,end_after,end_near\n"
OLD = "tier,label,start,end,score\n"  # header of files from before there were confidences


@given(alignments(silence=True))
@settings(max_examples=120, deadline=None)
def test_write_then_read_gives_the_very_same_segments(alignment):
    found = CSVFormat().loads(CSVFormat().dumps(alignment), "utt")
    assert found.tiers == tuple(t for t in alignment.tiers if t.segments)
    assert found.duration == max((t.segments[-1].end for t in found.tiers), default=0.0)


def test_a_spreadsheet_sees_six_columns():
    alignment = Alignment(
        "u",
        1.0,
        (Tier("words", (Segment('say "hi", you', 0.1, 0.5, -0.5, 0.75), Segment("a\nb", 0.5, 1.0))),),
    )
    rows = list(csv.reader(io.StringIO(CSVFormat().dumps(alignment), newline="")))
    assert rows == [
        ["tier", "label", "start", "end", "score", "confidence"],
        ["words", 'say "hi", you', "0.1", "0.5", "-0.5", "0.75"],
        ["words", "a\nb", "0.5", "1.0", "", ""],
    ]


def test_a_spreadsheet_sees_margins_where_there_are_any():
    words = (Segment("a", 0.1, 0.5, end_margin=Margin(0.01, 0.02, 0.9)), Segment("b", 0.5, 1.0))
    rows = list(csv.reader(io.StringIO(CSVFormat().dumps(Alignment("u", 1.0, (Tier("words", words),))))))
    assert rows[0][6:] == [
        "start_before", "start_after", "start_near", "end_before", "end_after", "end_near",
    ]  # fmt: skip
    assert rows[1][4:] == ["", "", "", "", "", "0.01", "0.02", "0.9"]
    assert rows[2][4:] == [""] * 8


def test_reads_what_a_spreadsheet_writes():
    for header, last in ((HEADER, ","), (OLD, "")):
        text = f"{header}words,a,0,1,{last}\nphones,b,0,1,-2{last}\n\n".replace("\n", "\r\n")
        words, phones = Segment("a", 0.0, 1.0), Segment("b", 0.0, 1.0, -2.0)
        expected = Alignment("u", 1.0, (Tier("words", (words,)), Tier("phones", (phones,))))
        assert CSVFormat().loads(text, "u") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected the header 'tier,label,start,end,score,confidence'; got ''"),
        ("label,start\n", "line 1: expected the header"),
        (OLD + "words,a,0,1\n", "line 2: expected 5 fields, tier,label,start,end,score; got 4"),
        (
            HEADER + "words,a,0,1,-1\n",
            "line 2: expected 6 fields, tier,label,start,end,score,confidence; got 5",
        ),
        (LONG + "words,a,0,1,,,,,,.01,,.9\n", "line 2: expected three numbers of a margin, or none; got 2"),
        (LONG + "words,a,0,1,,,,,,.01,-1,.9\n", "line 2: A margin expects seconds of 0 or more"),
        (HEADER + "words,a,0,1,-1,sure\n", "line 2: expected a confidence, a number or nothing; got 'sure'"),
        (
            OLD + "words,a,0,1,\nwords,b,-1,2,\n",
            "line 3: expected a start in seconds, 0 or later; got '-1'",
        ),
        (OLD + "words,a,0,x,\n", "line 2: expected an end in seconds"),
        (OLD + "words,a,0,1,good\n", "line 2: expected a score, a number or nothing; got 'good'"),
        (OLD + "words,a,0,1,\nwords,b,0.5,2,\n", "line 3: expected 'b' to start at 1.0 s or later"),
        (OLD + "words,a,1,0,\n", "line 2: expected 'a' to end after it starts"),
        (HEADER + 'words,"a,0,1,\n', "line 2: expected CSV"),
    ],
)
def test_bad_lines_are_named(text, message):
    with pytest.raises(FormatError, match=message):
        CSVFormat().loads(text, "u")
