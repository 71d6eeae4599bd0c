"""An alignment to read, to save, and to look at in a notebook."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import SILENCE, Alignment, Segment, Tier
from isotone.batch.writers import Spec, writer_for
from isotone.files import put
from isotone.format.files import FormatError, for_suffix, suffixes
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

    def save(
        self, path: Path | str, format: Spec | None = None, *, overwrite: bool = False, **options: Any
    ) -> Path:
        """Write the alignment to a file.

        Args:
            path: The file.
            format: Name of its format (``isotone.formats.names()``), or a mapping of its name and options. Default: by
                the suffix of ``path``.
            overwrite: Replace an existing file.
            options: Options of the format, such as ``level="word"`` of subtitles.

        Returns:
            The path.

        Raises:
            FileExistsError: the file exists, and ``overwrite`` is False.
            FormatError: no format has the suffix.
            LookupError: there is no such format, or the alignment lacks its tier.
            OptionError: the format has no such option.
            OSError: the file cannot be written.
        """
        path = Path(path)
        writer = self._writer(path, format, options)
        content = writer.dumps(self.alignment).encode()
        if os.path.lexists(path) and not overwrite:
            raise FileExistsError(
                f"{path} exists: choose another name, or save(..., overwrite=True) to replace it."
            )
        put(path, content, replace=overwrite)
        for note in writer.notes(self.alignment):
            warnings.warn(f"{path}: {note}", stacklevel=2)
        return path

    def _writer(self, path: Path, format: Spec | None, options: Mapping[str, Any]) -> Format:
        if format is not None:
            spec = {**({"name": format} if isinstance(format, str) else format), **options}
            return writer_for(spec, [t.name for t in self.alignment.tiers])
        # some formats have endings of two parts
        found = for_suffix("".join(path.suffixes[-2:]), **options) or for_suffix(path.suffix, **options)
        if found is None:
            raise FormatError(
                f"{path}: no format has the suffix {path.suffix!r}; these have one: "
                f"{', '.join(suffixes(read=False))}. save(..., format='textgrid') takes any name."
            )
        return found

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
