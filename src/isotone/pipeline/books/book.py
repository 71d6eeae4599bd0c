"""A book: a long text as the labels of a model, with their places in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import SILENCE
from isotone.pipeline.forced import ForcedPipeline
from isotone.text.normalize import TextError
from isotone.text.phones import CLOSURE_OF
from isotone.text.tokenizer import Tokenizer

# Characters that are pronounced at once, at least: whole paragraphs, for marks belong to the words beside them.
_PART = 4000

# Most words of a sentence, for texts without punctuation.
_LONGEST = 40

_STARS = re.compile(r"^[ \t]*\*[ \t*]*$", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
# a sentence ends with a mark, perhaps in quotes, or with its paragraph
_ENDS = re.compile(r"[.!?:;][\"'\u2019\u201d)\]_*]*$")


@dataclass(frozen=True)
class Book:
    """A long text in labels.

    Attributes:
        text: The text, without rows of stars.
        labels: ``(m,)`` int16, the labels that are heard in speech, of the likeliest readings: no silences.
        owners: ``(m,)`` int32, the number of the word of each label; it increases.
        words: ``(w, 2)`` int64, first character of every word and one past its last.
        sentences: Numbers of the words that begin a sentence or a paragraph, in order, with the number of words last.
            Sentences of more than 40 words are divided.
    """

    text: str
    labels: NDArray[np.int16]
    owners: NDArray[np.int32]
    words: NDArray[np.int64]
    sentences: NDArray[np.int64]

    @classmethod
    def of(cls, text: str, pipeline: ForcedPipeline) -> Book:
        """Pronounce a text.

        Raises:
            TextError: there is nothing to align in it.
        """
        # rows of stars divide scenes; elsewhere a star stands for speech
        text = _STARS.sub(lambda row: " " * len(row[0]), text)
        heard = heard_labels(pipeline.tokenizer)
        labels: list[int] = []
        owners: list[int] = []
        words: list[tuple[int, int]] = []
        for first, last in _parts(text):
            try:
                transcript = pipeline.encode(text[first:last])
            except TextError:
                continue
            for token, word in zip(transcript.tokens, transcript.token_words):
                if token >= 0 and word is not None and heard[token]:
                    labels.append(token)
                    owners.append(len(words) + word)
            words += [(first + word.start, first + word.end) for word in transcript.words]
        if not labels:
            raise TextError("The text of the book has nothing to align: there are no words in it.")
        spans = np.array(words, np.int64)
        begins = _sentences(text, spans)
        return cls(text, np.array(labels, np.int16), np.array(owners, np.int32), spans, begins)

    def places(self, first: int, last: int) -> tuple[int, int]:
        """Return the characters of words ``first`` up to ``last``: the first, and one past the last."""
        return int(self.words[first, 0]), int(self.words[last - 1, 1])

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the words of a range of characters: the first that begins in it, and one past the last."""
        first, last = np.searchsorted(self.words[:, 0], [start, end]).tolist()
        return first, last

    def sentence(self, word: int) -> tuple[int, int]:
        """Return the words of a word's sentence: the first, and one past the last."""
        number = int(np.searchsorted(self.sentences, word, side="right"))
        return int(self.sentences[number - 1]), int(self.sentences[number])

    def labels_of(self, first: int, last: int) -> tuple[int, int]:
        """Return the positions of the labels of words ``first`` up to ``last``."""
        low, high = np.searchsorted(self.owners, [first, last]).tolist()
        return low, high


def heard_labels(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """Tell for every label if speech is recognised by it: not by blanks, silences, closures and delimiters."""
    silent = {tokenizer.blank, tokenizer.silence_number, tokenizer.delimiter_number}
    unheard = SILENCE | set(CLOSURE_OF.values()) | {"cl", "vcl"}
    return np.array([i not in silent and label not in unheard for i, label in enumerate(tokenizer.labels)])


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Divide a text between paragraphs."""
    start = 0
    for gap in _PARAGRAPH.finditer(text):
        if gap.end() - start >= _PART:
            yield start, gap.end()
            start = gap.end()
    yield start, len(text)


def _sentences(text: str, words: NDArray[np.int64]) -> NDArray[np.int64]:
    """List the words that begin a sentence, and the number of words."""
    begins = [0]
    for number in range(1, len(words)):
        start, end = words[number - 1].tolist()
        ends = _ENDS.search(text[start:end]) or text.count("\n", end, int(words[number, 0])) > 1
        if ends or number - begins[-1] >= _LONGEST:
            begins.append(number)
    return np.array([*begins, len(words)], np.int64)
