"""Text to label numbers and back: phones, characters, and SentencePiece's pieces of words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from isotone.text.base import Tokenizer, Unit
from isotone.text.characters import CharacterTokenizer
from isotone.text.closures import ClosureRules
from isotone.text.fast_pieces import FAST_FILE, FastPieceTokenizer
from isotone.text.foreign import load_foreign
from isotone.text.lexicon import Lexicon
from isotone.text.normalize import Case, TextError, Word, normalize, split_words
from isotone.text.phone_tokenizer import PhoneTokenizer
from isotone.text.pieces import PieceTokenizer, train_pieces
from isotone.text.pronounce import Pronouncer, load_pronouncer
from isotone.text.transcript import (
    BLANK,
    CONFIG,
    Transcript,
    read_json,
)

__all__ = [
    "CharacterTokenizer", "PhoneTokenizer", "PieceTokenizer", "TextError", "Tokenizer", "Transcript", "Unit",
    "Word", "build_tokenizer", "load", "train_pieces",
]  # fmt: skip


# Texts whose words are normalised alike, alone or in the text.
_PLAIN = re.compile(r"[A-Za-z' ]*")


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
    closures: Literal["line", "lattice"] | Mapping[str, float] = "line",
) -> Tokenizer:
    """Build a tokenizer with the vocabulary of a training set; the blank is number 0.

    Args:
        unit: ``"phones"``, ``"characters"`` or ``"pieces"``.
        rows: Rows of a corpus, see :data:`isotone.corpus.COLUMNS`.
        case: Case of characters and pieces.
        language: See :func:`isotone.text.normalize.split_words`.
        size, kind: For pieces, see :func:`train_pieces`.
        pronouncer, silence: For phones, see :class:`PhoneTokenizer`. If the rows have no phones, the pronouncer gives
            those of their texts.
        pauses: Put a silence between words, for models without a blank that could cover the pauses. Characters use
            their delimiter, and pieces a label of its own; both then put it at the ends of a text, too.
        lexicon: Read recognised phones as the words of the rows' texts.
        closures: For phones: ``"lattice"`` lets aligners choose how a stop is said, by the rules of
            :class:`isotone.text.closures.ClosureRules`, or by rules with other values. The pronouncer has to give
            closures (``closures: sil``). With ``"line"`` every stop has one.

    Raises:
        ValueError: no such unit, rows without text or phones, or a lexicon without a pronouncer.
        TextError: the pronouncer does not know a word.
    """
    if unit == "phones":
        return _phones(rows, pronouncer, silence, pauses, lexicon, _rules(closures))
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
    closures: ClosureRules | None,
) -> PhoneTokenizer:
    rows = rows if hasattr(rows, "select_columns") else list(rows)
    phones = {label for tier in _column(rows, "phones") for label in tier["label"]}
    pronounced: dict[str, list[str]] = {}
    if lexicon or not phones:
        if pronouncer is None:
            raise ValueError(
                "A phone tokenizer needs rows with phones, and a pronouncer where there are none in them or the "
                "phones are to be read as words (lexicon); got no pronouncer."
            )
        texts = _distinct(_column(rows, "text"))
        words = sorted({part for text in texts for word in split_words(text) for part in word.normal.split()})
        pronounced = dict(zip(words, pronouncer(words)))
    if not phones:
        phones = {phone for some in pronounced.values() for phone in some} | ({silence} if silence else set())
    return PhoneTokenizer(
        [BLANK, *sorted(phones)], pronouncer, silence, pauses=pauses,
        lexicon=Lexicon(pronounced, silence) if lexicon else None, closures=closures,
    )  # fmt: skip


def _rules(closures: str | Mapping[str, float] | None) -> ClosureRules | None:
    """Make the rules of closures.

    Raises:
        ValueError: neither ``"line"``, ``"lattice"`` nor values of the rules.
    """
    if isinstance(closures, Mapping):
        try:
            return ClosureRules(**closures)
        except TypeError:
            raise ValueError(f"Rules of closures have no values such as {dict(closures)}.") from None
    if closures not in (None, "line", "lattice"):
        raise ValueError(f"The closures of a phone tokenizer are 'line' or 'lattice'; got {closures!r}.")
    return ClosureRules() if closures == "lattice" else None


def _column(rows: Any, name: str) -> Iterator[Any]:
    """Iterate over a column of rows; a ``datasets.Dataset`` is read in batches, as it may have 100,000s of rows."""
    if hasattr(rows, "select_columns"):
        for some in rows.select_columns([name]).iter(batch_size=1000):
            yield from some[name]
    else:
        yield from (row[name] for row in rows)


def _distinct(texts: Iterable[str]) -> set[str]:
    """Return texts with the same set of characters: words of plain texts, each once, and the other texts whole."""
    found: set[str] = set()
    for text in texts:
        found.update(text.split() if _PLAIN.fullmatch(text) else (text,))
    return found


def load(folder: str | Path) -> Tokenizer:
    """Load a tokenizer that :meth:`Tokenizer.save` wrote, or a CTC tokenizer of transformers.

    Raises:
        FileNotFoundError: no tokenizer in the folder.
        ValueError: its files do not describe one.
    """
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        return load_foreign(folder)
    config = read_json(folder / CONFIG)
    kind = config.get("kind", "characters")
    if kind == "phones":
        pronouncer = config["pronouncer"] and load_pronouncer(config["pronouncer"], folder)
        words = config.get("lexicon")
        return PhoneTokenizer(
            config["labels"], pronouncer, config["silence"], config["blank"], pauses=config.get("pauses", False),
            lexicon=Lexicon(words, config["silence"]) if words else None, delimiter=config.get("delimiter"),
            language=config.get("language", "en"), closures=_rules(config.get("closures")),
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
