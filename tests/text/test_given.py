"""Given texts: every word keeps its position; a word that cannot be spelled is a star and is reported."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isotone.text.given import STAR, encode
from isotone.text.markup import clean, is_tag
from isotone.text.normalize import TextError
from isotone.text.pronounce import Pronouncer
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer, Tokenizer, train_pieces
from isotone.text.transcript import STAR_NUMBER

SNIPPETS = [
    "[laughs]", "(coughs)", "<b>", "</i>", "SPEAKER 1:", "JOHN:", ">>", "[00:12]", "♪", "*sighs*", "*", "<star>",
    "[inaudible]", "[she said]", "\n", " ", " ", " ", ".", ",", "so", "It's", "Café", "21", "3,50 €", "well-known",
    "你好", "ß", "42nd", "٣", "жd",
]  # fmt: skip
lively = st.lists(st.one_of(st.sampled_from(SNIPPETS), st.text(max_size=3)), max_size=12).map("".join)


class Spelled(Pronouncer):
    """Pronouncer whose phones are the letters a to h; words with other letters have no pronunciation."""

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        return [list(w) if re.fullmatch("[a-hxy]+", w) else None for w in words]

    def save(self, folder: Path) -> dict[str, Any]:
        return {}


LETTERS = "abcdefghijklmnopqrstuvwxyz'"
ENGLISH = CharacterTokenizer(["<pad>", "<unk>", "|", *LETTERS])
UNKNOWN = CharacterTokenizer(["<pad>", "<unk>", "|", *LETTERS], language="")
DIGITS = CharacterTokenizer(["<pad>", "|", *LETTERS, *"0123456789"], language="")
PAUSED = CharacterTokenizer(["<pad>", "|", *LETTERS], pauses=True)
PIECES = train_pieces(["so it is well known to be a cafe", "for ever and a day it's so"], 30)
PHONES = PhoneTokenizer(["<pad>", "sil", *"abcdefgh"], Spelled(), "sil", pauses=True)
ALL = [ENGLISH, UNKNOWN, DIGITS, PAUSED, PIECES, PHONES]


def shown(tokenizer: Tokenizer, text: str) -> str:
    found = encode(tokenizer, text)
    return " ".join(STAR if t == STAR_NUMBER else tokenizer.labels[t] for t in found.tokens)


@settings(max_examples=150, deadline=None)
@given(text=lively, keep=st.booleans())
@example(text="\ud800 a\ud800b 你\ud800", keep=False)
@pytest.mark.parametrize("tokenizer", ALL)
def test_every_word_has_its_place(tokenizer: Tokenizer, text: str, keep: bool) -> None:
    """In any text, each letter and digit outside markup is in exactly one word of the tier, in order."""
    try:
        found = encode(tokenizer, text, keep_markup=keep)
    except TextError:
        return
    source = clean(text, keep=keep)
    place = 0
    for word in found.words:
        assert place <= word.start < word.end <= len(text)
        part = text[word.start : word.end]
        place = word.end
        if word.text == STAR:
            assert STAR in part or "<star>" in part  # with other stars and punctuation beside it
            continue
        assert (part[0], part[-1]) == (word.text[0], word.text[-1])
        assert part == word.text or is_within(word.text, part)
        assert part == word.text or source.left_out
    said = "".join(w.text for w in found.words if w.text != STAR)
    written = re.sub(r"(?<!\S)<star>(?!\S)", "", source.text)
    assert letters(said) == letters(written)
    owners = [w for w in found.token_words if w is not None]
    assert owners == sorted(owners)
    assert set(owners) == set(range(len(found.words))), "every word has labels or is a star"
    assert all(STAR_NUMBER <= t < len(tokenizer) and t != tokenizer.blank for t in found.tokens)
    stars = {w for t, w in zip(found.tokens, found.token_words) if t == STAR_NUMBER and w is not None}
    unsaid = any(found.words[w].text != STAR for w in stars)
    assert unsaid == any("unknown speech" in note for note in found.notes)
    told = any(not is_tag(markup) for markup in source.left_out)
    assert told == any("markup" in note for note in found.notes)


def is_within(text: str, part: str) -> bool:
    """Return whether deleting characters of a part can give the text."""
    rest = iter(part)
    return all(c == " " or c in rest for c in text)


def letters(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


@settings(max_examples=60, deadline=None)
@given(words=st.lists(st.sampled_from(["so", "it's", "well-known", "a", "cafe", "bed,", "be."]), min_size=1))
@pytest.mark.parametrize("tokenizer", [ENGLISH, UNKNOWN, PAUSED, PIECES])
def test_plain_words_are_what_models_are_trained_on(tokenizer: Tokenizer, words: list[str]) -> None:
    assert encode(tokenizer, " ".join(words)) == tokenizer.encode(" ".join(words))


@pytest.mark.parametrize(
    ("tokenizer", "text", "expected", "note"),
    [
        (ENGLISH, "so 你好 it", "s o * i t", "words without a character of the model's vocabulary: '你好'"),
        (ENGLISH, "so, 你好! 世 it", "s o * * i t", "vocabulary: '你好!', '世'"),
        (PAUSED, "so 你好 it", "| s o * i t |", "'你好'"),
        (PAUSED, "你好 so it 你好", "* s o | i t *", "'你好'"),
        (PIECES, "ever 你好 ever", None, "'你好'"),
        (PHONES, "bad zoo-bed cab", "sil b a d * c a b sil", "pronunciation (--dictionary gives them one): 'zoo'"),
        (PHONES, "zoo bad", "* b a d sil", "'zoo'"),
        (PHONES, "xy bad", "* b a d sil", "words without a character of the model's vocabulary: 'xy'"),
        (ENGLISH, "so xxx, it", "s o * i t", "what is marked as not understood: 'xxx'"),
        (ENGLISH, "so [ xxx ] it", "s o * i t", "what is marked as not understood: '[ xxx ]'"),
        (ENGLISH, "so [inaudible 00:12] it", "s o * i t", "what is marked as not understood: '[inaudible 00:12]'"),
        (ENGLISH, "so ٣ it", "s o * i t", "numbers that are not spelled out in en: '٣'"),
        (UNKNOWN, "so 21 it", "s o * i t", "not spelled out in a language that is not known (--language): '21'"),
        (UNKNOWN, "so 3,50 € 42nd, it", "s o * * i t", "'3,50 €', '42nd,'"),
        (DIGITS, "so 21 a", "s o | 2 1 | a", None),
        (ENGLISH, "so 21 a", "s o | t w e n t y | o n e | a", None),
        (ENGLISH, "so Café a", "s o | c a f e | a", None),
        (ENGLISH, "so жd a", "s o | d | a", "aligned without what the model has no labels for: 'ж'"),
        (ENGLISH, "A: so [laughs] it", "a | s o | i t", "left out as markup (--keep-markup reads it): '[laughs]'"),
        (ENGLISH, "<i>so</i> ♪ {\\an8}it", "s o | i t", "left out as markup (--keep-markup reads it): '♪'"),
        (ENGLISH, "so [he] it", "s o | h e | i t", "aligned as speech, although in brackets: '[he]'"),
    ],
)  # fmt: skip
def test_what_is_not_aligned_as_written_is_said(
    tokenizer: Tokenizer, text: str, expected: str | None, note: str | None
) -> None:
    notes = encode(tokenizer, text).notes
    assert expected is None or shown(tokenizer, text) == expected
    assert len(notes) == (note is not None)
    assert note is None or note in notes[0]


def test_words_keep_their_text_and_place() -> None:
    text = "SPEAKER 1: <b>so</b>, 你好 [laughs] * it."
    found = encode(ENGLISH, text)
    assert [(w.text, text[w.start : w.end]) for w in found.words] == [
        ("so,", "so</b>,"), ("你好", "你好"), ("*", "*"), ("it.", "it."),
    ]  # fmt: skip
    assert [w.normal for w in found.words] == ["so", "你好", "*", "it"]
    assert found.token_words == (0, 0, 1, 2, 3, 3)
    assert [w.text for w in encode(ENGLISH, "a [laughs] <b>b", keep_markup=True).words] == [
        "a",
        "[laughs]",
        "<b>b",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "there are no words in it"),
        (" ... ", "there are no words in it"),
        ("* <star>", "there are stars in it, and no words"),
        ("[laughs] ♪", "all of it is markup (--keep-markup reads it): '[laughs]', '♪'"),
        (
            "日本 *",
            "there are only words without a character of the model's vocabulary: '日本'. Is it in another language",
        ),
        ("[inaudible]", "there are only what is marked as not understood: '[inaudible]'"),
    ],
)
def test_a_text_with_nothing_to_align(text: str, why: str) -> None:
    with pytest.raises(TextError) as error:
        encode(ENGLISH, text)
    assert str(error.value).startswith("The text has nothing to align: ")
    assert why in str(error.value)


def test_training_takes_no_stars() -> None:
    """In a training text a word without pronunciation is an error, not a star."""
    with pytest.raises(TextError, match="No pronunciation for 'zoo': add them to a dictionary"):
        PHONES.encode("bad zoo")
    assert STAR_NUMBER not in ENGLISH.encode("so 你好 it").tokens
    assert ENGLISH.encode("so [laughs]").tokens == ENGLISH.encode("so laughs").tokens


def test_long_lists_are_cut() -> None:
    notes = encode(ENGLISH, "so " + " ".join(chr(0x4E00 + i) for i in range(25)) * 2).notes
    assert notes[0].endswith("'\u4e13' and 6 more")


def test_phones_that_are_no_words() -> None:
    strings = PhoneTokenizer(["<pad>", "sil", "s", "t"], None, "sil")
    found = encode(strings, "sil s * t [inaudible] t")
    assert shown(strings, "sil s * t [inaudible] t") == "sil s * t * t"
    assert [w.text for w in found.words] == ["*", "[inaudible]"]
    assert found.token_words == (None, None, 0, None, 1, None)
    with pytest.raises(TextError, match=r"'xx'.* are no phones of this model"):
        encode(strings, "s xx")
