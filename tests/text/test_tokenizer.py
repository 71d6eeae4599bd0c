"""Laws of all tokenizers: they encode what can be aligned, and report what they dropped."""

# ruff: noqa: RUF001
from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from isotone.text.normalize import TextError, normalize
from isotone.text.tokenizer import (
    CharacterTokenizer,
    PhoneTokenizer,
    PieceTokenizer,
    Unit,
    build_tokenizer,
    load,
    train_pieces,
)
from tests.text.samples import LETTERS, TEXTS, check_transcript, row

spoken = st.lists(st.text(st.sampled_from(LETTERS[:26]), min_size=1, max_size=8), min_size=1, max_size=8)


@settings(max_examples=100, deadline=None)
@given(words=spoken)
@example(words=["eg"])
@example(words=["pm"])
def test_characters_round_trip(characters: CharacterTokenizer, words: list[str]) -> None:
    text = " ".join(words)
    # an abbreviation is read in several ways, or as several words
    assume(all(not word.others and " " not in word.normal for word in characters.split(text)))
    check_transcript(characters, text)


@settings(max_examples=100, deadline=None)
@given(words=st.lists(st.sampled_from(sorted({w for t in TEXTS for w in t.split()})), min_size=1, max_size=9))
def test_pieces_round_trip(pieces: PieceTokenizer, words: list[str]) -> None:
    check_transcript(pieces, " ".join(words))


def plain(character: str) -> str:
    """Return a letter without accents, as iconv does."""
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
        # capitals that are spelled, as A'AA, have no apostrophe
        assert {*transcript.unknown} - {"'"} == left - known - {"'"}
        assert all(text[w.start : w.end] == w.text for w in transcript.words)


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


def test_accents_are_folded_where_the_vocabulary_has_none(
    characters: CharacterTokenizer, pieces: PieceTokenizer
) -> None:
    """Words lose their accents, unless the labels have letters with these accents."""
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
    transcript = pieces.encode("the жéfox ю")
    assert set(transcript.unknown) == {"ж", "ю"}
    assert pieces.decode(transcript.tokens).replace(" ", "") == "theefox"
    assert 0 in transcript.token_words
    with pytest.raises(TextError, match="nothing to align"):
        pieces.encode("ю")


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


def test_saving_pieces(tmp_path: Path, pieces: PieceTokenizer) -> None:
    pieces.save(tmp_path)
    again = load(tmp_path)
    assert again.labels == pieces.labels
    assert again.encode(TEXTS[0]) == pieces.encode(TEXTS[0])


def test_a_folder_that_is_no_tokenizer_is_refused(tmp_path: Path) -> None:
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


def test_labels_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(ValueError, match="The blank '<pad>' is not among the labels"):
        CharacterTokenizer(list("abc"))
    with pytest.raises(ValueError, match=r"The silence '\|' is not among"):
        CharacterTokenizer(["<pad>", "a"], pauses=True)
    with pytest.raises(ValueError, match="The silence 'sil' is not among"):
        PhoneTokenizer(["<pad>", "a"], silence="sil")
    with pytest.raises(ValueError, match=r"\['a'\] are there twice"):
        PhoneTokenizer(["<pad>", "a", "a"])


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(ValueError, match="unit is 'phones', 'characters' or 'pieces'; got 'words'"):
        build_tokenizer("words", [])
    for unit in ("phones", "characters", "pieces"):
        with pytest.raises(ValueError, match="needs"):
            build_tokenizer(unit, [row("...")])
    with pytest.raises(ValueError, match="SentencePiece could not make 5 unigram pieces"):
        train_pieces(TEXTS, 5)
