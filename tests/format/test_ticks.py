import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import Segment
from isotone.format.ticks import describe_empty, last_tick, to_ticks
from tests.format.strategies import tiers


@pytest.mark.parametrize(
    ("duration", "rate", "expected"),
    [(0.3, 1000, 300), (0.3, 10**9, 300_000_000), (1.0009, 1000, 1000), (0.0, 1000, 0), (36000.1, 10**6, 36000100000)],
)  # fmt: skip
def test_last_tick_lies_inside_the_audio_and_is_the_last_that_does(duration, rate, expected):
    assert last_tick(duration, rate) == expected


def test_shared_boundaries_stay_shared():
    segments = [Segment("a", 0.0, 0.1234), Segment("b", 0.1234, 0.1236), Segment("c", 0.1236, 1.0)]
    assert to_ticks(segments, 1.0, 1000) == [(0, 123), (123, 124), (124, 1000)]


def test_a_short_segment_keeps_a_tick_and_pushes_the_next():
    segments = [Segment("a", 0.0, 0.1), Segment("b", 0.1001, 0.1002), Segment("c", 0.1002, 0.5)]
    assert to_ticks(segments, 1.0, 1000) == [(0, 100), (100, 101), (101, 500)]


def test_at_the_end_of_the_audio_the_preceding_segment_gives_way():
    segments = [Segment("a", 0.0, 1.0), Segment("b", 1.0, 1.0)]
    assert to_ticks(segments, 1.0, 1000, least=5) == [(0, 995), (995, 1000)]
    assert to_ticks(segments, 1.0, 1000) == [(0, 1000), (1000, 1000)]


def test_more_segments_than_ticks_leaves_some_empty():
    segments = [Segment("a", 0.0, 0.0005), Segment("b", 0.0005, 0.001), Segment("c", 0.001, 0.0015)]
    ticks = to_ticks(segments, 0.0015, 1000)
    assert all(0 <= start <= end <= 1 for start, end in ticks)


@given(tiers("t"), st.sampled_from([1000, 16000, 10**6, 10**9]), st.sampled_from([0, 1, 5]))
@settings(max_examples=150, deadline=None)
def test_ticks_are_ordered_inside_the_audio_and_no_segment_vanishes(tier, rate, least):
    duration = (tier.segments[-1].end if tier.segments else 0.0) + 0.02
    ticks = to_ticks(tier.segments, duration, rate, least)
    flat = [t for pair in ticks for t in pair]
    assert flat == sorted(flat)
    assert all(0 <= t <= duration * rate + 1e-3 for t in flat)
    room = last_tick(duration, rate) // max(1, len(ticks))
    for (start, end), segment in zip(ticks, tier.segments):
        if segment.duration > 0:
            assert end > start
        assert end - start >= min(least, room) or segment.duration > 0


@given(tiers("t", empty=False))
@settings(max_examples=100, deadline=None)
def test_segments_with_room_move_by_half_a_tick_at_most(tier):
    # at 16 kHz every segment of 2 ms has 32 ticks, so that none has to move
    ticks = to_ticks(tier.segments, 100.0, 16000)
    for (start, end), segment in zip(ticks, tier.segments):
        assert abs(start - segment.start * 16000) <= 0.5 + 1e-6
        assert abs(end - segment.end * 16000) <= 0.5 + 1e-6


def test_describe_empty_names_labelled_segments_without_duration():
    assert describe_empty([Segment("a", 0.0, 1.0), Segment("", 1.0, 1.0)]) == ""
    assert describe_empty([Segment("a", 0.5, 0.5)]) == "1 of no duration ('a' at 0.5 s)"
    many = describe_empty([Segment("a", 0.5, 0.5)] * 5)
    assert many.startswith("5 of no duration")
    assert many.endswith("...)")
