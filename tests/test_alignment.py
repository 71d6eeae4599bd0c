import dataclasses
import math
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import Alignment, AlignmentError, Segment, Tier, tier_from_spans


@pytest.mark.parametrize(
    ("start", "end"),
    [(-0.1, 1.0), (1.0, 0.5), (math.nan, 1.0), (0.0, math.nan), (0.0, math.inf), (-math.inf, 0.0)],
)
def test_a_segment_needs_times_in_order(start, end):
    with pytest.raises(AlignmentError, match="Segment 'a' expects 0 <= start <= end in seconds; got"):
        Segment("a", start, end)


def test_a_tier_is_a_sequence() -> None:
    words = [Segment("a", 0.0, 1.0), Segment("b", 1.0, 2.0), Segment("c", 3.0, 4.0)]
    tier = Tier("words", tuple(words))
    assert (tier[0], tier[-1], len(tier), list(tier)) == (words[0], words[2], 3, words)
    assert tier[1:] == Tier("words", tuple(words[1:]))
    assert tier[:2].labels == ["a", "b"]
    assert tier[::2].labels == ["a", "c"]
    assert list(reversed(tier)) == words[::-1]
    assert words[1] in tier
    with pytest.raises(IndexError):
        tier[3]
    with pytest.raises(ValueError, match=r"reversed\(tier\) runs backwards, \[::-1\] cannot"):
        tier[::-1]


def test_a_segment_may_be_empty_and_has_a_duration():
    assert Segment("a", 0.5, 0.5).duration == 0.0
    assert Segment("a", 0.25, 1.0).duration == 0.75


def test_values_are_frozen_equal_and_hashable():
    one = Alignment("u", 1.0, (Tier("t", (Segment("a", 0.0, 1.0, -1.0),)),))
    two = Alignment("u", 1.0, [Tier("t", [Segment("a", 0.0, 1.0, -1.0)])])
    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != dataclasses.replace(one, duration=2.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.duration = 2.0


def test_a_tier_refuses_overlap_and_says_where():
    with pytest.raises(AlignmentError, match=r"Tier 't': 'b' starts at 0.4 s, before 'a' ends at 0.5 s"):
        Tier("t", (Segment("a", 0.0, 0.5), Segment("b", 0.4, 1.0)))


def test_a_tier_is_a_row_of_segments():
    tier = Tier("t", (Segment("a", 0.0, 0.5), Segment("b", 0.5, 0.5), Segment("c", 0.5, 1.0)))
    assert len(tier) == 3
    assert list(tier) == list(tier.segments)
    assert tier.labels == ["a", "b", "c"]


def test_filled_makes_every_gap_a_silence():
    tier = Tier("t", (Segment("a", 0.5, 1.0, -1.0), Segment("b", 1.0, 1.5), Segment("c", 2.0, 2.0)))
    assert tier.filled(3.0).segments == (
        Segment("", 0.0, 0.5),
        Segment("a", 0.5, 1.0, -1.0),
        Segment("b", 1.0, 1.5),
        Segment("", 1.5, 2.0),
        Segment("c", 2.0, 2.0),
        Segment("", 2.0, 3.0),
    )
    assert Tier("t", ()).filled(1.0).segments == (Segment("", 0.0, 1.0),)
    assert Tier("t", ()).filled(0.0).segments == ()
    assert tier.filled(3.0).filled(3.0) == tier.filled(3.0)


def test_an_alignment_finds_its_tiers():
    words = Tier("words", ())
    alignment = Alignment("u", 1.0, (words,))
    assert alignment.tier("words") is words
    assert alignment.has("words")
    assert not alignment.has("phones")
    with pytest.raises(KeyError, match=r"'u' has no tier 'phones'; it has \['words'\]"):
        alignment.tier("phones")


def test_an_alignment_refuses_what_does_not_fit():
    with pytest.raises(AlignmentError, match=r"'u': two tiers share a name: \['t', 't'\]"):
        Alignment("u", 1.0, (Tier("t", ()), Tier("t", ())))
    with pytest.raises(AlignmentError, match=r"'u', tier 't': 'a' ends at 1.5 s, after the audio \(1.0 s\)"):
        Alignment("u", 1.0, (Tier("t", (Segment("a", 0.0, 1.5),)),))
    assert Alignment("u", 1.0, (Tier("t", (Segment("a", 0.0, 1.0 + 1e-9),)),)).duration == 1.0


@pytest.mark.parametrize("duration", [-1.0, math.nan, math.inf])
def test_an_alignment_needs_a_duration(duration):
    with pytest.raises(AlignmentError, match="'u' expects a duration of 0 s or more"):
        Alignment("u", duration)


def test_spans_are_clipped_and_cut_where_the_later_starts():
    tier = tier_from_spans("t", [("a", -0.5, 0.6, -1.0), ("b", 0.5, 0.8, None), ("c", 0.9, 2.0, None)], 1.0)
    assert tier.segments == (Segment("a", 0.0, 0.5, -1.0), Segment("b", 0.5, 0.8), Segment("c", 0.9, 1.0))


def test_spans_without_a_time_are_an_error():
    with pytest.raises(AlignmentError, match=r"Tier 't' expects times in seconds; 'b' has nan \.\. 1\.0"):
        tier_from_spans("t", [("a", 0.0, 0.5, None), ("b", math.nan, 1.0, None)], 1.0)


times = st.floats(-1.0, 3.0)


@given(st.lists(st.tuples(st.text(max_size=2), times, times, st.none()), max_size=8), st.floats(0.0, 2.0))
@settings(max_examples=200, deadline=None)
def test_any_spans_make_a_valid_tier_with_every_label(spans, duration):
    tier = tier_from_spans("t", spans, duration)
    assert tier.labels == [label for label, *_ in spans]
    assert all(0 <= s.start <= s.end <= duration for s in tier)
    assert Alignment("u", duration, (tier,)).tier("t") == tier
    again = tier_from_spans("t", [(s.label, s.start, s.end, s.score) for s in tier], duration)
    assert again == tier
