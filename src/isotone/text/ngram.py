"""N-gram language models from text: interpolated modified Kneser-Ney, written as ARPA files.

KenLM's ``lmplz`` does the same for texts that do not fit into memory; its Python package does not include it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from isotone.files import atomic_write

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"

# ARPA's logarithm of zero, for the beginning of a sentence, which is never predicted.
_NEVER = -99.0
# Discounts for texts with too few n-grams to estimate them, as in lmplz --discount_fallback.
_FALLBACK = (0.5, 1.0, 1.5)

Words = tuple[str, ...]


@dataclass(frozen=True)
class NGram:
    """A backoff n-gram model.

    Attributes:
        log10_probs: For every n-gram of 1 to ``order`` words, the log10 probability of its last word given the others.
        log10_backoffs: For n-grams that longer ones begin with, the log10 weight of words not seen after them.
    """

    order: int
    log10_probs: dict[Words, float]
    log10_backoffs: dict[Words, float]

    def log10_prob(self, word: str, context: Sequence[str]) -> float:
        """Return the log10 probability of a word after a context (which starts with ``<s>`` in a new sentence)."""
        if (word,) not in self.log10_probs:
            word = UNKNOWN
        before = tuple(context)[max(0, len(context) - self.order + 1) :]
        total = 0.0
        while (*before, word) not in self.log10_probs:
            total += self.log10_backoffs.get(before, 0.0)
            before = before[1:]
        return total + self.log10_probs[*before, word]

    def perplexity(self, sentences: Iterable[Sequence[str]]) -> float:
        """Return the perplexity per word, including ends of sentences and unknown words.

        Raises:
            ValueError: no sentences.
        """
        total, count = 0.0, 0
        for sentence in sentences:
            words = [BEGIN, *sentence, END]
            for i in range(1, len(words)):
                total += self.log10_prob(words[i], words[:i])
                count += 1
        if not count:
            raise ValueError("A perplexity expects sentences; there are none.")
        return 10.0 ** (-total / count)

    def write(self, path: str | Path) -> None:
        """Write an ARPA file, whole or not at all."""
        sizes = Counter(map(len, self.log10_probs))
        with atomic_write(path) as file:
            file.write("\\data\\\n" + "".join(f"ngram {n}={sizes[n]}\n" for n in range(1, self.order + 1)))
            for n in range(1, self.order + 1):
                file.write(f"\n\\{n}-grams:\n")
                for words in sorted(w for w in self.log10_probs if len(w) == n):
                    backoff = self.log10_backoffs.get(words)
                    tail = "" if backoff is None else f"\t{backoff:.7g}"
                    file.write(f"{self.log10_probs[words]:.7g}\t{' '.join(words)}{tail}\n")
            file.write("\n\\end\\\n")


def estimate(sentences: Iterable[Sequence[str]], order: int = 3) -> NGram:
    r"""Estimate the interpolated modified Kneser-Ney model of sentences (Chen & Goodman, 1998, section 3), exactly.

    .. math:: p(w | h) = \frac{c(hw) - D(c(hw))}{\sum_v c(hv)} + \gamma(h)\, p(w | h')

    - h' is the context without its first word.
    - c is the number of occurrences for n-grams of the highest order and those that begin a sentence; for other n-grams
      it is the number of distinct words seen before them.
    - D is one of three discounts per order, for counts of 1, 2 and more. They follow from the numbers of n-grams with
      counts 1 to 4; 0.5, 1 and 1.5 if there are too few of those.
    - gamma(h) makes the sum 1. Below unigrams the distribution is uniform over the vocabulary, ``</s>`` and ``<unk>``.

    Args:
        sentences: Sequences of words, phones, pieces ..., without ``<s>``, ``</s>`` and ``<unk>``.
        order: Words of the longest n-grams, at least 2 (KenLM reads no unigram models).

    Raises:
        ValueError: no words, one of those three among the words, white space in a word, or an order below 2.
    """
    if order < 2:
        raise ValueError(f"An n-gram model expects an order of at least 2; got {order}.")
    counts = _adjusted(_occurrences(sentences, order))
    vocabulary = len(counts[0]) + 1  # with <unk>
    probs: dict[Words, float] = {(UNKNOWN,): 0.0}
    backoffs: dict[Words, float] = {}
    lower: dict[Words, float] = defaultdict(lambda: 1 / vocabulary)
    for level in counts:
        discounts = _discounts(level)
        totals: dict[Words, int] = defaultdict(int)
        left: dict[Words, float] = defaultdict(float)  # mass that the discounts take from each context
        for words, count in level.items():
            totals[words[:-1]] += count
            left[words[:-1]] += discounts[min(count, 3) - 1]
        for words, count in level.items():
            context = words[:-1]
            own = count - discounts[min(count, 3) - 1] + left[context] * lower[words[1:]]
            probs[words] = own / totals[context]
        backoffs |= {context: left[context] / totals[context] for context in totals}
        lower = probs
    probs[UNKNOWN,] = backoffs.pop(()) / vocabulary
    log10_probs = {words: math.log10(p) for words, p in probs.items()} | {(BEGIN,): _NEVER}
    return NGram(order, log10_probs, {words: math.log10(b) for words, b in backoffs.items()})


def arpa_words(path: str | Path) -> list[str]:
    """Return the words of an ARPA file, without ``<s>``, ``</s>`` and ``<unk>``.

    Raises:
        ValueError: not an ARPA file (a binary model does not list its words).
    """
    words: list[str] = []
    inside = False
    try:
        with Path(path).open(encoding="utf-8") as file:
            for line in file:
                if inside and line.startswith("\\"):
                    return [w for w in words if w not in (BEGIN, END, UNKNOWN)]
                if inside and line.strip():
                    words.append(line.split()[1])
                inside = inside or line.strip() == "\\1-grams:"
    except (UnicodeDecodeError, IndexError):
        pass
    raise ValueError(
        f"{path} is no ARPA file whose words can be read; of a binary model give the words in a file."
    )


def _occurrences(sentences: Iterable[Sequence[str]], order: int) -> list[Counter[Words]]:
    """Count every n-gram, with one counter per order; a sentence begins with one ``<s>``, which is not a unigram."""
    counts: list[Counter[Words]] = [Counter() for _ in range(order)]
    for sentence in sentences:
        for word in sentence:
            if word in (BEGIN, END, UNKNOWN) or word.split() != [word]:
                raise ValueError(
                    f"An n-gram model expects words without spaces, other than {BEGIN}, {END} and {UNKNOWN}; "
                    f"got {word!r}."
                )
        words = (BEGIN, *sentence, END)
        for n, counter in enumerate(counts, 1):
            counter.update(words[i : i + n] for i in range(n == 1, len(words) - n + 1))
    if len(counts[0]) < 2:
        raise ValueError("An n-gram model expects sentences with words in them; there are none.")
    return counts


def _adjusted(counts: list[Counter[Words]]) -> list[Counter[Words]]:
    """Replace counts below the highest order by the number of distinct words seen before an n-gram.

    N-grams that begin a sentence keep their counts: nothing precedes them.
    """
    adjusted = [Counter({w: c for w, c in level.items() if w[0] == BEGIN}) for level in counts[:-1]]
    for level, longer in zip(adjusted, counts[1:]):
        level.update(words[1:] for words in longer)
    return [*adjusted, counts[-1]]


def _discounts(counts: Counter[Words]) -> tuple[float, float, float]:
    """Return the discounts for counts of 1, 2 and 3 or more (Chen & Goodman, equation 17)."""
    sizes = Counter(counts.values())  # number of n-grams by their count
    if all(sizes[k] for k in (1, 2, 3, 4)):
        share = sizes[1] / (sizes[1] + 2 * sizes[2])
        first, second, third = (k - (k + 1) * share * sizes[k + 1] / sizes[k] for k in (1, 2, 3))
        if first > 0 and second > 0 and third > 0:
            return first, second, third
    return _FALLBACK
