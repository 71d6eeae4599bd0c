"""Random alignments for the tests of the formats."""

from hypothesis import strategies as st

from isotone.alignment import Alignment, Margin, Segment, Tier

#: Labels that have broken somebody's reader or writer.
NASTY = [
    '"', '""', 'he said "hi"', '"IntervalTier"', "item [2]:", "intervals [1]:", "xmin = 5", "<exists>", "! not",
    "5", "ŋ̊", "é", "e\u0301", "👩‍👩‍👧", "שלום", "\u202eabc", "a\tb", "a\nb", "a\r\nb", "\r", "\u2028", "\x85", "\0",
    "\x1c", " ", " a ", ";;", "-->", "<b>", "&amp;", ",", "\\", "\\\t", "_", "h#", "NA",
]  # fmt: skip

LABELS = st.one_of(st.sampled_from(NASTY), st.text(min_size=1, max_size=6))


#: Margins of boundaries; few have one.
MARGINS = st.one_of(
    st.none(), st.none(), st.builds(Margin, st.floats(0.0, 2.0), st.floats(0.0, 2.0), st.floats(0.0, 1.0))
)


@st.composite
def tiers(draw, name, labels=LABELS, silence=False, empty=True):
    """Draw a tier of up to 8 segments of 2 ms or more; with ``empty`` some have no duration."""
    lengths = st.floats(0.002, 0.7)
    lengths = st.one_of(lengths, st.just(0.0)) if empty else lengths
    gaps = st.one_of(st.just(0.0), st.floats(1e-4, 0.5))
    labels = st.one_of(labels, st.just("")) if silence else labels
    scores = st.one_of(st.none(), st.floats(-13.0, 0.0))
    sure = st.one_of(st.none(), st.floats(0.0, 1.0))
    segments, now = [], 0.0
    rows = draw(st.lists(st.tuples(gaps, lengths, labels, scores, sure, MARGINS, MARGINS), max_size=8))
    for gap, length, label, score, confidence, *margins in rows:
        start = now + gap
        now = start + length
        segments.append(Segment(label, start, now, score, confidence, None, None, *margins))
    return Tier(name, tuple(segments))


@st.composite
def alignments(draw, names=("words", "phones"), **options):
    """Draw an alignment with these tiers, over audio that ends after them."""
    parts = [draw(tiers(name, **options)) for name in names]
    end = max((t.segments[-1].end for t in parts if t.segments), default=0.0)
    return Alignment("utt", end + draw(st.one_of(st.just(0.02), st.floats(0.02, 1.0))), tuple(parts))


def close(found, expected, tolerance_s):
    """Assert that two rows of segments have the same times, up to a tolerance."""
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert abs(a.start - b.start) <= tolerance_s, (a, b)
        assert abs(a.end - b.end) <= tolerance_s, (a, b)
