"""Dictionaries in both formats: all pronunciations of a word, and errors that name the line."""
# ruff: noqa: RUF001 - phonetic letters are meant

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.text.dictionary import Dictionary
from isotone.text.normalize import TextError
from isotone.text.pronouncer import ranked

CMU = """;;; comment
HELLO  HH AH0 L OW1
HELLO(1)  HH EH0 L OW1
'TIS  T IH1 Z
JUDGE  JH AH1 JH # a comment
"""
MFA = "hello\t0.01\th ɛ l oʊ\nhello\t0.99\t0.2\t1.0\t1.1\th ə l oʊ\ncat\tkʰ æ t\n"


@pytest.fixture
def cmu(tmp_path: Path) -> Path:
    (tmp_path / "cmu.dict").write_text(CMU)
    return tmp_path / "cmu.dict"


def spoken(dictionary: Dictionary, word: str) -> list[tuple[str, float]]:
    (found,) = dictionary.alternatives([word])
    return [(" ".join(one.phones), round(math.exp(one.log_prob), 4)) for one in found]


def test_cmu(cmu: Path) -> None:
    dictionary = Dictionary(cmu)
    assert len(dictionary) == 3
    assert dictionary(["Hello", "'tis", "JUDGE"]) == [
        ["HH", "AH0", "L", "OW1"], ["T", "IH1", "Z"], ["JH", "AH1", "JH"],
    ]  # fmt: skip
    assert spoken(dictionary, "hello") == [("HH AH0 L OW1", 0.5), ("HH EH0 L OW1", 0.5)]
    assert spoken(dictionary, "judge") == [("JH AH1 JH", 1.0)]
    assert dictionary.alternatives(["zyx"]) == [[]]


def test_mfa_has_the_likeliest_first(tmp_path: Path) -> None:
    (tmp_path / "mfa.dict").write_text(MFA, encoding="utf-8-sig")
    dictionary = Dictionary(tmp_path / "mfa.dict")
    assert dictionary(["hello", "cat"]) == [["h", "ə", "l", "oʊ"], ["kʰ", "æ", "t"]]
    assert spoken(dictionary, "hello") == [("h ə l oʊ", 0.99), ("h ɛ l oʊ", 0.01)]


def test_probabilities_are_among_those_of_the_word(tmp_path: Path) -> None:
    """A pronunciation without a number is as likely as one with 1; one with 0 stays possible."""
    (tmp_path / "x.dict").write_text("a 0.5 EY\na AH0\na 0.0 AA\n")
    assert spoken(Dictionary(tmp_path / "x.dict"), "a") == [("AH0", 0.6666), ("EY", 0.3333), ("AA", 0.0001)]


def test_pronunciations_that_the_phone_set_makes_equal_are_one(tmp_path: Path) -> None:
    (tmp_path / "x.dict").write_text("a 0.2 AH0\na 0.3 AA\na 0.2 AH1\n")
    assert [p for p, _ in spoken(Dictionary(tmp_path / "x.dict", 39), "a")] == ["ah", "aa"]
    assert [p for p, _ in spoken(Dictionary(tmp_path / "x.dict", 48), "a")] == ["aa", "ax", "ah"]


def test_all_pronunciations_are_saved(cmu: Path, tmp_path: Path) -> None:
    (tmp_path / "mfa.dict").write_text(MFA)
    for path in (cmu, tmp_path / "mfa.dict"):
        dictionary = Dictionary(path)
        config = dictionary.save(tmp_path / "saved")
        loaded = Dictionary(tmp_path / "saved" / config["file"])
        for word in ("hello", "judge", "cat", "'tis"):
            assert spoken(loaded, word) == spoken(dictionary, word)


@given(
    st.lists(st.tuples(st.text("abc", min_size=1, max_size=2), st.floats(0.01, 9)), min_size=1),
    st.integers(1, 4),
)
def test_ranked(weighted: list[tuple[str, float]], most: int) -> None:
    found = ranked(weighted, most)
    sums = {phones: sum(w for p, w in weighted if p == phones) for phones, _ in weighted}
    assert len(found) == min(most, len(sums))
    assert math.isclose(sum(math.exp(one.log_prob) for one in found), 1)
    kept = [sums["".join(one.phones)] for one in found]
    assert kept == sorted(kept, reverse=True)
    assert min(kept) >= max(
        [w for p, w in sums.items() if tuple(p) not in {one.phones for one in found}] or [0]
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"hello HH AH\nworld\n", "line 2: expected a word and its phones; got 'world'"),
        (b"hello 0.5\n", "line 1: expected a word and its phones"),
        (b"hello HH AH\ncaf\xe9 K AE\n", "line 2: not UTF-8"),
        (b";;; nothing\n\n", "the dictionary has no words"),
        (b"", "the dictionary has no words"),
    ],
)
def test_broken_dictionaries(tmp_path: Path, text: bytes, reason: str) -> None:
    (tmp_path / "x.dict").write_bytes(text)
    with pytest.raises(TextError, match=rf"x\.dict.*{reason}"):
        Dictionary(tmp_path / "x.dict")


def test_missing_and_foreign(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No pronunciation dictionary .*absent\.dict"):
        Dictionary(tmp_path / "absent.dict")
    (tmp_path / "mfa.dict").write_text(MFA + "uno ʘ\n")
    with pytest.raises(TextError, match=r"mfa\.dict: 'uno': 'ʘ' is not one of TIMIT's 61"):
        Dictionary(tmp_path / "mfa.dict", phones=39)


def test_accents_of_words(tmp_path: Path) -> None:
    """A word is found as written, in both normal forms of Unicode, or else without its accents."""
    (tmp_path / "x.dict").write_text(
        "cafe K AE F\nre\u0301sume\u0301 R EH Z\nresume R IH Z\n", encoding="utf-8"
    )
    dictionary = Dictionary(tmp_path / "x.dict")
    assert dictionary(["café", "résumé", "résume"]) == [["K", "AE", "F"], ["R", "EH", "Z"], ["R", "IH", "Z"]]


def test_english_ipa_is_written_in_the_phones_of_timit(tmp_path: Path) -> None:
    path = tmp_path / "english_mfa.dict"
    path.write_text(
        "water\t0.9\t0.1\t1.0\t1.0\tw ɒː ɾ ɚ\ncute\tcʰ j ʉː t\nbottle\tb ɑ tʰ ɫ\u0329\nchurch\ttʃ ɝ tʃ\n"
        "boy\tb ɔj\nthink\tθ ɪ ŋ k\nhue\tc\u0327 ʉː\nwinter\tw ɪ ɾ\u0303 ɚ\nnow\tn aw\ngo\tɡ əw\n"
    )
    dictionary = Dictionary(path, 48)
    expected = {
        "water": "w aa dx er", "cute": "k y uw t", "bottle": "b aa t el", "church": "ch er ch", "boy": "b oy",
        "think": "th ih ng k", "hue": "hh uw", "winter": "w ih n er", "now": "n aw", "go": "g ow",
    }  # fmt: skip
    found = dictionary.lookup(list(expected))
    assert {word: " ".join(phones or ()) for word, phones in zip(expected, found)} == expected


def test_words_of_noise_and_comments_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.dict"
    path.write_text("# our names\n<unk>\tspn\n{LG}\tSPN\nANNA  AE1 N AH0\n")
    dictionary = Dictionary(path, 48)
    assert len(dictionary) == 1
    assert dictionary.lookup(["anna", "<unk>"]) == [["ae", "n", "ax"], None]
