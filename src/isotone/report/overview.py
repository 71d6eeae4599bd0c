"""A page that compares systems: scores, trade-off, collars, errors, training, and examples to listen to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.alignment import Alignment
from isotone.report.curves import collar_figure, training_figure
from isotone.report.errors import error_figure
from isotone.report.frontier import frontier_figure
from isotone.report.html import write_report
from isotone.report.sections import Heading, Image, Section, Table, Text
from isotone.report.viewer import Viewer


@dataclass(frozen=True)
class Example:
    """One utterance to look at and to listen to.

    Attributes:
        title: Its id and its text.
        audio: ``(N,)`` mono samples in [-1, 1].
        sample_rate: Samples per second.
        alignments: Alignment by system, the reference first.
        note: What to look for.
    """

    title: str
    audio: NDArray[np.floating]
    sample_rate: int
    alignments: Mapping[str, Alignment]
    note: str = ""


@dataclass(frozen=True)
class Overview:
    """Results of several systems; an empty part is left out of the page.

    Attributes:
        scores: The headline table.
        frontier: For every system, its error rate and IDR in percent.
        frontier_spreads: For every system, the standard deviations of both over its seeds, where known.
        error: Name of that error rate, with its unit.
        collars: For every system, start F1 in percent by collar in seconds.
        collar_bands: Confidence intervals of ``collars``, in percent.
        errors: For every system, signed boundary errors in seconds.
        history: For every system, what training logged.
        examples: Utterances to listen to.
        tiers: Tiers shown of the examples.
    """

    scores: Table | None = None
    frontier: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    frontier_spreads: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    error: str = "phone error rate (%)"
    collars: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    collar_bands: Mapping[str, Mapping[float, tuple[float, float]]] | None = None
    errors: Mapping[str, NDArray[np.floating]] = field(default_factory=dict)
    history: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    examples: Sequence[Example] = ()
    tiers: Sequence[str] = ("words", "phones")


def overview_sections(overview: Overview) -> list[Section]:
    """Return the page's sections, for use in a larger page."""
    parts: list[Section] = []
    if overview.scores is not None:
        parts += [Heading("Results"), overview.scores]
    if overview.frontier:
        points = "; ".join(f"{n}: {x:.2f} % errors, IDR {y:.2f} %" for n, (x, y) in overview.frontier.items())
        caption = "Error rate against intersection duration ratio (IDR). The upper left corner is best."
        if overview.frontier_spreads:
            caption += " Bars: standard deviation over seeds."
        figure = frontier_figure(overview.frontier, overview.frontier_spreads, error=overview.error)
        parts += [Heading("Text against times"), Image(figure, points, caption)]
    if overview.collars:
        figure = collar_figure(overview.collars, overview.collar_bands)
        caption = (
            "Start F1: a start counts as found within the collar. Shaded: confidence interval, where known."
        )
        parts += [
            Heading("Boundaries"),
            Image(figure, "Start F1 by collar for " + _list(overview.collars), caption),
        ]
    if overview.errors:
        medians = (
            f"{name} {1000 * float(np.median(e)):+.1f} ms" for name, e in overview.errors.items() if len(e)
        )
        caption = "Signed boundary errors (left) and the share of boundaries within a tolerance (right)."
        alt = "Boundary errors; medians: " + "; ".join(medians)
        if not overview.collars:
            parts.append(Heading("Boundaries"))
        parts.append(Image(error_figure(overview.errors), alt, caption))
    if overview.examples:
        hint = "Click a segment to hear it. The thin lines are the boundaries of the first row's system."
        parts += [Heading("Examples"), Text(hint)]
    for example in overview.examples:
        parts.append(Heading(example.title, 3))
        parts.append(
            Viewer(example.audio, example.sample_rate, example.alignments, overview.tiers, example.note)
        )
    if overview.history:
        alt = "Training curves of " + _list(overview.history)
        parts += [Heading("Training"), Image(training_figure(overview.history), alt)]
    return parts


def overview_report(
    path: Path | str,
    title: str,
    overview: Overview,
    *,
    subtitle: str = "",
    facts: Mapping[str, object] | None = None,
) -> Path:
    """Write the page that compares systems.

    Args:
        path: Where it goes.
        title, subtitle, facts: As in :func:`isotone.report.html.write_report`.
        overview: The results.

    Returns:
        The file written.
    """
    return write_report(path, title, overview_sections(overview), subtitle=subtitle, facts=facts)


def _list(names: Mapping[str, object]) -> str:
    return ", ".join(names)
