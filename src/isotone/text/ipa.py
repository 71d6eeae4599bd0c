"""Words in the International Phonetic Alphabet, by espeak-ng, in the labels of a given vocabulary."""
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
from isotone.text.pronounce import Pronouncer

if TYPE_CHECKING:
    from isotone.text.espeak_library import Library

log = logging.getLogger(__name__)

#: Words that espeak-ng is given at a time; it says them as one sentence.
_WORDS = 64

# Letters that no orthography has in number; four different ones make a vocabulary one of phones.
_PHONETIC = frozenset("ɐɒɕɘɚɜɝɞɟɡɢɥɦɪɫɬɭɮɯɰɱɳɴɵɶɸɹɺɻɽɾʀʁʂʃʄʈʉʊʌʍʎʏʐʑʒʝʟᵻːˈˌ")

# What is written in two ways: both are read as the second.
_SAME = str.maketrans({"g": "ɡ", ":": "ː", "\u0361": None, "\u035c": None, "ʦ": "ts", "ʧ": "tʃ", "ʤ": "dʒ"})
_STRESS = "ˈˌ"

# The sounds nearest to one that a vocabulary does not have, the best first.
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
    """Whether labels are phones in the International Phonetic Alphabet, by the letters that no spelling has."""
    return len(_PHONETIC & {c for label in labels if label[:1] not in "<[" for c in label}) >= 4


class Inventory:
    """The phones that a vocabulary has, and what the others are written with.

    Args:
        labels: The vocabulary.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        phones = [label for label in labels if label and label[0] not in "<[|" and not label.isspace()]
        self._labels = {_key(label): label for label in reversed(phones)}
        # by its letters alone: the label with the fewest marks
        by_marks = sorted(phones, key=lambda label: -len(_key(label)))
        self._letters = {letters: label for label in by_marks if (letters := _letters(_key(label)))}
        self._longest = max(map(len, self._labels), default=0)
        self._stressed = any(mark in key for key in self._labels for mark in _STRESS)

    def write(self, phone: str) -> list[str]:
        """A phone in labels: itself, else the longest labels from its left, else its nearest sounds.

        Stress and length are kept where the vocabulary has them, and other marks too. A letter that nothing stands for
        is given as it is.
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
        """How much of the beginning of a phone can be written, and with which labels."""
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

    Phones that the vocabulary does not have become the nearest that it has, and are logged once each.

    Args:
        labels: The vocabulary.
        voice: espeak-ng's name of a language.
    """

    def __init__(self, labels: Sequence[str], voice: str = "en-us") -> None:
        self.labels = list(labels)
        self.voice = voice
        self._inventory = Inventory(labels)
        #: Phones that the vocabulary does not have, and what is written for them.
        self.substituted: dict[str, tuple[str, ...]] = {}

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        """The phones of every word as it is said among its neighbours; None for what espeak-ng says nothing for.

        Raises:
            ImportError: espeak-ng is not installed.
            UnknownVoice: it has no such language.
        """
        found: list[list[str] | None] = []
        for start in range(0, len(words), _WORDS):
            for said in phones_of(words[start : start + _WORDS], self.voice):
                found.append([label for phone in said for label in self._write(phone)] or None)
        return found

    def use_language(self, language: str) -> None:
        """Take the voice of a language; the one there is where it is of that language already.

        Raises:
            ImportError: espeak-ng is not installed.
            ValueError: it does not speak this language; the message names near ones.
        """
        from isotone.text.espeak_library import check_language

        if language_code(language) != iso_code(self.voice):
            check_language(voice_of(language))
            self.voice = voice_of(language)

    def save(self, folder: Path) -> dict[str, Any]:
        """Writes nothing: the configuration is all."""
        return {"kind": "ipa", "voice": self.voice, "labels": self.labels}

    def _write(self, phone: str) -> list[str]:
        labels = self._inventory.write(phone)
        bare = _bare(phone)
        if bare not in self.substituted and _bare(_key(phone)) != _bare("".join(map(_key, labels))):
            self.substituted[bare] = tuple(labels)
            said = f"{' '.join(labels)!r} is taken for it" if labels else "it is left out"
            log.warning("The model has no phone %r of espeak-ng's %s: %s.", bare, self.voice, said)
        return labels


def voice_of(language: str) -> str:
    """espeak-ng's name of a language, of its American kind where that is English and no other is asked for."""
    if "-" in language:
        return language.lower()
    code = language_code(language)
    return {"en": "en-us", "zh": "cmn"}.get(code, code)


def phones_of(words: Sequence[str], voice: str) -> list[list[str]]:
    """espeak-ng's phones of every word of a sentence, with stress marks; none for what it says nothing for."""
    library = _library()
    groups = library.ipa(" ".join(words).lower(), voice)
    alone = [[p for group in library.ipa(word.lower(), voice) for p in group] for word in words]
    if len(groups) == len(words) and all(_alike(a, b) for a, b in zip(groups, alone)):
        return groups
    return _shared_out(groups, alone)


def _shared_out(groups: Sequence[Sequence[str]], alone: Sequence[Sequence[str]]) -> list[list[str]]:
    """The phones of a sentence to its words, by likeness to the words said alone: espeak-ng says pairs as one."""
    end = ("", -1)
    said = [(_bare(p), p) for group in groups for p in [*group, ""]]
    wanted = [pair for i, phones in enumerate(alone) for pair in [*((_bare(p), i) for p in phones), end]]
    matcher = difflib.SequenceMatcher(None, [k for k, _ in said], [k for k, _ in wanted], autojunk=False)
    owners = [i for _, i in wanted]
    for n in range(1, len(owners)):  # the end of a word is its own
        owners[n] = owners[n - 1] if owners[n] < 0 else owners[n]
    words: list[list[str]] = [[] for _ in alone]
    last = 0
    for _, a, b, c, d in matcher.get_opcodes():
        for n in range(a, b):
            if d > c:
                last = max(last, owners[c + (2 * (n - a) + 1) * (d - c) // (2 * (b - a))])
            if said[n][1]:
                words[last].append(said[n][1])
    # what a word lost to its neighbours it has when said alone
    return [list(found or phones) for found, phones in zip(words, alone)]


def _alike(said: Sequence[str], alone: Sequence[str]) -> bool:
    """Whether two ways to say a word can be of one word: they have a consonant or, in short words, any sound alike."""
    return (
        bool({_bare(p)[:1] for p in said} & {_bare(p)[:1] for p in alone}) or max(len(said), len(alone)) <= 2
    )


def _bare(phone: str) -> str:
    return "".join(c for c in phone if c not in _STRESS)


def _key(label: str) -> str:
    return unicodedata.normalize("NFD", label).replace("c\u0327", "ç").translate(_SAME)


def _letters(key: str) -> str:
    """A label of one letter without its marks; empty for one of several letters."""
    letters = [c for c in key if not _is_mark(c)]
    return letters[0] if len(letters) == 1 else ""


def _is_mark(character: str) -> bool:
    """Whether a character says something of the letter before it: length, tone, stress, a diacritic."""
    return unicodedata.category(character) not in ("Ll", "Lu", "Lo") or character == "ʰ"


@functools.cache
def _library() -> Library:
    from isotone.text.espeak_library import Library

    return Library()
