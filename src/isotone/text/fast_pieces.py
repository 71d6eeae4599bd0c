"""Tokenizer of word pieces from a ``tokenizer.json`` of transformers, by the ``tokenizers`` library."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from isotone.files import atomic_write
from isotone.text.base import Tokenizer, Unit
from isotone.text.characters import case_of
from isotone.text.folding import fold
from isotone.text.normalize import Case, Word, split_words
from isotone.text.transcript import BLANK, CONFIG, Spelling, write_json

FAST_FILE = "tokenizer.json"

_SPACE, _BYTE_SPACE, _WITHIN = "\u2581", "\u0120", "##"


class FastPieceTokenizer(Tokenizer):
    """Tokenizer of word pieces: SentencePiece, byte pairs or WordPiece, with the blank at any number.

    Args:
        model: The contents of a ``tokenizer.json``.
        blank: Number of the blank; a number past the pieces adds a label.
        case: Case of the pieces; None finds it from the pieces.
        language: See :func:`isotone.text.normalize.split_words`.

    Raises:
        ValueError: not a tokenizer, or its pieces do not mark where words begin.
    """

    unit: Unit = "pieces"

    def __init__(self, model: str, blank: int, case: Case | None = None, language: str = "") -> None:
        import tokenizers

        try:
            self._pieces = tokenizers.Tokenizer.from_str(model)
        except Exception as error:  # the library raises plain Exception
            raise ValueError(f"the contents of {FAST_FILE} are no tokenizer: {error}") from None
        self._pieces.no_padding()
        self._pieces.no_truncation()
        numbers = self._pieces.get_vocab(with_added_tokens=True).values()
        size = max(*numbers, blank) + 1
        labels = [self._pieces.id_to_token(i) for i in range(size)]
        if labels[blank] is None and BLANK not in labels:
            labels[blank] = BLANK
        super().__init__(
            [x if x is not None else f"<unused{i}>" for i, x in enumerate(labels)], blank, language=language
        )
        special = {i for i, token in self._pieces.get_added_tokens_decoder().items() if token.special}
        unknown = self._numbers.get(str(getattr(self._pieces.model, "unk_token", None)), blank)
        self._silent = {blank, unknown, *special, *(i for i, x in enumerate(labels) if x is None)}
        spoken = [label for i, label in enumerate(self.labels) if i not in self._silent]
        self._marks = _style(spoken)
        self.case: Case = case or case_of(
            [c for label in spoken if label[0] != "<" for c in label if c.isascii()]
        )
        self._alphabet = {c for label in spoken for c in label}

    def split(self, text: str) -> tuple[Word, ...]:
        """See :meth:`Tokenizer.split`."""
        return split_words(text, case=self.case, language=self.language, rules=self.rules)

    def spell(self, words: Sequence[Word]) -> list[Spelling]:
        """Return the pieces of every word, as in the encoding of the whole text.

        Characters that are in no piece are folded (:mod:`isotone.text.folding`).
        """
        normal = [word.normal for word in words]
        found = self._spelled(normal)
        strange = {c for spelling in found for c in spelling.unknown}
        forms = {c: form for c in strange if (form := fold(c, self._alphabet)) is not None}
        if not forms:
            return found
        return self._spelled(["".join(forms.get(c, c) for c in word) for word in normal])

    def _spelled(self, words: Sequence[str]) -> list[Spelling]:
        plain = " ".join(words)
        ends = [end - 1 for end in itertools.accumulate(len(word) + 1 for word in words)]
        coded = self._pieces.encode(plain, add_special_tokens=False)
        pieces: list[list[int]] = [[] for _ in words]
        written: set[int] = set()
        for number, (start, end) in zip(coded.ids, coded.offsets):
            if number not in self._silent:
                # the space before a word belongs to the word
                pieces[min(bisect.bisect_right(ends, max(start, end - 1)), len(words) - 1)].append(number)
                written.update(range(start, end))
        found = []
        for numbers, word, end in zip(pieces, words, ends):
            unknown = [c for i, c in enumerate(word, end - len(word)) if c != " " and i not in written]
            # a space alone is not spoken
            spoken = any(self.labels[number] not in (_SPACE, _BYTE_SPACE) for number in numbers)
            found.append(Spelling(tuple(numbers) if spoken else (), tuple(unknown)))
        return found

    def decode(self, ids: Sequence[int]) -> str:
        """Return the words separated by spaces."""
        return " ".join(word for word, _, _ in self.words(ids))

    def words(self, ids: Sequence[int]) -> list[tuple[str, int, int]]:
        """Return the words; each begins with a piece that marks the beginning of a word."""
        spans: list[list[int]] = []
        for index, number in enumerate(ids):
            if number in self._silent:
                continue
            if spans and not self._begins(self.labels[number]):
                spans[-1].append(index)
            else:
                spans.append([index])
        found = [(self._text([ids[i] for i in span]), span[0], span[-1] + 1) for span in spans]
        return [(word, first, end) for word, first, end in found if word]

    def writes(self, number: int) -> bool:
        """See :meth:`Tokenizer.writes`."""
        return number not in self._silent

    def save(self, folder: Path) -> None:
        """Write everything that :func:`isotone.text.tokenizer.load` needs."""
        with atomic_write(Path(folder) / FAST_FILE) as file:
            file.write(self._pieces.to_str())
        own = {"kind": self.unit, "blank": self.blank, "case": self.case, "language": self.language}
        write_json(Path(folder) / CONFIG, own)

    def _begins(self, label: str) -> bool:
        if self._marks == _WITHIN:
            return not label.startswith(_WITHIN)
        return label.startswith(self._marks)

    def _text(self, ids: list[int]) -> str:
        return self._pieces.decode(ids, skip_special_tokens=False).strip()


def _style(labels: Sequence[str]) -> Literal["\u2581", "\u0120", "##"]:
    """Return the mark by which pieces show where words begin; ``##`` marks pieces within words."""
    for mark in (_SPACE, _BYTE_SPACE, _WITHIN):
        if any(label.startswith(mark) for label in labels):
            return mark  # type: ignore[return-value]
    raise ValueError(
        f"the pieces of {FAST_FILE} do not say where words begin: expected some that begin with {_SPACE!r} "
        f"(SentencePiece), {_BYTE_SPACE!r} (bytes) or, within words, {_WITHIN!r}; got {list(labels)[:10]}."
    )
