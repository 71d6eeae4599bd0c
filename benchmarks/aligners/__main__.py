"""Measure forced aligners on labelled recordings, and print tables in Markdown.

``python -m benchmarks.aligners FOLDER --model MODEL... [--condition all]``

A folder holds TIMIT's files, or TextGrids beside recordings. pocketsphinx is measured where it is installed (`pip
install pocketsphinx`). Percentages are of the boundaries, both ends of every word or phone, within a collar.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.aligners.errors import header, phone_errors, row, without_offset, word_errors
from benchmarks.aligners.recordings import Labelled, labelled
from benchmarks.aligners.systems import PocketSphinx, System, isotone_system
from isotone.alignment import AlignmentError
from isotone.training.conditions import conditions


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.aligners",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", nargs="+", default=[], help="models of isotone")
    parser.add_argument("--condition", default="clean", help="one condition by its name, or all")
    parser.add_argument(
        "--unrefined", action="store_true", help="rows of the models without the last step, too"
    )
    parser.add_argument(
        "--resolution",
        type=float,
        metavar="MS",
        help="the labels are another aligner's, on frames of MS milliseconds: also\n"
        "tables at that resolution, without the median offset of each aligner",
    )
    arguments = parser.parse_args()
    if arguments.resolution is not None and not 0 < arguments.resolution < float("inf"):
        parser.error("argument --resolution: milliseconds above 0.")
    models: list[str] = arguments.model
    # by the folder's name, where that tells them apart
    short = len({Path(model).name for model in models}) == len(models)
    systems: dict[str, System] = {
        Path(model).name if short else model: isotone_system(model) for model in models
    }
    if arguments.unrefined:
        systems |= {
            f"{name}, unrefined": isotone_system(m, refined=False) for name, m in zip(systems, models)
        }
    if importlib.util.find_spec("pocketsphinx"):
        systems["pocketsphinx"] = PocketSphinx()
    recordings = list(labelled(arguments.folder))
    if not recordings:
        raise SystemExit(f"error: no labelled recordings in {arguments.folder}.")
    changes = conditions([r.samples for r in recordings])
    if arguments.condition != "all" and arguments.condition not in changes:
        raise SystemExit(f"error: the conditions are {', '.join(changes)}, and all.")
    for name, change in changes.items():
        if arguments.condition in ("all", name):
            heard = [change(r.samples, np.random.default_rng(i)) for i, r in enumerate(recordings)]
            _report(name, systems, recordings, heard, arguments.resolution)


def _report(
    condition: str,
    systems: Mapping[str, System],
    recordings: list[Labelled],
    heard: list[np.ndarray],
    resolution_ms: float | None,
) -> None:
    """Print the tables of one condition."""
    tables: dict[str, list[str]] = {"words": [], "phones": []}
    level: dict[str, list[str]] = {tier: [] for tier in tables}
    for name, system in systems.items():
        errors: dict[str, list[list[float]]] = {tier: [] for tier in tables}
        missed = 0
        for recording, samples in zip(recordings, heard):
            try:
                found = system(samples, recording.text)
            except (AlignmentError, RuntimeError):
                missed += 1
                continue
            words = word_errors(found.words, recording.words)
            missed += words is None
            errors["words"].append(words or [])
            errors["phones"].append(phone_errors(found.phones, recording.phones) if recording.phones else [])
        for tier, rows in tables.items():
            rows.append(row(name, errors[tier], missed))
            if resolution_ms is not None and any(errors[tier]):
                level[tier].append(row(name, without_offset(errors[tier], resolution_ms), missed))
    for tier, rows in tables.items():
        if tier == "words" or recordings[0].phones:
            print("\n".join([header(f"{tier}, {condition}"), *rows]), flush=True)
            if level[tier]:
                title = f"{tier}, {condition}, without offsets, at {resolution_ms:g} ms"
                print("\n".join([header(title), *level[tier]]), flush=True)


if __name__ == "__main__":
    main()
