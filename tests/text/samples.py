"""Vocabularies, texts and rows that the tests of tokenizers share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isotone.text.letter_network import CHARACTERS, dump
from isotone.text.normalize import normalize
from isotone.text.pronounce import LetterToSound, Pronouncer
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


def tiny_network(
    seed: int = 0, *, width: int = 8, layers: int = 2
) -> tuple[dict[str, np.ndarray], list[tuple[str, ...]]]:
    """Random weights of a letter network with two heads, and its outputs; the empty one is unlikely."""
    rng = np.random.default_rng(seed)
    outputs: list[tuple[str, ...]] = [(), ("s",), ("ax",), ("t",), ("iy0",), ("iy",), ("k", "s")]
    shapes: dict[str, tuple[int, ...]] = {
        "embedding": (len(CHARACTERS), width), "given": (len(outputs) + 1, width), "norm.weight": (width,),
        "norm.bias": (width,), "out.weight": (len(outputs), width), "out.bias": (len(outputs),),
    }  # fmt: skip
    for layer in range(layers):
        one: dict[str, tuple[int, ...]] = {
            "taps": (5, width), "bias": (2, 7), "norm1.weight": (width,), "norm1.bias": (width,),
            "norm2.weight": (width,), "norm2.bias": (width,), "qkv.weight": (3 * width, width),
            "qkv.bias": (3 * width,),
            "o.weight": (width, width), "o.bias": (width,), "up.weight": (4 * width, width), "up.bias": (4 * width,),
            "down.weight": (width, 4 * width), "down.bias": (width,),
        }  # fmt: skip
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in one.items()}
    tensors = {name: rng.normal(scale=0.7, size=shape).astype(np.float32) for name, shape in shapes.items()}
    tensors["out.bias"][0] -= 6
    return tensors, outputs


def tiny_letters(folder: Path) -> LetterToSound:
    """A letter-to-sound model with random weights, whose file is in the folder."""
    tensors, outputs = tiny_network()
    (folder / "tiny.safetensors").write_bytes(dump(tensors, outputs, 2))
    return LetterToSound(folder / "tiny.safetensors")
