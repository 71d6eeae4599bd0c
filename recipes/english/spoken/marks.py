"""Labels of synthesised phones as TIMIT writes them: closures before stops within speech, and flaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isotone.corpus.voices import Mark
from isotone.text.phones import CLOSURE_OF, PHONE_CLASSES, SILENT

# Share of a stop that is closed. Training reads the order of the labels, not this place.
_CLOSED = 0.6
_UNSTRESSED = ("ax", "er")
# Allophones that dictionaries do not write.
_PLAIN = {
    "ix": "ih",
    "ux": "uw",
    "axr": "er",
    "ax-h": "ax",
    "el": "l",
    "em": "m",
    "en": "n",
    "nx": "n",
    "eng": "ng",
    "hv": "hh",
}


def labelled(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Return TIMIT's labels of phones that a synthesiser gave.

    A stop or affricate within speech becomes a closure and a release; after silence it is a release alone, because
    nothing tells its closure from the silence. A t or d between a vowel and an unstressed one becomes a flap.
    """
    return tuple(_labels([mark._replace(label=_PLAIN.get(mark.label, mark.label)) for mark in marks]))


def _labels(marks: Sequence[Mark]) -> Iterator[Mark]:
    for i, mark in enumerate(marks):
        before = marks[i - 1].label if i else "h#"
        after = marks[i + 1].label if i + 1 < len(marks) else "h#"
        vowel = PHONE_CLASSES.get(before) == "vowel" or before == "r"
        if mark.label in ("t", "d") and vowel and after in _UNSTRESSED:
            yield mark._replace(label="dx")
        elif mark.label in CLOSURE_OF and before not in SILENT and mark.end - mark.start > 1:
            cut = mark.start + max(1, round((mark.end - mark.start) * _CLOSED))
            yield Mark(CLOSURE_OF[mark.label], mark.start, cut)
            yield mark._replace(start=cut)
        else:
            yield mark
