"""Measure the matching of recordings and print a table in Markdown.

``python -m benchmarks.match readers TIMIT [--model MODEL --layers 0 1 2]``   hand labels carried between readers
``python -m benchmarks.match digits FSDD``        sequences of digits by two speakers
``python -m benchmarks.match music FOLDER``       pieces at changing speed, in noise
``python -m benchmarks.match clips FOLDER``       clips of them inside the piece
``python -m benchmarks.match hour FOLDER``        an hour against its changed copy
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.match import changed, digits, hour, readers
from benchmarks.match.systems import WARPERS, systems
from benchmarks.match.tables import table
from isotone.warping import Matcher


def main() -> None:
    """Run a measurement."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.match", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["readers", "digits", "music", "clips", "hour"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", help="model folder, for its features")
    parser.add_argument("--layers", type=int, nargs="*", default=[], help="layers of its encoder")
    parser.add_argument("--hours", type=float, default=1.0)
    arguments = parser.parse_args()
    if arguments.what == "hour":
        rows = {}
        with tempfile.TemporaryDirectory() as name:
            truth = hour.prepare(arguments.folder, arguments.hours, Path(name))
            for warper in WARPERS:
                found, took, peak = hour.measure(Path(name), truth, warper)
                rows[f"{warper}, {took:.0f} s, peak {peak:.0f} MiB"] = found
        print(table(rows))
        return
    tables: dict[str, dict[str, list[float]]] = {}
    sentences = list(readers.readings(arguments.folder)) if arguments.what == "readers" else []
    pairs = list(digits.sequences(arguments.folder)) if arguments.what == "digits" else []
    for name, system in systems(arguments.model, arguments.layers, part=arguments.what == "clips"):
        if sentences:
            matched = readers.pairs(system, sentences)
            for label, refine in ((name, 0.0), (f"{name}, refined", Matcher.refine)):
                for tier, errors in readers.errors(matched, refine).items():
                    tables.setdefault(tier, {})[label] = errors
        elif pairs:
            tables.setdefault("digits", {})[name] = digits.errors(system, pairs)
        else:
            clips = arguments.what == "clips"
            errors = changed.errors(system, arguments.folder, clips=clips)
            tables.setdefault(arguments.what, {})[name] = errors
    for title, rows in tables.items():
        print(table(rows, title) + "\n")


if __name__ == "__main__":
    main()
