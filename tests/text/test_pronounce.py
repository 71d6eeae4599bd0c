"""Pronunciations in the phones of a model, from espeak-ng, and from chains."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from isotone.text.normalize import TextError
from isotone.text.phones import phone_set, to_phone_set
from isotone.text.pronounce import Chain, Dictionary, Espeak, Pronouncer, load_pronouncer

needs_espeak = pytest.mark.skipif(
    importlib.util.find_spec("espeakng_loader") is None, reason="needs the optional package espeakng-loader"
)

CMU = """;;; comment
HELLO  HH AH0 L OW1
HELLO(1)  HH EH0 L OW1
'TIS  T IH1 Z
JUDGE  JH AH1 JH # a comment
"""


@pytest.fixture
def cmu(tmp_path: Path) -> Path:
    (tmp_path / "cmu.dict").write_text(CMU)
    return tmp_path / "cmu.dict"


def test_phone_sets(cmu: Path) -> None:
    words = ["hello", "'tis", "judge"]
    assert Dictionary(cmu, phones=39)(words) == [
        ["hh", "ah", "l", "ow"],
        ["t", "ih", "z"],
        ["jh", "ah", "jh"],
    ]
    assert Dictionary(cmu, phones=39, closures="sil")(words)[1:] == [
        ["sil", "t", "ih", "z"], ["sil", "jh", "ah", "sil", "jh"],
    ]  # fmt: skip
    assert Dictionary(cmu, phones=61, closures="sil")(words)[1:] == [
        ["tcl", "t", "ih", "z"], ["dcl", "jh", "ah", "dcl", "jh"],
    ]  # fmt: skip


def test_to_phone_set() -> None:
    assert to_phone_set(["AH0", "B", "AH1", "V"], 48) == ["ax", "b", "ah", "v"]
    assert to_phone_set(["bcl", "b", "AO2", "q", "ax-h"], 39, "sil") == ["sil", "b", "aa", "ah"]
    assert to_phone_set(["bcl", "b", "AO2", "q", "ax-h"], 39) == ["b", "aa", "ah"]
    assert to_phone_set(["bcl", "b", "tcl", "ch", "g"], 61, "sil") == ["bcl", "b", "tcl", "ch", "gcl", "g"]
    with pytest.raises(ValueError, match="'xx' is not one of TIMIT's 61"):
        to_phone_set(["XX1"])


def test_unknown_words_are_named(cmu: Path) -> None:
    assert Dictionary(cmu).lookup(["hello", "zyx"]) == [["HH", "AH0", "L", "OW1"], None]
    with pytest.raises(TextError, match="No pronunciation for 'zyx', 'wvu': add them"):
        Dictionary(cmu)(["zyx", "hello", "wvu", "zyx"])
    with pytest.raises(TextError, match="'w9' and 2 more"):
        Dictionary(cmu)([f"w{i}" for i in range(12)])


class Spelled(Pronouncer):
    """Pronouncer that gives the letters of a word as its phones, and records its words."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        self.asked += words
        return [list(word) if word.isalpha() else None for word in words]

    def guessed(self, words: Sequence[str]) -> list[str]:
        return [word for word in words if word in ("c", "hello")]

    def save(self, folder: Path) -> dict[str, Any]:
        raise NotImplementedError


def test_chain(cmu: Path) -> None:
    spelled = Spelled()
    chain = Chain(Dictionary(cmu), spelled)
    assert chain(["hello", "ab", "judge", "c"]) == [
        ["HH", "AH0", "L", "OW1"], ["a", "b"], ["JH", "AH1", "JH"], ["c"],
    ]  # fmt: skip
    assert spelled.asked == ["ab", "c"]
    assert [[p.phones for p in found] for found in chain.alternatives(["hello", "ab", "4"])] == [
        [("HH", "AH0", "L", "OW1"), ("HH", "EH0", "L", "OW1")], [("a", "b")], [],
    ]  # fmt: skip
    assert chain.guessed(["hello", "ab", "4", "c"]) == ["c"]
    with pytest.raises(TextError, match="No pronunciation for '4'"):
        chain(["hello", "4"])
    with pytest.raises(ValueError, match="A chain takes one or more pronouncers"):
        Chain()
    with pytest.raises(ValueError, match="two dictionaries cannot be saved"):
        Chain(Dictionary(cmu), Dictionary(cmu)).save(cmu.parent)


def test_save_and_load(cmu: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    chain = Chain(Dictionary(cmu, phones=39, closures="sil"), Espeak(phones=48, closures="sil"))
    config = chain.save(folder)
    cmu.unlink()
    loaded = load_pronouncer(config, folder)
    assert isinstance(loaded, Chain)
    assert loaded.pronouncers[0](["judge"]) == [["sil", "jh", "ah", "sil", "jh"]]
    espeak = loaded.pronouncers[1]
    assert isinstance(espeak, Espeak)
    assert (espeak.voice, espeak.phones, espeak.closures) == ("en-us", 48, "sil")
    with pytest.raises(
        ValueError, match="kind dictionary, english, letters, espeak, ipa or chain; got 'oracle'"
    ):
        load_pronouncer({"kind": "oracle"}, folder)


@needs_espeak
def test_espeak_reads_no_other_script() -> None:
    """espeak-ng would spell Russian words, and read Chinese ones as "Chinese letter"."""
    assert Espeak().lookup(["привет", "你好", "مرحبا", "see你"]) == [None] * 4
    assert Espeak().lookup([]) == []
    assert [p[0] for p in Espeak()(["naïve", "don't", "π"])] == ["n", "d", "p"]
    with pytest.raises(TextError, match="No pronunciation for '你好'"):
        Espeak()(["see", "你好"])


@needs_espeak
def test_espeak_reads_no_digits() -> None:
    """Numbers are spelled out before, in the language of the text; remaining digits are of other languages."""
    assert Espeak().lookup(["9", "b2b", "٣"]) == [None] * 3


@needs_espeak
def test_espeak() -> None:
    words = ["judge", "water", "strengths", "qwrtk"]
    merged = Espeak()(words)
    assert merged[0] == ["jh", "ah", "jh"]
    assert merged[1][0] == "w"
    assert {p for said in merged for p in said} <= set(phone_set(39, closures="merge"))
    with_closures = Espeak(closures="sil")(words)
    assert with_closures[0] == ["sil", "jh", "ah", "sil", "jh"]
    for a, b in zip(merged, with_closures):
        assert [p for p in b if p != "sil"] == a
