import logging
import re

import pytest
from hypothesis import given, settings

from isotone.alignment import Alignment, Segment, Tier
from isotone.format.reading import FormatError
from isotone.format.timit import TIMITFormat
from tests.format.strategies import alignments, close
from tests.paths import DATA


def test_writes_phones_that_cover_the_audio_and_words_that_do_not():
    alignment = Alignment(
        "u",
        1.0,
        (
            Tier("words", (Segment("so", 0.25, 0.75),)),
            Tier("phones", (Segment("s", 0.25, 0.5), Segment("ow", 0.5, 0.75))),
        ),
    )
    assert TIMITFormat().dumps(alignment) == "0 4000 h#\n4000 8000 s\n8000 12000 ow\n12000 16000 h#\n"
    assert TIMITFormat(tier="words").dumps(alignment) == "4000 12000 so\n"
    assert TIMITFormat(tier="words", sample_rate=8000).dumps(alignment) == "2000 6000 so\n"
    assert TIMITFormat(tier="words").suffix == ".wrd"
    assert TIMITFormat().suffix == ".phn"


@given(alignments(silence=True))
@settings(max_examples=100, deadline=None)
def test_write_then_read_gives_the_same_segments(alignment):
    words = TIMITFormat(tier="words")
    found = words.loads(words.dumps(alignment), "utt").tier("words")
    expected = [s for s in alignment.tier("words") if s.label]
    assert found.labels == [re.sub(r"\s", "_", s.label) for s in expected]
    close(found.segments, expected, 0.5 / 16000 + 1e-9)

    found = TIMITFormat().loads(TIMITFormat().dumps(alignment), "utt")
    spoken = [s for s in alignment.tier("phones").filled(alignment.duration) if s.label]
    named = [s for s in found.tier("phones") if s.label != "h#"]
    assert [s.label for s in named] == [re.sub(r"\s", "_", s.label) for s in spoken if s.label != "h#"]
    assert found.tier("phones").segments[0].start == 0.0
    assert alignment.duration - 1 / 16000 - 1e-9 <= found.duration <= alignment.duration + 1e-9


def test_words_that_share_a_phone_are_cut_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING):
        found = TIMITFormat(tier="words").loads("7000 9130 did\n8590 10733 your\n", "sa1")
    assert found.tier("words").segments == (
        Segment("did", 0.4375, 8590 / 16000),
        Segment("your", 8590 / 16000, 10733 / 16000),
    )
    assert "sa1: 1 words reach into the next one" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 100 h#\n100 20", "line 2: expected 'start_sample end_sample label'; got '100 20'"),
        ("0 100 h#\n100", "line 2: expected"),
        ("0 100 h#\n-100 200 a", "line 2: expected"),
        ("0 1.5 h#", "line 1: expected"),
        ("0 100 h#\n90 200 a", "line 2: expected 'a' to start at"),
        ("100 0 h#", "line 1: expected 'h#' to end after it starts"),
    ],
)
def test_bad_lines_are_named(text, message):
    with pytest.raises(FormatError, match=message):
        TIMITFormat().loads(text, "u")


def test_words_out_of_order_are_an_error():
    with pytest.raises(FormatError, match="line 2"):
        TIMITFormat(tier="words").loads("100 200 b\n0 150 a", "u")


def test_refuses_options_that_make_no_sense():
    with pytest.raises(ValueError, match="'phones' and 'words'; got 'characters'"):
        TIMITFormat(tier="characters")
    with pytest.raises(ValueError, match="above 0 Hz; got 0"):
        TIMITFormat(sample_rate=0)


def test_real_phones_come_back_byte_for_byte():
    files = sorted((DATA / "timit_sample").rglob("*.phn"))
    if not files:
        pytest.skip(f"no TIMIT sample at {DATA}: set ISOTONE_TEST_DATA")
    for file in files:
        text = file.read_text()
        assert TIMITFormat().dumps(TIMITFormat().loads(text, file.stem)).split() == text.split()
