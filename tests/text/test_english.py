"""The packed lexicon of English: lookups, reductions, alternatives, odd words, saving and loading."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isotone.text.given import encode
from isotone.text.packed import pack
from isotone.text.phones import PHONES_48, phone_set
from isotone.text.pronounce import Chain, Dictionary, EnglishLexicon, LetterToSound, load_pronouncer
from isotone.text.pronouncer import Pauses
from isotone.text.tokenizer import PhoneTokenizer
from tests.text.samples import tiny_letters

WORDS = {
    "a": "ax|ey", "the": "dh ax|dh iy", "city": "s ih t iy0", "naive": "n ay iy v", "o'brien": "ow0 b r ay ax n",
    "last": "l ae s t", "route": "r uw t|r aw t", "ray": "r ey", "x.": "eh k s", "u.": "y uw", "n.": "eh n",
    "capacity": "k ax p ae s ax t iy0|k ax p ae s ih0 t iy0", "it": "ih t", "'em": "ax m",
}  # fmt: skip
ODD = [
    "", "'", "''", "-", " ", "x-ray", "naïve", "O'Brien's", "O\u2019Brien", "1st", "42", "привет", "你好", "\ud800",
    "\n", "a" * 500, "é", "ß", "'em",
]  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    words = {word: [tuple(some.split()) for some in found.split("|")] for word, found in WORDS.items()}
    table = {"the": {"dh ax": 0.7, "dh iy": 0.2, "dx ax": 0.1}}
    pauses = {"the": [0.0, 5.0, 0.0, 0.5], "it's": [0.0, 1.0, 0.0, 0.0]}
    (tmp_path / "w.xz").write_bytes(pack(words, reductions=table, pauses=pauses))
    return tmp_path / "w.xz"


def said(lexicon: EnglishLexicon, word: str) -> dict[str, float]:
    (found,) = lexicon.alternatives([word])
    return {" ".join(one.phones): round(math.exp(one.log_prob), 3) for one in found}


def test_alternatives(path: Path) -> None:
    lexicon = EnglishLexicon(path)
    assert len(lexicon) == len(WORDS)
    assert said(lexicon, "ray") == {"r ey": 1.0}
    assert said(lexicon, "route") == {"r uw t": 0.667, "r aw t": 0.333}
    assert said(lexicon, "The") == {"dh ax": 0.7, "dh iy": 0.2, "dx ax": 0.1}, "the table replaces the entry"
    assert said(lexicon, "city") == {"s ih dx iy": 0.65, "s ih t iy": 0.35}
    assert said(lexicon, "last") == {"l ae s t": 0.88, "l ae s": 0.12}
    assert said(lexicon, "capacity") == {
        "k ax p ae s ax dx iy": 0.433, "k ax p ae s ax t iy": 0.233,
        "k ax p ae s ih dx iy": 0.217, "k ax p ae s ih t iy": 0.117,
    }  # fmt: skip
    assert lexicon.lookup(["city", "the", "zzyzx"]) == [["s", "ih", "dx", "iy"], ["dh", "ax"], None]


def test_pauses_beside_words(path: Path, tmp_path: Path) -> None:
    def pauses(lexicon: EnglishLexicon, word: str) -> set[Pauses | None]:
        return {one.pauses for one in lexicon.alternatives([word])[0]}

    lexicon = EnglishLexicon(path)
    assert pauses(lexicon, "THE") == {Pauses(to_pause=5.0, from_pause=0.5)}
    assert pauses(lexicon, "it\u2019s") == {Pauses(to_pause=1.0)}, "a form of a listed word"
    assert pauses(lexicon, "city") == {None}
    lexicon.save(tmp_path)
    assert pauses(EnglishLexicon(tmp_path / "english_words.xz"), "the") == {Pauses(0.0, 5.0, 0.0, 0.5)}
    (tmp_path / "old.xz").write_bytes(pack({"the": [("dh", "ax")]}))
    assert pauses(EnglishLexicon(tmp_path / "old.xz"), "the") == {None}


def test_forms_accents_and_capitals(path: Path) -> None:
    lexicon = EnglishLexicon(path)
    expected = {
        "naïve": "n ay iy v", "NAIVE": "n ay iy v", "O\u2019Brien's": "ow b r ay ax n z", "x-ray": "eh k s r ey",
        "UN": "y uw eh n", "rays": "r ey z", "'em": "ax m", "IT": "ih t",
    }  # fmt: skip
    assert {word: " ".join(lexicon([word])[0]) for word in expected} == expected
    assert lexicon.lookup(["un", "UNX"])[0] is None
    assert lexicon.guessed(["x-ray", "ray"]) == []


def test_phone_sets(path: Path) -> None:
    assert EnglishLexicon(path, 39)(["a", "last"]) == [["ah"], ["l", "ae", "s", "t"]]
    assert EnglishLexicon(path, 39, "sil")(["last"]) == [["l", "ae", "s", "sil", "t"]]
    assert EnglishLexicon(path, 61, "sil")(["last"]) == [["l", "ae", "s", "tcl", "t"]]
    assert EnglishLexicon(path).phone_set == (48, "merge")


def test_what_two_phone_sets_make_equal_is_one(path: Path) -> None:
    """In the set of 39 both pronunciations of "the" in the table that end in a schwa stay apart; "a" folds."""
    found = EnglishLexicon(path, 39).alternatives(["capacity"])[0]
    assert len({one.phones for one in found}) == len(found)
    assert math.isclose(sum(math.exp(one.log_prob) for one in found), 1)


def test_odd_words(path: Path, tmp_path: Path) -> None:
    chain = Chain(EnglishLexicon(path), tiny_letters(tmp_path))
    found = chain.lookup(ODD)
    assert len(found) == len(ODD)
    known = {word: phones for word, phones in zip(ODD, found) if phones}
    assert {"x-ray", "naïve", "O'Brien's", "O\u2019Brien", "é", "ß", "'em"} == known.keys()
    assert {phone for phones in known.values() for phone in phones} <= {*PHONES_48}
    assert [[*some[0].phones] if some else None for some in chain.alternatives(ODD)] == found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.text(max_size=10))
def test_any_text_is_a_word_or_none(path: Path, tmp_path: Path, word: str) -> None:
    chain = Chain(EnglishLexicon(path), tiny_letters(tmp_path))
    (found,) = chain.alternatives([word])
    assert len(found) <= 6
    assert all(one.phones for one in found)


def test_save_and_load(path: Path, tmp_path: Path) -> None:
    chain = Chain(EnglishLexicon(path, 39, "sil"), tiny_letters(tmp_path))
    config = chain.save(tmp_path / "model")
    path.unlink()
    loaded = load_pronouncer(config, tmp_path / "model")
    assert isinstance(loaded, Chain)
    assert loaded.alternatives(["city", "the", "zyx"]) == chain.alternatives(["city", "the", "zyx"])
    assert loaded.phone_set == (39, "sil")
    assert loaded.save(tmp_path / "again") == config


def test_other_files_and_languages(path: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No lexicon .*gone\.xz"):
        EnglishLexicon(tmp_path / "gone.xz")
    (tmp_path / "x.xz").write_bytes(b"hello HH AH0")
    with pytest.raises(ValueError, match=r"x\.xz: no packed words of isotone, or damaged"):
        EnglishLexicon(tmp_path / "x.xz")
    lexicon = EnglishLexicon(path)
    lexicon.use_language("en-GB")
    with pytest.raises(ValueError, match="its words are English; got 'de'"):
        lexicon.use_language("de")


def test_words_pronounced_by_their_letters_are_noted(path: Path, tmp_path: Path) -> None:
    """A user's dictionary comes first, and takes the word out of the note."""
    letters = tiny_letters(tmp_path)
    labels = ["<pad>", *phone_set(48, closures="merge")]
    text = "The zyx city, zyx's [noise] rayz"
    note = "pronounced by their letters (--dictionary corrects them): "
    tokenizer = PhoneTokenizer(labels, Chain(EnglishLexicon(path), letters))
    assert f"{note}'zyx', \"zyx's\", 'rayz'" in encode(tokenizer, text).notes
    (tmp_path / "own.dict").write_text("zyx S IH1\nzyx's S IH1 Z\nrayz R EY1 Z\n")
    own = Dictionary(tmp_path / "own.dict", 48)
    tokenizer = PhoneTokenizer(labels, Chain(own, EnglishLexicon(path), letters))
    assert not [n for n in encode(tokenizer, text).notes if n.startswith(note)]


def test_letter_to_sound_is_of_a_kind(tmp_path: Path) -> None:
    letters = tiny_letters(tmp_path)
    assert isinstance(letters, LetterToSound)
    assert letters.guessed(["zyx", "4", "привет", ""]) == ["zyx"]
