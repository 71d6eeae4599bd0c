"""Forms of English words, and variants of pronunciations: rules against pronunciations that dictionaries give."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.text.variants import PLACES, variants
from isotone.text.word_forms import formed, lettered

KNOWN = {
    "walk": "w ao k", "dog": "d ao g", "judge": "jh ah jh", "church": "ch er ch", "hop": "hh aa p", "hope": "hh ow p",
    "want": "w aa n t", "need": "n iy d", "city": "s ih t iy0", "real": "r iy l", "home": "hh ow m", "she": "sh iy",
    "o'brien": "ow0 b r ay ax n", "ship": "sh ih p", "yard": "y aa r d", "ray": "r ey", "could": "k uh d",
    "b.": "b iy", "c.": "s iy", "x.": "eh k s", "boss": "b ao s", "lace": "l ey s", "run": "r ah n",
}  # fmt: skip


def known(word: str) -> list[tuple[str, ...]]:
    return [tuple(KNOWN[word].split())] if word in KNOWN else []


@pytest.mark.parametrize(
    ("word", "phones"),
    [
        ("walks", "w ao k s"), ("dog's", "d ao g z"), ("dogs'", "d ao g z"), ("judges", "jh ah jh ih0 z"),
        ("churches", "ch er ch ih0 z"), ("church's", "ch er ch ih0 z"), ("cities", "s ih t iy0 z"),
        ("laces", "l ey s ih0 z"),
        ("walked", "w ao k t"), ("judged", "jh ah jh d"), ("wanted", "w aa n t ih0 d"), ("needed", "n iy d ih0 d"),
        ("hopped", "hh aa p t"), ("hoped", "hh ow p t"), ("hoping", "hh ow p ih0 ng"), ("running", "r ah n ih0 ng"),
        ("runner", "r ah n er0"), ("really", "r iy l iy0"), ("homely", "hh ow m l iy0"), ("hopeless", "hh ow p l ax s"),
        ("she'll", "sh iy ax l"), ("she'd", "sh iy d"), ("couldn't", "k uh d ax n t"),
        ("o'brien's", "ow0 b r ay ax n z"),
        ("shipyard", "sh ih p y aa r d"), ("x-ray", "eh k s r ey"), ("walk-dog", "w ao k d ao g"),
        ("bbc", "b iy b iy s iy"), ("bbc's", "b iy b iy s iy z"), ("walkin'", "w ao k ih0 n"),
    ],
)  # fmt: skip
def test_forms(word: str, phones: str) -> None:
    assert [" ".join(one) for one in formed(word, known)] == [phones]


@pytest.mark.parametrize(
    "word", ["bos", "s", "'s", "'", "", "ing", "ed", "zzyzx", "-", "dogged-xy", "bbq", "walkz", "'d"]
)
def test_what_has_no_known_parts(word: str) -> None:
    assert formed(word, known) == []


@given(st.text("abcdehiklmnoprstwy'-. é", max_size=12))
def test_any_word_has_phones_or_none(word: str) -> None:
    assert all(one for one in formed(word, known))


def test_letters() -> None:
    assert lettered("bc", known) == [("b", "iy", "s", "iy")]
    assert lettered("bq", known) == lettered("", known) == lettered("b2", known) == []


def said(phones: str) -> dict[str, float]:
    return {" ".join(one): round(weight, 4) for one, weight in variants(tuple(phones.split()))}


def test_flaps() -> None:
    assert said("w ao t er0") == {"w ao t er": 0.35, "w ao dx er": 0.65}
    assert said("p aa r t iy0") == {"p aa r t iy": 0.35, "p aa r dx iy": 0.65}
    assert said("l ae d er0")["l ae dx er"] == 0.35
    assert said("s ih t iy0 ih0 t") == {"s ih t iy ih t": 0.35, "s ih dx iy ih t": 0.65}
    # stressed vowels, consonants, syllabic n, and the beginning of a word
    for phones in ("ax t ae k", "s ih s t er0", "b ah t ax n", "t ax d ey"):
        assert list(said(phones)) == [phones.replace("0", "")]


def test_final_stops_after_consonants() -> None:
    assert said("k ae s t") == {"k ae s t": 0.88, "k ae s": 0.12}
    for phones in ("k ae t", "k aa r d", "s t aa p"):
        assert said(phones) == {phones: 1.0}


@given(st.lists(st.sampled_from(["t", "d", "ax", "iy0", "iy", "s", "r", "n"]), min_size=1, max_size=12))
def test_variants_are_a_distribution(phones: list[str]) -> None:
    found = variants(tuple(phones))
    assert math.isclose(sum(weight for _, weight in found), 1)
    assert len(found) <= 2**PLACES
    assert all(len(phones) - 1 <= len(one) <= len(phones) for one, _ in found)
