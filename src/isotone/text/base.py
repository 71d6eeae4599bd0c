"""Interface of tokenizers; :mod:`isotone.text.tokenizer` has them all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from isotone.text.languages import language_code
from isotone.text.normalize import TextError, Word
from isotone.text.rules import Rules
from isotone.text.transcript import (
    STAR_NUMBER,
    Spelling,
    Transcript,
    joined,
    known_graphs,
    not_pronounced,
)
from isotone.text.word_graph import WordGraph, of_readings, straight

Unit = Literal["phones", "characters", "pieces"]

#: Fewest different words of a text whose language can be told.
LEAST_DIFFERENT = 8


class Tokenizer(ABC):
    """Text to labels and back.

    Attributes:
        labels: The vocabulary; a label's number is its index.
        blank: Number of the blank label.
        unit: ``"phones"``, ``"characters"`` or ``"pieces"``.
        silence: The label of silence, if there is one: a text begins and ends with it.
        pauses: True where the silence also separates words. It gets frames where the speaker pauses.
        language: ISO 639 code of the language of texts, in which numbers are read; empty if unknown.
        rules: Readings of a user's own, which come before those of the language.
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
        self.rules: Rules | None = None
        self._numbers = {label: i for i, label in enumerate(labels)}

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def has_words(self) -> bool:
        """True where recognised labels determine the words."""
        return True

    @property
    def takes_words(self) -> bool:
        """True where texts are words; else they are labels separated by spaces."""
        return True

    def tiers(self, given_text: bool) -> tuple[str, ...]:
        """Return the names of an alignment's tiers, for a given or a recognised text."""
        words = (given_text and self.takes_words) or self.has_words
        return ("words", self.unit) if words else (self.unit,)

    @abstractmethod
    def split(self, text: str) -> tuple[Word, ...]:
        """Split a text into words for this tokenizer; see :func:`isotone.text.normalize.split_words`."""

    @abstractmethod
    def spell(self, words: Sequence[Word]) -> list[Spelling]:
        """Return the labels of every word of a part of a text."""

    def read(self, words: Sequence[Word]) -> list[tuple[Word, Spelling]]:
        """Spell every word in all of its readings, of which an aligner chooses.

        Returns:
            The words with their spellings. A word that has other readings keeps those that can be spelled.
        """
        first = self.spell(words)
        others = iter(self.spell([Word(way, way, 0, len(way)) for word in words for way in word.others]))
        return [
            (word, spelling)
            if not word.others
            else _choices(word, [spelling, *(next(others) for _ in word.others)])
            for word, spelling in zip(words, first)
        ]

    def guessed(self, words: Sequence[Word]) -> list[str]:
        """Return the parts of words whose labels are a guess, each once."""
        return []

    def familiar(self, words: Sequence[Word]) -> float | None:
        """Return the share of different words that a lexicon of the language lists, 0 to 1.

        None without such a lexicon, and where there are fewer than :data:`LEAST_DIFFERENT`.
        """
        return None

    def encode(self, text: str) -> Transcript:
        """Return the labels of a text for training; unknown characters or phones are left out.

        For alignment see :func:`isotone.pipeline.stars.encode`.

        Raises:
            TextError: nothing in the text is in the vocabulary, or a word cannot be pronounced.
        """
        read = self.read(self.split(text))
        words, spelled = [word for word, _ in read], [spelling for _, spelling in read]
        if missing := [part for s in spelled for part in s.missing]:
            raise TextError(not_pronounced(missing))
        tokens = self.join((i, s.labels) for i, s in enumerate(spelled))
        found = self._transcript(words, tokens, (u for s in spelled for u in s.unknown))
        return replace(found, graphs=known_graphs(s.graph for s in spelled), source=text)

    def encode_row(self, row: Mapping[str, Any]) -> Transcript:
        """Return the labels of a corpus row (see :data:`isotone.corpus.COLUMNS`); raises as :meth:`encode`."""
        try:
            return self.encode(row["text"])
        except TextError as error:
            raise TextError(f"Utterance {row['id']!r}: {error}") from None

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of recognised labels, from which blanks and repetitions were removed."""

    @abstractmethod
    def words(self, ids: Sequence[int]) -> list[tuple[str, int, int]]:
        """Return the words of recognised labels: (word, index of its first label in ``ids``, one past its last)."""

    def recognised(self, ids: Sequence[int]) -> Transcript:
        """Return recognised labels as a transcript whose source is the words, separated by spaces."""
        found = self.words(ids)
        owners: list[int | None] = [None] * len(ids)
        for number, (_, first, last) in enumerate(found):
            owners[first:last] = [number] * (last - first)
        return Transcript(joined([label for label, _, _ in found]), tuple(ids), tuple(owners))

    def writes(self, number: int) -> bool:
        """Return whether a label is written in texts; a delimiter between words is not."""
        return bool(self.decode([number]))

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write everything that :func:`isotone.text.tokenizer.load` needs."""

    def use_language(self, language: str) -> None:
        """Read texts in a language, given by its ISO 639 code.

        Raises:
            ValueError: not a code, or the pronouncer does not have this language.
        """
        self.language = language_code(language)

    @property
    def silence_number(self) -> int | None:
        """Label number of the silence, if there is one."""
        return None if self.silence is None else self._numbers[self.silence]

    @property
    def delimiter_number(self) -> int | None:
        """Label number of the delimiter between words, if there is one."""
        return None

    @property
    def pause(self) -> WordGraph:
        """Graph of a pause between words; empty: it is a silence alone."""
        return ()

    def optional(self, transcript: Transcript) -> list[bool]:
        """Mark the tokens that need no frames: the pauses beside words."""
        silence = self.silence_number
        return [
            self.pauses and t == silence and w is None
            for t, w in zip(transcript.tokens, transcript.token_words)
        ]

    def with_pauses(self, transcript: Transcript) -> tuple[Transcript, list[bool]]:
        """Put an optional silence between words; return the transcript and the tokens that may be skipped.

        Silences inside words (closures of stops) stay as they are, and a word that begins or ends with one gets no
        other beside it. Nothing changes where labels belong to no words, or the tokenizer has no silence.
        """
        silence = self.silence_number
        if silence is None or not transcript.words:
            return transcript, [False] * len(transcript.tokens)
        pause = (silence, None, True)
        rows: list[tuple[int, int | None, bool]] = []
        before: int | None = -1
        # The silence added here closes the last word; as any silence without a word, it becomes an optional pause.
        for token, owner in [*zip(transcript.tokens, transcript.token_words), (silence, None)]:
            begins = token != silence and owner != before
            if (begins or (token == silence and owner is None)) and not (rows and rows[-1][0] == silence):
                rows.append(pause)
            if token != silence or owner is not None:
                if token == silence and rows and rows[-1] == pause:
                    rows.pop()  # the word's own silence takes the place of the pause
                rows.append((token, owner, False))
            before = owner
        paused = replace(
            transcript,
            tokens=tuple(t for t, _, _ in rows),
            token_words=tuple(o for _, o, _ in rows),
            pause=self.pause,
        )
        return paused, [optional for _, _, optional in rows]

    def join(self, spelled: Iterable[tuple[int | None, Sequence[int]]]) -> list[tuple[int, int | None]]:
        """Join the labels of words with delimiters and silences; there are none beside a star.

        Args:
            spelled: For every word its number and its labels.

        Returns:
            Labels, each with the number of its word; None for delimiters and silences.
        """
        tokens: list[tuple[int, int | None]] = []
        for owner, labels in spelled:
            delimits = self.delimiter_number is not None and labels and tokens
            if delimits and STAR_NUMBER not in (tokens[-1][0], labels[0]):
                tokens.append((self.delimiter_number, None))  # type: ignore[arg-type]
            tokens += [(label, owner) for label in labels]
        return self._with_silences(tokens) if self.takes_words else tokens

    def _with_silences(self, tokens: list[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
        """Add the silence at both ends, and between words where it separates them."""
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


def _choices(word: Word, spelled: Sequence[Spelling]) -> tuple[Word, Spelling]:
    """Make one spelling of those of a word's readings; the word keeps the readings that have one."""
    good = [(way, s) for way, s in zip(word.readings, spelled) if s.labels and not s.missing]
    # a reading with unknown characters is better than none
    good = [one for one in good if not one[1].unknown] or good[:1]
    if not good:
        return replace(word, others=()), spelled[0]
    ways = tuple(way for way, _ in good)
    graph = of_readings([(i, s.graph or straight(s.labels)) for i, (_, s) in enumerate(good)])
    spelling = replace(good[0][1], graph=graph if len(good) > 1 else good[0][1].graph)
    return replace(word, normal=ways[0], others=ways[1:]), spelling
