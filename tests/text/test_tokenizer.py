"""Tokenizers encode what can be aligned, and say what they dropped; transformers is the oracle."""

# ruff: noqa: RUF001
from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Wav2Vec2CTCTokenizer, Wav2Vec2FeatureExtractor, Wav2Vec2Processor

from isotone.text.normalize import TextError, normalize
from isotone.text.pronounce import Dictionary, Pronouncer
from isotone.text.tokenizer import (
    CharacterTokenizer,
    PhoneTokenizer,
    PieceTokenizer,
    Tokenizer,
    Unit,
    build_tokenizer,
    load,
    train_pieces,
)

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

spoken = st.lists(st.text(st.sampled_from(LETTERS[:26]), min_size=1, max_size=8), min_size=1, max_size=8)


class Spelled(Pronouncer):
    """Pronounces h-words as 'hh ah' and all others as 'b', without saving anything."""

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        return [["hh", "ah"] if w.startswith("h") else ["b"] if w.isalpha() else None for w in words]

    def save(self, folder: Path) -> dict[str, Any]:
        raise NotImplementedError


def row(text: str, phones: str = "", words: str = "", **other: Any) -> dict[str, Any]:
    """A corpus row; tiers are written 'label start end, label start end'."""

    def tier(spans: str) -> dict[str, list[Any]]:
        parts = [s.split() for s in spans.split(",") if s.strip()]
        return {
            "label": [p[0] for p in parts],
            "start": [float(p[1]) for p in parts],
            "end": [float(p[2]) for p in parts],
        }

    return {"id": "u1", "text": text, "phones": tier(phones), "words": tier(words), **other}


@pytest.fixture(scope="module")
def characters() -> CharacterTokenizer:
    return CharacterTokenizer(["<pad>", "<unk>", "|", *LETTERS])


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def pieces(request: pytest.FixtureRequest) -> PieceTokenizer:
    return train_pieces(TEXTS, 40, request.param)


def check_transcript(tokenizer: Tokenizer, text: str) -> None:
    """What holds of every tokenizer that knows all characters of a text."""
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


@settings(max_examples=100, deadline=None)
@given(words=spoken)
def test_characters_round_trip(characters: CharacterTokenizer, words: list[str]) -> None:
    check_transcript(characters, " ".join(words))


@settings(max_examples=100, deadline=None)
@given(words=st.lists(st.sampled_from(sorted({w for t in TEXTS for w in t.split()})), min_size=1, max_size=9))
def test_pieces_round_trip(pieces: PieceTokenizer, words: list[str]) -> None:
    check_transcript(pieces, " ".join(words))


def plain(character: str) -> str:
    """A letter without accents, as iconv writes it."""
    others = {
        "ß": "ss",
        "æ": "ae",
        "œ": "oe",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "ı": "i",
        "ħ": "h",
    }
    bare = "".join(c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c))
    return "".join((others | {"ŧ": "t", "ŋ": "ng"}).get(c, c) for c in bare.lower()) or character


def is_mark(character: str) -> bool:
    return unicodedata.name(character, "").startswith("COMBINING ")


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=40))
def test_any_text_is_encoded_or_refused(
    characters: CharacterTokenizer, pieces: PieceTokenizer, text: str
) -> None:
    for tokenizer in (characters, pieces):
        known = {c for label in tokenizer.labels if not label.startswith("<") for c in label}
        left = {c for c in normalize(text) if c != " " and not known & {*plain(c)} and not is_mark(c)}
        if not known & {c for x in normalize(text) for c in x + plain(x)}:
            with pytest.raises(TextError, match="nothing to align"):
                tokenizer.encode(text)
            continue
        transcript = tokenizer.encode(text)
        assert len(transcript.tokens) == len(transcript.token_words) > 0
        assert all(0 < t < len(tokenizer) for t in transcript.tokens)
        assert set(transcript.unknown) == left - known
        assert all(text[w.start : w.end] == w.text for w in transcript.words)


def test_places_and_owners(characters: CharacterTokenizer) -> None:
    text = "“It’s 2 – well-known”"
    transcript = characters.encode(text)
    assert [w.text for w in transcript.words] == ["“It’s", "2 –", "well-known”"]
    assert [text[w.start : w.end] for w in transcript.words] == [w.text for w in transcript.words]
    assert "".join(characters.labels[t] for t in transcript.tokens) == "it's|two|well|known"
    assert transcript.token_words == (0, 0, 0, 0, None, 1, 1, 1, None, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)


@pytest.mark.parametrize("unit", ["characters", "pieces"])
def test_pauses_around_words(tmp_path: Path, unit: Unit) -> None:
    rows = [row(text) for text in TEXTS]
    plain, paused = (build_tokenizer(unit, rows, size=40, pauses=pauses) for pauses in (False, True))
    assert (plain.silence, paused.silence) == (None, "|" if unit == "characters" else "<sil>")
    text = " ".join(TEXTS[0].split()[:3])
    check_transcript(paused, text)
    transcript = paused.encode(text)
    silence = paused.labels.index(str(paused.silence))
    places = [i for i, w in enumerate(transcript.token_words) if w is None]
    assert [transcript.tokens[i] for i in places] == [silence] * 4
    assert (places[0], places[-1]) == (0, len(transcript.tokens) - 1)
    assert [i for i, free in enumerate(paused.optional(transcript)) if free] == places
    spoken = [paused.labels[t] for t, w in zip(transcript.tokens, transcript.token_words) if w is not None]
    before = plain.encode(text)
    assert spoken == [plain.labels[t] for t, w in zip(before.tokens, before.token_words) if w is not None]
    assert not any(plain.optional(before))
    assert not paused.writes(silence)
    paused.save(tmp_path)
    again = load(tmp_path)
    assert (again.pauses, again.silence, again.labels) == (True, paused.silence, paused.labels)
    assert again.encode(text) == transcript


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


def test_accents_are_folded_where_the_vocabulary_has_none(
    characters: CharacterTokenizer, pieces: PieceTokenizer
) -> None:
    """Each word is what it is without accents, and one with them stays where the labels have them."""
    transcript = characters.encode("Café naïve, cœur Straße e\u0308")
    assert characters.decode(transcript.tokens) == "cafe naive coeur strasse e"
    assert [w.normal for w in transcript.words] == ["café", "naïve", "cœur", "straße", "ë"]
    assert transcript.unknown == ()
    accented = CharacterTokenizer(["<pad>", "|", *"acéefi"])
    assert accented.decode(accented.encode("café fâce fièf").tokens) == "café face fief"
    marked = CharacterTokenizer(["<pad>", "x", "\u030c", "e", "é"])
    assert marked.encode("x\u030cé").tokens == (1, 2, 4)
    mixed = CharacterTokenizer(["<pad>", "|", *"abcE"])
    assert mixed.case == "keep"
    assert mixed.decode(mixed.encode("ABC Cab E").tokens) == "abc cab E"
    folded, written = pieces.encode("thé lâzy fōx"), pieces.encode("the lazy fox")
    assert (folded.tokens, folded.token_words) == (written.tokens, written.token_words)


def test_unknown_in_pieces(pieces: PieceTokenizer) -> None:
    transcript = pieces.encode("the жéfox Ω")
    assert set(transcript.unknown) == {"ж", "ω"}
    assert pieces.decode(transcript.tokens).replace(" ", "") == "theefox"
    assert 0 in transcript.token_words
    with pytest.raises(TextError, match="nothing to align"):
        pieces.encode("Ω")


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
    """Where a vocabulary lacks <s>, transformers adds it behind the others, and models have a row for it."""
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


def test_phones_of_words() -> None:
    tokenizer = PhoneTokenizer(PHONES, Spelled(), silence="sil")
    transcript = tokenizer.encode("Hello, B-hat!")
    assert tokenizer.decode(transcript.tokens) == "sil hh ah b hh ah sil"
    assert transcript.token_words == (None, 0, 0, 1, 1, 1, None)
    assert [w.text for w in transcript.words] == ["Hello,", "B-hat!"]
    assert tokenizer.words(transcript.tokens) == []
    assert len(PhoneTokenizer(PHONES, Spelled()).encode("hi").tokens) == 2
    with pytest.raises(TextError, match="No pronunciation for"):
        tokenizer.encode("hi ٣")
    with pytest.raises(TextError, match="no words in it"):
        tokenizer.encode("")


def test_phone_strings() -> None:
    tokenizer = PhoneTokenizer(PHONES)
    transcript = tokenizer.encode(" hh ah  l ow ")
    assert tokenizer.decode(transcript.tokens) == "hh ah l ow"
    assert transcript.words == ()
    assert set(transcript.token_words) == {None}
    for text in ("hh xx", "hh <pad>"):
        with pytest.raises(TextError, match=r"are no phones of this model.* give the tokenizer a pronouncer"):
            tokenizer.encode(text)


def test_phones_of_a_row() -> None:
    tokenizer = PhoneTokenizer(PHONES)
    utterance = row(
        "Hello, word!",
        phones="sil 0 1, hh 1 2, ah 2 3, l 3 4, ow 4 5, sil 5 6, w 6 7, er 7 8, zz 8 8, d 8 9.5, pau 10 11",
        words="hello 1 5, word 6 9.2",
    )
    transcript = tokenizer.encode_row(utterance)
    assert tokenizer.decode(transcript.tokens) == "sil hh ah l ow sil w er d"
    assert transcript.token_words == (None, 0, 0, 0, 0, None, 1, 1, 1)
    assert [(w.text, w.start, w.end) for w in transcript.words] == [("hello", 0, 5), ("word", 6, 10)]
    assert transcript.unknown == ("zz",)


def test_rows_without_tiers() -> None:
    timed = row("x", phones="b 0 1")
    assert PhoneTokenizer(PHONES).encode_row(timed).token_words == (None,)
    assert PhoneTokenizer(PHONES, Spelled()).encode_row(row("hi")).token_words == (0, 0)
    with pytest.raises(TextError, match="'u1' has no phones, and the tokenizer has no pronouncer"):
        PhoneTokenizer(PHONES).encode_row(row("hi"))
    with pytest.raises(TextError, match=r"Utterance 'u1': .*none of \['q'\]"):
        PhoneTokenizer(PHONES).encode_row(row("x", phones="q 0 1"))


def test_building() -> None:
    rows = [row("Bad cab.", phones="sil 0 1, b 1 2, ah 2 3"), row("A 2!", phones="d 0 1")]
    phones = build_tokenizer("phones", rows, silence="sil")
    assert phones.labels == ["<pad>", "ah", "b", "d", "sil"]
    characters = build_tokenizer("characters", rows, case="upper")
    assert characters.labels == ["<pad>", "<unk>", "|", *"ABCDOTW"]
    pieces = build_tokenizer("pieces", [row(t) for t in TEXTS], size=40)
    assert [t.unit for t in (phones, characters, pieces)] == ["phones", "characters", "pieces"]
    for tokenizer in (phones, characters, pieces):
        assert (tokenizer.blank, tokenizer.labels[0]) == (0, "<pad>")
        assert len(tokenizer) == len(set(tokenizer.labels))
    assert characters.encode_row(rows[0]).unknown == ()
    assert 30 <= len(pieces) <= 41


def test_pieces_do_not_depend_on_the_run() -> None:
    assert train_pieces(TEXTS, 40).labels == train_pieces(TEXTS, 40).labels


@pytest.mark.parametrize("silence", [None, "sil"])
def test_saving_phones(tmp_path: Path, silence: str | None) -> None:
    (tmp_path / "x.dict").write_text("hello HH AH0 L OW1\nword W ER1 D\n")
    ours = PhoneTokenizer(PHONES, Dictionary(tmp_path / "x.dict", phones=39), silence, language="de")
    ours.save(tmp_path / "model")
    (tmp_path / "x.dict").unlink()
    again = load(tmp_path / "model")
    assert isinstance(again, PhoneTokenizer)
    assert (again.labels, again.blank, again.silence, again.language) == (PHONES, 0, silence, "de")
    assert again.encode("Hello, word") == ours.encode("Hello, word")
    PhoneTokenizer(PHONES).save(tmp_path / "plain")
    plain = load(tmp_path / "plain")
    assert isinstance(plain, PhoneTokenizer)
    assert plain.pronouncer is None


def test_saving_pieces(tmp_path: Path, pieces: PieceTokenizer) -> None:
    pieces.save(tmp_path)
    again = load(tmp_path)
    assert again.labels == pieces.labels
    assert again.encode(TEXTS[0]) == pieces.encode(TEXTS[0])


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No tokenizer in .*isotone_tokenizer\.json, vocab\.json or"):
        load(tmp_path)
    (tmp_path / "vocab.json").write_text("{broken")
    with pytest.raises(ValueError, match=r"vocab\.json: not JSON"):
        load(tmp_path)
    (tmp_path / "vocab.json").write_text("[]")
    with pytest.raises(ValueError, match="expected a JSON object; got list"):
        load(tmp_path)
    (tmp_path / "isotone_tokenizer.json").write_text('{"kind": "runes"}')
    with pytest.raises(ValueError, match="got 'runes'"):
        load(tmp_path)
    with pytest.raises(ValueError, match="The blank '<pad>' is not among the labels"):
        CharacterTokenizer(list("abc"))
    with pytest.raises(ValueError, match=r"The silence '\|' is not among"):
        CharacterTokenizer(["<pad>", "a"], pauses=True)
    with pytest.raises(ValueError, match="The silence 'sil' is not among"):
        PhoneTokenizer(["<pad>", "a"], silence="sil")
    with pytest.raises(ValueError, match=r"\['a'\] are there twice"):
        PhoneTokenizer(["<pad>", "a", "a"])
    with pytest.raises(ValueError, match="unit is 'phones', 'characters' or 'pieces'; got 'words'"):
        build_tokenizer("words", [])
    for unit in ("phones", "characters", "pieces"):
        with pytest.raises(ValueError, match="needs"):
            build_tokenizer(unit, [row("...")])
    with pytest.raises(ValueError, match="SentencePiece could not make 5 unigram pieces"):
        train_pieces(TEXTS, 5)
