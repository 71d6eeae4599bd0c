"""An alignment to look at and to listen to: a click on a segment plays that part of the recording."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.image
import numpy as np
from numpy.typing import NDArray

from isotone.alignment import SILENCE, Alignment, Segment, Tier
from isotone.report.markup import data_uri, fill, read, wav_uri
from isotone.report.spectrum import Array, mono, outline, spectrogram
from isotone.report.style import looks


@dataclass(frozen=True)
class Viewer:
    """Wave, spectrogram and one row per system and tier, with the sound inside the page.

    A click (or Enter) on a segment plays it, a click on the spectrogram plays from there; arrow keys walk
    along a row. The first system is the reference: its boundaries run through all rows.

    Attributes:
        audio: ``(N,)`` mono samples in [-1, 1].
        sample_rate: Samples per second.
        alignments: Alignment by system, the reference first; times from the start of ``audio``.
        tiers: The tiers to show, each where a system has it.
        caption: Shown under it.
    """

    audio: NDArray[np.floating]
    sample_rate: int
    alignments: Mapping[str, Alignment]
    tiers: Sequence[str] = ("words", "phones")
    caption: str = ""

    css = read("viewer.css")
    script = read("viewer.js")

    def markup(self, key: str) -> str:
        """Return its HTML."""
        samples = mono(self.audio, self.sample_rate)
        duration = len(samples) / self.sample_rate
        styles = looks(self.alignments, next(iter(self.alignments), None))
        shown = [
            (name, alignment.tier(tier))
            for tier in self.tiers
            for name, alignment in self.alignments.items()
            if alignment.has(tier)
        ]
        boundaries = {tier: _boundaries(self._reference(tier), duration) for tier in self.tiers}
        rows = [
            {
                "system": name, "tier": tier.name, "colour": styles[name].colour,
                "segments": [_segment(s, duration) for s in tier if s.label], "boundaries": boundaries[tier.name],
            }
            for name, tier in shown
        ]  # fmt: skip
        return fill(
            "viewer",
            key=key, duration=duration, caption=self.caption, rows=rows,
            # tiers are named from coarse to fine
            finest="".join([path for path in boundaries.values() if path][-1:]),
            sound=wav_uri(samples, self.sample_rate), wave=_wave(samples),
            picture=_picture(samples, self.sample_rate),
        )  # fmt: skip

    def _reference(self, tier: str) -> Tier | None:
        first = next(iter(self.alignments.values()), None)
        return first.tier(tier) if first is not None and first.has(tier) else None


def _segment(segment: Segment, duration: float) -> dict[str, Any]:
    """Prepare a segment for the template: times in seconds, position and width in percent."""
    start, end = float(segment.start), float(min(segment.end, duration))
    score = "" if segment.score is None else f", score {float(segment.score):.2f}"
    return {
        "label": segment.label,
        "title": f"{segment.label}: {start:.3f}\u2013{end:.3f} s ({1000 * (end - start):.0f} ms{score})",
        "silent": segment.label in SILENCE,
        "start": start,
        "end": end,
        "left": 100 * start / duration,
        "width": 100 * (end - start) / duration,
    }


def _wave(samples: Array) -> str:
    """Return the outline as points of a polygon, 0..1000 by -1..1; the page stretches it."""
    _, low, high = outline(samples, columns=1500)
    peak = float(np.abs(samples).max()) or 1.0
    x = np.linspace(0, 1000, len(low))
    upper = [f"{a:.1f},{-b / peak:.3f}" for a, b in zip(x, high)]
    lower = [f"{a:.1f},{-b / peak:.3f}" for a, b in zip(x[::-1], low[::-1])]
    return " ".join(upper + lower)


def _picture(samples: Array, sample_rate: int) -> str:
    levels, _, _ = spectrogram(samples, sample_rate, columns=3000)
    levels = 3 * np.round(levels / 3)  # steps of 3 dB halve the file
    # every second row, about 60 Hz each: the page shows no finer detail
    buffer = io.BytesIO()
    matplotlib.image.imsave(buffer, levels[::2], cmap="Greys", origin="lower", format="png")
    return data_uri("image/png", buffer.getvalue())


def _boundaries(tier: Tier | None, duration: float) -> str:
    """Return the boundaries of a tier as an SVG path, 0..1000 wide and 1 high; empty where there are none."""
    times = sorted({t for s in tier or () if s.label for t in (s.start, s.end)})
    return " ".join(f"M{1000 * t / duration:.2f} 0V1" for t in times)
