"""The figure of wave, spectrogram and rows of segments: its structure, not its pixels."""

import warnings
from itertools import combinations, pairwise

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection

from isotone.alignment import Alignment, Segment, Tier, tier_from_spans
from isotone.report import tiers_figure
from isotone.report.style import render
from isotone.report.tiers import boundaries, placed, window
from tests.paths import DATA

RATE = 16000


def _alignment(duration, *segments, tier="phones"):
    return Alignment("u", duration, (Tier(tier, tuple(Segment(*s) for s in segments)),))


def _noise(seconds, rate=RATE):
    return np.random.default_rng(0).normal(0, 0.1, round(seconds * rate))


REFERENCE = _alignment(1.0, ("h#", 0.0, 0.2), ("s", 0.2, 0.45), ("aa", 0.45, 0.8), ("h#", 0.8, 1.0))
PEAKY = _alignment(1.0, ("s", 0.3, 0.32), ("aa", 0.6, 0.62))
EMPTY = _alignment(1.0)


def _rows(figure):
    return figure.axes[2]


def _bars(figure):
    """Return the width of the bars by row."""
    found = {}
    for collection in _rows(figure).collections:
        if isinstance(collection, PolyCollection):
            for path in collection.get_paths():
                box = path.get_extents()
                row = round((box.y0 + box.y1) / 2)
                found.setdefault(row, []).append((box.x0, box.x1))
    return {row: sorted(spans) for row, spans in found.items()}


def test_one_row_a_system_with_its_segments_as_they_are():
    figure = tiers_figure(_noise(1.0), RATE, {"reference": REFERENCE, "CTC": PEAKY, "none": EMPTY})
    assert len(figure.axes) == 3
    assert [t.get_text() for t in _rows(figure).get_yticklabels()] == ["reference", "CTC", "none"]
    bars = _bars(figure)
    np.testing.assert_allclose(bars[0], [(0.0, 0.2), (0.2, 0.45), (0.45, 0.8), (0.8, 1.0)])
    np.testing.assert_allclose(bars[1], [(0.3, 0.32), (0.6, 0.62)])  # the holes stay holes
    assert 2 not in bars
    texts = [(t.get_text(), t.get_position()[1]) for t in _rows(figure).texts]
    assert sorted(texts) == [("aa", 0), ("aa", 1), ("h#", 0), ("h#", 0), ("s", 0), ("s", 1)]


def test_several_tiers_have_a_block_of_rows_each_and_a_system_one_colour():
    def both(alignment):
        return Alignment("u", 1.0, (*alignment.tiers, Tier("words", (Segment("word", 0.1, 0.9),))))

    systems = {"by hand": both(REFERENCE), "CTC": both(PEAKY)}
    figure = tiers_figure(_noise(1.0), RATE, systems, ["phones", "words"])
    labels = _rows(figure).get_yticklabels()
    assert [t.get_text() for t in labels] == [
        "phones: by hand",
        "phones: CTC",
        "words: by hand",
        "words: CTC",
    ]
    colours = [t.get_color() for t in labels]
    assert colours[:2] == colours[2:]
    assert colours[0] != colours[1]
    assert _bars(figure)[3] == [(0.1, 0.9)]


def test_the_references_boundaries_run_through_every_panel():
    figure = tiers_figure(_noise(1.0), RATE, {"any name": REFERENCE, "CTC": PEAKY})
    for axes in figure.axes:
        through = [
            sorted(s[0][0] for s in c.get_segments())
            for c in axes.collections
            if isinstance(c, LineCollection) and c.get_transform() == axes.get_xaxis_transform()
        ]
        assert through == [pytest.approx([0.0, 0.2, 0.45, 0.8, 1.0])]


def test_a_window_shows_its_part():
    figure = tiers_figure(
        _noise(1.0), RATE, {"reference": REFERENCE, "CTC": PEAKY}, start_s=0.3, end_s=0.5, title="part"
    )
    for axes in figure.axes:
        assert axes.get_xlim() == (0.3, 0.5)
    np.testing.assert_allclose(_bars(figure)[0], [(0.3, 0.45), (0.45, 0.5)])
    np.testing.assert_allclose(_bars(figure)[1], [(0.3, 0.32)])
    assert figure.get_suptitle() == "part"
    image = figure.axes[1].images[0].get_extent()
    assert image[0] == pytest.approx(0.3, abs=0.003)
    assert image[1] == pytest.approx(0.5, abs=0.003)
    assert image[3] == pytest.approx(8.0, abs=0.05)


def test_a_long_recording_is_drawn_whole_and_in_windows():
    seconds = 180
    spans = tuple(Segment("aa", i * 0.1, i * 0.1 + 0.08) for i in range(seconds * 10 - 1))
    long = Alignment("long", float(seconds), (Tier("phones", spans),))
    audio = np.tile(_noise(1.0, 8000), seconds)
    whole = tiers_figure(audio, 8000, {"reference": long})
    assert not _rows(whole).texts  # no label has room, none is squeezed in
    assert whole.axes[1].images[0].get_array().shape[1] <= 2001
    assert sum(len(spans) for spans in _bars(whole).values()) == len(spans)
    part = tiers_figure(audio, 8000, {"reference": long}, start_s=100.0, end_s=102.0)
    assert [t.get_text() for t in _rows(part).texts] == ["aa"] * 20
    assert _rows(part).get_xlim() == (100.0, 102.0)
    with pytest.raises(ValueError, match=r"within 180\.000 s; got 200 \.\. 201"):
        tiers_figure(audio, 8000, {"reference": long}, start_s=200, end_s=201)


def test_labels_hold_anything_without_a_warning():
    labels = ["t͡ʃ", "\u02c8a\u026a", "ŋ̊", "$x$", "_a", "<b>", "a\nb", "漢", "\x00", "شكرا"]
    tier = Tier("phones", tuple(Segment(x, i * 0.5, i * 0.5 + 0.5) for i, x in enumerate(labels)))
    alignment = Alignment("$\\frac$", 5.0, (tier,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = tiers_figure(_noise(5.0), RATE, {"_ŋ $": alignment}, title="a $\\frac$ b")
        assert render(figure, "png", 50).startswith(b"\x89PNG")
    shown = [t.get_text() for t in _rows(figure).texts]
    assert shown[:6] == labels[:6]
    assert shown[6] == "a b"
    assert _rows(figure).get_yticklabels()[0].get_text() == "_ŋ $"


def test_silence_and_silent_audio_are_drawn():
    figure = tiers_figure(np.zeros(RATE), RATE, {"reference": EMPTY, "also": EMPTY})
    assert _bars(figure) == {}
    assert render(figure, "png", 50).startswith(b"\x89PNG")


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="at least one alignment"):
        tiers_figure(_noise(1.0), RATE, {})
    with pytest.raises(KeyError, match="no tier 'words'"):
        tiers_figure(_noise(1.0), RATE, {"reference": REFERENCE}, tier="words")
    with pytest.raises(ValueError, match="start_s < end_s"):
        tiers_figure(_noise(1.0), RATE, {"reference": REFERENCE}, start_s=0.5, end_s=0.5)
    with pytest.raises(ValueError, match="mono"):
        tiers_figure(np.zeros((2, 100)), RATE, {"reference": REFERENCE})


def test_window_defaults_to_all_and_is_cut_to_the_audio():
    assert window(2.0, None, None) == (0.0, 2.0)
    assert window(2.0, -1.0, 9.0) == (0.0, 2.0)
    assert window(2.0, 0.5, 1.0) == (0.5, 1.0)


@st.composite
def tiers(draw):
    steps = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12))
    now, segments = 0.0, []
    for gap, length in steps:
        start = now + gap / 100
        now = start + length / 100
        segments.append(Segment(draw(st.sampled_from(["aa", "tcl", "h#", "", "ŋ"])), start, now))
    return Tier("phones", tuple(segments))


@given(tiers(), st.floats(0, 2), st.floats(0.05, 3))
@settings(deadline=None, max_examples=80)
def test_rooms_never_overlap_and_lie_in_the_window(tier, start, length):
    end = start + length
    found = placed(tier, start, end)
    assert [p.segment for p in found] == [s for s in tier if s.label and s.end >= start and s.start <= end]
    for p in found:
        assert start <= p.start_s <= p.end_s <= end
        assert start - 1e-9 <= p.room_s[0] <= p.room_s[1] <= end + 1e-9
        assert sum(p.room_s) == pytest.approx(p.start_s + p.end_s)
    for a, b in pairwise(found):
        assert a.room_s[1] <= b.room_s[0] + 1e-9
    expected = sorted({t for s in tier if s.label for t in (s.start, s.end) if start <= t <= end})
    assert boundaries(tier, start, end) == expected


def _overlaps(figure):
    """Find pairs of labels whose ink overlaps; a label's box is wider than its ink by a point on each side."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [
        (t.get_text(), t.get_window_extent().padded(-1.6 * figure.dpi / 72)) for t in _rows(figure).texts
    ]
    return [(a, b) for (a, x), (b, y) in combinations(boxes, 2) if x.overlaps(y)]


def test_labels_of_short_segments_do_not_overlap():
    rng = np.random.default_rng(3)
    times = np.concatenate([[0], np.cumsum(rng.choice([0.02, 0.03, 0.05, 0.08, 0.14], 60))])
    spans = [(str(rng.choice(["tcl", "iy", "s", "gcl", "epi"])), a, b, None) for a, b in pairwise(times)]
    dense = tier_from_spans("phones", spans, float(times[-1]))
    peaks = Tier("phones", tuple(Segment(s.label, s.start, min(s.end, s.start + 0.02)) for s in dense))
    both = {
        "reference": Alignment("u", float(times[-1]), (dense,)),
        "CTC": Alignment("u", float(times[-1]), (peaks,)),
    }
    figure = tiers_figure(_noise(times[-1]), RATE, both)
    assert len(_rows(figure).texts) > 70  # of 120, half of which last 20 or 30 ms
    assert _overlaps(figure) == []


def test_a_real_utterance():
    stem = DATA / "timit_sample" / "dr1-fvmh0" / "sa1"
    if not stem.with_suffix(".wav").is_file():
        pytest.skip(f"the TIMIT sample is not in {DATA} (set ISOTONE_TEST_DATA)")
    audio, rate = soundfile.read(stem.with_suffix(".wav"))
    lines = [line.split() for line in stem.with_suffix(".phn").read_text().splitlines()]
    duration = len(audio) / rate
    tier = tier_from_spans("phones", [(p, int(a) / rate, int(b) / rate, None) for a, b, p in lines], duration)
    figure = tiers_figure(audio, rate, {"reference": Alignment("sa1", duration, (tier,))})
    assert len(_bars(figure)[0]) == len(lines)
    assert len(_rows(figure).texts) >= 0.95 * len(lines)  # even the shortest phones are nearly all labelled
    assert _overlaps(figure) == []
