"""Passages with rough times are divided into stretches that hold every passage once."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.pipeline.stretches import LONGEST_S, Span, Stretch, stretches


def divided(spans: list[Span], seconds: float = 1000.0, slack_s: float = 1.0) -> list[Stretch]:
    return list(stretches(spans, seconds, slack_s))


def row(count: int, length: float, gap: float, speaker: str | None = None) -> list[Span]:
    return [Span(i * (length + gap), i * (length + gap) + length, speaker) for i in range(count)]


def test_neighbours_share_a_stretch_up_to_its_longest() -> None:
    (only,) = divided(row(5, 4.0, 0.5))
    assert (only.passages, only.start, only.end) == ((0, 1, 2, 3, 4), 0.0, 23.0)
    assert only.own == frozenset(range(5))


def test_a_gap_that_no_word_can_cross_is_a_cut() -> None:
    first, second = divided([Span(1, 2), Span(4.1, 5)])
    assert (first.start, first.end, second.start, second.end) == (0.0, 3.0, 3.0999999999999996, 6.0)
    assert len(divided([Span(1, 2), Span(4, 5)])) == 1


def test_long_rows_are_cut_at_their_largest_gap_in_the_middle() -> None:
    spans = row(10, 4.0, 0.5)
    later = [Span(s.start + 1.5 * (i > 5), s.end + 1.5 * (i > 5)) for i, s in enumerate(spans)]
    first, second = divided(later)
    assert (first.passages, second.passages) == ((0, 1, 2, 3, 4, 5), (6, 7, 8, 9)), "2 s need no context"
    assert (first.end, second.start) == (spans[5].end + 1.0, later[6].start - 1.0)


def test_where_there_is_no_gap_neighbours_are_context() -> None:
    first, second = divided(row(10, 4.0, 0.0))
    assert (first.own, second.own) == (frozenset(range(5)), frozenset(range(5, 10)))
    assert (first.passages, second.passages) == (tuple(range(6)), tuple(range(4, 10)))
    words = divided(row(200, 0.3, 0.0))
    for a, b in pairwise(words):
        assert len(set(a.passages) - a.own) >= 10, "3 s of words"
        assert max(a.passages) > min(b.own) > max(a.own) > min(b.passages)


def test_speakers_who_talk_at_once_are_apart() -> None:
    turns = [Span(0, 3, "A"), Span(2.8, 5, "B"), Span(5, 9, "A")]
    (together,) = divided(turns)
    assert not together.apart, "0.2 s are within what rough times explain"
    listener = divided([*turns, Span(6.0, 6.4, "B")])
    assert [(s.passages, s.apart) for s in listener] == [((0, 2), True), ((1, 3), True)]
    same = divided([Span(0, 3, "A"), Span(1, 2, "A")])
    assert [s.apart for s in same] == [False]


def test_what_is_after_the_end_is_left_out() -> None:
    first, last = divided([Span(0, 1), Span(9.5, 12), Span(11.5, 12)], seconds=10.0)
    assert (first.passages, last.passages, last.end) == ((0,), (1,), 10.0)
    assert divided([]) == []


SPANS = st.lists(
    st.builds(
        lambda start, length, speaker: Span(start, start + length, speaker),
        st.floats(0, 300), st.floats(0, 60), st.sampled_from([None, "A", "B"]),
    ),
    max_size=25,
).map(lambda spans: sorted(spans, key=lambda s: s.start))  # fmt: skip


@settings(deadline=None)
@given(spans=SPANS, slack_s=st.floats(0, 3))
def test_every_passage_is_owned_once_and_inside_of_its_stretch(spans: list[Span], slack_s: float) -> None:
    found = divided(spans, 400.0, slack_s)
    assert sorted(i for s in found for i in s.own) == list(range(len(spans)))
    for s in found:
        assert s.own <= set(s.passages)
        assert list(s.passages) == sorted(s.passages)
        own = [spans[i] for i in s.own]
        assert 0 <= s.start <= max(0.0, min(o.start for o in own) - slack_s)
        assert s.end >= min(400.0, max(o.end for o in own) + slack_s)
        if len(own) > 1:
            assert max(o.end for o in own) - min(o.start for o in own) <= LONGEST_S + 1e-9
        if s.apart:
            assert len({spans[i].speaker for i in s.passages}) == 1
