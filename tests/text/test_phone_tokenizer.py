"""Tokenizer of phones: pronounced words, strings of phones, and the tiers of rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotone.text.normalize import TextError
from isotone.text.pronounce import Dictionary
from isotone.text.tokenizer import PhoneTokenizer, load
from tests.text.samples import PHONES, Spelled, row


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
