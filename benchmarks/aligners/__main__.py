"""Measure forced aligners on labelled recordings, and print tables in Markdown.

``python -m benchmarks.aligners FOLDER --model MODEL... [--condition all]``

A folder holds TIMIT's files, or TextGrids beside recordings. pocketsphinx is measured where it is installed (`pip
install pocketsphinx`). Percentages are of the boundaries, both ends of every word or phone, within a collar. Aligners
may fail on some recordings, or have other phones: a second table has what all have.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.aligners.errors import (
    Errors,
    header,
    in_common,
    phone_errors,
    row,
    without_offset,
    word_errors,
)
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
    errors: dict[str, dict[str, dict[int, Errors]]] = {"words": {}, "phones": {}}
    missed = {}
    for name, system in systems.items():
        words, phones = _measured(system, recordings, heard)
        missed[name] = len(recordings) - len(words)
        errors["words"][name], errors["phones"][name] = words, phones
    for tier, found in errors.items():
        if tier == "phones" and not recordings[0].phones:
            continue
        title = f"{tier}, {condition}"
        _table(title, found, missed)
        shared = in_common(found)
        if shared != found:
            _table(f"{title}, what all have", shared, missed)
        if resolution_ms is not None:
            level = {
                name: without_offset(own, resolution_ms) for name, own in found.items() if any(own.values())
            }
            _table(f"{title}, without offsets, at {resolution_ms:g} ms", level, missed)


def _measured(
    system: System, recordings: list[Labelled], heard: list[np.ndarray]
) -> tuple[dict[int, Errors], dict[int, Errors]]:
    """Return the errors of words and of phones, by recording; those that the aligner fails on are left out."""
    words: dict[int, Errors] = {}
    phones: dict[int, Errors] = {}
    for i, (recording, samples) in enumerate(zip(recordings, heard)):
        try:
            found = system(samples, recording.text)
        except (AlignmentError, RuntimeError):
            continue
        errors = word_errors(found.words, recording.words)
        if errors is not None:
            words[i], phones[i] = errors, phone_errors(found.phones, recording.phones)
    return words, phones


def _table(title: str, errors: Mapping[str, Mapping[int, Errors]], missed: Mapping[str, int]) -> None:
    """Print a table with a row per aligner."""
    rows = [row(name, own, missed[name]) for name, own in errors.items()]
    print("\n".join([header(title), *rows]), flush=True)


if __name__ == "__main__":
    main()
