"""Conventions of labelling by kind of sound."""

from __future__ import annotations

import pytest

from isotone.pipeline.sounds import CLOSURE_S, closed, one_closure, slow, widened
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer, Transcript

LABELS = ("<pad>", "ae", "cl", "d", "l", "s", "sil", "t", "vcl")
AE, CL, D, L, S, SIL, T, VCL = range(1, 9)
#: "that day": the closure of t, t, the closure of d, d, and a vowel
TOKENS = (AE, CL, T, VCL, D, AE)
STOPS = (None, T, None, D, None, None)


def transcript(tokens=TOKENS, stops=STOPS) -> Transcript:
    return Transcript(tokens=tokens, token_words=(None,) * len(tokens), words=(), stops=stops)


def test_a_closure_that_two_stops_share_belongs_to_the_first() -> None:
    times = [(0.0, 0.1), (0.1, 0.14), (0.14, 0.14), (0.14, 0.2), (0.2, 0.23), (0.23, 0.4)]
    expected = [(0.0, 0.1), (0.1, 0.2), (0.14, 0.14), (0.2, 0.2), (0.2, 0.23), (0.23, 0.4)]
    assert one_closure(transcript(), times) == expected


@pytest.mark.parametrize(
    "times",
    [
        # the first stop is released
        [(0.0, 0.1), (0.1, 0.14), (0.14, 0.16), (0.16, 0.2), (0.2, 0.23), (0.23, 0.4)],
        # neither is
        [(0.0, 0.1), (0.1, 0.14), (0.14, 0.14), (0.14, 0.2), (0.2, 0.2), (0.2, 0.4)],
        # a pause lies between
        [(0.0, 0.1), (0.1, 0.14), (0.14, 0.14), (0.3, 0.35), (0.35, 0.38), (0.38, 0.4)],
        # the second stop is its release alone
        [(0.0, 0.1), (0.1, 0.14), (0.14, 0.14), (0.14, 0.14), (0.14, 0.23), (0.23, 0.4)],
    ],
)
def test_other_closures_stay(times: list[tuple[float, float]]) -> None:
    assert one_closure(transcript(), times) == times


def test_texts_without_closures_stay() -> None:
    times = [(0.0, 0.1), (0.1, 0.2)]
    assert one_closure(transcript((AE, T), ()), times) == times


#: "like l": a vowel, the closure and release of k (here t) in word 0, a pause, and word 1
LIKE = Transcript(
    tokens=(AE, CL, T, SIL, L), token_words=(0, 0, 0, None, 1), words=(), stops=(None, T, None, None, None)
)


@pytest.mark.parametrize("release", [0.0, 0.001])
@pytest.mark.parametrize(("after", "end"), [(0.3, 0.3), (0.5, 0.2 + CLOSURE_S)])
def test_a_stop_without_release_lasts_into_the_silence(release: float, after: float, end: float) -> None:
    out = 0.22 + release
    times = [(0.0, 0.2), (0.2, 0.22), (0.22, out), (out, after), (after, 0.6)]
    found = closed(LIKE, times, 0.6)
    last = 2 if release else 1
    assert (found[1], found[last][1]) == ((0.2, pytest.approx(end)), pytest.approx(end))
    assert (found[0], found[3:]) == (times[0], times[3:])


def test_a_stop_without_release_ends_with_the_recording() -> None:
    times = [(0.0, 0.2), (0.2, 0.22), (0.22, 0.22), (0.22, 0.22), (0.22, 0.22)]
    assert closed(LIKE, times, 0.25)[1] == (0.2, 0.25)
    assert closed(LIKE, times, 9.0)[1] == (0.2, pytest.approx(0.2 + CLOSURE_S))


@pytest.mark.parametrize(
    "times",
    [
        # it is released
        [(0.0, 0.2), (0.2, 0.22), (0.22, 0.25), (0.25, 0.5), (0.5, 0.6)],
        # speech goes on
        [(0.0, 0.2), (0.2, 0.22), (0.22, 0.22), (0.22, 0.22), (0.22, 0.6)],
        # the closure is long as it is
        [(0.0, 0.2), (0.2, 0.3), (0.3, 0.3), (0.3, 0.5), (0.5, 0.6)],
        # the word ends with a vowel: there are no frames of its stop
        [(0.0, 0.2), (0.2, 0.2), (0.2, 0.2), (0.2, 0.5), (0.5, 0.6)],
    ],
)
def test_other_ends_stay(times: list[tuple[float, float]]) -> None:
    assert closed(LIKE, times, 0.6) == times


def test_a_closure_ends_before_other_speech() -> None:
    star = Transcript(tokens=(AE, CL, -1), token_words=(0, 0, None), words=(), stops=(None, T, None))
    times = [(0.0, 0.2), (0.2, 0.22), (0.22, 0.9)]
    assert closed(star, times, 0.9) == times


def test_vowels_glides_and_liquids_change_slowly() -> None:
    phones = PhoneTokenizer(LABELS)
    assert slow(transcript((AE, L, S, SIL, T, -1), ()), phones) == [True, True, False, False, False, False]
    letters = CharacterTokenizer(("<pad>", "|", "l", "w"))
    assert slow(transcript((2, 3), ()), letters) == [False, False]


def test_a_phone_in_a_frame_that_both_neighbours_share_has_some_of_it() -> None:
    # an unreleased t, of which two boundaries in one frame leave 0.4 ms
    times = [(0.0, 0.1), (0.1, 0.1004), (0.1004, 0.1004), (0.1004, 0.2), (0.2, 0.2), (0.2, 0.4)]
    found = widened(transcript(), times)
    assert found[1] == pytest.approx((0.0977, 0.1027))
    assert (found[0][1], found[3][0]) == found[1], "its neighbours touch it as before"
    # the pause before it has nothing to do with it
    apart = [(0.0, 0.05), *times[1:]]
    assert widened(transcript(), apart)[:2] == [(0.0, 0.05), (0.1, pytest.approx(0.1027))]


@pytest.mark.parametrize(
    "times",
    [
        # the release of the first stop, and the closure of the second: both stops are long enough
        [(0.0, 0.1), (0.1, 0.14), (0.14, 0.1404), (0.1404, 0.1408), (0.1408, 0.18), (0.18, 0.4)],
        # neighbours have nothing to give
        [(0.0, 0.1), (0.1, 0.1), (0.1, 0.1), (0.1, 0.105), (0.105, 0.105), (0.105, 0.106)],
    ],
)
def test_parts_of_stops_stay_short_and_nothing_is_taken_from_short_ones(times: list) -> None:
    assert widened(transcript(), times) == times
