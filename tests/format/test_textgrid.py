import logging

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from praatio.utilities import textgrid_io

from isotone.alignment import Alignment, AlignmentError, Margin, Segment, Tier
from isotone.format.reading import FormatError, decode
from isotone.format.textgrid import TextGridFormat
from tests.format.strategies import alignments, close

# Praat's manual, "TextGrid file formats", without its point tier
LONG = '''File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0 
xmax = 2.3 
tiers? <exists> 
size = 2 
item []: 
    item [1]:
        class = "IntervalTier" 
        name = "Mary" 
        xmin = 0 
        xmax = 2.3 
        intervals: size = 3 
        intervals [1]:
            xmin = 0 
            xmax = 0.7 
            text = "" 
        intervals [2]:
            xmin = 0.7 
            xmax = 1.5 
            text = "say ""ŋ""" 
        intervals [3]:
            xmin = 1.5 
            xmax = 2.3 
            text = "" 
    item [2]:
        class = "IntervalTier" 
        name = "John" 
        xmin = 0 
        xmax = 2.3 
        intervals: size = 1 
        intervals [1]:
            xmin = 0 
            xmax = 2.3 
            text = "" 
'''  # noqa: W291

SHORT = '''File type = "ooTextFile"
Object class = "TextGrid"

0
2.3
<exists>
2
"IntervalTier"
"Mary"
0
2.3
3
0
0.7
""
0.7
1.5
"say ""ŋ"""
1.5
2.3
""
"IntervalTier"
"John"
0
2.3
1
0
2.3
""
'''

# the manual's examples of other files that Praat reads
MINIMAL = '"ooTextFile"\n"TextGrid"\n0 2.3 <exists> 3 "IntervalTier" "Mary" 0 2.3 1 0 2.3 ""\n' \
    '"IntervalTier" "John" 0 2.3 1 0 2.3 "hi" "TextTier" "bell" 0 2.3 2 1 "ding" 0.5 "dong"'  # fmt: skip
CHATTY = """File type = "ooTextFile" ! "not this"
Object class = "TextGrid"
0 ! start of the whole
2.3 seconds and ! the end 5
tiers <exists> and there are
1 of them
"IntervalTier" called
"Mary" from 0 to 2.3 with 1 interval [2] of
0 to 2.3
"hello" """

EXAMPLE = Alignment("u", 2.3, (Tier("Mary", (Segment('say "ŋ"', 0.7, 1.5),)), Tier("John", ())))


@pytest.mark.parametrize(("style", "golden"), [("long", LONG), ("short", SHORT)])
def test_writes_what_praat_writes(style, golden):
    assert TextGridFormat(style=style).dumps(EXAMPLE) == golden


@pytest.mark.parametrize("golden", [LONG, SHORT, LONG.replace("\n", "\r\n")])
def test_reads_both_styles(golden):
    assert TextGridFormat().loads(golden, "u") == EXAMPLE


def test_reads_empty_intervals_where_they_are_wanted():
    tier = TextGridFormat(keep_empty=True).loads(LONG, "u").tier("Mary")
    assert tier.segments == (Segment("", 0.0, 0.7), Segment('say "ŋ"', 0.7, 1.5), Segment("", 1.5, 2.3))


def test_reads_any_text_that_praat_reads_and_leaves_points_out():
    assert TextGridFormat().loads(MINIMAL, "u") == Alignment(
        "u", 2.3, (Tier("Mary", ()), Tier("John", (Segment("hi", 0.0, 2.3),)))
    )
    assert TextGridFormat().loads(CHATTY, "u").tier("Mary").segments == (Segment("hello", 0.0, 2.3),)


@pytest.mark.parametrize("style", ["long", "short"])
def test_margins_are_points_after_all_tiers(style):
    sure = Margin(0.008, 0.0144, 0.934)
    words = (
        Segment("a", 0.1, 0.5, start_margin=Margin(0.1, 0.02, 0.5), end_margin=sure),
        Segment("b", 0.5, 0.9, start_margin=sure),
    )
    alignment = Alignment("u", 1.0, (Tier("words", words), Tier("phones", (Segment("ə", 0.1, 0.9),))))
    text = TextGridFormat(style=style).dumps(alignment)
    tiers = textgrid_io.parseTextgridStr(text)["tiers"]
    assert [(tier["class"], tier["name"]) for tier in tiers] == [
        ("IntervalTier", "words"), ("IntervalTier", "phones"), ("TextTier", "words margins"),
    ]  # fmt: skip
    points = [(float(time), label) for time, label in tiers[2]["entries"]]
    assert points == [(0.1, "-100 +20 50%"), (0.5, "-8 +14 93%")]
    assert [tier.name for tier in TextGridFormat().loads(text, "u").tiers] == ["words", "phones"]


def test_reads_a_grid_without_tiers():
    absent = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n1\n<absent>\n'
    assert TextGridFormat().loads(absent, "u") == Alignment("u", 1.0)
    for style in ("long", "short"):
        assert TextGridFormat().loads(
            TextGridFormat(style=style).dumps(Alignment("u", 1.0)), "u"
        ) == Alignment("u", 1.0)


@given(alignments(empty=False), st.sampled_from(["long", "short"]))
@settings(max_examples=120, deadline=None)
def test_write_then_read_gives_the_same_segments(alignment, style):
    found = TextGridFormat().loads(TextGridFormat(style=style).dumps(alignment), "utt")
    assert found.duration == alignment.duration
    assert [t.name for t in found.tiers] == ["words", "phones"]
    for a, b in zip(found.tiers, alignment.tiers):
        assert a.labels == [label.replace("\0", "\ufffd") for label in b.labels]
        close(a.segments, b.segments, 1e-6)


@given(alignments(silence=True))
@settings(max_examples=120, deadline=None)
def test_intervals_cover_the_audio_and_no_label_is_lost(alignment):
    found = TextGridFormat(keep_empty=True).loads(TextGridFormat().dumps(alignment), "utt")
    for a, b in zip(found.tiers, alignment.tiers):
        assert [x.replace("\0", "\ufffd") for x in b.labels if x] == [x for x in a.labels if x]
        assert a.segments[0].start == 0.0
        assert a.segments[-1].end == alignment.duration
        assert all(s.end > s.start for s in a)
        assert all(x.end == y.start for x, y in zip(a.segments, a.segments[1:]))
        moved = 1e-3 * sum(s.duration == 0 for s in b) + 1e-6
        close([s for s in a if s.label], [s for s in b if s.label], moved)


def test_a_segment_without_duration_gets_a_millisecond_and_a_warning(caplog):
    segments = (Segment("a", 0.0, 0.5), Segment("b", 0.5, 0.5), Segment("c", 0.5, 1.0))
    alignment = Alignment("u", 1.0, (Tier("words", segments),))
    with caplog.at_level(logging.WARNING):
        text = TextGridFormat().dumps(alignment)
    assert "'b' at 0.5 s" in caplog.text
    assert TextGridFormat().loads(text, "u").tier("words").segments == (
        Segment("a", 0.0, 0.5),
        Segment("b", 0.5, 0.501),
        Segment("c", 0.501, 1.0),
    )


def test_a_gap_of_rounding_noise_is_closed():
    segments = (Segment("a", 2e-9, 0.3), Segment("b", 0.1 + 0.2, 0.7), Segment("c", 0.7 + 1e-8, 1.0 - 1e-9))
    tier = TextGridFormat(keep_empty=True).loads(
        TextGridFormat().dumps(Alignment("u", 1.0, (Tier("t", segments),))), "u"
    ).tiers[0]  # fmt: skip
    assert tier.labels == ["a", "b", "c"]
    assert tier.segments[0].start == 0.0
    assert tier.segments[2].end == 1.0


def test_more_labels_than_fit_is_an_error():
    crowd = Tier("t", tuple(Segment(str(i), 0.0, 0.0) for i in range(20)))
    with pytest.raises(AlignmentError, match=r"20 intervals do not fit into 1e-08 s\."):
        TextGridFormat().dumps(Alignment("u", 1e-8, (crowd,)))
    with pytest.raises(AlignmentError, match="longer than 0 s"):
        TextGridFormat().dumps(Alignment("u", 0.0, (crowd,)))


def test_numpy_and_torch_numbers_become_plain_ones():
    segment = Segment("a", np.float32(0.25), torch.tensor(0.5), np.float64(-1.0))
    text = TextGridFormat().dumps(Alignment("u", np.float64(1.0), (Tier("t", (segment,)),)))
    assert "xmin = 0.25 " in text
    assert "np." not in text
    assert "tensor" not in text


def test_truncated_anywhere_is_an_error():
    plain = LONG.replace('""ŋ""', "ŋ")
    for text in (plain, SHORT.replace('""ŋ""', "ŋ")):
        whole = text.rstrip()
        for size in range(len(whole)):
            with pytest.raises(FormatError, match=r"line \d+: expected"):
                TextGridFormat().loads(whole[:size], "u")
        assert TextGridFormat().loads(whole, "u").duration == 2.3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"ooTextFile"', '"Praat chronological TextGrid text file"', "line 1: expected an ooTextFile; got"),
        ('"ooTextFile"', '"WAVE"', "line 1: expected File type"),
        ('"TextGrid"', '"PitchTier"', "line 2: expected Object class"),
        ("xmin = 0.7", "xmin = -0.7", "line 20: expected a time of .* 'Mary' to be 0 s or later"),
        ("xmin = 0.7", "xmin = 0.6", "line 20: expected .* to start at 0.7 s or later"),
        ("xmax = 1.5", "xmax = 0.6", "line 20: expected .* to end after it starts"),
        ("xmax = 1.5", "xmax = 1.6", "line 24: expected '' to start at 1.6 s or later"),
        ("xmin = 1.5", "xmin = 1.4", "line 24"),
        ("xmax = 1.5", "xmax = 9.5", "line 20: expected xmax of entry 2 .* at most 2.3"),
        ("xmax = 1.5", "xmax = --undefined--", "line 22: expected xmax of entry 2 .*, a number"),
        ("intervals: size = 3", "intervals: size = 2.5", "line 14: expected the number of entries .* whole"),
        ("intervals: size = 3", "intervals: size = 4", "line 28: expected a time of entry 4 .* a number"),
        ('"IntervalTier" \n        name = "Mary"', '"Tier" \n        name = "Mary"', "line 10: expected class"),
        ("size = 2 ", "size = 1 ", "line 28: expected the end of the file after 1 tiers"),
        ("<exists>", "<gone>", "line 6: expected <exists> or <absent>"),
        ('"John"', '"Mary"', "two tiers share a name"),
        ('"say ""ŋ"""', '"say ""ŋ""', "line "),
    ],
)  # fmt: skip
def test_bad_files_are_named_by_line(old, new, message):
    assert old in LONG
    text = LONG.replace(old, new, 1)
    with pytest.raises(FormatError, match=message):
        TextGridFormat().loads(text, "u")


def test_refuses_another_style():
    with pytest.raises(ValueError, match="'long' or 'short'; got 'medium'"):
        TextGridFormat(style="medium")


@given(alignments(labels=st.text('abc ŋ"', min_size=1, max_size=5).map(str.strip).filter(bool), empty=False))
@settings(max_examples=40, deadline=None)
def test_praatio_reads_what_we_write(alignment):
    for style in ("long", "short"):
        found = textgrid_io.parseTextgridStr(TextGridFormat(style=style).dumps(alignment))
        for a, b in zip(found["tiers"], alignment.tiers):
            entries = list(a["entries"])
            assert a["name"] == b.name
            assert [label for _, _, label in entries] == b.labels
            for (start, end, _), segment in zip(entries, b.segments):
                assert abs(float(start) - segment.start) < 1e-6
                assert abs(float(end) - segment.end) < 1e-6


@given(alignments(), st.sampled_from(["long", "short"]))
@settings(max_examples=25, deadline=None)
def test_praat_reads_what_we_write_and_we_what_it_writes(tmp_path_factory, alignment, style):
    parselmouth = pytest.importorskip(
        "parselmouth", reason="praat-parselmouth, which is Praat, is not installed"
    )
    folder = tmp_path_factory.mktemp("praat")
    ours = TextGridFormat(style=style).dumps(alignment)
    (folder / "ours.TextGrid").write_bytes(ours.encode())
    grid = parselmouth.read(str(folder / "ours.TextGrid"))
    expected = TextGridFormat(keep_empty=True).loads(ours, "utt")
    for number, tier in enumerate(expected.tiers, 1):
        count = parselmouth.praat.call(grid, "Get number of intervals", number)
        ask = lambda what, i: parselmouth.praat.call(grid, what, number, i)  # noqa: B023, E731
        found = [
            (ask("Get label of interval", i), ask("Get start time of interval", i), ask("Get end time of interval", i))
            for i in range(1, count + 1)
        ]  # fmt: skip
        if not any("\r" in s.label for s in tier):  # Praat converts every line end to a newline
            assert found == [(s.label, s.start, s.end) for s in tier]
    theirs = folder / "theirs.TextGrid"
    parselmouth.praat.call(
        grid, "Save as short text file" if style == "short" else "Save as text file", str(theirs)
    )
    again = TextGridFormat(keep_empty=True).loads(decode(theirs.read_bytes()), "utt")
    assert again.duration == pytest.approx(expected.duration, abs=1e-12)
    for a, b in zip(again.tiers, expected.tiers):
        close(a.segments, b.segments, 1e-12)
