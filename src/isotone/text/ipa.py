"""Pronunciations in the International Phonetic Alphabet by espeak-ng, in the labels of a given vocabulary."""
# ruff: noqa: RUF001 - phonetic letters are meant

from __future__ import annotations

import difflib
import functools
import logging
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotone.text.languages import iso_code, language_code
from isotone.text.pronouncer import Pronouncer

if TYPE_CHECKING:
    from isotone.text.espeak_library import Library

log = logging.getLogger(__name__)

#: Words per call of espeak-ng, which pronounces them as one sentence.
_WORDS = 64

# Letters that are rare in spelling: a vocabulary with four of them is one of phones.
_PHONETIC = frozenset("ɐɒɕɘɚɜɝɞɟɡɢɥɦɪɫɬɭɮɯɰɱɳɴɵɶɸɹɺɻɽɾʀʁʂʃʄʈʉʊʌʍʎʏʐʑʒʝʟᵻːˈˌ")

# Spelling variants, and the form that stands for both.
_SAME = str.maketrans({"g": "ɡ", ":": "ː", "\u0361": None, "\u035c": None, "ʦ": "ts", "ʧ": "tʃ", "ʤ": "dʒ"})
_STRESS = "ˈˌ"

# Substitutes for sounds that a vocabulary does not have, the nearest first.
_NEAR = {
    "ɐ": ("ə", "ʌ", "a"), "ᵻ": ("ɪ", "ɨ", "i"), "ɨ": ("ɪ", "i"), "ɚ": ("ɝ", "əɹ", "ər", "ə"),
    "ɝ": ("ɚ", "ɜɹ", "əɹ", "ər"), "ɜ": ("ɝ", "ə", "ɛ"), "ə": ("ɐ", "ʌ", "ɛ"), "ʌ": ("ɐ", "ə", "a"),
    "ɒ": ("ɑ", "ɔ", "o"), "ɑ": ("a", "ɒ"), "a": ("ɑ", "æ"), "æ": ("a", "ɛ"), "ɛ": ("e",), "e": ("ɛ",),
    "ɔ": ("o", "ɒ"), "o": ("ɔ",), "ɪ": ("i",), "i": ("ɪ",), "ʊ": ("u",), "u": ("ʊ",), "ʏ": ("y", "ɪ"),
    "y": ("ʏ", "i"), "ø": ("œ", "e"), "œ": ("ø", "ɛ"), "ɹ": ("r", "ɻ", "ɾ"), "r": ("ɹ", "ɾ", "ʁ"),
    "ɾ": ("t", "r", "ɹ"), "ʁ": ("ʀ", "r", "ɹ", "x"), "ɫ": ("l",), "ʔ": ("t",), "ʋ": ("v", "w"),
    "β": ("b", "v"), "ɣ": ("ɡ",), "x": ("χ", "h", "k"), "χ": ("x", "h"), "ç": ("x", "ʃ", "h"),
    "ɕ": ("ʃ", "s"), "ʑ": ("ʒ", "z"), "ʂ": ("ʃ", "s"), "ʐ": ("ʒ", "z"), "ɲ": ("nj", "n"), "ʎ": ("lj", "l"),
    "ʝ": ("j",), "ɟ": ("dʒ", "j"), "ɬ": ("l",), "ɦ": ("h",), "ɯ": ("u", "ʊ"), "ɭ": ("l",), "ɳ": ("n",),
    "ʈ": ("t",), "ɖ": ("d",), "ɽ": ("ɾ", "r"), "ɱ": ("m",), "ɸ": ("f",), "ʍ": ("w",), "ɥ": ("j", "w"),
    "θ": ("t",), "ð": ("d",),
}  # fmt: skip


def is_ipa(labels: Iterable[str]) -> bool:
    """Return whether labels are phones in the International Phonetic Alphabet, judged by letters rare in spelling."""
    return len(_PHONETIC & {c for label in labels if label[:1] not in "<[" for c in label}) >= 4


class Inventory:
    """The phones of a vocabulary, and substitutes for all others.

    Args:
        labels: The vocabulary.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        phones = [label for label in labels if label and label[0] not in "<[|" and not label.isspace()]
        self._labels = {_key(label): label for label in reversed(phones)}
        # for each letter the label with the fewest marks: later entries replace earlier ones
        by_marks = sorted(phones, key=lambda label: -len(_key(label)))
        self._letters = {letters: label for label in by_marks if (letters := _letters(_key(label)))}
        self._longest = max(map(len, self._labels), default=0)
        self._stressed = any(mark in key for key in self._labels for mark in _STRESS)

    def write(self, phone: str) -> list[str]:
        """Write a phone in labels: the phone itself, else the longest labels from its left, else its nearest sounds.

        Stress, length and other marks are kept if the vocabulary has them. A letter without a substitute is kept.
        """
        key = _key(phone)
        if not self._stressed:
            key = "".join(c for c in key if c not in _STRESS)
        found: list[str] = []
        while key:
            size, labels = self._first(key)
            found += labels
            key = key[size:]
        return found

    def _first(self, key: str) -> tuple[int, list[str]]:
        """Return the number of leading characters that labels can stand for, and these labels."""
        for size in range(min(self._longest, len(key)), 0, -1):
            if label := self._labels.get(key[:size]):
                return size, [label]
        if _is_mark(key[0]):
            return 1, []
        size = next((i for i, c in enumerate(key[1:], 1) if not _is_mark(c)), len(key))
        if label := self._letters.get(key[0]):
            return size, [label]
        for near in _NEAR.get(key[0], ()):
            if all(c in self._letters for c in near):
                return size, [self._letters[c] for c in near]
        return size, [key[0]]


class EspeakIPA(Pronouncer):
    """Pronunciations in the International Phonetic Alphabet from espeak-ng, in any of its languages.

    Phones that the vocabulary does not have are replaced by the nearest ones, and logged once each.

    Args:
        labels: The vocabulary.
        voice: espeak-ng's name of a language.
    """

    def __init__(self, labels: Sequence[str], voice: str = "en-us") -> None:
        self.labels = list(labels)
        self.voice = voice
        self._inventory = Inventory(labels)
        #: Phones that the vocabulary does not have, and their substitutes.
        self.substituted: dict[str, tuple[str, ...]] = {}

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        """Return the phones of every word, as pronounced among its neighbours; None for words without sound.

        Raises:
            ImportError: espeak-ng is not installed.
            UnknownVoice: it has no such language.
        """
        found: list[list[str] | None] = []
        for start in range(0, len(words), _WORDS):
            for phones in phones_of(words[start : start + _WORDS], self.voice):
                found.append([label for phone in phones for label in self._write(phone)] or None)
        return found

    def use_language(self, language: str) -> None:
        """Change to the voice of a language; a voice of that language is kept.

        Raises:
            ImportError: espeak-ng is not installed.
            ValueError: espeak-ng does not have this language; the message names similar ones.
        """
        from isotone.text.espeak_library import check_language

        if language_code(language) != iso_code(self.voice):
            check_language(voice_of(language))
            self.voice = voice_of(language)

    def save(self, folder: Path) -> dict[str, Any]:
        """Return the configuration; there are no files to write."""
        return {"kind": "ipa", "voice": self.voice, "labels": self.labels}

    def _write(self, phone: str) -> list[str]:
        labels = self._inventory.write(phone)
        bare = _bare(phone)
        if bare not in self.substituted and _bare(_key(phone)) != _bare("".join(map(_key, labels))):
            self.substituted[bare] = tuple(labels)
            result = f"{' '.join(labels)!r} is taken for it" if labels else "it is left out"
            log.warning("The model has no phone %r of espeak-ng's %s: %s.", bare, self.voice, result)
        return labels


def voice_of(language: str) -> str:
    """Return espeak-ng's name of a language; English is American unless a region is given."""
    if "-" in language:
        return language.lower()
    code = language_code(language)
    return {"en": "en-us", "zh": "cmn"}.get(code, code)


def phones_of(words: Sequence[str], voice: str) -> list[list[str]]:
    """Return espeak-ng's phones of every word of a sentence, with stress marks; an empty list for no sound."""
    library = _library()
    groups = library.ipa(" ".join(words).lower(), voice)
    alone = [[p for group in library.ipa(word.lower(), voice) for p in group] for word in words]
    if len(groups) == len(words) and all(_alike(a, b) for a, b in zip(groups, alone)):
        return groups
    return _shared_out(groups, alone)


def _shared_out(groups: Sequence[Sequence[str]], alone: Sequence[Sequence[str]]) -> list[list[str]]:
    """Divide the phones of a sentence among its words, by likeness to the words pronounced alone.

    espeak-ng merges some pairs of words, so its groups need not be words. An empty phone marks the end of each group
    and word, so that the matcher aligns boundaries, too.
    """
    end = ("", -1)
    spoken = [(_bare(p), p) for group in groups for p in [*group, ""]]
    expected = [pair for i, phones in enumerate(alone) for pair in [*((_bare(p), i) for p in phones), end]]
    matcher = difflib.SequenceMatcher(None, [k for k, _ in spoken], [k for k, _ in expected], autojunk=False)
    owners = [i for _, i in expected]
    for n in range(1, len(owners)):  # the mark at a word's end belongs to that word
        owners[n] = owners[n - 1] if owners[n] < 0 else owners[n]
    words: list[list[str]] = [[] for _ in alone]
    last = 0
    for _, a, b, c, d in matcher.get_opcodes():
        for n in range(a, b):
            if d > c:
                # phone n of b - a goes to the owner of the expected phone in the same relative position of d - c
                last = max(last, owners[c + (2 * (n - a) + 1) * (d - c) // (2 * (b - a))])
            if spoken[n][1]:
                words[last].append(spoken[n][1])
    # a word that got nothing keeps its pronunciation alone
    return [list(found or phones) for found, phones in zip(words, alone)]


def _alike(group: Sequence[str], alone: Sequence[str]) -> bool:
    """Return whether two pronunciations can be of one word: they share a first letter of a phone, or are short."""
    return (
        bool({_bare(p)[:1] for p in group} & {_bare(p)[:1] for p in alone})
        or max(len(group), len(alone)) <= 2
    )


def _bare(phone: str) -> str:
    return "".join(c for c in phone if c not in _STRESS)


def _key(label: str) -> str:
    return unicodedata.normalize("NFD", label).replace("c\u0327", "ç").translate(_SAME)


def _letters(key: str) -> str:
    """Return the letter of a label without its marks; empty for a label of several letters."""
    letters = [c for c in key if not _is_mark(c)]
    return letters[0] if len(letters) == 1 else ""


def _is_mark(character: str) -> bool:
    """Return whether a character modifies the letter before it: length, tone, stress, a diacritic."""
    return unicodedata.category(character) not in ("Ll", "Lu", "Lo") or character == "ʰ"


@functools.cache
def _library() -> Library:
    from isotone.text.espeak_library import Library

    return Library()
