"""Errors of pronunciations of words held out, in phones and in words."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from rapidfuzz.distance import Levenshtein

from isotone.evaluation import markdown_table
from isotone.text.letters import LetterToSound
from isotone.text.packed import pack, unpack
from isotone.text.phones import fold
from isotone.text.pronounce import Espeak
from isotone.text.word_forms import formed
from pronunciations.source import Symbols

Phones = tuple[str, ...]
#: Words to their likeliest phones.
Reader = Callable[[Sequence[str]], Iterable[Sequence[str]]]

#: Syllabic consonants and flaps as CMUdict writes them.
_WRITTEN = {"el": ("ax", "l"), "en": ("ax", "n"), "dx": ("t",), "ix": ("ih",)}
_SAMPLES = 1000
_HEAD = ("held out", "words", "read by", "phone errors %", "in 39 phones", "words wrong %")


def measure(
    words: Mapping[str, Sequence[Symbols]],
    families: Collection[str],
    others: Collection[str],
    letters: Path,
    frequent: Collection[str] = (),
) -> str:
    """Return a table of the errors of words held out, with 95 % bootstrap intervals over words.

    The lexicon without these words makes their forms; letter-to-sound reads the others. espeak-ng, where it is
    installed, reads all words. A pronunciation is compared with the nearest of the dictionary's.

    Args:
        words: Pronunciations of every word.
        families, others: Words held out, see :func:`pronunciations.held_out.held_out`.
        letters: File of the letter-to-sound model.
        frequent: Words of running text: those held out are measured by themselves as well.
    """
    readers = _readers(words, {*families, *others}, letters)
    splits = {"families": families, "random words": others}
    if frequent:
        splits["both, in running text"] = {*families, *others} & {*frequent}
    rows = []
    for split, chosen in splits.items():
        some = sorted(word for word in chosen if re.fullmatch("[a-z]+", word))
        for name, read in readers.items():
            found = [_plain(phones) for phones in read(some)]
            rows.append((split, f"{len(some):,}", name, *_cells(found, [words[word] for word in some])))
    return markdown_table(_HEAD, rows)


def _readers(
    words: Mapping[str, Sequence[Symbols]], without: Collection[str], letters: Path
) -> dict[str, Reader]:
    network = LetterToSound(letters)
    lexicon = unpack(pack({word: found for word, found in words.items() if word not in without}))

    def spelled(word: str) -> Symbols:
        return network.symbols(word)[0][0]

    readers: dict[str, Reader] = {
        "letters": lambda some: map(spelled, some),
        "forms of known words, then letters": lambda some: [
            (formed(word, lexicon.get) or [spelled(word)])[0] for word in some
        ],
    }
    if importlib.util.find_spec("espeakng_loader"):
        readers["espeak-ng"] = lambda some: (phones or [] for phones in Espeak(phones=48).lookup(some))
    return readers


def _plain(symbols: Sequence[str]) -> Phones:
    phones = (symbol.removesuffix("0") for symbol in symbols)
    return tuple(p for phone in phones for p in _WRITTEN.get(phone, (phone,)))


def _cells(found: Sequence[Phones], right: Sequence[Sequence[Symbols]]) -> Iterable[str]:
    """Return the cells of a row: errors in the 40 phones of the dictionary, in the set of 39, and words."""
    references = [[_plain(symbols) for symbols in some] for some in right]
    own = np.array([_edits(one, some) for one, some in zip(found, references)])
    folded = np.array(
        [_edits(tuple(fold(one)), [tuple(fold(r)) for r in some]) for one, some in zip(found, references)]
    )
    yield _interval(own[:, 0], own[:, 1])
    yield _interval(folded[:, 0], folded[:, 1])
    yield _interval(own[:, 0] > 0, np.ones(len(own)))


def _edits(found: Phones, references: Sequence[Phones]) -> tuple[int, int]:
    """Return the edits from the nearest reference, and its length."""
    return min((Levenshtein.distance(found, one), len(one)) for one in references)


def _interval(errors: np.ndarray, sizes: np.ndarray) -> str:
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(errors), size=(_SAMPLES, len(errors)))
    rates = 100 * errors[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.percentile(rates, [2.5, 97.5])
    return f"{100 * errors.sum() / sizes.sum():.2f} [{low:.2f}, {high:.2f}]"
