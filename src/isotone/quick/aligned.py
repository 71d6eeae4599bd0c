"""An alignment to read, to save, and to look at in a notebook."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import SILENCE, Alignment, Segment, Tier
from isotone.batch.writers import writers_for
from isotone.files import put
from isotone.format.files import FormatError, reader
from isotone.interfaces import Format


@dataclass(frozen=True)
class Aligned:
    """The alignment of one recording, as :func:`isotone.align` returns it.

    ``print`` shows a table of words and phones, a notebook the figure.

    Attributes:
        alignment: Tiers with times in seconds, and the score of the text.
        text: The text as aligned.
        model: Name of the model, as given or chosen.
        warnings: Sentences on words that were left out, on times that are unlikely, and on a text that is likely wrong.
        agreement: Agreement of text and recording, see :class:`isotone.pipeline.result.Result`.
        samples: ``(N,)`` float32, the recording at ``sample_rate``.
        sample_rate: Hz.
    """

    alignment: Alignment
    text: str
    model: str
    warnings: tuple[str, ...] = ()
    agreement: float | None = None
    samples: NDArray[np.float32] = field(
        default_factory=lambda: np.zeros(0, np.float32), repr=False, compare=False
    )
    sample_rate: int = 16_000

    @property
    def words(self) -> Tier:
        """The tier of words; KeyError where the text had none."""
        return self.alignment.tier("words")

    @property
    def phones(self) -> Tier:
        """The tier of phones; KeyError where the model has other labels (``alignment.tiers`` has them)."""
        return self.alignment.tier("phones")

    def save(self, path: Path | str, format: str | None = None, *, overwrite: bool = False) -> Path:
        """Write the alignment to a file.

        Args:
            path: The file.
            format: Name of its format (``isotone.formats.names()``). Default: by the suffix of ``path``.
            overwrite: Replace an existing file.

        Returns:
            The path.

        Raises:
            FileExistsError: the file exists, and ``overwrite`` is False.
            FormatError: no format has the suffix.
            LookupError: there is no such format, or the alignment lacks its tier.
            OSError: the file cannot be written.
        """
        path = Path(path)
        content = self._writer(path, format).dumps(self.alignment).encode()
        if os.path.lexists(path) and not overwrite:
            raise FileExistsError(
                f"{path} exists: choose another name, or save(..., overwrite=True) to replace it."
            )
        put(path, content, replace=overwrite)
        return path

    def _writer(self, path: Path, format: str | None) -> Format:
        if format is not None:
            return writers_for([format], [tier.name for tier in self.alignment.tiers])[format]
        try:
            return reader(path)
        except FormatError as error:
            raise FormatError(f"{error} save(..., format='textgrid') takes any name.") from None

    def __str__(self) -> str:
        score = "" if self.alignment.score is None else f", score {self.alignment.score:.2f}"
        head = f"{self.alignment.id}: {self.alignment.duration:.3f} s, model {self.model}{score}"
        return "\n".join([head, *self._rows(), *(f"warning: {warning}" for warning in self.warnings)])

    def _rows(self) -> Iterator[str]:
        """Lines of the table: times of every word, and its phones."""
        first, *others = self.alignment.tiers
        shown = [segment for segment in first if segment.label not in SILENCE]
        width = max([len(segment.label) for segment in shown], default=0)
        yield f"{'start':>9} {'end':>9}  {first.name}"
        for segment in shown:
            parts = " ".join(part.label for tier in others for part in _within(tier, segment))
            yield f"{segment.start:9.3f} {segment.end:9.3f}  {segment.label:{width}}  {parts}".rstrip()

    def _repr_html_(self) -> str | None:
        try:
            from isotone.quick.figure import html  # imports matplotlib
        except ModuleNotFoundError:  # isotone-light has no figures
            return None
        return html(self)


def _within(tier: Tier, word: Segment) -> Iterator[Segment]:
    """Iterate over the segments whose middle lies in a word."""
    return (part for part in tier if word.start <= (part.start + part.end) / 2 < word.end)
