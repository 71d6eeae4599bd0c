"""Tokenizer of phones."""

from __future__ import annotations

import bisect
import copy
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from isotone.text.base import LEAST_DIFFERENT, Tokenizer, Unit
from isotone.text.closures import ClosureRules
from isotone.text.lexicon import Lexicon
from isotone.text.normalize import TextError, Word, split_words
from isotone.text.phones import SILENT
from isotone.text.proclitics import beside_pauses
from isotone.text.pronounce import Pronouncer
from isotone.text.pronouncer import Pronunciation
from isotone.text.transcript import (
    BLANK,
    CONFIG,
    Spelling,
    Transcript,
    joined,
    number_of_blank,
    write_json,
)
from isotone.text.word_graph import WordGraph, hesitating, in_line, side_by_side, straight

#: Pronunciations of a word that an aligner chooses from, at most: the likeliest.
MOST_PRONUNCIATIONS = 12
#: The same for each part of a word of several parts.
MOST_OF_PART = 4
#: Vowels of hesitations, as in *uh* and *um*, what may follow them, and the cost of one in nats.
HESITATIONS, HUMS, HESITATION_COST = ("aa", "ah", "ax", "eh", "er"), ("m",), 6.0
#: Graphs of words that are remembered.
_REMEMBERED = 20_000


class PhoneTokenizer(Tokenizer):
    """Tokenizer of phones; text is pronounced word by word.

    Args:
        labels: Phones and the blank.
        pronouncer: Pronounces words; without one, texts are phones separated by spaces.
        silence: Label put before the first and after the last word of a pronounced text; None puts none.
        blank: The blank label.
        pauses: Put the silence between the words as well. A silence that begins a word is then that pause.
        lexicon: Words that recognised phones are read as. Default: phones are the text.
        delimiter: The label between words, if there is one; recognised words are the labels between delimiters.
        language: See :func:`isotone.text.normalize.split_words`.
        closures: Rules by which an aligner chooses how stops are said, for a pronouncer that gives closures. With
            them, a pause may also hold a hesitation. Default: every stop is said as it is pronounced.

    Raises:
        ValueError: the blank, the silence or the delimiter is not among the labels, a label occurs twice, or pauses
            without a silence.
    """

    unit: Unit = "phones"

    def __init__(
        self,
        labels: Sequence[str],
        pronouncer: Pronouncer | None = None,
        silence: str | None = None,
        blank: str = BLANK,
        *,
        pauses: bool = False,
        lexicon: Lexicon | None = None,
        delimiter: str | None = None,
        language: str = "en",
        closures: ClosureRules | None = None,
    ) -> None:
        super().__init__(labels, number_of_blank(labels, blank), silence, pauses, language)
        if delimiter is not None and delimiter not in self._numbers:
            raise ValueError(f"The delimiter {delimiter!r} is not among the labels {list(labels)}.")
        self.pronouncer = pronouncer
        self.lexicon = lexicon
        self.delimiter = delimiter
        self.closures = closures
        vowels, hums = ([self._numbers[s] for s in own if s in self._numbers] for own in (HESITATIONS, HUMS))
        number = None if closures is None else self.silence_number
        self._pause = () if number is None else hesitating(number, vowels, hums, HESITATION_COST)
        self._graphs: dict[tuple[tuple[Pronunciation, ...], ...], WordGraph | None] = {}

    @property
    def has_words(self) -> bool:
        """See :attr:`Tokenizer.has_words`."""
        return self.lexicon is not None or self.delimiter is not None

    @property
    def delimiter_number(self) -> int | None:
        """See :attr:`Tokenizer.delimiter_number`."""
        return None if self.delimiter is None else self._numbers[self.delimiter]

    def use_language(self, language: str) -> None:
        """See :meth:`Tokenizer.use_language`."""
        if self.pronouncer is not None:
            self.pronouncer = copy.copy(self.pronouncer)
            self.pronouncer.use_language(language)
        super().use_language(language)

    @property
    def takes_words(self) -> bool:
        """See :attr:`Tokenizer.takes_words`: with a pronouncer."""
        return self.pronouncer is not None

    @property
    def pause(self) -> WordGraph:
        """See :attr:`Tokenizer.pause`: with rules of stops, readers may also hesitate between words."""
        return self._pause

    def split(self, text: str) -> tuple[Word, ...]:
        """Split a text into words; without a pronouncer, into the phones of a string of phones."""
        if not self.takes_words:
            return joined(text.split())
        return split_words(text, language=self.language, rules=self.rules)

    def spell(self, words: Sequence[Word]) -> list[Spelling]:
        """Return the phones of every word.

        Raises:
            TextError: without a pronouncer, a label that is not in the vocabulary.
        """
        if self.pronouncer is None:
            return self._spell_phones([word.text for word in words])
        parts = [word.normal.split() for word in words]
        found = iter(self.pronouncer.alternatives([part for some in parts for part in some]))
        return [self._spelling(some, [next(found) for _ in some]) for some in parts]

    def guessed(self, words: Sequence[Word]) -> list[str]:
        """See :meth:`Tokenizer.guessed`: those that are pronounced by their letters."""
        return [] if self.pronouncer is None else self.pronouncer.guessed(_parts(words))

    def familiar(self, words: Sequence[Word]) -> float | None:
        """See :meth:`Tokenizer.familiar`: the lexicon is the pronouncer's."""
        parts = _parts(words)
        if self.pronouncer is None or not self.pronouncer.of_language or len(parts) < LEAST_DIFFERENT:
            return None
        return sum(self.pronouncer.listed(parts)) / len(parts)

    def _spelling(self, parts: Sequence[str], found: Sequence[Sequence[Pronunciation]]) -> Spelling:
        if missing := [part for part, said in zip(parts, found) if not said]:
            return Spelling((), (), tuple(missing))
        phones = [phone for said in found for phone in self._without_closure(said[0].phones)]
        known = tuple(self._numbers[p] for p in phones if p in self._numbers)
        unknown = tuple(p for p in phones if p not in self._numbers)
        return Spelling(known, unknown, graph=self._graph(found) if known else None)

    def _without_closure(self, phones: Sequence[str]) -> Sequence[str]:
        """Leave out the closure of a stop that begins a word, where it is part of the pause before it."""
        begins = (self.pauses or self.closures) and len(phones) > 1 and phones[0] == self.silence
        return phones[1:] if begins else phones

    def _graph(self, found: Sequence[Sequence[Pronunciation]]) -> WordGraph | None:
        """Return the graph of a word from those of its parts; None for one pronunciation without choices."""
        key = tuple(map(tuple, found))
        if key not in self._graphs:
            if len(self._graphs) >= _REMEMBERED:
                self._graphs.clear()
            self._graphs[key] = self._made(key)
        return self._graphs[key]

    def _made(self, found: Sequence[Sequence[Pronunciation]]) -> WordGraph | None:
        most = MOST_PRONUNCIATIONS if len(found) == 1 else MOST_OF_PART
        graphs = [self._side_by_side(choices[:most]) for choices in found]
        graph = in_line([one for one in graphs if one], self.silence_number)
        return None if graph == straight([part.label for part in graph]) else graph

    def _side_by_side(self, choices: Sequence[Pronunciation]) -> WordGraph:
        """Put the pronunciations of a part side by side; each costs what it is less likely than the first."""
        said: dict[tuple[int, ...], Pronunciation] = {}
        for one in choices:
            own = one.phones if self.closures else self._without_closure(one.phones)
            said.setdefault(tuple(self._numbers[p] for p in own if p in self._numbers), one)
        said.pop((), None)

        def spread(labels: Sequence[int]) -> WordGraph:
            graph = self.closures.spread(labels, self.labels) if self.closures else straight(labels)
            pauses = said[tuple(labels)].pauses
            return graph if pauses is None else beside_pauses(graph, pauses, self.labels)

        costs = (max(0.0, choices[0].log_prob - one.log_prob) for one in said.values())
        return side_by_side(list(zip(said, costs)), spread)

    def _spell_phones(self, phones: Sequence[str]) -> list[Spelling]:
        if unknown := [p for p in dict.fromkeys(phones) if self._numbers.get(p, self.blank) == self.blank]:
            raise TextError(
                f"{unknown[:10]} are no phones of this model, which has {self.labels}. "
                f"To align words give the tokenizer a pronouncer, or a dictionary (--dictionary)."
            )
        return [Spelling((self._numbers[p],)) for p in phones]

    def encode(self, text: str) -> Transcript:
        """Pronounce a text; without a pronouncer, read a string of phones.

        Raises:
            TextError: a word without pronunciation; without a pronouncer, a label that is not in the vocabulary; or
                nothing left.
        """
        found = super().encode(text)
        return (
            found if self.takes_words else replace(found, words=(), token_words=(None,) * len(found.tokens))
        )

    def encode_row(self, row: Mapping[str, Any]) -> Transcript:
        """Return the labels of a row's phone tier; without such a tier, pronounce the row's text.

        A phone belongs to the word of the word tier that contains its middle. Silences outside the vocabulary are left
        out.

        Raises:
            TextError: none of the phones is in the vocabulary.
        """
        tier, spans = row["phones"], row["words"]
        if not tier["label"]:
            if self.pronouncer is None:
                raise TextError(
                    f"Utterance {row['id']!r} has no phones, and the tokenizer has no pronouncer."
                )
            return super().encode_row(row)
        phones: list[tuple[str, int | None]] = []
        for label, start, end in zip(tier["label"], tier["start"], tier["end"]):
            middle = (start + end) / 2
            word = bisect.bisect_right(spans["start"], middle) - 1
            phones.append((label, word if word >= 0 and middle < spans["end"][word] else None))
        kept = [(label, word) for label, word in phones if label in self._numbers or label not in SILENT]
        try:
            tokens = [(self._numbers[p], w) for p, w in kept if p in self._numbers]
            return self._transcript(
                joined(spans["label"]), tokens, (p for p, _ in kept if p not in self._numbers)
            )
        except TextError as error:
            raise TextError(f"Utterance {row['id']!r}: {error}") from None

    def decode(self, ids: Sequence[int]) -> str:
        """Return the words that the lexicon reads, or without a lexicon the phones, separated by spaces."""
        if self.lexicon is not None:
            return " ".join(word for word, _, _ in self.words(ids))
        return " ".join(self.labels[i] for i in ids if self.writes(i))

    def words(self, ids: Sequence[int]) -> list[tuple[str, int, int]]:
        """Return the words that the lexicon reads, or the labels between delimiters; nothing without either."""
        if self.lexicon is not None:
            return self.lexicon.parse([self.labels[i] for i in ids])
        if self.delimiter is None:
            return []
        found: list[tuple[str, int, int]] = []
        for written, group in itertools.groupby(range(len(ids)), lambda i: self.writes(ids[i])):
            if written:
                indices = list(group)
                found.append(("".join(self.labels[ids[i]] for i in indices), indices[0], indices[-1] + 1))
        return found

    def writes(self, number: int) -> bool:
        """See :meth:`Tokenizer.writes`."""
        return number not in (self.blank, self.delimiter_number)

    def save(self, folder: Path) -> None:
        """Write everything that :func:`isotone.text.tokenizer.load` needs, the pronouncer included."""
        config = {
            "kind": self.unit,
            "labels": self.labels,
            "blank": self.labels[self.blank],
            "silence": self.silence,
            "pauses": self.pauses,
            "delimiter": self.delimiter,
            "language": self.language,
            "pronouncer": None if self.pronouncer is None else self.pronouncer.save(Path(folder)),
            "lexicon": None if self.lexicon is None else self.lexicon.pronunciations,
        }
        if self.closures is not None:
            config["closures"] = asdict(self.closures)
        write_json(Path(folder) / CONFIG, config)


def _parts(words: Sequence[Word]) -> list[str]:
    """List the different parts of words, as they are pronounced."""
    return list(dict.fromkeys(part for word in words for part in word.normal.split()))
