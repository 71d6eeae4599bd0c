"""Laws of file formats."""

from __future__ import annotations

from isotone.alignment import SILENCE, Alignment, Segment, Tier
from isotone.interfaces import Format
from isotone.testing.laws import require


def sample_alignment() -> Alignment:
    """Return words and phones over 2.5 s: gaps, touching segments, scores, labels that file formats trip over."""
    words = (
        Segment("it's", 0.1, 0.5, -0.25), Segment('"naïve"', 0.5, 0.9), Segment("a&b<c>", 1.0, 1.25, -1.5),
        Segment("one,two;", 1.5, 1.75), Segment("日本", 1.75, 2.25),
    )  # fmt: skip
    phones = (Segment("ih", 0.1, 0.3), Segment("t", 0.3, 0.5, -0.5), Segment("s", 1.0, 2.25))
    return Alignment("utt-1", 2.5, (Tier("words", words), Tier("phones", phones)))


def check_format(format: Format, *, tolerance_s: float = 0.001) -> None:
    """Check a file format: a written file can be read, and is the same when written again.

    Args:
        format: The format.
        tolerance_s: Seconds by which a time may move.
    """
    alignment = sample_alignment()
    require(format.suffix.startswith("."), f"a suffix begins with a dot; got {format.suffix!r}")
    text = format.dumps(alignment)
    require(bool(text) and text == format.dumps(alignment), "equal alignments give equal files, not empty")
    silent = Alignment("silent", 1.0, tuple(Tier(t.name, ()) for t in alignment.tiers))
    require(isinstance(format.dumps(silent), str), "tiers without segments can be written")
    try:
        back = format.loads(text, alignment.id)
    except NotImplementedError:  # the format is write-only
        return
    require(len(back.tiers) > 0, "at least one tier is kept")
    require(back.id == alignment.id, f"the id is {alignment.id!r}; got {back.id!r}")
    for tier in back.tiers:
        _check_tier(tier, alignment.tier(tier.name), tolerance_s)
    require(format.dumps(back) == text, "a file stays the same when it is read and written again")


def _check_tier(got: Tier, expected: Tier, tolerance_s: float) -> None:
    kept = [s for s in got if s.label not in SILENCE]
    labels = [s.label for s in kept]
    require(labels == expected.labels, f"labels of tier {got.name!r} are kept; got {labels}")
    for segment, original in zip(kept, expected):
        off = max(abs(segment.start - original.start), abs(segment.end - original.end))
        require(off <= tolerance_s, f"times are kept to {tolerance_s} s: {original} came back as {segment}")
