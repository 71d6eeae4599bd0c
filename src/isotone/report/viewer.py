"""An alignment to look at and to listen to: click a segment and hear that stretch of the recording."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib.image
import numpy as np
from numpy.typing import NDArray

from isotone.alignment import SILENCE, Alignment, Segment, Tier
from isotone.report.assets import VIEWER_CSS, VIEWER_JS
from isotone.report.markup import data_uri, escape, wav_uri
from isotone.report.spectrum import Array, mono, outline, spectrogram
from isotone.report.style import looks


@dataclass(frozen=True)
class Viewer:
    """Wave, spectrogram and one row a system and tier, with the sound inside the page.

    A click (or Enter) on a segment plays it, a click on the spectrogram plays from there; arrow keys walk
    along a row. The first system is the reference: its boundaries run through all rows.

    Attributes:
        audio: ``(N,)`` mono samples in [-1, 1].
        sample_rate: Samples a second.
        alignments: Alignment by system, the reference first; times from the start of ``audio``.
        tiers: The tiers to show, each where a system has it.
        caption: Shown under it.
    """

    audio: NDArray[np.floating]
    sample_rate: int
    alignments: Mapping[str, Alignment]
    tiers: Sequence[str] = ("words", "phones")
    caption: str = ""

    css = VIEWER_CSS
    script = VIEWER_JS

    def markup(self, key: str) -> str:
        """Its HTML."""
        samples = mono(self.audio, self.sample_rate)
        duration = len(samples) / self.sample_rate
        styles = looks(self.alignments, next(iter(self.alignments), None))
        shown = [
            (name, alignment.tier(tier))
            for tier in self.tiers
            for name, alignment in self.alignments.items()
            if alignment.has(tier)
        ]
        lines = {tier: _lines(self._reference(tier), duration) for tier in self.tiers}
        rows = "".join(
            _row(name, tier, duration, styles[name].colour, lines[tier.name]) for name, tier in shown
        )
        names = "".join(_name(name, tier.name, styles[name].colour) for name, tier in shown)
        # the finest of the reference's tiers is named last
        finest = "".join([line for line in lines.values() if line][-1:])
        wave, picture = _wave(samples), _picture(samples, self.sample_rate)
        what = escape(self.caption or "Alignment")
        caption = f"<figcaption>{what}</figcaption>" if self.caption else ""
        return f"""<figure>
<div class="viewer" id="{key}" data-duration="{duration!r}">
<div class="controls">
<audio controls preload="auto" aria-label="{what}" src="{wav_uri(samples, self.sample_rate)}"></audio>
<label>Zoom <input type="range" min="0" max="5" step="0.25" value="0"></label>
<output aria-live="polite">Click a segment to hear it.</output>
</div>
<div class="body"><div class="names" aria-hidden="true"><div>{duration:.2f} s</div>{names}</div>
<div class="scroller" tabindex="0" role="group" aria-label="{what}"><div class="track">
<div class="picture">{wave}<img src="{picture}" alt="Spectrogram">{finest}</div>
{rows}<div class="cursor" style="left: 0"></div>
</div></div></div></div>{caption}</figure>"""

    def _reference(self, tier: str) -> Tier | None:
        first = next(iter(self.alignments.values()), None)
        return first.tier(tier) if first is not None and first.has(tier) else None


def _name(system: str, tier: str, colour: str) -> str:
    system, tier = escape(system), escape(tier)
    bold = f'<b style="--system: {colour}">{system}</b>'
    return f'<div title="{system}, {tier}">{bold}<span>{tier}</span></div>'


def _row(name: str, tier: Tier, duration: float, colour: str, lines: str) -> str:
    segments = [s for s in tier if s.label]
    buttons = "".join(_button(s, duration, first=i == 0) for i, s in enumerate(segments))
    label = f"{escape(name)}, {escape(tier.name)}"
    opening = f'<div class="row" role="group" aria-label="{label}" style="--system: {colour}">'
    return f"{opening}{buttons}{lines}</div>\n"


def _button(segment: Segment, duration: float, *, first: bool) -> str:
    start, end = float(segment.start), float(min(segment.end, duration))
    score = "" if segment.score is None else f", score {float(segment.score):.2f}"
    says = f"{segment.label}: {start:.3f}\u2013{end:.3f} s ({1000 * (end - start):.0f} ms{score})"
    silent = ' class="silent"' if segment.label in SILENCE else ""
    # one stop for the tab key a row; arrow keys go on from there
    return (
        f'<button type="button"{silent} tabindex="{0 if first else -1}" title="{escape(says)}" '
        f'data-start="{start!r}" data-end="{end!r}" '
        f'style="left: {100 * start / duration:.4f}%; width: {100 * (end - start) / duration:.4f}%">'
        f'<span dir="auto">{escape(segment.label)}</span></button>'
    )


def _wave(samples: Array) -> str:
    """The outline as an inline SVG of 0..1000 by -1..1, stretched by the page."""
    _, low, high = outline(samples, columns=1500)
    peak = float(np.abs(samples).max()) or 1.0
    x = np.linspace(0, 1000, len(low))
    there = [f"{a:.1f},{-b / peak:.3f}" for a, b in zip(x, high)]
    back = [f"{a:.1f},{-b / peak:.3f}" for a, b in zip(x[::-1], low[::-1])]
    return (
        '<svg viewBox="0 -1.05 1000 2.1" preserveAspectRatio="none" aria-hidden="true">'
        f'<polygon points="{" ".join(there + back)}" fill="currentColor" stroke="currentColor" '
        'stroke-width="1" vector-effect="non-scaling-stroke" stroke-linejoin="round"></polygon></svg>'
    )


def _picture(samples: Array, sample_rate: int) -> str:
    levels, _, _ = spectrogram(samples, sample_rate, columns=3000)
    levels = 3 * np.round(levels / 3)  # steps of 3 dB halve the file
    # every second row: about 60 Hz each, as fine as the picture is shown
    buffer = io.BytesIO()
    matplotlib.image.imsave(buffer, levels[::2], cmap="Greys", origin="lower", format="png")
    return data_uri("image/png", buffer.getvalue())


def _lines(tier: Tier | None, duration: float) -> str:
    """The boundaries of a tier as an SVG that covers what it is put into; nothing where there are none."""
    times = sorted({t for s in tier or () if s.label for t in (s.start, s.end)})
    if not times:
        return ""
    path = " ".join(f"M{1000 * t / duration:.2f} 0V1" for t in times)
    return (
        '<svg class="lines" viewBox="0 0 1000 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="0.7" stroke-opacity="0.6" '
        'vector-effect="non-scaling-stroke"></path></svg>'
    )
