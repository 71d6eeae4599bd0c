"""Words held out of training: whole families of words, and words at random."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

#: Shares of the families, and of the words at random.
FAMILIES, WORDS = 0.03, 0.05

_ENDINGS = sorted(
    [
        "'s",
        "'",
        "s",
        "es",
        "ed",
        "d",
        "ing",
        "er",
        "ers",
        "or",
        "ors",
        "ly",
        "ness",
        "ment",
        "ments",
        "able",
        "ible",
        "ably",
        "ation",
        "ations",
        "ion",
        "ions",
        "ity",
        "ities",
        "al",
        "ally",
        "ic",
        "ics",
        "ical",
        "ically",
        "ive",
        "ively",
        "ist",
        "ists",
        "ism",
        "isms",
        "ize",
        "izes",
        "ized",
        "izing",
        "ise",
        "ised",
        "y",
        "ies",
        "ied",
        "ier",
        "iest",
        "est",
        "ful",
        "fully",
        "less",
        "ous",
        "ously",
        "ian",
        "ians",
        "an",
        "ans",
        "e",
        "in",
        "en",
        "ened",
        "ening",
        "ance",
        "ances",
        "ence",
        "ences",
        "ent",
        "ents",
        "ant",
        "ants",
        "ary",
        "ate",
        "ates",
        "ated",
        "ating",
        "man",
        "men",
        "son",
        "sen",
        "sons",
        "ship",
        "ships",
        "hood",
        "ward",
        "wards",
        "t",
        "n",
        "dom",
        "like",
        "work",
        "works",
    ],
    key=len,
    reverse=True,
)
#: Letters that endings leave of a word.
_STEM = 4


def held_out(words: Iterable[str], seed: int = 0) -> tuple[set[str], set[str]]:
    """Choose the words held out: all words of some families, and some of the other words at random.

    A word and its forms with ``'s`` or ``'`` are never apart.

    Returns:
        The words of the families, and the words at random. Some of them have apostrophes.
    """
    known, rng = set(words), random.Random(seed)
    stems = sorted({stem(word) for word in known if re.fullmatch("[a-z]+", word)})
    rng.shuffle(stems)
    chosen = set(stems[: int(FAMILIES * len(stems))])
    families = {word for word in known if stem(word) in chosen}
    rest = known - families
    bases = sorted({_base(word) for word in rest if re.fullmatch("[a-z]+", _base(word))})
    rng.shuffle(bases)
    some = set(bases[: int(WORDS * len(bases))])
    return families, {word for word in rest if _base(word) in some}


def stem(word: str) -> str:
    """Return the name of a word's family: the word without endings, at least four letters of it.

    Example:
        >>> stem("walkers"), stem("walking"), stem("hopped"), stem("nations")
        ('walk', 'walk', 'hopp', 'nati')
    """
    word = re.sub(r"[^a-z]", "", word)
    while ending := next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= _STEM), None):
        word = word[: -len(ending)]
    word = re.sub(r"(.)\1$", r"\1", word)
    return word[:-1] if len(word) >= _STEM + 1 and word[-1] == "i" else word


def _base(word: str) -> str:
    return re.sub(r"('s|')$", "", word)
