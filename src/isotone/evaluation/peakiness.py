"""Peakiness: the share of speech in which a model's most likely label is no speech."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isotone.alignment import SILENCE, Alignment
from isotone.evaluation.tracks import TICKS_PER_S, Bools, Relabel, encode

#: Names of the numbers of :func:`count_quiet`.
QUIET_SUMS = ("quiet_speech", "speech_frames", "quiet_share", "silent_share", "quiet_utterances")


@dataclass(frozen=True, eq=False)
class QuietFrames:
    """The frames of an utterance whose most likely label is the blank, the word delimiter or a silence.

    Attributes:
        quiet: ``(T,)`` bool.
        hop_s: Seconds per frame. None: the frames divide the utterance evenly.
        offset_s: Start of the first frame, in seconds; only with ``hop_s``.

    Raises:
        ValueError: no frames, or a ``hop_s`` that is not above 0.
    """

    quiet: Bools
    hop_s: float | None = None
    offset_s: float = 0.0

    def __post_init__(self) -> None:
        row = np.asarray(self.quiet, dtype=bool).ravel()
        if not len(row) or (self.hop_s is not None and not self.hop_s > 0):
            raise ValueError(
                "QuietFrames expects one or more frames, and a hop_s above 0 or None; "
                f"got {len(row)} frames and {self.hop_s}."
            )
        object.__setattr__(self, "quiet", row)

    @classmethod
    def from_spans(
        cls,
        frames: int,
        spans: Iterable[tuple[int, int]],
        hop_s: float | None = None,
        offset_s: float = 0.0,
    ) -> QuietFrames:
        """Make an utterance's frames from spans of quiet ones: first frame, and one past the last.

        Raises:
            ValueError: a span that is empty, not after the one before it, or outside of the frames.
        """
        row = np.zeros(max(0, frames), bool)
        before = 0
        for first, end in spans:
            if not before <= first < end <= frames:
                raise ValueError(
                    f"Spans of quiet frames expect 0 <= first < end <= {frames}, in order; got {(first, end)}."
                )
            row[first:end] = True
            before = end
        return cls(row, hop_s, offset_s)

    def spans(self) -> list[tuple[int, int]]:
        """Return the spans of quiet frames: first frame, and one past the last."""
        edges = np.flatnonzero(np.diff(self.quiet, prepend=False, append=False)).tolist()
        return list(zip(edges[::2], edges[1::2]))

    def centres(self, duration: float) -> npt.NDArray[np.int64]:
        """Return the centres of the frames of an utterance of ``duration`` seconds: ``(T,)`` ticks."""
        frames = len(self.quiet)
        hop_s, offset_s = (duration / frames, 0.0) if self.hop_s is None else (self.hop_s, self.offset_s)
        return np.rint((offset_s + (np.arange(frames) + 0.5) * hop_s) * TICKS_PER_S).astype(np.int64)


def silent_frames(
    reference: Alignment,
    frames: QuietFrames,
    tier: str = "phones",
    silence: Collection[str] = SILENCE,
    relabel: Relabel | None = None,
) -> Bools:
    """Find the frames of silence in the reference: those whose centre lies in no labelled segment.

    Args:
        reference: Its tier; gaps are silence, and so are segments with a label of ``silence``.
        frames: The frames; what the model says in them is not read.
        tier: Name of the tier.
        silence: Labels that mean silence.
        relabel: Labels to rename first.

    Returns:
        ``(T,)`` bool.
    """
    track = encode(reference.tier(tier), {}, silence, relabel)
    centres = frames.centres(reference.duration)
    # the segment that started last before a centre holds it, or none does; -1, the sentinel: none has started
    at = np.searchsorted(track.starts, centres, side="right") - 1
    return centres >= np.append(track.ends, np.iinfo(np.int64).min)[at]


def count_quiet(frames: QuietFrames, silent: Bools) -> tuple[float, ...]:
    """Count what the measures of peakiness need of an utterance (:mod:`isotone.evaluation.formulas`).

    Args:
        frames: What the model says.
        silent: ``(T,)`` bool, the reference's silence (:func:`silent_frames`).

    Returns:
        The numbers of frames of speech that are quiet, and of all frames of speech; the shares of quiet and of silent
        frames; and 1, the utterance: :data:`QUIET_SUMS`.
    """
    speech = ~silent
    return (frames.quiet & speech).sum(), speech.sum(), frames.quiet.mean(), silent.mean(), 1.0
