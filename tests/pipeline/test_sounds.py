"""Conventions of labelling by kind of sound."""

from __future__ import annotations

import pytest

from isotone.pipeline.sounds import one_closure, slow
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


def test_vowels_glides_and_liquids_change_slowly() -> None:
    phones = PhoneTokenizer(LABELS)
    assert slow(transcript((AE, L, S, SIL, T, -1), ()), phones) == [True, True, False, False, False, False]
    letters = CharacterTokenizer(("<pad>", "|", "l", "w"))
    assert slow(transcript((2, 3), ()), letters) == [False, False]
