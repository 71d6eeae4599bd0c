import re

import pytest
from hypothesis import given, settings

from isotone.alignment import Alignment, Segment, Tier
from isotone.format.audacity import AudacityFormat
from isotone.format.reading import FormatError
from tests.format.strategies import alignments, close


def test_writes_what_audacity_exports():
    alignment = Alignment(
        "u", 2.0, (Tier("words", (Segment('say\t"hi"', 0.25, 0.5), Segment("", 0.5, 1.0))),)
    )
    assert AudacityFormat().dumps(alignment) == '0.250000\t0.500000\tsay "hi"\n0.500000\t1.000000\t\n'


@given(alignments(names=("words",), silence=True))
@settings(max_examples=120, deadline=None)
def test_write_then_read_gives_the_same_labels(alignment):
    found = AudacityFormat().loads(AudacityFormat().dumps(alignment), "utt").tier("words")
    assert found.labels == [re.sub(r"[\t\r\n]", " ", s.label) for s in alignment.tier("words")]
    close(found.segments, alignment.tier("words").segments, 0.5e-6 + 1e-9)


def test_reads_labels_without_text_and_passes_spectral_lines():
    found = AudacityFormat(tier="marks").loads("0.5\t0.5\n\\\t100.0\t200.0\n1.0\t2.0\ta b\r\n", "u")
    assert found == Alignment("u", 2.0, (Tier("marks", (Segment("", 0.5, 0.5), Segment("a b", 1.0, 2.0))),))


def test_reads_an_empty_track():
    assert AudacityFormat().loads("", "u") == Alignment("u", 0.0, (Tier("words", ()),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 54682 She had", "line 1: expected start, end and label between tabs; got '0 54682 She had'"),
        ("0.0\t1.0\ta\n-1.0\t1.0\tb", "line 2: expected a start in seconds, 0 or later; got '-1.0'"),
        ("0.0\tx\ta", "line 1: expected an end"),
        ("0.0\t1.0\ta\n0.5\t1.0\tb", "line 2: expected 'b' to start at 1.0 s or later"),
        ("0.0\t1.0\ta\tb", "line 1: expected start, end and label"),
    ],
)
def test_bad_lines_are_named(text, message):
    with pytest.raises(FormatError, match=message):
        AudacityFormat().loads(text, "u")
