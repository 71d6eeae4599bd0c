"""An alignment to look at, to listen to and to correct: a click on a segment plays that part of the recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import SILENCE, Alignment, Tier
from isotone.report.doubts import Doubt, confidence, doubtful_boundaries, doubtful_segments
from isotone.report.markup import fill, read
from isotone.report.recording import chunks, packed
from isotone.report.spreads import Spread, labelled, margins, spreads
from isotone.report.style import OTTC, looks

#: The parts of the script, in order: each uses those before it.
_SCRIPTS = ("recording", "sound", "spectrogram", "tiers", "drawing", "viewer")


def clock(seconds: float) -> str:
    """Write a time for people: ``3.42 s``, ``1:03.42`` or ``1:00:02.18``."""
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(100 * seconds), 6000)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}:{minutes:02}" if hours else f"{minutes}") + f":{rest // 100:02}.{rest % 100:02}"


@dataclass(frozen=True)
class Row:
    """A tier of a system, as the viewer shows it.

    Attributes:
        system: Name of the system.
        tier: The tier.
        own: True for the first system, whose boundaries run through the picture.
        compared: True where other systems have the tier.
        spreads: Intervals of the boundaries, for rows of the first: over the systems, or by its margins where there are
            no others.
    """

    system: str
    tier: Tier
    own: bool
    compared: bool = False
    spreads: list[Spread | None] | None = None

    def values(self, colour: str) -> dict[str, Any]:
        """Return plain values for the script; segments are label, start, end, confidence and whether it is silence."""
        segments = [
            [s.label, float(s.start), float(s.end), confidence(s), s.label in SILENCE]
            for s in labelled(self.tier)
        ]
        return {
            "system": self.system, "tier": self.tier.name, "own": self.own, "colour": colour,
            "segments": segments, "spreads": self.spreads,
        }  # fmt: skip


@dataclass(frozen=True)
class Viewer:
    """Wave, spectrogram and one row per system and tier, with the sound inside the page.

    A click on a segment plays it, a click on the picture plays from there; keys are those of Praat. The first
    system's boundaries run through the picture.

    Attributes:
        audio: ``(N,)`` mono samples in [-1, 1].
        sample_rate: Samples per second.
        alignments: Alignment by system, the first is the reference or what is to be checked; times from the start
            of ``audio``.
        tiers: The tiers to show, each where a system has it. None: all of the first system's, then others.
        caption: Shown under it.
        save_as: File name of the first system's corrected TextGrid. Empty: nothing can be corrected, and no doubtful
            places are listed.
    """

    audio: NDArray[np.floating]
    sample_rate: int
    alignments: Mapping[str, Alignment]
    tiers: Sequence[str] | None = ("words", "phones")
    caption: str = ""
    save_as: str = ""

    css = read("viewer.css")
    script = "(() => {\n'use strict';\n" + "".join(read(f"viewer_{n}.js") for n in _SCRIPTS) + "})();\n"

    def markup(self, key: str) -> str:
        """Return its HTML."""
        samples = np.asarray(self.audio)
        rows = self.rows()
        first = next(iter(self.alignments), None)
        colours = {name: look.colour for name, look in looks(self.alignments, first).items()}
        if first is not None and self.save_as:
            colours[first] = OTTC  # what is worked on is no grey reference
        data = packed(samples, self.sample_rate) | {
            "saveAs": self.save_as,
            "tiers": [row.values(colours[row.system]) for row in rows],
        }
        return fill(
            "viewer",
            key=key, caption=self.caption, clock=clock, rows=rows, colours=colours,
            duration=data["duration"], correct=bool(self.save_as), lists=self.lists(rows) if self.save_as else [],
            data=data, chunks=chunks(samples, self.sample_rate),
        )  # fmt: skip

    def rows(self) -> list[Row]:
        """Return the rows: by tier, and for every tier by system."""
        names = self.tiers
        if names is None:
            names = list(dict.fromkeys(t.name for a in self.alignments.values() for t in a.tiers))
        found = []
        for name in names:
            having = {s: a.tier(name) for s, a in self.alignments.items() if a.has(name)}
            for system, tier in having.items():
                own = system == next(iter(self.alignments))
                others = [t for s, t in having.items() if s != system]
                between = (spreads(tier, others) if others else margins(tier)) if own else None
                found.append(Row(system, tier, own, own and bool(others), between))
        return found

    def lists(self, rows: Sequence[Row]) -> list[tuple[str, int, list[Doubt]]]:
        """Return the lists of doubtful places: title, number of the row, places; the words come first."""
        own = [(i, row) for i, row in enumerate(rows) if row.own and len(row.tier)]
        found = []
        for i, row in own[:1]:
            found.append((f"Least sure {row.tier.name}", i, doubtful_segments(labelled(row.tier))))
        for i, row in own[-1:]:  # tiers are named from coarse to fine
            places = doubtful_boundaries(labelled(row.tier), row.spreads if row.compared else None)
            what = "Boundaries furthest apart" if row.compared else "Least sure boundaries"
            found.append((f"{what}: {row.tier.name}", i, places))
        return found
