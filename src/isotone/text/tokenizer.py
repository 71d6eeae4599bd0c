"""Text to label numbers and back: phones, characters, and SentencePiece's pieces of words."""

from __future__ import annotations

import bisect
import copy
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from isotone.text.characters import CharacterTokenizer
from isotone.text.fast_pieces import FAST_FILE, FastPieceTokenizer
from isotone.text.lexicon import Lexicon
from isotone.text.normalize import Case, TextError, Word, normalize, split_words
from isotone.text.phones import SILENT
from isotone.text.pieces import PieceTokenizer, train_pieces
from isotone.text.pronounce import Pronouncer, load_pronouncer
from isotone.text.transcript import (
    BLANK,
    CONFIG,
    Spelling,
    Tokenizer,
    Transcript,
    Unit,
    joined,
    number_of_blank,
    read_json,
    write_json,
)

__all__ = [
    "CharacterTokenizer", "PhoneTokenizer", "PieceTokenizer", "TextError", "Tokenizer", "Transcript", "Unit",
    "Word", "build_tokenizer", "load", "train_pieces",
]  # fmt: skip


# Words of such texts are normalised alike on their own.
_PLAIN = re.compile(r"[A-Za-z' ]*")


class PhoneTokenizer(Tokenizer):
    """Phones; text is pronounced word by word.

    Args:
        labels: Phones and the blank.
        pronouncer: Words to phones; without one, texts are phones with spaces between them.
        silence: A label put before the first and after the last word of a pronounced text; None puts none.
        blank: The blank label.
        pauses: Put the silence between the words as well. A silence that begins a word is then that between the words.
        lexicon: The words that recognised phones are read as. Default: phones are the text.
        delimiter: The label between words, where there is one; recognised words are then what stands between them.
        language: See :func:`isotone.text.normalize.split_words`.

    Raises:
        ValueError: the blank, the silence or the delimiter is not among the labels, a label is there twice, or pauses
            without silence.
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
    ) -> None:
        super().__init__(labels, number_of_blank(labels, blank), silence, pauses, language)
        if delimiter is not None and delimiter not in self._numbers:
            raise ValueError(f"The delimiter {delimiter!r} is not among the labels {list(labels)}.")
        self.pronouncer = pronouncer
        self.lexicon = lexicon
        self.delimiter = delimiter

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

    def split(self, text: str) -> tuple[Word, ...]:
        """The words of a text; the phones of a string of phones where there is no pronouncer."""
        return split_words(text, language=self.language) if self.takes_words else joined(text.split())

    def spell(self, words: Sequence[Word]) -> list[Spelling]:
        """The phones of every word.

        Raises:
            TextError: without a pronouncer, a label that is not in the vocabulary.
        """
        if self.pronouncer is None:
            return self._spell_phones([word.text for word in words])
        parts = [word.normal.split() for word in words]
        said = iter(self.pronouncer.lookup([part for some in parts for part in some]))
        return [self._spelling(some, [next(said) for _ in some]) for some in parts]

    def _spelling(self, parts: Sequence[str], said: Sequence[list[str] | None]) -> Spelling:
        if missing := [part for part, phones in zip(parts, said) if not phones]:
            return Spelling((), (), tuple(missing))
        phones: list[str] = []
        for some in said:
            # the closure of a stop at a word's start is a part of the pause before it
            begins = self.pauses and some and some[0] == self.silence and len(some) > 1
            phones += (some or [])[1 if begins else 0 :]
        known = tuple(self._numbers[p] for p in phones if p in self._numbers)
        return Spelling(known, tuple(p for p in phones if p not in self._numbers))

    def _spell_phones(self, phones: Sequence[str]) -> list[Spelling]:
        if unknown := [p for p in dict.fromkeys(phones) if self._numbers.get(p, self.blank) == self.blank]:
            raise TextError(
                f"{unknown[:10]} are no phones of this model, which has {self.labels}. "
                f"To align words give the tokenizer a pronouncer, or a dictionary (--dictionary)."
            )
        return [Spelling((self._numbers[p],)) for p in phones]

    def encode(self, text: str) -> Transcript:
        """The phones of a text, pronounced, or of a string of phones where there is no pronouncer.

        Raises:
            TextError: a word without pronunciation, without a pronouncer a label that is not in the
                vocabulary, or nothing left.
        """
        found = super().encode(text)
        return (
            found if self.takes_words else replace(found, words=(), token_words=(None,) * len(found.tokens))
        )

    def encode_row(self, row: Mapping[str, Any]) -> Transcript:
        """The labels of a row's phone tier; its text is pronounced where it has none.

        A phone belongs to the word of the row's word tier in which its middle lies. Silences that the
        vocabulary does not have are left out.

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
        """The words that the lexicon reads, without one the phones, with spaces between them."""
        if self.lexicon is not None:
            return " ".join(word for word, _, _ in self.words(ids))
        return " ".join(self.labels[i] for i in ids if self.writes(i))

    def words(self, ids: Sequence[int]) -> list[tuple[str, int, int]]:
        """What the lexicon reads, or what stands between delimiters; without either nothing is known of words."""
        if self.lexicon is not None:
            return self.lexicon.parse([self.labels[i] for i in ids])
        if self.delimiter is None:
            return []
        found: list[tuple[str, int, int]] = []
        for said, group in itertools.groupby(range(len(ids)), lambda i: self.writes(ids[i])):
            if said:
                places = list(group)
                found.append(("".join(self.labels[ids[i]] for i in places), places[0], places[-1] + 1))
        return found

    def writes(self, number: int) -> bool:
        """See :meth:`Tokenizer.writes`."""
        return number not in (self.blank, self.delimiter_number)

    def save(self, folder: Path) -> None:
        """Write everything that :func:`load` needs, the pronouncer too."""
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
        write_json(Path(folder) / CONFIG, config)


def build_tokenizer(
    unit: Unit,
    rows: Iterable[Mapping[str, Any]],
    *,
    case: Case = "lower",
    language: str = "en",
    size: int = 500,
    kind: Literal["unigram", "bpe"] = "unigram",
    pronouncer: Pronouncer | None = None,
    silence: str | None = None,
    pauses: bool = False,
    lexicon: bool = False,
) -> Tokenizer:
    """A tokenizer whose vocabulary is what a training set has; the blank is number 0.

    Args:
        unit: ``"phones"``, ``"characters"`` or ``"pieces"``.
        rows: Rows of a corpus, see :data:`isotone.corpus.COLUMNS`.
        case: Case of characters and pieces.
        language: See :func:`isotone.text.normalize.split_words`.
        size, kind: Of pieces, see :func:`train_pieces`.
        pronouncer, silence: Of phones, see :class:`PhoneTokenizer`. Where the rows have no phones, these are the
            pronouncer's of their texts.
        pauses: Put a silence between words, for what has no blank to give the pauses to. Characters have their
            delimiter for it, and pieces a label of its own; both put it at the ends of a text then, too.
        lexicon: Read recognised phones as the words of the rows' texts.

    Raises:
        ValueError: no such unit, rows without text or phones, or a lexicon without a pronouncer.
        TextError: a word that the pronouncer does not know.
    """
    if unit == "phones":
        return _phones(rows, pronouncer, silence, pauses, lexicon)
    if unit == "characters":
        texts = (normalize(text, case=case, language=language) for text in _distinct(_column(rows, "text")))
        characters = sorted({c for text in texts for c in text if not c.isspace()})
        if not characters:
            raise ValueError("A character tokenizer needs rows with text; there is none in these.")
        return CharacterTokenizer(
            [BLANK, "<unk>", "|", *characters], case=case, language=language, pauses=pauses
        )
    if unit == "pieces":
        return train_pieces(_column(rows, "text"), size, kind, case=case, language=language, pauses=pauses)
    raise ValueError(f"A tokenizer's unit is 'phones', 'characters' or 'pieces'; got {unit!r}.")


def _phones(
    rows: Iterable[Mapping[str, Any]],
    pronouncer: Pronouncer | None,
    silence: str | None,
    pauses: bool,
    lexicon: bool,
) -> PhoneTokenizer:
    rows = rows if hasattr(rows, "select_columns") else list(rows)
    phones = {label for tier in _column(rows, "phones") for label in tier["label"]}
    said: dict[str, list[str]] = {}
    if lexicon or not phones:
        if pronouncer is None:
            raise ValueError(
                "A phone tokenizer needs rows with phones, and a pronouncer where there are none in them or the "
                "phones are to be read as words (lexicon); got no pronouncer."
            )
        texts = _distinct(_column(rows, "text"))
        words = sorted({part for text in texts for word in split_words(text) for part in word.normal.split()})
        said = dict(zip(words, pronouncer(words)))
    if not phones:
        phones = {phone for some in said.values() for phone in some} | ({silence} if silence else set())
    return PhoneTokenizer(
        [BLANK, *sorted(phones)], pronouncer, silence, pauses=pauses,
        lexicon=Lexicon(said, silence) if lexicon else None,
    )  # fmt: skip


def _column(rows: Any, name: str) -> Iterator[Any]:
    """One column of rows; of a ``datasets.Dataset`` many at once, for there may be hundreds of thousands."""
    if hasattr(rows, "select_columns"):
        for some in rows.select_columns([name]).iter(batch_size=1000):
            yield from some[name]
    else:
        yield from (row[name] for row in rows)


def _distinct(texts: Iterable[str]) -> set[str]:
    """Texts with the same characters: those of plain words word by word, each once; the others whole."""
    found: set[str] = set()
    for text in texts:
        found.update(text.split() if _PLAIN.fullmatch(text) else (text,))
    return found


def load(folder: str | Path) -> Tokenizer:
    """Load what :meth:`Tokenizer.save` wrote, or the files of a CTC tokenizer of transformers.

    Raises:
        FileNotFoundError: no tokenizer in the folder.
        ValueError: its files do not describe one.
    """
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        from isotone.text.foreign import load_foreign  # which makes the tokenizers of this module

        return load_foreign(folder)
    config = read_json(folder / CONFIG)
    kind = config.get("kind", "characters")
    if kind == "phones":
        pronouncer = config["pronouncer"] and load_pronouncer(config["pronouncer"], folder)
        words = config.get("lexicon")
        return PhoneTokenizer(
            config["labels"], pronouncer, config["silence"], config["blank"], pauses=config.get("pauses", False),
            lexicon=Lexicon(words, config["silence"]) if words else None, delimiter=config.get("delimiter"),
            language=config.get("language", "en"),
        )  # fmt: skip
    if kind == "characters":
        return CharacterTokenizer.from_transformers(
            folder, config.get("case"), config.get("language", "en"), pauses=config.get("pauses", False)
        )
    if kind == "pieces" and "blank" in config:
        return FastPieceTokenizer(
            (folder / FAST_FILE).read_text(encoding="utf-8"),
            config["blank"],
            config["case"],
            config["language"],
        )
    if kind == "pieces":
        return PieceTokenizer(
            (folder / "pieces.model").read_bytes(),
            config["case"],
            config["language"],
            config.get("pauses", False),
        )
    raise ValueError(f"{folder / CONFIG}: a tokenizer is of phones, characters or pieces; got {kind!r}.")
