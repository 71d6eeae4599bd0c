"""The next words of a text as a graph. It may end anywhere; the reader may leave words out, and say others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.lattices import unfold
from isotone.pipeline.stars import with_extra_speech
from isotone.pipeline.texts import TextToAlign, targets_of, with_pauses
from isotone.text.transcript import Transcript
from isotone.types import Targets, TokenGraph
from isotone.types.graph import Ways

#: Cost in nats of going on at a later word, besides that of the star before it.
SKIP_COST = 15.0

#: Cost in nats of every token of the text that comes after the end, while the reader speaks and keeps to the text.
#: Without it, an alignment that may end anywhere stays behind in speech that fits badly: fewer tokens then fit better
#: than all that were said.
UNREAD_COST = 2.0


@dataclass(frozen=True)
class Ahead:
    """Some words of a text, ready to be aligned.

    Attributes:
        text: Their tokens in all readings, with pauses, and stars that follow the words.
        targets: The same as targets with a graph; stars are -1.
        first: Number of the first of the words.
        count: Number of words.
    """

    text: TextToAlign
    targets: Targets
    first: int
    count: int


@dataclass(frozen=True)
class Part:
    """The part of a text to align.

    Attributes:
        first, last: Its words, from ``first`` to before ``last``.
        begun: The audio begins with the first word; otherwise pauses or other speech may come before.
        ends: The audio ends after a word. Otherwise it may end anywhere in one.
        strays: The reader may leave words out, and say others.
        keen: Tokens of the text that come after the end cost :data:`UNREAD_COST`.
    """

    first: int
    last: int
    begun: bool
    ends: bool
    strays: bool
    keen: bool = False


class Words:
    """A text of which parts are aligned.

    Args:
        pipeline: The model and its use.
        transcript: The text, with words.
    """

    def __init__(self, pipeline: ForcedPipeline, transcript: Transcript) -> None:
        self.pipeline, self.transcript = pipeline, transcript
        self._first: dict[int, int] = {}
        self._last: dict[int, int] = {}
        for token, word in enumerate(transcript.token_words):
            if word is not None:
                self._first.setdefault(word, token)
                self._last[word] = token

    def __len__(self) -> int:
        return len(self.transcript.words)

    def ahead(self, part: Part) -> Ahead:
        """Make the graph of a part."""
        tokenizer, aligner = self.pipeline.model.tokenizer, self.pipeline.aligner
        text = with_pauses(tokenizer, self._cut(part.first, part.last), aligner)
        lattice = unfold(with_extra_speech(text) if part.strays else text)
        owners = lattice.text.transcript.token_words
        ways = _changed(lattice.ways, owners, part)
        graph = TokenGraph.from_lists(
            [ways],
            [list(zip(lattice.shortest, (own.longest_s for own in lattice.parts)))],
            [[own.half for own in lattice.parts]],
            [lattice.pauses],
        )
        targets = replace(targets_of([lattice.text]), graph=graph)
        return Ahead(lattice.text, targets, part.first, part.last - part.first)

    def _cut(self, first: int, last: int) -> Transcript:
        """Return the words of a part, and the tokens between them."""
        whole = self.transcript
        tokens = slice(self._first[first], self._last[last - 1] + 1)
        return replace(
            whole,
            words=whole.words[first:last],
            tokens=whole.tokens[tokens],
            token_words=tuple(None if w is None else w - first for w in whole.token_words[tokens]),
            graphs=whole.graphs[first:last],
            stops=whole.stops[tokens],
            readings=whole.readings[tokens],
        )


def _changed(given: Sequence[Ways], owners: Sequence[int | None], part: Part) -> list[Ways]:
    """Return the arcs of a text with those that leave words out, and with its free ends."""
    ways = [list(some) for some in given[:-1]]
    count = part.last - part.first
    extra = {u for u, owner in enumerate(owners) if owner is not None and owner >= count}
    for u, some in enumerate(ways):
        came = {p for p, _ in some}
        if u not in extra and came & extra:  # what follows a star may follow an earlier one
            some += [(p, SKIP_COST) for p in extra - came if p < max(came & extra)]
        if part.begun and owners[u] != 0:
            some[:] = [(p, cost) for p, cost in some if p >= 0]
    last = _exits(ways, owners) if part.ends else range(len(owners))
    if not part.keen:
        return [*ways, [(u, 0.0) for u in last]]
    read = _read(ways, owners)
    return [*ways, [(u, UNREAD_COST * (max(read) - read[u])) for u in last]]


def _read(ways: Sequence[Ways], owners: Sequence[int | None]) -> list[int]:
    """Count the tokens of words up to each token, and with it, along the longest way."""
    read: list[int] = []
    for u, some in enumerate(ways):
        read.append(max((read[p] for p, _ in some if p >= 0), default=0) + (owners[u] is not None))
    return read


def _exits(ways: Sequence[Ways], owners: Sequence[int | None]) -> list[int]:
    """List the tokens that words end with, and those of no word of the text."""
    left = {p for u, some in enumerate(ways) for p, _ in some if p >= 0 and owners[p] != owners[u]}
    return sorted(left | {u for u, owner in enumerate(owners) if owner is None or u == len(owners) - 1})
