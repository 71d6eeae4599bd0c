"""Tables of a run's report, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isotone.evaluation import markdown_table

_SCORES = {"MAP": "{:.4f}", "MRR": "{:.4f}", "ODC": "{:.1f}", "ms_per_pair": "{:.4f}", "queries": "{:.0f}"}
_INDEXES = {"retrieved": "{:.1f}", "share": "{:.3f}", "MAP": "{:.4f}"}
_ALONE = {"MAP": "{:.4f}", "MRR": "{:.4f}"}


def tables(report: Mapping[str, Any]) -> str:
    """Write a report's scores; then, where it has them, its indexes, its set vectors and its plans' distances.

    Args:
        report: As ``scores.json`` holds it.
    """
    parts = [_table("method", report["scores"].items(), _SCORES)]
    if "hashing" in report:
        rows = [(name, row) for name, curve in report["hashing"].items() for row in curve]
        parts.append(_table("index", rows, _INDEXES))
        parts.append(_table("set vectors alone", report["set_vectors"].items(), _ALONE))
    if "plan_distance" in report:
        cells = [[name, f"{value:.2f}"] for name, value in report["plan_distance"].items()]
        parts.append(markdown_table(["squared distance of plans", ""], cells))
    return "\n".join(parts)


def _table(name: str, rows: Any, columns: Mapping[str, str]) -> str:
    return markdown_table(
        [name, *columns],
        (
            [key, *(form.format(row[column]) if column in row else "" for column, form in columns.items())]
            for key, row in rows
        ),
    )
