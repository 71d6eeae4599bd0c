"""Evaluation of labels and times.

Two families of measures from one run: those of the papers on alignment-aware recognisers (start-boundary F1
at a stated collar, intersection duration ratio, peakiness, error rates), and those phoneticians use (boundary
errors in ms, bias, shares within thresholds, R-value), each with a confidence interval; and paired tests
between two systems. :mod:`isotone.evaluation.formulas` has every definition.
"""

from isotone.evaluation.comparison import Comparison, compare
from isotone.evaluation.peakiness import QuietFrames
from isotone.evaluation.report import Metric, Report
from isotone.evaluation.roc import ROC, roc
from isotone.evaluation.scoring import score
from isotone.evaluation.tables import markdown, markdown_table, table

__all__ = [
    "ROC", "Comparison", "Metric", "QuietFrames", "Report", "compare", "markdown", "markdown_table", "roc", "score",
    "table",
]  # fmt: skip
