"""Phones to words: the words of a closed vocabulary whose pronunciations are nearest to recognised phones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


class Lexicon:
    """Words with a pronunciation each.

    Args:
        pronunciations: The phones of every word; a silence at its beginning is left out.
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
        phones = sorted({phone for spoken in self.pronunciations.values() for phone in spoken})
        self._numbers = {phone: number for number, phone in enumerate(phones)}
        self._sizes = np.array([len(spoken) for spoken in self.pronunciations.values()])
        # (words, longest) numbers of the words' phones, padded with -1
        self._phones = np.full((len(self._words), int(self._sizes.max())), -1)
        for row, spoken in zip(self._phones, self.pronunciations.values()):
            row[: len(spoken)] = [self._numbers[phone] for phone in spoken]

    def parse(self, phones: Sequence[str]) -> list[tuple[str, int, int]]:
        """Find the words in a sequence of phones: (word, index of its first phone, one past its last).

        The words are those with the lowest edit cost. A missing, extra or wrong phone costs 1, within words and between
        them. A silence between words costs nothing; within a word it is an extra phone. A word covers at least one
        phone. Ties prefer words to extra phones, then the order of the lexicon.
        """
        # cost of being k + 1 phones into each word, and the index at which that word began
        before = np.full(self._phones.shape, np.inf)
        began = np.zeros(self._phones.shape, np.int64)
        costs = [0.0]  # lowest cost of the first n phones, between words
        last: list[tuple[int, int] | None] = [None]  # the word that ends after n phones, and where it began
        rows = np.arange(len(self._words))
        for n, phone in enumerate(phones):
            before, began = self._step(before, began, costs[n], n, phone)
            ends = before[rows, self._sizes - 1]
            best = int(ends.argmin())
            skipped = costs[n] + (phone != self.silence)  # the phone belongs to no word
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
        """Advance by a phone: return new costs and beginnings, of words in progress and words that begin at ``n``."""
        other = (
            2.0 if phone == self.silence else 1.0
        )  # a silence never replaces another phone: delete and insert
        wrong = np.where(self._phones == self._numbers.get(phone, -2), 0.0, other)
        new = before + 1  # an extra phone
        start = began.copy()
        for k in range(self._phones.shape[1]):
            match = cost + k + wrong[:, k]  # the word begins here, with its first k phones missing
            better = match < new[:, k]
            new[better, k], start[better, k] = match[better], n
            if k:
                match = before[:, k - 1] + wrong[:, k]
                better = match <= new[:, k]
                new[better, k], start[better, k] = match[better], began[better, k - 1]
                better = new[:, k - 1] + 1 < new[:, k]  # a phone is missing
                new[better, k], start[better, k] = new[better, k - 1] + 1, start[better, k - 1]
        return new, start
