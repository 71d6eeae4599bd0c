"""The same text out: every character of a text is in exactly one word, in order, or is markup that is listed."""

# ruff: noqa: RUF001
from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from isotone.text.given import STAR, encode
from isotone.text.markup import clean
from isotone.text.normalize import TextError
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer, Tokenizer
from tests.text.test_given import LETTERS, Spelled

SNIPPETS = [
    "Hello,", "world!", "It's", "1984", "$5.20", "12:30", "3/4", "Dr.", "St.", "e.g.", "No.", "5", "km", "U.S.", "&",
    "+", "@", "#tag", "www.example.com/a?b=1", "“so”", "« non »", "-", "–", "—", "...", "…", "5½", "20°C", "½", "™",
    "№5", "1914–1918", "yes—no", "[laughs]", "<b>", "</i>", "SPEAKER 1:", ">>", "[00:12]", "♪", "*", "<star>",
    "[inaudible]", "(so)", "日本", "жd", "ß", "🙂", "\u200b", "\u00ad", "e\u0301", "\n", "\n- ", "\t",
    "\r\n", "well-known", "and/or", "007",
]  # fmt: skip
# amounts, dates, times, versions and what looks like them
NUMBERS = st.from_regex(
    r"[-+$£€#]?\d{0,5}(,\d{3}){0,3}([.:/'-]\d{1,4}){0,3}(%|°|k|M|bn|s|st|th|am|km|''|½)?", fullmatch=True
)
TEXTS = st.lists(
    st.one_of(st.sampled_from([*SNIPPETS, *[" "] * 12]), st.text(max_size=4), NUMBERS),
    min_size=1,
    max_size=16,
).map("".join)

CHARACTERS = CharacterTokenizer(["<pad>", "<unk>", "|", *LETTERS])
PHONES = PhoneTokenizer(["<pad>", "sil", *"abcdefgh"], Spelled(), "sil", pauses=True)
TOKENIZERS = [CHARACTERS, PHONES]


def check(tokenizer: Tokenizer, text: str) -> None:
    try:
        words = encode(tokenizer, text).words
    except TextError:
        return
    kept = {position for position, c in zip(clean(text).positions, clean(text).text) if not c.isspace()}
    owners = [p for word in words for p in range(word.start, word.end) if p in kept]
    assert owners == sorted(kept), "each character that is no markup is in one word, in order"
    for word in words:
        written = "".join(text[p] for p in range(word.start, word.end) if p in kept)
        assert word.text == STAR or "".join(word.text.split()) == written
        if all(p in kept or text[p].isspace() for p in range(word.start, word.end)):
            assert word.text in (STAR, text[word.start : word.end])


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
@example(text="so * ... it")
@example(text="... * [inaudible] . so")
@example(text="so [laughs] – it")
@example(text="* * <star>. so")
@example(text="- Hi.\n- So.")
@example(text="$22,232.87")
def test_words_out_are_words_in(tokenizer: Tokenizer, text: str) -> None:
    check(tokenizer, text)


@pytest.mark.slow
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=TEXTS)
def test_words_out_are_words_in_ten_thousand_texts(tokenizer: Tokenizer, text: str) -> None:
    check(tokenizer, text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("so – it", ["so –", "it"]),
        ("- So.\n- It!", ["- So.", "- It!"]),
        ("so « it » so", ["so", "« it »", "so"]),
        ("so ( it", ["so", "( it"]),
        ("so (", ["so ("]),
        ("so * ... it", ["so", "*", "... it"]),
        ("so [inaudible] . *", ["so", "[inaudible] .", "*"]),
    ],
)
def test_punctuation_on_its_own_has_a_word(text: str, words: list[str]) -> None:
    assert [word.text for word in encode(CHARACTERS, text).words] == words
