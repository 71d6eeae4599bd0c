"""Tokenizer of characters, in the files of transformers' ``Wav2Vec2CTCTokenizer``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isotone.text.base import Tokenizer, Unit
from isotone.text.folding import fold
from isotone.text.normalize import Case, Word, split_words
from isotone.text.transcript import BLANK, CONFIG, Spelling, number_of_blank, read_json, write_json


class CharacterTokenizer(Tokenizer):
    """Tokenizer of characters that reads and writes the files of transformers' ``Wav2Vec2CTCTokenizer``.

    Args:
        labels: Characters, the blank, and optionally the delimiter and special labels such as ``<unk>``.
        blank: The blank label.
        delimiter: The label between words; words are not separated if it is not among the labels.
        unknown: A label that is never used, kept because transformers requires one.
        case: Case of the characters; None finds it from the labels.
        language: See :func:`isotone.text.normalize.split_words`.
        pauses: Use the delimiter as silence: it is put at the ends of a text as well, and needs no frames.

    Raises:
        ValueError: the blank is not among the labels, nor the delimiter for pauses, or a label occurs twice.
    """

    unit: Unit = "characters"

    def __init__(
        self,
        labels: Sequence[str],
        blank: str = BLANK,
        delimiter: str = "|",
        unknown: str = "<unk>",
        case: Case | None = None,
        language: str = "en",
        *,
        pauses: bool = False,
    ) -> None:
        super().__init__(
            labels, number_of_blank(labels, blank), delimiter if pauses else None, pauses, language
        )
        self.delimiter = delimiter
        self.unknown = unknown
        self.case: Case = case or case_of(labels)
        self._space = self._numbers.get(delimiter)
        special = {blank, delimiter, unknown}
        self._characters = {c: i for c, i in self._numbers.items() if len(c) == 1 and c not in special}

    @property
    def delimiter_number(self) -> int | None:
        """See :attr:`Tokenizer.delimiter_number`."""
        return self._space

    def split(self, text: str) -> tuple[Word, ...]:
        """See :meth:`Tokenizer.split`."""
        return split_words(text, case=self.case, language=self.language, rules=self.rules)

    def spell(self, words: Sequence[Word]) -> list[Spelling]:
        """Return the characters of every word; unknown characters are folded (:mod:`isotone.text.folding`)."""
        return [self._spelling(word) for word in words]

    def _spelling(self, word: Word) -> Spelling:
        labels: list[int] = []
        unknown: list[str] = []
        for part in word.normal.split():
            known: list[int] = []
            for character in part:
                form = character if character in self._characters else fold(character, self._characters)
                if form is None:
                    unknown.append(character)
                else:
                    known += [self._characters[c] for c in form]
            if known and labels and self._space is not None:
                labels.append(self._space)
            labels += known
        return Spelling(tuple(labels), tuple(unknown))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the words separated by spaces, in the case of the labels."""
        return " ".join(word for word, _, _ in self.words(ids))

    def words(self, ids: Sequence[int]) -> list[tuple[str, int, int]]:
        """Return the words between delimiters; see :meth:`Tokenizer.words`."""
        out: list[tuple[str, int, int]] = []
        inside = False
        for i, number in enumerate(ids):
            character = self.labels[number]
            if number == self._space:
                inside = False
            elif character in self._characters:
                word, first, _ = out.pop() if inside else ("", i, i)
                out.append((word + character, first, i + 1))
                inside = True
        return out

    def save(self, folder: Path) -> None:
        """Write what :func:`isotone.text.tokenizer.load` and ``Wav2Vec2CTCTokenizer.from_pretrained`` need."""
        folder = Path(folder)
        names = {"pad_token": self.labels[self.blank], "unk_token": self.unknown}
        # explicit None: otherwise transformers adds labels that the model does not have
        sentence = {"bos_token": "<s>", "eos_token": "</s>"}
        names_or_none = {k: v if v in self._numbers else None for k, v in (names | sentence).items()}
        config = {
            "tokenizer_class": "Wav2Vec2CTCTokenizer",
            "word_delimiter_token": self.delimiter,
            "replace_word_delimiter_char": " ",
            "do_lower_case": False,
        }
        write_json(folder / "vocab.json", self._numbers)
        write_json(folder / "tokenizer_config.json", {**config, **names_or_none})
        write_json(folder / "special_tokens_map.json", {k: v for k, v in names_or_none.items() if v})
        own = {"kind": self.unit, "case": self.case, "language": self.language, "pauses": self.pauses}
        write_json(folder / CONFIG, own)

    @classmethod
    def from_transformers(
        cls,
        folder: str | Path,
        case: Case | None = None,
        language: str = "",
        *,
        pauses: bool = False,
        spoken: str = "",
    ) -> CharacterTokenizer:
        """Read the files of a ``Wav2Vec2CTCTokenizer`` or ``Wav2Vec2Processor``.

        Args:
            folder: The folder, with ``vocab.json``.
            case, language, pauses: See :class:`CharacterTokenizer`.
            spoken: See :func:`read_labels`.

        Raises:
            FileNotFoundError: no ``vocab.json``.
            ValueError: the files do not describe a character tokenizer.
        """
        folder = Path(folder)
        if not (folder / "vocab.json").is_file():
            raise FileNotFoundError(f"No tokenizer in {folder}: expected {CONFIG} or vocab.json.")
        config = read_json(folder / "special_tokens_map.json")
        config |= read_json(folder / "tokenizer_config.json")
        labels = read_labels(folder, config, spoken)
        return cls(
            labels,
            blank=content(config.get("pad_token")) or BLANK,
            delimiter=content(config.get("word_delimiter_token")) or "|",
            unknown=content(config.get("unk_token")) or "<unk>",
            case=case,
            language=language,
            pauses=pauses,
        )


def read_labels(folder: Path, config: Mapping[str, Any], spoken: str = "") -> list[str]:
    """Return the labels of ``vocab.json`` in the order of their numbers, with those that transformers added.

    Args:
        folder: The folder of the file.
        config: The contents of ``tokenizer_config.json``.
        spoken: Language to read from a file with one vocabulary per language. Default: the configuration's.

    Raises:
        ValueError: the file has several languages, and none of them is chosen.
    """
    vocabulary = read_json(folder / "vocab.json")
    if vocabulary and all(isinstance(v, dict) for v in vocabulary.values()):
        spoken = spoken or str(config.get("target_lang"))
        if spoken not in vocabulary:
            raise ValueError(
                f"{folder / 'vocab.json'} holds the vocabularies of {len(vocabulary)} languages: set "
                f"target_lang in tokenizer_config.json to one of {', '.join(sorted(vocabulary)[:20])} ..."
            )
        vocabulary = vocabulary[spoken]
    numbers = read_json(folder / "added_tokens.json") | vocabulary
    taken = set(numbers.values())
    for number, token in config.get("added_tokens_decoder", {}).items():
        if int(number) not in taken:
            numbers.setdefault(content(token) or f"<unused{number}>", int(number))
    by_number = {number: label for label, number in numbers.items()}
    return [by_number.get(i, f"<unused{i}>") for i in range(max(by_number, default=-1) + 1)]


def case_of(labels: Sequence[str]) -> Case:
    """Return the case of the labels that are single letters; ``"keep"`` if they have both."""
    letters = "".join(label for label in labels if len(label) == 1)
    if letters == letters.lower():
        return "lower"
    return "upper" if letters == letters.upper() else "keep"


def content(token: Any) -> str | None:
    """Return the text of a token, which transformers writes as a string or as a mapping."""
    return token.get("content") if isinstance(token, Mapping) else token
