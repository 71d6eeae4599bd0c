"""Tokenizer of characters: positions, unknown characters, and the files of transformers, which is the oracle."""

# ruff: noqa: RUF001
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import Wav2Vec2CTCTokenizer, Wav2Vec2FeatureExtractor, Wav2Vec2Processor

from isotone.text.normalize import TextError
from isotone.text.tokenizer import CharacterTokenizer, load
from tests.text.samples import LETTERS, LIBRI, row


def test_places_and_owners(characters: CharacterTokenizer) -> None:
    text = "“It’s 2 – well-known”"
    transcript = characters.encode(text)
    assert [w.text for w in transcript.words] == ["“It’s", "2 –", "well-known”"]
    assert [text[w.start : w.end] for w in transcript.words] == [w.text for w in transcript.words]
    assert "".join(characters.labels[t] for t in transcript.tokens) == "it's|two|well|known"
    assert transcript.token_words == (0, 0, 0, 0, None, 1, 1, 1, None, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)


def test_unknown_characters_are_reported(characters: CharacterTokenizer) -> None:
    transcript = characters.encode("naжve ж Ωmega жж")
    assert transcript.unknown == ("ж", "ω")
    assert characters.decode(transcript.tokens) == "nave mega"
    assert [w.normal for w in transcript.words] == ["naжve", "ж", "ωmega", "жж"]
    assert transcript.token_words == (0, 0, 0, 0, None, 2, 2, 2, 2)
    for text, reason in (("日本", r"none of \['日', '本'\] is in the vocabulary"), ("...", "no words in it")):
        with pytest.raises(TextError, match=reason):
            characters.encode(text)
    with pytest.raises(TextError, match=r"Utterance 'u1': .*no words"):
        characters.encode_row(row("?"))


def test_decoding_ignores_special_labels() -> None:
    tokenizer = CharacterTokenizer(LIBRI)
    assert tokenizer.case == "upper"
    ids = [LIBRI.index(c) for c in ["<s>", "H", "<pad>", "I", "|", "|", "<unk>", "A", "</s>"]]
    assert tokenizer.decode(ids) == "HI A"
    assert tokenizer.words(ids) == [("HI", 1, 4), ("A", 7, 8)]
    assert tokenizer.words([]) == []


def test_without_delimiter() -> None:
    tokenizer = CharacterTokenizer(["<pad>", *"abc"])
    transcript = tokenizer.encode("ab c")
    assert tokenizer.decode(transcript.tokens) == "abc"
    assert transcript.token_words == (0, 0, 1)


def hf_tokenizer(folder: Path, vocabulary: dict[str, int], **options: Any) -> Wav2Vec2CTCTokenizer:
    folder.mkdir(exist_ok=True)
    (folder / "source.json").write_text(json.dumps(vocabulary))
    return Wav2Vec2CTCTokenizer(str(folder / "source.json"), **options)


@pytest.mark.parametrize("as_processor", [False, True])
def test_loading_what_transformers_saved(tmp_path: Path, as_processor: bool) -> None:
    theirs = hf_tokenizer(tmp_path, {c: i for i, c in enumerate(LIBRI)})
    saved: Any = theirs
    if as_processor:
        saved = Wav2Vec2Processor(feature_extractor=Wav2Vec2FeatureExtractor(), tokenizer=theirs)
    saved.save_pretrained(tmp_path / "model")
    ours = load(tmp_path / "model")
    assert isinstance(ours, CharacterTokenizer)
    assert ours.labels == LIBRI
    assert (ours.blank, ours.delimiter, ours.unknown, ours.case) == (
        theirs.pad_token_id,
        "|",
        "<unk>",
        "upper",
    )
    for text in ("HELLO WORLD", "IT'S A TEST", "X"):
        assert list(ours.encode(text.lower()).tokens) == theirs(text).input_ids
        assert ours.decode(theirs(text).input_ids) == theirs.decode(
            theirs(text).input_ids, group_tokens=False
        )


def test_tokens_that_transformers_added(tmp_path: Path) -> None:
    """If a vocabulary has no <s>, transformers appends it, and models have a row for it."""
    vocabulary = {c: i for i, c in enumerate([*"abc", "|", "[UNK]", "[PAD]"])}
    theirs = hf_tokenizer(tmp_path, vocabulary, unk_token="[UNK]", pad_token="[PAD]")
    theirs.save_pretrained(tmp_path / "model")
    ours = load(tmp_path / "model")
    assert len(ours) == len(theirs)
    assert ours.labels == theirs.convert_ids_to_tokens(list(range(len(theirs))))
    assert (ours.blank, ours.labels[ours.blank]) == (5, "[PAD]")
    assert list(ours.encode("a cab").tokens) == theirs("a cab").input_ids


@pytest.mark.parametrize("labels", [LIBRI, ["<pad>", "<unk>", "|", *LETTERS], ["<pad>", "|", *"abcABC"]])
def test_transformers_loads_what_we_saved(tmp_path: Path, labels: list[str]) -> None:
    ours = CharacterTokenizer(labels, language="de")
    ours.save(tmp_path)
    theirs = Wav2Vec2CTCTokenizer.from_pretrained(tmp_path)
    assert len(theirs) == len(ours)
    assert theirs.convert_ids_to_tokens(list(range(len(ours)))) == labels
    assert theirs.pad_token_id == ours.blank
    text = "ab ca" if ours.case != "upper" else "AB CA"
    assert theirs(text).input_ids == list(ours.encode(text).tokens)
    assert theirs.decode(ours.encode(text).tokens, group_tokens=False) == text
    again = load(tmp_path)
    assert isinstance(again, CharacterTokenizer)
    assert (again.labels, again.blank, again.case, again.language) == (labels, 0, ours.case, "de")
    assert again.encode(text) == ours.encode(text)


def test_many_languages(tmp_path: Path) -> None:
    nested = {"eng": {"<pad>": 0, "|": 1, "a": 2}, "fra": {"<pad>": 0, "|": 1, "é": 2}}
    (tmp_path / "vocab.json").write_text(json.dumps(nested))
    with pytest.raises(ValueError, match=r"vocabularies of 2 languages: set target_lang .* eng, fra"):
        load(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"target_lang": "fra"}))
    assert load(tmp_path).labels == ["<pad>", "|", "é"]
