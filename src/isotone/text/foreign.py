"""Tokenizers of transformers' CTC models, from their files: characters, phones and word pieces."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isotone.text.base import Tokenizer
from isotone.text.characters import CharacterTokenizer, content, read_labels
from isotone.text.fast_pieces import FastPieceTokenizer
from isotone.text.ipa import EspeakIPA, is_ipa, voice_of
from isotone.text.languages import spoken_language
from isotone.text.phone_tokenizer import PhoneTokenizer
from isotone.text.transcript import BLANK, CONFIG, read_json

_PHONES = "Wav2Vec2PhonemeCTCTokenizer"


def load_foreign(folder: Path, language: str = "", blank: int | None = None) -> Tokenizer:
    """Load the tokenizer of a CTC model of transformers.

    Args:
        folder: The model's files.
        language: ISO 639 code, or the model's own name of one of its languages. Default: the language in the files.
        blank: Number of the blank in the model's configuration, used if the tokenizer is not a CTC tokenizer.

    Raises:
        FileNotFoundError: no tokenizer in the folder.
        ValueError: its files do not describe one, or texts cannot be spelled or pronounced in its labels.
    """
    config = read_json(folder / "special_tokens_map.json") | read_json(folder / "tokenizer_config.json")
    kind = str(config.get("tokenizer_class") or "").removesuffix("Fast")
    pieces = (folder / "tokenizer.json").is_file() or any(folder.glob("*.model"))
    if kind != _PHONES and kind != "Wav2Vec2CTCTokenizer" and pieces:
        return _pieces(folder, spoken_language(folder, language), blank)
    if not (folder / "vocab.json").is_file():
        raise FileNotFoundError(f"No tokenizer in {folder}: expected {CONFIG}, vocab.json or tokenizer.json.")
    spoken = language if language in languages_of(folder) else ""
    labels = read_labels(folder, config, spoken)
    if kind == _PHONES or is_ipa(labels):
        return _phones(folder, labels, config, language)
    _check_letters(folder, labels)
    return CharacterTokenizer.from_transformers(
        folder, language=spoken_language(folder, language), spoken=spoken
    )


def languages_of(folder: Path) -> list[str]:
    """Return the languages of a ``vocab.json`` with one vocabulary per language; an empty list for any other."""
    vocabulary = read_json(folder / "vocab.json")
    return list(vocabulary) if all(isinstance(labels, dict) for labels in vocabulary.values()) else []


def _phones(folder: Path, labels: Sequence[str], config: dict[str, Any], language: str) -> PhoneTokenizer:
    """Build the tokenizer of a phone model, whose texts espeak-ng pronounces as it did for training."""
    if (backend := config.get("phonemizer_backend", "espeak")) != "espeak":
        raise ValueError(
            f"its words are put into phones by {backend!r}, and isotone pronounces with espeak-ng alone."
        )
    spoken = spoken_language(folder, language)
    voice = str(config.get("phonemizer_lang") or (spoken and voice_of(spoken)))
    pronouncer = None
    if is_ipa(labels):
        if not voice:
            raise ValueError(
                "its labels are phones, and nothing says of which language: ask for one (--language)."
            )
        pronouncer = EspeakIPA(labels, voice)
        if language:
            pronouncer.use_language(language)
    elif config.get("do_phonemize", True):
        raise ValueError(
            f"its phones are not of the International Phonetic Alphabet, which espeak-ng writes: {list(labels)[:20]}."
        )
    delimiter = content(config.get("word_delimiter_token"))
    if delimiter is None and "word_delimiter_token" not in config and "|" in labels:
        delimiter = "|"
    return PhoneTokenizer(
        labels,
        pronouncer,
        blank=content(config.get("pad_token")) or BLANK,
        delimiter=delimiter if delimiter in labels else None,
        language=spoken,
    )


def _pieces(folder: Path, language: str, blank: int | None) -> Tokenizer:
    from transformers import AutoTokenizer

    try:
        theirs = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # of any class: the files choose the code
        raise ValueError(f"transformers could not load its tokenizer: {error}") from error
    number = theirs.pad_token_id if blank is None else blank
    if number is None:
        raise ValueError(
            "neither its config.json nor its tokenizer has a pad_token_id, which is CTC's blank."
        )
    if not theirs.is_fast:
        raise ValueError(
            f"its tokenizer is a {type(theirs).__name__} without a tokenizer.json; convert it: "
            "AutoTokenizer.from_pretrained(..., use_fast=True).save_pretrained(folder)."
        )
    return FastPieceTokenizer(theirs.backend_tokenizer.to_str(), int(number), language=language)


def _check_letters(folder: Path, labels: Sequence[str]) -> None:
    """Check that texts can be spelled in the labels, which is not so where most of them have several letters."""
    plain = [label for label in labels if label and not (label[0] in "<[" and len(label) > 1)]
    long = [label for label in plain if sum(not unicodedata.combining(c) for c in label) > 1]
    if len(long) > len(plain) / 2:
        raise ValueError(
            f"{folder / 'vocab.json'}: most labels have several letters, such as {long[:10]}, and are no phones of the "
            "International Phonetic Alphabet: words cannot be spelled or pronounced in them."
        )
