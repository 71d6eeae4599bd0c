"""TIMIT's 61 phones and their two folded sets: 48 for training, 39 for scoring (Lee & Hon, 1989).

K.-F. Lee and H.-W. Hon, "Speaker-independent phone recognition using hidden Markov models", IEEE Transactions
on Acoustics, Speech, and Signal Processing 37(11), 1989.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from isotone.alignment import Segment
from isotone.registry import nearest
from isotone.text.ipa_timit import to_arpabet

PhoneSet = Literal[39, 48, 61]
Closures = Literal["sil", "merge"]
Silence = Literal["keep", "drop"]

#: The 61 phones folded to 48. The glottal stop ``q`` has no counterpart and is left out.
TO_48 = {
    "aa": "aa", "ae": "ae", "ah": "ah", "ao": "ao", "aw": "aw", "ax": "ax", "ax-h": "ax", "axr": "er",
    "ay": "ay", "b": "b", "bcl": "vcl", "ch": "ch", "d": "d", "dcl": "vcl", "dh": "dh", "dx": "dx",
    "eh": "eh", "el": "el", "em": "m", "en": "en", "eng": "ng", "epi": "epi", "er": "er", "ey": "ey",
    "f": "f", "g": "g", "gcl": "vcl", "h#": "sil", "hh": "hh", "hv": "hh", "ih": "ih", "ix": "ix",
    "iy": "iy", "jh": "jh", "k": "k", "kcl": "cl", "l": "l", "m": "m", "n": "n", "ng": "ng", "nx": "n",
    "ow": "ow", "oy": "oy", "p": "p", "pau": "sil", "pcl": "cl", "r": "r", "s": "s", "sh": "sh", "t": "t",
    "tcl": "cl", "th": "th", "uh": "uh", "uw": "uw", "ux": "uw", "v": "v", "w": "w", "y": "y", "z": "z",
    "zh": "zh",
}  # fmt: skip

#: The 48 phones folded to 39.
TO_39 = {phone: phone for phone in TO_48.values()} | {
    "ao": "aa", "ax": "ah", "cl": "sil", "el": "l", "en": "n", "epi": "sil", "ix": "ih", "vcl": "sil",
    "zh": "sh",
}  # fmt: skip

PHONES_61 = tuple(sorted([*TO_48, "q"]))
PHONES_48 = tuple(sorted(set(TO_48.values())))
PHONES_39 = tuple(sorted(set(TO_39.values())))

#: Labels of silence in the three sets.
SILENT = frozenset({"h#", "pau", "epi", "sil"})

#: The releases that can follow each closure; the first one replaces a closure without release.
RELEASES = {
    "bcl": ("b",), "dcl": ("d", "jh"), "gcl": ("g",), "pcl": ("p",), "tcl": ("t", "ch"), "kcl": ("k",),
}  # fmt: skip

#: ARPAbet writes the schwa as an unstressed ``AH``.
_REDUCED = {"ah0": "ax"}

#: The closure that each release follows.
CLOSURE_OF = {release: closure for closure, releases in RELEASES.items() for release in releases}

_CLASSES = {
    "stop": "b d g p t k dx q bcl dcl gcl pcl tcl kcl cl vcl",
    "affricate": "ch jh",
    "fricative": "s sh z zh f th v dh hh hv",
    "nasal": "m n ng em en eng nx",
    "liquid/glide": "l r w y el",
    "vowel": "iy ih eh ey ae aa aw ay ah ao oy ow uh uw ux er ax ix axr ax-h",
    "silence": "h# pau epi sil",
}

#: Manner of articulation of every label of the three sets.
PHONE_CLASSES = {phone: name for name, phones in _CLASSES.items() for phone in phones.split()}


def phone_set(
    phones: PhoneSet = 39, *, closures: Closures = "sil", silence: Silence = "keep"
) -> tuple[str, ...]:
    """Return the labels that :func:`fold` can give, sorted.

    Raises:
        ValueError: an option that is not in the signature.
    """
    folded = (fold([phone], phones, closures=closures, silence=silence) for phone in PHONES_61)
    return tuple(sorted({label for labels in folded for label in labels}))


def fold(
    labels: Sequence[str], to: PhoneSet = 39, *, closures: Closures = "sil", silence: Silence = "keep"
) -> list[str]:
    """Fold a sequence of phone labels to a smaller set.

    Args:
        labels: Labels of any of the three sets; folded labels stay the same.
        to: Size of the set to fold to. Folding has no inverse: labels of the 39 stay when ``to`` is 61.
        closures: ``"sil"`` keeps closures as separate labels, which are ``sil`` in the set of 39 (the standard).
            ``"merge"`` turns ``bcl b`` into ``b``, ``dcl jh`` into ``jh``, and a closure without release into its stop.
        silence: ``"drop"`` removes silences, including closures that became ``sil``.

    Returns:
        The folded labels. ``q`` is left out in the sets of 48 and 39; adjacent ``sil`` become one.

    Raises:
        ValueError: a label outside the sets, or an option that does not exist.
    """
    segments = [Segment(label, float(i), float(i + 1)) for i, label in enumerate(labels)]
    return [s.label for s in fold_segments(segments, to, closures=closures, silence=silence)]


def to_phone_set(phones: Sequence[str], to: PhoneSet = 39, closures: Closures = "merge") -> list[str]:
    """Convert the phones of a pronunciation to a TIMIT phone set.

    Args:
        phones: TIMIT's 61 or ARPAbet, with or without stress digits, in either case; ``AH0`` is the schwa ``ax``. Or
            English ones of the International Phonetic Alphabet.
        to: Size of the phone set.
        closures: ``"merge"`` for models whose stops include their closures; ``"sil"`` puts a closure before every stop
            and affricate without one, as in TIMIT's own labels.

    Raises:
        ValueError: a phone that is of none of these.
    """
    plain = [plain_phone(phone) for phone in phones]
    if closures == "sil":
        pairs = zip(["", *plain], plain)
        plain = [
            x
            for before, phone in pairs
            for x in (
                [phone] if before in RELEASES or phone not in CLOSURE_OF else [CLOSURE_OF[phone], phone]
            )
        ]
    return fold(plain, to, closures=closures)


def plain_phone(label: str) -> str:
    """Return TIMIT's label of a phone in ARPAbet, with or without stress, or in English IPA; others in lower case."""
    phone = to_arpabet(label.lower())
    return re.sub(r"(?<=[a-z])[012]$", "", _REDUCED.get(phone, phone))


def fold_segments(
    segments: Iterable[Segment], to: PhoneSet = 39, *, closures: Closures = "sil", silence: Silence = "keep"
) -> list[Segment]:
    """Fold phones with times as :func:`fold` does: merged labels span both; a ``q`` that is left out leaves a gap.

    Args:
        segments: Phones in order of time.
        to: See :func:`fold`.
        closures: See :func:`fold`; a merged stop begins with its closure.
        silence: See :func:`fold`.

    Returns:
        The folded segments, with the labels that :func:`fold` gives. A segment made of several has no score.

    Raises:
        ValueError: see :func:`fold`.
    """
    _check_options(to, closures, silence)
    merged = _merge_closures(segments) if closures == "merge" else list(segments)
    out: list[Segment] = []
    for segment in merged:
        label = _fold_label(segment.label, to)
        if label is None or (silence == "drop" and label in SILENT):
            continue
        if label == "sil" and out and out[-1].label == "sil":
            out[-1] = replace(out[-1], end=segment.end, score=None, confidence=None)
        else:
            out.append(replace(segment, label=label))
    return out


def _merge_closures(segments: Iterable[Segment]) -> list[Segment]:
    """Merge each closure with its release; a closure without release becomes its stop."""
    out: list[Segment] = []
    closure: str | None = None
    for segment in segments:
        if closure is not None and segment.label in RELEASES[closure]:
            out[-1] = Segment(segment.label, out[-1].start, segment.end)
            closure = None
            continue
        closure = segment.label if segment.label in RELEASES else None
        out.append(replace(segment, label=RELEASES[closure][0]) if closure else segment)
    return out


def _fold_label(label: str, to: int) -> str | None:
    if label not in PHONE_CLASSES:
        raise ValueError(
            f"{label!r} is not one of TIMIT's 61 phones nor of the folded sets."
            f"{nearest(label, list(PHONE_CLASSES))}"
        )
    if to == 61:
        return label
    if label == "q":
        return None
    folded = TO_48.get(label, label)
    return folded if to == 48 else TO_39[folded]


def _check_options(to: object, closures: object, silence: object) -> None:
    for name, value, known in (
        ("to", to, (39, 48, 61)),
        ("closures", closures, ("sil", "merge")),
        ("silence", silence, ("keep", "drop")),
    ):
        if value not in known:
            raise ValueError(
                f"Folding phones: {name} is one of {', '.join(map(repr, known))}; got {value!r}."
            )
