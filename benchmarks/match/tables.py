"""Errors of times as a row of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from isotone.evaluation.tables import markdown_table

COLLARS_MS = 10, 20, 25, 50, 100


def cells(errors_s: ArrayLike) -> list[str]:
    """Mean and median in ms, and the percentages within each collar."""
    errors = np.abs(np.asarray(errors_s, float)) * 1000
    shares = [f"{100 * (errors <= collar).mean():.1f}" for collar in COLLARS_MS]
    return [f"{errors.mean():.1f}", f"{np.median(errors):.1f}", *shares]


def table(rows: Mapping[str, Sequence[float]], first: str = "system") -> str:
    """Write the errors of every system, in seconds, as a table in Markdown."""
    head = [first, "mean ms", "median ms", *(f"{collar} ms %" for collar in COLLARS_MS)]
    return markdown_table(head, [[name, *cells(errors)] for name, errors in rows.items()], numbers_right=True)
