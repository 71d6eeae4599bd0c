"""Figures of alignments, training and scores, and one self-contained HTML page to show them on."""

from isotone.report.curves import collar_figure, training_figure
from isotone.report.errors import error_figure
from isotone.report.evolution import evolution_figure
from isotone.report.frontier import frontier_figure
from isotone.report.html import write_report
from isotone.report.overview import Example, Overview, overview_report, overview_sections
from isotone.report.sections import Audio, Code, Estimate, Heading, Image, Section, Table, Text, Tiles
from isotone.report.style import save
from isotone.report.tiers import tiers_figure
from isotone.report.viewer import Viewer
from isotone.report.weights import WeightSnapshot, weights_figure

__all__ = [
    "Audio", "Code", "Estimate", "Example", "Heading", "Image", "Overview", "Section", "Table", "Text", "Tiles",
    "Viewer", "WeightSnapshot", "collar_figure", "error_figure", "evolution_figure", "frontier_figure",
    "overview_report", "overview_sections", "save", "tiers_figure", "training_figure", "weights_figure",
    "write_report",
]  # fmt: skip
