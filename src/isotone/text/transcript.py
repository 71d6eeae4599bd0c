"""Transcripts, and helpers that several tokenizers share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isotone.files import atomic_write
from isotone.text.normalize import Word
from isotone.text.word_graph import WordGraph

#: File that names the kind of a saved tokenizer.
CONFIG = "isotone_tokenizer.json"

#: Blank label of the vocabularies that isotone builds.
BLANK = "<pad>"

#: Label number of a star (:mod:`isotone.pipeline.stars`) in a transcript; no vocabulary has it.
STAR_NUMBER = -1


@dataclass(frozen=True)
class Transcript:
    """A text in labels, ready to be aligned.

    Attributes:
        words: The words, with their positions in the source.
        tokens: Label numbers; never empty, and never the blank.
        token_words: For every token the number of its word; None for a delimiter or a silence.
        unknown: Characters or phones outside the vocabulary, each once; they were left out.
        notes: Sentences for users about parts of the text that are not aligned as written.
        graphs: For every word its graph, None for a word that is said in one way: as its tokens. The tokens are the
            likeliest reading. Empty where no word has one; words that were added at the end have none.
        stops: For every token the label number of the stop that it is the closure of, None for other tokens. Empty
            where that is not known.
        readings: For every token the number of its word's reading that it belongs to. Empty where every token belongs
            to the first one.
        pause: Graph of a pause between words; empty where it is a silence alone.
        source: The text as it was given, which the words' positions are in; empty where there was none.
        familiar: Share of its different words that a lexicon of the model's language lists, see
            :meth:`isotone.text.base.Tokenizer.familiar`; None where that is not known.
        unread: Number of its words for which the model has no labels.
    """

    words: tuple[Word, ...]
    tokens: tuple[int, ...]
    token_words: tuple[int | None, ...]
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    graphs: tuple[WordGraph | None, ...] = ()
    stops: tuple[int | None, ...] = ()
    readings: tuple[int, ...] = ()
    pause: WordGraph = ()
    source: str = ""
    familiar: float | None = None
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Spelling:
    """A word in labels.

    Attributes:
        labels: Label numbers; empty for a word without labels.
        unknown: Characters or phones outside the vocabulary, left out.
        missing: Parts of the word without a pronunciation; labels are then empty.
        graph: All ways of saying the word, where there are several. The labels are the likeliest.
    """

    labels: tuple[int, ...]
    unknown: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    graph: WordGraph | None = None


def joined(labels: Sequence[str]) -> tuple[Word, ...]:
    """Return labels as words of a source in which spaces separate them."""
    words, start = [], 0
    for label in labels:
        words.append(Word(label, label, start, start + len(label)))
        start += len(label) + 1
    return tuple(words)


def known_graphs(graphs: Iterable[WordGraph | None]) -> tuple[WordGraph | None, ...]:
    """Return the graphs of words; nothing where no word has one."""
    found = tuple(graphs)
    return found if any(found) else ()


def not_pronounced(parts: Iterable[str]) -> str:
    """Return an error message that names words without a pronunciation."""
    unknown = list(dict.fromkeys(parts))
    more = f" and {len(unknown) - 10} more" if len(unknown) > 10 else ""
    return (
        f"No pronunciation for {', '.join(map(repr, unknown[:10]))}{more}: add them to a dictionary (--dictionary), "
        "or let espeak-ng pronounce what is not in it and is English."
    )


def number_of_blank(labels: Sequence[str], blank: str) -> int:
    """Return the number of the blank; ValueError if it is not among the labels."""
    if blank not in labels:
        raise ValueError(f"The blank {blank!r} is not among the labels {list(labels)}.")
    return list(labels).index(blank)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if there is no file."""
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
    """Write a JSON object, indented for people to read."""
    with atomic_write(path) as file:
        json.dump(value, file, ensure_ascii=False, indent=2)
        file.write("\n")
