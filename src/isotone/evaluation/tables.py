"""Reports side by side, for a terminal or a README."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table

from isotone.evaluation.comparison import Comparison
from isotone.evaluation.measures import at
from isotone.evaluation.report import Metric, Report


def headline(report: Report) -> list[str]:
    """Return the metrics that a table shows by default."""
    names = [
        at("start_f1", report.collar_s), "idr", "peaky", *report.edits, "error_mean", "error_median", "bias",
        "within_10ms", "within_20ms", "within_25ms", "within_50ms", "within_100ms",
        at("r_value", report.tolerance_s), "iou", "matched",
    ]  # fmt: skip
    return [name for name in names if name in report.metrics]


def table(
    reports: Mapping[str, Report], metrics: Sequence[str] | None = None, title: str | None = None
) -> Table:
    """Make a table of systems side by side, one row per metric, each value with its 95 % confidence interval.

    Args:
        reports: By system.
        metrics: Names, in order; by default the headline metrics. ``list(report.metrics)`` for all.
        title: Above the table; by default tier, strictness and number of utterances.
    """
    out = Table(title=_title(reports) if title is None else title)
    out.add_column("metric")
    for name in reports:
        out.add_column(name, justify="right")
    for row in _cells(reports, metrics):
        out.add_row(*row)
    return out


def markdown(reports: Mapping[str, Report], metrics: Sequence[str] | None = None) -> str:
    """Write the same table in Markdown."""
    return markdown_table(["metric", *reports], _cells(reports, metrics), numbers_right=True)


def comparison_markdown(comparison: Comparison, names: tuple[str, str] = ("a", "b")) -> str:
    """Write a comparison in Markdown: both values, the difference with its interval, and the two p values."""
    head = ["metric", *names, f"{names[0]} - {names[1]}", "p (bootstrap)", "p (permutation)"]
    rows = []
    for d in comparison.differences.values():
        p = ["-" if v is None else f"{v:.3f}" for v in (d.p_bootstrap, d.p_permutation)]
        rows.append(
            [_label(d.name, d.unit), _value(d.a), _value(d.b), _span(d.difference, d.low, d.high, "+.2f"), *p]
        )
    return markdown_table(head, rows, numbers_right=True)


def _cells(reports: Mapping[str, Report], metrics: Sequence[str] | None) -> list[list[str]]:
    if not reports:
        raise ValueError("A table expects at least one report; got none.")
    if metrics is None:
        # every metric of any report, in the order of the first that has it
        metrics = list(dict.fromkeys(name for report in reports.values() for name in headline(report)))
    else:
        for name in metrics:
            if not any(name in report.metrics for report in reports.values()):
                next(iter(reports.values()))[name]  # raises an error that lists the metrics there are
    rows = []
    for name in metrics:
        found = {system: report.metrics.get(name) for system, report in reports.items()}
        unit = next(m.unit for m in found.values() if m is not None)
        rows.append([_label(name, unit), *(_cell(m) for m in found.values())])
    return rows


def _cell(metric: Metric | None) -> str:
    if metric is None:
        return "-"
    return _span(metric.value, metric.low, metric.high, ".2f")


def _span(value: float | None, low: float | None, high: float | None, how: str) -> str:
    if value is None:
        return "undefined"
    if low is None or high is None:
        return f"{value:{how}}"
    return f"{value:{how}} ({low:{how}} .. {high:{how}})"


def _value(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"


def _label(name: str, unit: str) -> str:
    return f"{name} ({unit})"


def _title(reports: Mapping[str, Report]) -> str:
    kinds = {
        f"{r.tier}, {'labels and boundaries' if r.strict else 'boundaries only'}, {len(r.ids)} utterances"
        for r in reports.values()
    }
    return "; ".join(sorted(kinds))


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers_right: bool = False
) -> str:
    """Write a table in Markdown; a ``|`` inside a cell is escaped.

    Own code: tabulate pads cells, which would change every table.md written before, and escapes nothing.

    Args:
        head: Names of the columns.
        rows: Cells; other values than text are converted by ``str``.
        numbers_right: Align all columns but the first to the right.

    Raises:
        ValueError: a row of another length than the head.
    """

    def line(cells: Sequence[object]) -> str:
        if len(cells) != len(head):
            raise ValueError(
                f"A table of {len(head)} columns got a row of {len(cells)} cells: {list(cells)}."
            )
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |\n"

    rule = ["---", *["---:" if numbers_right else "---"] * (len(head) - 1)]
    return "".join([line(head), line(rule), *map(line, rows)])
