"""Packed words: what is packed is read again, and nothing else is."""

from __future__ import annotations

import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.text.packed import pack, unpack

WORD = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n"), min_size=1, max_size=8)
PHONE = st.text(min_size=1, max_size=3).filter(lambda s: s.isprintable())
SPOKEN = st.lists(PHONE, min_size=1, max_size=6).map(tuple)


@given(st.dictionaries(WORD, st.lists(SPOKEN, min_size=1, max_size=3), max_size=12))
def test_what_is_packed_is_read_again(words: dict[str, list[tuple[str, ...]]]) -> None:
    read = unpack(pack(words, licence="of\nlines", table={"a": {"b c": 0.5}}))
    assert {word: read.get(word) for word in read} == words
    assert list(read) == sorted(words)
    assert len(read) == len(words)
    assert read.header == {"licence": "of\nlines", "table": {"a": {"b c": 0.5}}}


def test_unknown_words() -> None:
    read = unpack(pack({"a": [("ax",), ("ey",)]}))
    assert read.get("b") == read.get("") == read.get("\ud800") == []
    assert "a" in read
    assert "b" not in read


@pytest.mark.parametrize(
    "words",
    [{"": [("a",)]}, {"a\nb": [("a",)]}, {"a": []}, {"a": [()]}],
)
def test_what_is_no_word(words: dict[str, list[tuple[str, ...]]]) -> None:
    with pytest.raises(ValueError, match="A word is one line, and has phones"):
        pack(words)


def test_too_many_phones() -> None:
    pack({"a": [tuple(str(i) for i in range(223))]})
    with pytest.raises(ValueError, match="at most 223 kinds of phones; got 224"):
        pack({"a": [tuple(str(i) for i in range(224))]})


def test_other_and_damaged_files() -> None:
    whole = pack({f"w{i}": [(f"p{i % 7}", "q")] for i in range(500)})
    assert len(unpack(whole)) == 500
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 255
    for data in (b"", b"PK", whole[:-30], bytes(changed), lzma.compress(b"x\n{}"), lzma.compress(b"\n")):
        with pytest.raises(ValueError, match="no packed words of isotone, or damaged"):
            unpack(data)
