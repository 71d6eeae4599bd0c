"""Rows of a batch: those that can be aligned, and each one by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from isotone.alignment import AlignmentError
from isotone.pipeline.texts import TextToAlign
from isotone.types import Coupling, Emissions, Grid

Value = TypeVar("Value")


class Row(NamedTuple):
    """One aligned utterance of a batch.

    Attributes:
        emissions: Emissions of some heads, each of one row.
        text: The text as it was aligned.
        times: Start and end of every token, seconds.
    """

    emissions: list[Emissions]
    text: TextToAlign
    times: list[tuple[float, float]]


def each_row(
    emissions: Sequence[Emissions], timing: Grid, texts: Sequence[TextToAlign], coupling: Coupling
) -> Iterator[Row]:
    """Iterate over the rows of an aligned batch.

    Args:
        emissions: Emissions of some heads, all of the same utterances.
        timing: Grid of the coupling's frames.
        texts: Texts as they were aligned.
        coupling: Coupling of frames and tokens.
    """
    spans = coupling.spans().tolist()
    for i, text in enumerate(texts):
        times = [
            (timing.seconds(start), timing.seconds(end)) for start, end in spans[i][: len(text.optional)]
        ]
        yield Row([head.rows([i]) for head in emissions], text, times)


def alignable(
    run: Callable[[list[int]], Value], count: int
) -> tuple[list[int], Value | None, dict[int, AlignmentError]]:
    """Run on the rows of a batch that can be aligned, and leave out those that raise an AlignmentError.

    Args:
        run: Called with row numbers, until it raises no AlignmentError.
        count: B.

    Returns:
        The rows that were aligned, in order; the value of the last call, None where no row is left; and the error of
        every other row.
    """
    rows = list(range(count))
    errors: dict[int, AlignmentError] = {}
    while rows:
        try:
            return rows, run(rows), errors
        except AlignmentError as error:
            if error.row is None and len(rows) > 1:  # the aligner does not name the row: try each by itself
                found = {row: _error_of(run, row) for row in rows}
                if not any(found.values()):
                    raise
                errors |= {row: e for row, e in found.items() if e is not None}
                rows = [row for row in rows if found[row] is None]
            else:
                # error.row counts among the rows of this call, not of the batch
                errors[rows.pop(error.row or 0)] = error
    return rows, None, errors


def _error_of(run: Callable[[list[int]], object], row: int) -> AlignmentError | None:
    try:
        run([row])
    except AlignmentError as error:
        return error
    return None
