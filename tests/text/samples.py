"""Vocabularies, texts and rows that the tests of tokenizers share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isotone.text.normalize import normalize
from isotone.text.pronounce import Pronouncer
from isotone.text.tokenizer import Tokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyz'"
# the vocabulary of facebook/wav2vec2-base-960h
LIBRI = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAONIHSRDLUMWCFGYPBVK'XJQZ"]
PHONES = ["<pad>", "sil", "ah", "b", "d", "hh", "l", "ow", "w", "er"]

TEXTS = [
    "the quick brown fox jumps over the lazy dog",
    "the dog sleeps while the fox jumps and jumps",
    "a lazy fox and a quick dog are over there",
    "there is no fox in this text but a lazy author",
]


class Spelled(Pronouncer):
    """Pronouncer that gives 'hh ah' for words with h and 'b' for all others; it cannot be saved."""

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        return [["hh", "ah"] if w.startswith("h") else ["b"] if w.isalpha() else None for w in words]

    def save(self, folder: Path) -> dict[str, Any]:
        raise NotImplementedError


def row(text: str, phones: str = "", words: str = "", **other: Any) -> dict[str, Any]:
    """Return a corpus row; tiers are written 'label start end, label start end'."""

    def tier(spans: str) -> dict[str, list[Any]]:
        parts = [s.split() for s in spans.split(",") if s.strip()]
        return {
            "label": [p[0] for p in parts],
            "start": [float(p[1]) for p in parts],
            "end": [float(p[2]) for p in parts],
        }

    return {"id": "u1", "text": text, "phones": tier(phones), "words": tier(words), **other}


def check_transcript(tokenizer: Tokenizer, text: str) -> None:
    """Check what holds for every tokenizer that knows all characters of a text."""
    transcript = tokenizer.encode(text)
    assert len(transcript.tokens) == len(transcript.token_words)
    assert tokenizer.blank not in transcript.tokens
    assert transcript.unknown == ()
    owners = [w for w in transcript.token_words if w is not None]
    assert owners == sorted(owners)
    assert set(owners) == set(range(len(transcript.words)))
    assert tokenizer.decode(transcript.tokens) == normalize(text)
    spans = tokenizer.words(transcript.tokens)
    assert [w for w, _, _ in spans] == normalize(text).split()
    for number, (_, first, end) in enumerate(spans):
        assert set(transcript.token_words[first:end]) == {number}
