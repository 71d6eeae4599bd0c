"""Options for reading the text of an alignment: its language, dictionaries, readings and markup."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from pathlib import Path

from isotone.text.dictionary import Dictionary, read_dictionary
from isotone.text.normalize import TextError
from isotone.text.phones import (
    PHONE_CLASSES,
    RELEASES,
    SILENT,
    Closures,
    PhoneSet,
    phone_set,
    to_phone_set,
)
from isotone.text.pronounce import Chain
from isotone.text.pronouncer import Pronouncer
from isotone.text.rules import Rules
from isotone.text.tokenizer import PhoneTokenizer, Tokenizer

_CODE = re.compile(r"(?:[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]+)*)?")


@dataclass(frozen=True)
class TextOptions:
    """Options for reading a text.

    Attributes:
        language: ISO code of the text's language (``de``, ``deu``, ``de-AT``), in which its numbers are spelled out;
            empty for an unknown language. Default: the model's.
        dictionaries: Pronunciation dictionaries (:class:`isotone.text.pronounce.Dictionary`), in the model's phones or
            in ARPAbet. The first one with a word counts, then the model's own pronouncer.
        keep_markup: Read markup (:mod:`isotone.text.markup`) as text.
        rules: Tables of written forms and their readings (:class:`isotone.text.rules.Rules`).

    Raises:
        ValueError: the language is not an ISO code.
    """

    language: str | None = None
    dictionaries: tuple[Path, ...] = ()
    keep_markup: bool = False
    rules: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if self.language is not None and not _CODE.fullmatch(self.language):
            raise ValueError(
                f"--language expects an ISO code of a language, such as en, de or deu; got {self.language!r}."
            )


def adapted(tokenizer: Tokenizer, options: TextOptions) -> Tokenizer:
    """Return a copy of a tokenizer with the language, the dictionaries and the rules of the options.

    Raises:
        FileNotFoundError: no such dictionary or table of readings.
        RulesError: a file is not a table of readings.
        TextError: a file is not a dictionary, a dictionary has phones that the model does not have, or the model's
            labels are not phones.
    """
    changed = copy.copy(tokenizer)
    if options.language is not None:
        if options.language:
            changed.use_language(options.language)
        else:
            changed.language = ""
    if options.rules:
        changed.rules = Rules(options.rules)
    if options.dictionaries:
        if not isinstance(changed, PhoneTokenizer):
            raise TextError(
                f"--dictionary gives the phones of words, and the labels of this model are {tokenizer.unit}: "
                "write the words in these, or take a model of phones."
            )
        own = () if changed.pronouncer is None else (changed.pronouncer,)
        changed.pronouncer = Chain(*(_dictionary(p, changed) for p in options.dictionaries), *own)
    return changed


def _dictionary(path: Path, tokenizer: PhoneTokenizer) -> Dictionary:
    """Read a dictionary in the phones of the tokenizer."""
    words = read_dictionary(path)
    known = phone_set_of(tokenizer)
    strange: dict[str, str] = {}
    for word, found in words.items():
        for phone in (phone for entry in found for phone in entry.phones):
            if phone not in strange and not _has(tokenizer, phone, known):
                strange[phone] = word
    if strange:
        more = f" and {len(strange) - 20} more" if len(strange) > 20 else ""
        shown = ", ".join(f"{phone!r} (in {word!r})" for phone, word in list(strange.items())[:20])
        other = ", in ARPAbet or in English IPA" if known else ""
        raise TextError(
            f"{path}: the model has no phones {shown}{more}. Write the words in its phones{other}: "
            f"{' '.join(label for i, label in enumerate(tokenizer.labels) if i != tokenizer.blank)}"
        )
    return Dictionary(path, *(known or ()))


def _has(tokenizer: PhoneTokenizer, phone: str, known: tuple[PhoneSet, Closures] | None) -> bool:
    try:
        phones = [phone] if known is None else to_phone_set([phone], *known)
    except ValueError:
        return False
    return all(p in tokenizer.labels and p != tokenizer.labels[tokenizer.blank] for p in phones)


def phone_set_of(tokenizer: PhoneTokenizer) -> tuple[PhoneSet, Closures] | None:
    """Return the TIMIT phone set of a tokenizer's labels, and its treatment of closures; None for other phones.

    Both are those of the pronouncer. If it has none, they follow from the labels. In the set of 39 closures are
    silences, so a dictionary with silences means that closures are kept.
    """
    pronouncer: Pronouncer | None = tokenizer.pronouncer
    if pronouncer is not None and pronouncer.phone_set:
        return pronouncer.phone_set
    labels = {label for label in tokenizer.labels if not re.fullmatch(r"<.*>", label)}
    if not labels & (PHONE_CLASSES.keys() - SILENT) or not labels <= PHONE_CLASSES.keys():
        return None
    size: PhoneSet = next(n for n in (39, 48, 61) if n == 61 or labels <= {*phone_set(n)})
    closed = bool(labels & {*RELEASES, "cl", "vcl"})
    if isinstance(pronouncer, Dictionary):
        closed |= bool(pronouncer.phones() & SILENT)
    return size, "sil" if closed else "merge"
