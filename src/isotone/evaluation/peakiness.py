"""Peakiness: the share of frames that are blank although somebody speaks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isotone.alignment import SILENCE, Alignment
from isotone.evaluation.formulas import peakiness
from isotone.evaluation.tracks import TICKS_PER_S, Bools, Relabel, encode

if TYPE_CHECKING:
    from isotone.types import Grid


def silent_frames(
    reference: Alignment,
    frames: int,
    tier: str = "phones",
    grid: Grid | None = None,
    silence: Collection[str] = SILENCE,
    relabel: Relabel | None = None,
) -> Bools:
    """Find the frames of silence in the reference: those whose centre lies in no labelled segment.

    Args:
        reference: Its tier; gaps are silence, and so are segments with a label of ``silence``.
        frames: Number of frames.
        tier: Name of the tier.
        grid: Times of the frames; by default they divide the duration evenly.
        silence: Labels that mean silence.
        relabel: Labels to rename first.

    Returns:
        ``(frames,)`` bool.
    """
    track = encode(reference.tier(tier), {}, silence, relabel)
    hop_s, offset_s = (grid.hop_s, grid.offset_s) if grid else (reference.duration / max(1, frames), 0.0)
    centres = np.rint((offset_s + (np.arange(frames) + 0.5) * hop_s) * TICKS_PER_S)
    # the segment that started last before a centre holds it, or none does; -1, the sentinel: none has started
    at = np.searchsorted(track.starts, centres, side="right") - 1
    return centres >= np.append(track.ends, 0)[at]


def peaky(
    blank: Sequence[npt.ArrayLike | tuple[int, int]],
    references: Sequence[Alignment] | None = None,
    tier: str = "phones",
    grid: Grid | None = None,
    silence: Collection[str] = SILENCE,
) -> float | None:
    """Compute the peakiness of a model over a corpus: see :func:`isotone.evaluation.formulas.peakiness`.

    Args:
        blank: One per utterance: ``(T,)`` bool, true where the most likely label of a frame is the blank or
            the word delimiter; or the pair (such frames, all frames).
        references: Alignments whose share of silence is subtracted (the paper's TIMIT column); without
            them the raw share (its AMI column).
        tier: The references' tier.
        grid: Times of the frames; by default they divide an utterance's duration evenly.
        silence: Labels that mean silence.

    Returns:
        Percent, at least 0; ``None``, undefined, without utterances.

    Raises:
        ValueError: an utterance without frames, more blank frames than frames, or not one reference per
            utterance.
    """
    if references is not None and len(references) != len(blank):
        raise ValueError(f"peaky needs one reference an utterance; got {len(references)} for {len(blank)}.")
    counts = [blank_count(b) for b in blank]
    blank_share = sum(b / n for b, n in counts)
    silence_share = 0.0
    if references is not None:
        silence_share = sum(
            silent_frames(r, n, tier, grid, silence).mean() for r, (_, n) in zip(references, counts)
        )
    return float(peakiness(blank_share, silence_share, len(counts))) if counts else None


def blank_count(blank: npt.ArrayLike | tuple[int, int], name: str = "an utterance") -> tuple[int, int]:
    """Return blank frames and all frames of an utterance, from a row of bools or the two counts.

    Raises:
        ValueError: no frames, or more blank frames than frames.
    """
    if isinstance(blank, tuple):
        blanks, frames = int(blank[0]), int(blank[1])
    else:
        row = np.asarray(blank, dtype=bool).ravel()
        blanks, frames = int(row.sum()), len(row)
    if not 0 <= blanks <= frames or frames == 0:
        raise ValueError(
            f"Peakiness of {name} expects 0 <= blank frames <= frames, frames > 0; got {blanks} of {frames}."
        )
    return blanks, frames
