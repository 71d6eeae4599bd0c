"""What every tokenizer is and gives; :mod:`isotone.text.tokenizer` has them all."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from isotone.files import atomic_write
from isotone.text.languages import language_code
from isotone.text.normalize import TextError, Word

Unit = Literal["phones", "characters", "pieces"]

#: The file that says of which kind a saved tokenizer is.
CONFIG = "isotone_tokenizer.json"

#: The blank of vocabularies that are built here.
BLANK = "<pad>"

#: Label number of a star (:mod:`isotone.pipeline.stars`) in a transcript; no vocabulary has it.
STAR_NUMBER = -1


@dataclass(frozen=True)
class Transcript:
    """A text as a model is asked to align it.

    Attributes:
        words: The words, with their places in the source.
        tokens: Label numbers; never empty, and never the blank.
        token_words: For every token the number of its word; None for a delimiter or a silence.
        unknown: Characters or phones outside the vocabulary, each once; they were left out.
        notes: What of the text is not aligned as it is written, each for people to read.
    """

    words: tuple[Word, ...]
    tokens: tuple[int, ...]
    token_words: tuple[int | None, ...]
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spelling:
    """A word in labels.

    Attributes:
        labels: Their numbers; none where the word has none.
        unknown: Characters or phones outside the vocabulary, left out.
        missing: Parts of the word that have no pronunciation; there are no labels then.
    """

    labels: tuple[int, ...]
    unknown: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class Tokenizer(ABC):
    """Text to labels and back.

    Attributes:
        labels: The vocabulary; a label's number is its place.
        blank: Number of the blank label.
        unit: ``"phones"``, ``"characters"`` or ``"pieces"``.
        silence: The label of silence, where there is one: a text begins and ends with it.
        pauses: Whether it is between words as well. There it has frames where somebody pauses.
        language: ISO 639 code of the language of texts; empty where nothing says. Numbers are read in it.
    """

    unit: Unit

    def __init__(
        self,
        labels: Sequence[str],
        blank: int,
        silence: str | None = None,
        pauses: bool = False,
        language: str = "en",
    ) -> None:
        if pauses and silence is None:
            raise ValueError("Pauses between words are silences: give the tokenizer the silence's label.")
        if silence is not None and silence not in labels:
            raise ValueError(f"The silence {silence!r} is not among the labels {list(labels)}.")
        if len(set(labels)) < len(labels):
            twice = sorted({x for x in labels if list(labels).count(x) > 1})
            raise ValueError(f"The labels of a tokenizer differ from each other; {twice} are there twice.")
        self.labels = list(labels)
        self.blank = blank
        self.silence = silence
        self.pauses = pauses
        self.language = language
        self._numbers = {label: i for i, label in enumerate(labels)}

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def has_words(self) -> bool:
        """Whether recognised labels say what the words are."""
        return True

    @property
    def takes_words(self) -> bool:
        """Whether texts are words; else they are labels with spaces between them."""
        return True

    def tiers(self, given_text: bool) -> tuple[str, ...]:
        """Names of the tiers of an alignment, of a given text or of a recognised one."""
        words = (given_text and self.takes_words) or self.has_words
        return ("words", self.unit) if words else (self.unit,)

    @abstractmethod
    def split(self, text: str) -> tuple[Word, ...]:
        """The words of a text, as this tokenizer takes them; see :func:`isotone.text.normalize.split_words`."""

    @abstractmethod
    def spell(self, words: Sequence[Word]) -> list[Spelling]:
        """The labels of every word of a part of a text."""

    def encode(self, text: str) -> Transcript:
        """The labels of a text, to train on: what cannot be spelled is left out, or an error.

        :func:`isotone.pipeline.stars.encode` makes of a text what is to be aligned.

        Raises:
            TextError: nothing in the text is in the vocabulary, or a word cannot be pronounced.
        """
        words = self.split(text)
        spelled = self.spell(words)
        if missing := [part for s in spelled for part in s.missing]:
            raise TextError(not_pronounced(missing))
        tokens = self.join((i, s.labels) for i, s in enumerate(spelled))
        return self._transcript(words, tokens, (u for s in spelled for u in s.unknown))

    def encode_row(self, row: Mapping[str, Any]) -> Transcript:
        """The labels of a corpus row (see :data:`isotone.corpus.COLUMNS`); raises as :meth:`encode`."""
        try:
            return self.encode(row["text"])
        except TextError as error:
            raise TextError(f"Utterance {row['id']!r}: {error}") from None

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The text of recognised labels, from which blanks and repetitions have been taken out."""

    @abstractmethod
    def words(self, ids: Sequence[int]) -> list[tuple[str, int, int]]:
        """Words of recognised labels: (word, number of its first label in ``ids``, one past its last)."""

    def recognised(self, ids: Sequence[int]) -> Transcript:
        """Recognised labels as a transcript, whose source is the words with spaces between them."""
        found = self.words(ids)
        owners: list[int | None] = [None] * len(ids)
        for number, (_, first, last) in enumerate(found):
            owners[first:last] = [number] * (last - first)
        return Transcript(joined([label for label, _, _ in found]), tuple(ids), tuple(owners))

    def writes(self, number: int) -> bool:
        """Whether a label is a part of what is written, as a delimiter between words is not."""
        return bool(self.decode([number]))

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write everything that :func:`load` needs."""

    def use_language(self, language: str) -> None:
        """Have texts read in a language, by its ISO 639 code.

        Raises:
            ValueError: that is no code, or words cannot be pronounced in this language.
        """
        self.language = language_code(language)

    @property
    def silence_number(self) -> int | None:
        """Label number of the silence, where there is one."""
        return None if self.silence is None else self._numbers[self.silence]

    @property
    def delimiter_number(self) -> int | None:
        """Label number of the delimiter between words, where there is one."""
        return None

    def optional(self, transcript: Transcript) -> list[bool]:
        """Which tokens need no frames: the pauses beside words."""
        silence = self.silence_number
        return [
            self.pauses and t == silence and w is None
            for t, w in zip(transcript.tokens, transcript.token_words)
        ]

    def with_pauses(self, transcript: Transcript) -> tuple[Transcript, list[bool]]:
        """The transcript with a silence that may be skipped between words, and which tokens may be skipped.

        Silences inside words (closures of stops) stay as they are, and where one begins or ends a word none is put
        beside it. Labels without words are taken as they are given, and all of them where there is no silence.
        """
        silence = self.silence_number
        if silence is None or not transcript.words:
            return transcript, [False] * len(transcript.tokens)
        pause = (silence, None, True)
        rows: list[tuple[int, int | None, bool]] = []
        before: int | None = -1
        for token, owner in [*zip(transcript.tokens, transcript.token_words), (silence, None)]:
            begins = token != silence and owner != before
            if (begins or (token == silence and owner is None)) and not (rows and rows[-1][0] == silence):
                rows.append(pause)
            if token != silence or owner is not None:
                if token == silence and rows and rows[-1] == pause:
                    rows.pop()
                rows.append((token, owner, False))
            before = owner
        paused = replace(
            transcript, tokens=tuple(t for t, _, _ in rows), token_words=tuple(o for _, o, _ in rows)
        )
        return paused, [optional for _, _, optional in rows]

    def join(self, spelled: Iterable[tuple[int | None, Sequence[int]]]) -> list[tuple[int, int | None]]:
        """The labels of words in a row, with the delimiters and silences that go with them; none beside a star.

        Args:
            spelled: For every word its number and its labels.

        Returns:
            Labels, each with the number of its word; None for what stands between words.
        """
        tokens: list[tuple[int, int | None]] = []
        for owner, labels in spelled:
            delimits = self.delimiter_number is not None and labels and tokens
            if delimits and STAR_NUMBER not in (tokens[-1][0], labels[0]):
                tokens.append((self.delimiter_number, None))  # type: ignore[arg-type]
            tokens += [(label, owner) for label in labels]
        return self._with_silences(tokens) if self.takes_words else tokens

    def _with_silences(self, tokens: list[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
        """Tokens and their words with a silence at both ends, where there is one, and with the pauses."""
        if self.silence_number is None or not tokens:
            return tokens
        pause: tuple[int, int | None] = (self.silence_number, None)
        out: list[tuple[int, int | None]] = []
        for token in tokens:
            before = out[-1] if out else None
            between = (
                self.pauses and before is not None and token[1] != before[1] and pause not in (token, before)
            )
            if (before is None or between) and STAR_NUMBER not in (token[0], before and before[0]):
                out.append(pause)
            out.append(token)
        return out if out[-1][0] == STAR_NUMBER else [*out, pause]

    def _transcript(
        self, words: Iterable[Word], tokens: list[tuple[int, int | None]], unknown: Iterable[str]
    ) -> Transcript:
        dropped = tuple(dict.fromkeys(unknown))
        if not tokens:
            what = (
                f"none of {list(dropped)[:20]} is in the vocabulary"
                if dropped
                else "there are no words in it"
            )
            raise TextError(f"The text has nothing to align: {what}. The {self.unit} are {self.labels[:40]}.")
        return Transcript(tuple(words), tuple(t for t, _ in tokens), tuple(w for _, w in tokens), dropped)


def joined(labels: Sequence[str]) -> tuple[Word, ...]:
    """Words of a tier, as if the source were its labels with spaces between them."""
    words, place = [], 0
    for label in labels:
        words.append(Word(label, label, place, place + len(label)))
        place += len(label) + 1
    return tuple(words)


def not_pronounced(parts: Iterable[str]) -> str:
    """An error's message that names the words that have no pronunciation."""
    unknown = list(dict.fromkeys(parts))
    more = f" and {len(unknown) - 10} more" if len(unknown) > 10 else ""
    return (
        f"No pronunciation for {', '.join(map(repr, unknown[:10]))}{more}: add them to a dictionary (--dictionary), "
        "or let espeak-ng pronounce what is not in it and is English."
    )


def number_of_blank(labels: Sequence[str], blank: str) -> int:
    """The blank's place; ValueError where it has none."""
    if blank not in labels:
        raise ValueError(f"The blank {blank!r} is not among the labels {list(labels)}.")
    return list(labels).index(blank)


def read_json(path: Path) -> dict[str, Any]:
    """The file's contents; nothing where there is no file."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON ({error}).") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected a JSON object; got {type(value).__name__}.")
    return value


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object for people to read too."""
    with atomic_write(path) as file:
        json.dump(value, file, ensure_ascii=False, indent=2)
        file.write("\n")
