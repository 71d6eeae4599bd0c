"""Texts in another language: told by their words where they do not fit the sound, and not told otherwise."""

# ruff: noqa: RUF001
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from isotone.alignment import Alignment
from isotone.batch.outcome import Outcome
from isotone.cli.outcomes import finish
from isotone.model.check import Check
from isotone.pipeline.language import (
    ANOTHER_LANGUAGE,
    LEAST_FAMILIAR,
    Signs,
    another_language,
    in_language,
)
from isotone.pipeline.result import Result
from isotone.text.dictionary import Dictionary
from isotone.text.given import encode
from isotone.text.normalize import TextError
from isotone.text.pronounce import Chain
from isotone.text.pronouncer import Pronouncer
from isotone.text.tokenizer import PhoneTokenizer
from isotone.text.transcript import Transcript
from isotone.types import Grid

CHECK = Check(0.2, "dev", 10, 0.0, 0.9)
ENGLISH = ["the", "old", "man", "and", "his", "dog", "went", "down", "to", "the", "sea"]


class Lexicon(Pronouncer):
    """A lexicon of nine words; other words of a to z are said too."""

    of_language = True

    def listed(self, words: Sequence[str]) -> list[bool]:
        return [word in ENGLISH for word in words]

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        return [list(word) if word.isascii() and word.isalpha() else None for word in words]

    def save(self, folder: Path) -> dict[str, Any]:
        return {}


LABELS = ["<pad>", "sil", *"abcdefghijklmnopqrstuvwxyz"]
TOKENIZER = PhoneTokenizer(LABELS, Lexicon(), "sil", pauses=True)
GERMAN = "der alte Mann und sein Hund gingen hinunter an das Meer"
RUSSIAN = "старик и его собака спустились вниз к самому синему морю Old Man"


def transcript(text: str) -> Transcript:
    return encode(TOKENIZER, text)


def result(agreement: float | None, verdict: str = "") -> Result:
    return Result(Alignment("a", 3.0, verdict=verdict), "", 100, (), Grid(0.02), -1.0, agreement=agreement)


def told(text: str, agreement: float | None, verdict: str = "") -> str:
    found = in_language(result(agreement, verdict), transcript(text), CHECK)
    assert (found.alignment.verdict == ANOTHER_LANGUAGE) == bool(found.warnings)
    return found.alignment.verdict


def test_words_that_no_lexicon_lists_are_strange_and_a_users_dictionary_counts(tmp_path: Path) -> None:
    assert transcript(" ".join(ENGLISH)).familiar == 1.0
    assert transcript(GERMAN).familiar == 0.0
    assert transcript("the old man went down to the Meer, Meer und Hund").familiar == pytest.approx(6 / 9)
    own = tmp_path / "own.dict"
    own.write_text("der D E R\nalte A L T E\nmann M A N N\n")
    chain = PhoneTokenizer(LABELS, Chain(Dictionary(own), Lexicon()), "sil", pauses=True)
    assert encode(chain, GERMAN).familiar == pytest.approx(3 / 11)


def test_too_few_words_and_dictionaries_alone_tell_no_language(tmp_path: Path) -> None:
    assert transcript("der alte Mann und sein Hund und der Hund").familiar is None
    own = tmp_path / "own.dict"
    own.write_text("der D E R\nalte A L T E\nmann M A N N\n")
    tokenizer = PhoneTokenizer([label.upper() for label in LABELS], Dictionary(own), "SIL", blank="<PAD>")
    assert encode(tokenizer, GERMAN).familiar is None


def test_only_a_wrong_text_is_in_another_language() -> None:
    assert told(GERMAN, 0.1) == ANOTHER_LANGUAGE
    assert told(GERMAN, 0.9, "wrong") == ANOTHER_LANGUAGE, "none of its words was said"
    assert told(GERMAN, 0.3, "right") == "right", "it fits the sound"
    assert told(GERMAN, 0.1, "no speech") == "no speech"
    assert told(" ".join(ENGLISH), 0.1, "wrong") == "wrong"
    assert told("der alte Mann", 0.1, "wrong") == "wrong", "too short to tell"


def test_a_text_that_cannot_be_read_is_in_another_language_whatever_the_rest_fits() -> None:
    assert transcript(RUSSIAN).unread == 10
    assert told(RUSSIAN, 0.9, "right") == ANOTHER_LANGUAGE
    assert told(f"{RUSSIAN} {' '.join(ENGLISH * 2)}", 0.9, "right") == "right", "most of it can be read"
    with pytest.raises(TextError, match="in another language than the model's, en"):
        transcript("старик и его собака")


def test_the_warning_names_the_share_and_borders_hold() -> None:
    assert "12 % are in the model's lexicon" in another_language(Signs(0.12, False), 0.1, CHECK)
    assert not another_language(Signs(LEAST_FAMILIAR, False), 0.1, CHECK)
    assert not another_language(Signs(0.0, False), None, CHECK), "nothing is known of its sound"
    assert not another_language(Signs(None, True), 0.1, CHECK)


def test_the_command_names_such_files_and_is_strict(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    outcome = Outcome(done=2, foreign=["in/b.wav"])
    finish(outcome, tmp_path)
    shown = capsys.readouterr()
    assert "in another language than the model's in 1:\n  in/b.wav" in shown.err
    with pytest.raises(typer.Exit) as ended:
        finish(outcome, tmp_path, strict=True)
    assert ended.value.exit_code == 2
    finish(replace(outcome, foreign=[]), tmp_path, strict=True)
