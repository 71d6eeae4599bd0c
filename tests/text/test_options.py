"""Tokenizers adapted to another language and to dictionaries, in the phones of the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from isotone.text.normalize import TextError
from isotone.text.options import TextOptions, adapted, phone_set_of
from isotone.text.phones import Closures, PhoneSet, phone_set
from isotone.text.pronounce import Chain, Dictionary, Pronouncer
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer, load

CMU = "hello  HH AH0 L OW1\njudge  JH AH1 JH\ndad  D AE1 D\n"


class Own(Pronouncer):
    """Pronouncer that gives 'b' for every word of letters, and declares a phone set."""

    def __init__(self, *named: Any) -> None:
        self.phone_set = named or None

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        return [["b"] if word.isalpha() and word.isascii() else None for word in words]

    def save(self, folder: Path) -> dict[str, Any]:
        return {}


def labels(size: PhoneSet, closures: Closures) -> list[str]:
    return ["<pad>", *phone_set(size, closures=closures)]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def said(tokenizer: PhoneTokenizer, text: str, *dictionaries: Path) -> str:
    changed = adapted(tokenizer, TextOptions(dictionaries=dictionaries))
    return changed.decode(changed.encode(text).tokens)


def test_dictionaries_come_first_and_the_first_of_them_counts(tmp_path: Path) -> None:
    own = Own(39, "merge")
    tokenizer = PhoneTokenizer(labels(39, "merge"), own)
    one, two = written(tmp_path / "1.dict", CMU), written(tmp_path / "2.dict", "hello  S\nzoo  Z UW1\n")
    assert said(tokenizer, "hello zoo you", one, two) == "hh ah l ow z uw b"
    assert said(tokenizer, "hello zoo you", two, one) == "s z uw b"
    assert said(tokenizer, "hello zoo you") == "b b b"
    assert tokenizer.pronouncer is own, "the model's own is as it was"


@pytest.mark.parametrize(
    ("size", "closures", "expected"),
    [
        (39, "merge", "jh ah jh d ae d"),
        (39, "sil", "sil jh ah sil jh sil d ae sil d"),
        (48, "sil", "vcl jh ah vcl jh vcl d ae vcl d"),
        (61, "sil", "dcl jh ah dcl jh dcl d ae dcl d"),
        (61, "merge", "jh ah jh d ae d"),
    ],
)
def test_arpabet_becomes_the_phones_of_the_model(
    tmp_path: Path, size: PhoneSet, closures: Closures, expected: str
) -> None:
    """Stops have closures if the model was trained with them, by its pronouncer or by its labels."""
    path = written(tmp_path / "x.dict", CMU)
    tokenizer = PhoneTokenizer(labels(size, closures), Chain(Own(size, closures)))
    assert said(tokenizer, "judge dad", path) == expected
    Dictionary(path, size, closures).save(tmp_path)
    saved = Dictionary(tmp_path / "pronunciations.dict")
    assert saved.phone_set is None
    assert phone_set_of(PhoneTokenizer(labels(size, closures), saved)) == (size, closures)


def test_a_model_of_phone_strings_takes_words_with_a_dictionary(tmp_path: Path) -> None:
    tokenizer = PhoneTokenizer(labels(39, "merge"), None, "sil")
    assert said(tokenizer, "hello", written(tmp_path / "x.dict", CMU)) == "sil hh ah l ow sil"
    assert not tokenizer.takes_words


def test_other_phones_are_taken_as_they_are(tmp_path: Path) -> None:
    tokenizer = PhoneTokenizer(["<pad>", "h", "ə", "l", "oʊ", "b"])
    assert said(tokenizer, "hello", written(tmp_path / "x.dict", "hello\t0.99\th ə l oʊ\n")) == "h ə l oʊ"
    with pytest.raises(
        TextError, match=r"x\.dict: the model has no phones 'HH' \(in 'hello'\), 'AH0' .*: h ə l oʊ b$"
    ):
        said(tokenizer, "hello", written(tmp_path / "x.dict", "hello HH AH0\n"))


def test_phones_that_the_model_does_not_have_are_listed(tmp_path: Path) -> None:
    tokenizer = PhoneTokenizer(["<pad>", "sil", "aa", "s"], Own(39, "sil"))
    path = written(tmp_path / "x.dict", "so S AA1\nit IH1 T\nxo X AA\nbad <pad>\n")
    with pytest.raises(TextError) as error:
        adapted(tokenizer, TextOptions(dictionaries=(path,)))
    for strange in (
        "'IH1' (in 'it')",
        "'T' (in 'it')",
        "'X' (in 'xo')",
        "'<pad>' (in 'bad')",
        "in ARPAbet or in English IPA",
    ):
        assert strange in str(error.value)
    assert "'AA" not in str(error.value)


def test_what_is_no_dictionary(tmp_path: Path) -> None:
    tokenizer = PhoneTokenizer(labels(39, "merge"), Own(39, "merge"))
    with pytest.raises(FileNotFoundError, match=r"gone\.dict"):
        adapted(tokenizer, TextOptions(dictionaries=(tmp_path / "gone.dict",)))
    with pytest.raises(TextError, match=r"x\.dict, line 2: expected a word and its phones"):
        adapted(tokenizer, TextOptions(dictionaries=(written(tmp_path / "x.dict", "so S AA\nit\n"),)))
    with pytest.raises(TextError, match="the labels of this model are characters"):
        adapted(CharacterTokenizer(["<pad>", *"abc"]), TextOptions(dictionaries=(tmp_path / "x.dict",)))


def test_the_language(tmp_path: Path) -> None:
    for tokenizer in (CharacterTokenizer(["<pad>", "|", *"ontw"]), PhoneTokenizer(["<pad>", "b"], Own())):
        changed = adapted(tokenizer, TextOptions(language="hsb"))
        assert (changed.language, tokenizer.language) == ("hsb", "en")
        assert [w.normal for w in changed.split("2")] == ["2"]
        assert [w.normal for w in tokenizer.split("2")] == ["two"]
        assert adapted(tokenizer, TextOptions()).language == "en"
        tokenizer.save(tmp_path)
        assert load(tmp_path).language == "en"
    for code in ("", "de", "deu", "pt-BR", "zh_Hant_TW"):
        TextOptions(language=code)
    for wrong in ("german", "d", "de at", "../x"):
        with pytest.raises(ValueError, match="--language expects an ISO code"):
            TextOptions(language=wrong)
