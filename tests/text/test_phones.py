"""The fold tables against the published counts and rules, and folding against a line-by-line reference."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import Segment, Tier
from isotone.text.phones import (
    PHONE_CLASSES,
    PHONES_39,
    PHONES_48,
    PHONES_61,
    RELEASES,
    TO_39,
    TO_48,
    fold,
    fold_segments,
    phone_set,
)

# Lee & Hon (1989): within-group confusions are not counted.
GROUPS = [
    {"sil", "cl", "vcl", "epi"}, {"el", "l"}, {"en", "n"}, {"sh", "zh"}, {"ao", "aa"}, {"ih", "ix"},
    {"ah", "ax"},
]  # fmt: skip

labels = st.lists(st.sampled_from(PHONES_61), max_size=30)
options = st.fixed_dictionaries(
    {"closures": st.sampled_from(["sil", "merge"]), "silence": st.sampled_from(["keep", "drop"])}
)


def test_sizes() -> None:
    assert (len(PHONES_61), len(PHONES_48), len(PHONES_39)) == (61, 48, 39)
    assert set(PHONES_39) <= set(PHONES_48)


def test_39_are_the_48_with_their_groups_joined() -> None:
    together = [{a, b} for a, b in itertools.combinations(PHONES_48, 2) if TO_39[a] == TO_39[b]]
    expected = [{a, b} for group in GROUPS for a, b in itertools.combinations(sorted(group), 2)]
    assert sorted(map(sorted, together)) == sorted(map(sorted, expected))


@pytest.mark.parametrize(
    ("phone", "folded"),
    [
        ("pcl", "cl"), ("tcl", "cl"), ("kcl", "cl"), ("bcl", "vcl"), ("dcl", "vcl"), ("gcl", "vcl"),
        ("h#", "sil"), ("pau", "sil"), ("epi", "epi"), ("ux", "uw"), ("axr", "er"), ("ax-h", "ax"),
        ("em", "m"), ("eng", "ng"), ("nx", "n"), ("hv", "hh"), ("dx", "dx"), ("zh", "zh"), ("el", "el"),
        ("en", "en"), ("ix", "ix"), ("ao", "ao"),
    ],
)  # fmt: skip
def test_48(phone: str, folded: str) -> None:
    assert TO_48[phone] == folded


def test_every_label_has_a_class() -> None:
    assert set(PHONE_CLASSES) == {*PHONES_61, *PHONES_48}
    assert {PHONE_CLASSES[p] for p in PHONES_39} == {
        "stop", "affricate", "fricative", "nasal", "liquid/glide", "vowel", "silence",
    }  # fmt: skip
    for phone, folded in TO_48.items():
        assert PHONE_CLASSES[phone] == PHONE_CLASSES[folded], phone


def test_sentence() -> None:
    text = "h# sh iy hv ae dcl d y er dcl d aa r kcl k s ux q ix n epi w ao sh pau h#"
    said = text.split()
    assert " ".join(fold(said)) == "sil sh iy hh ae sil d y er sil d aa r sil k s uw ih n sil w aa sh sil"
    assert " ".join(fold(said, 48)) == "sil sh iy hh ae vcl d y er vcl d aa r cl k s uw ix n epi w ao sh sil"
    assert fold(said, 61) == said
    assert fold(["pau", "epi", "pau"], 48) == ["sil", "epi", "sil"]
    assert " ".join(fold(said, closures="merge", silence="drop")) == (
        "sh iy hh ae d y er d aa r k s uw ih n w aa sh"
    )


@pytest.mark.parametrize(
    ("said", "merged"),
    [
        ("bcl b", "b"), ("dcl jh", "jh"), ("tcl ch", "ch"), ("dcl d", "d"), ("kcl", "k"), ("tcl q", "t"),
        ("kcl t", "k t"), ("tcl tcl t", "t t"), ("bcl b b", "b b"), ("gcl h#", "g sil"),
        ("dcl dcl jh", "d jh"),
    ],
)  # fmt: skip
def test_merge(said: str, merged: str) -> None:
    assert " ".join(fold(said.split(), closures="merge")) == merged


def test_times() -> None:
    said = [("h#", 0, 1), ("bcl", 1, 2), ("b", 2, 3), ("q", 3, 4), ("aa", 4, 5), ("kcl", 5, 6), ("h#", 6, 7)]
    segments = [Segment(label, float(a), float(b), -0.5) for label, a, b in said]
    assert fold_segments(segments, closures="merge") == [
        Segment("sil", 0, 1, -0.5), Segment("b", 1, 3), Segment("aa", 4, 5, -0.5), Segment("k", 5, 6, -0.5),
        Segment("sil", 6, 7, -0.5),
    ]  # fmt: skip
    assert fold_segments(segments) == [
        Segment("sil", 0, 2), Segment("b", 2, 3, -0.5), Segment("aa", 4, 5, -0.5), Segment("sil", 5, 7),
    ]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(said=labels)
def test_fold_against_a_plain_reference(said: list[str]) -> None:
    mapped = [TO_39[TO_48[p]] for p in said if p != "q"]
    expected = [p for i, p in enumerate(mapped) if p != "sil" or i == 0 or mapped[i - 1] != "sil"]
    assert fold(said) == expected


@settings(max_examples=200, deadline=None)
@given(said=labels, options=options, to=st.sampled_from([39, 48, 61]))
def test_fold_properties(said: list[str], options: dict, to: int) -> None:
    once = fold(said, to, **options)
    assert set(once) <= set(phone_set(to, **options))
    assert fold(once, to, **options) == once
    if options["closures"] == "merge":
        assert not set(once) & {*RELEASES, "cl", "vcl"}
    # times: every span is covered once, nothing is moved
    segments = [Segment(p, float(i), i + 1.0) for i, p in enumerate(said)]
    folded = fold_segments(segments, to, **options)
    assert [s.label for s in folded] == once
    assert Tier("phones", tuple(folded)).labels == once
    starts, ends = {s.start for s in segments}, {s.end for s in segments}
    assert {s.start for s in folded} <= starts
    assert {s.end for s in folded} <= ends
    if options["silence"] == "keep":
        kept = sum(p != "q" or to == 61 for p in said)
        assert kept <= sum(s.duration for s in folded) <= len(said)


def test_phone_set() -> None:
    assert phone_set() == PHONES_39
    assert phone_set(48) == PHONES_48
    assert phone_set(61) == PHONES_61
    assert phone_set(39, closures="merge") == PHONES_39
    assert set(PHONES_39) - set(phone_set(silence="drop")) == {"sil"}
    assert set(PHONES_61) - set(phone_set(61, closures="merge")) == set(RELEASES)


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"'axh' is not one of TIMIT's 61 phones.*'ax-h'"):
        fold(["axh"])
    for option in ({"to": 40}, {"closures": "join"}, {"silence": "no"}):
        name = next(iter(option))
        with pytest.raises(ValueError, match=f"{name} is one of .*; got {option[name]!r}"):
            fold(["aa"], **option)
