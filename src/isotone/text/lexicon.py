"""Phones to words: the words of a closed vocabulary whose pronunciations are nearest to what was heard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


class Lexicon:
    """Words and how each is pronounced.

    Args:
        pronunciations: The phones of every word; a silence that begins one is left out.
        silence: The phone that may stand between words at no cost.

    Raises:
        ValueError: no words, or one without phones.
    """

    def __init__(self, pronunciations: Mapping[str, Sequence[str]], silence: str | None = None) -> None:
        self.silence = silence
        self.pronunciations = {word: self._bare(phones) for word, phones in pronunciations.items()}
        if not self.pronunciations or not all(self.pronunciations.values()):
            raise ValueError("A lexicon has words, and phones for each of them.")
        self._words = list(self.pronunciations)
        phones = sorted({phone for said in self.pronunciations.values() for phone in said})
        self._numbers = {phone: number for number, phone in enumerate(phones)}
        self._sizes = np.array([len(said) for said in self.pronunciations.values()])
        self._said = np.full((len(self._words), int(self._sizes.max())), -1)
        for row, said in zip(self._said, self.pronunciations.values()):
            row[: len(said)] = [self._numbers[phone] for phone in said]

    def parse(self, phones: Sequence[str]) -> list[tuple[str, int, int]]:
        """The words in a sequence of phones: (word, number of its first phone, one past its last).

        They are those that need the fewest changes: a phone that is missing, too many or another costs 1, in words and
        between them; a silence between words costs nothing, and in a word it is one too many. A word has a phone at
        least. Of equal parses those with words where phones could be too many, then the order of the lexicon.
        """
        before = np.full(self._said.shape, np.inf)  # of each word the cost with k + 1 of its phones said
        began = np.zeros(self._said.shape, np.int64)
        costs = [0.0]  # of the first n phones, where no word is under way
        last: list[tuple[int, int] | None] = [None]  # the word that ends there, and where it began
        rows = np.arange(len(self._words))
        for n, phone in enumerate(phones):
            before, began = self._step(before, began, costs[n], n, phone)
            ends = before[rows, self._sizes - 1]
            best = int(ends.argmin())
            skipped = costs[n] + (phone != self.silence)
            within = bool(ends[best] <= skipped)
            costs.append(float(ends[best]) if within else skipped)
            last.append((best, int(began[best, self._sizes[best] - 1])) if within else None)
        found, n = [], len(phones)
        while n:
            if (word := last[n]) is None:
                n -= 1
                continue
            found.append((self._words[word[0]], word[1], n))
            n = word[1]
        return found[::-1]

    def _bare(self, phones: Sequence[str]) -> list[str]:
        return list(phones[1:] if phones and phones[0] == self.silence else phones)

    def _step(
        self, before: np.ndarray, began: np.ndarray, cost: float, n: int, phone: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Costs after one more phone, and where each word began, of those under way and those that begin at ``n``."""
        other = 2.0 if phone == self.silence else 1.0  # a silence is said for no other phone
        wrong = np.where(self._said == self._numbers.get(phone, -2), 0.0, other)
        new = before + 1  # one phone too many
        start = began.copy()
        for k in range(self._said.shape[1]):
            said = cost + k + wrong[:, k]  # the word begins here, its first k phones missing
            better = said < new[:, k]
            new[better, k], start[better, k] = said[better], n
            if k:
                said = before[:, k - 1] + wrong[:, k]
                better = said <= new[:, k]
                new[better, k], start[better, k] = said[better], began[better, k - 1]
                better = new[:, k - 1] + 1 < new[:, k]  # a phone is missing
                new[better, k], start[better, k] = new[better, k - 1] + 1, start[better, k - 1]
        return new, start
