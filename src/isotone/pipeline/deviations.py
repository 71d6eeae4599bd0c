"""Deviations of a text from what is said: words without times, words that may not have been said, and other speech."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from isotone.alignment import Absent, Segment
from isotone.pipeline.stars import STAR

#: Of a right text fewer words in a row are missing, and a smaller share; speech besides is shorter.
LEAST_RUN, LONG_EXTRA_S, DOUBTED_SHARE = 2, 1.0, 0.01

_NAMED, _FIRST = 5, 4


class Deviations(NamedTuple):
    """Deviations of a text.

    Attributes:
        missing: Words that were not said, and have no times.
        unlikely: Segments of words that may not have been said.
        extra: Segments of speech that is not in the text.
        run: Most words in a row that are missing or unlikely, where one at least is missing.
    """

    missing: Sequence[Absent]
    unlikely: Sequence[Segment]
    extra: Sequence[Segment]
    run: int

    @classmethod
    def among(
        cls,
        segments: Sequence[Segment],
        numbers: Sequence[int],
        given: int,
        missing: Sequence[Absent],
        unlikely: Collection[int],
    ) -> Deviations:
        """Find the deviations of a text of so many words among the segments of its words.

        Args:
            segments, numbers: The tier of words, and for every segment the word's number; stars come after the text's.
            given: Number of the words of the text.
            missing: Words that have no times.
            unlikely: Numbers of words that may not have been said.
        """
        rows = list(zip(segments, numbers))
        doubted, extra = [s for s, n in rows if n in unlikely], [s for s, n in rows if n >= given]
        # a letter per word in order of the text: missing, unlikely, or likely; none for stars, which divide no row
        letters = ["u" if n in unlikely else " " if n < given else "" for n in numbers]
        counts = Counter(word.after for word in missing)
        order = "".join("m" * counts[i] + letter for i, letter in enumerate([*letters, ""]))
        run = max((len(row) for row in order.split() if "m" in row), default=0)
        return cls(missing, doubted, extra, run)

    def of(self, words: int) -> bool:
        """Tell if a text of so many words is not what is said.

        In a hundred words one may be missing, for then it is mostly the judgement that errs.
        """
        longest_s = max((star.duration for star in self.extra), default=0.0)
        if self.run >= LEAST_RUN or longest_s >= LONG_EXTRA_S:
            return True
        found = len(self.missing) + len(self.unlikely) + len(self.extra)
        return found > 0 and found >= DOUBTED_SHARE * words

    def notes(self, segments: Sequence[Segment]) -> Iterator[str]:
        """Iterate over sentences for people.

        Args:
            segments: The tier of words.
        """
        if self.missing:
            named = []
            for after, group in groupby(self.missing, lambda word: word.after):
                where = f"after {segments[after - 1].end:.2f} s" if after else "at the beginning"
                named.append(f"{named_by([word.label for word in group])} {where}")
            one = len(self.missing) == 1
            count = (
                "1 word was not said and has" if one else f"{len(self.missing)} words were not said and have"
            )
            yield f"{count} no times: {listed(named)}"
        if self.unlikely:
            named = [f"{word.label!r} at {word.start:.2f} s" for word in self.unlikely]
            count = "1 word" if len(named) == 1 else f"{len(named)} words"
            yield f"{count} may not have been said: {listed(named)}"
        if self.extra:
            spans = [f"{s.start:.2f} to {s.end:.2f} s" for s in self.extra]
            yield f"speech that is not in the text, marked {STAR}: {listed(spans)}"


def named_by(labels: Sequence[str]) -> str:
    """Quote words, of many the first and the last."""
    shown = labels if len(labels) <= 2 * _FIRST else [*labels[:_FIRST], "...", *labels[-_FIRST:]]
    return repr(" ".join(shown))


def listed(named: Sequence[str], most: int = _NAMED) -> str:
    """List some of many things."""
    more = f" and {len(named) - most} more" if len(named) > most else ""
    return ", ".join(named[:most]) + more
