"""Measure forced aligners on labelled recordings, and print tables in Markdown.

``python -m benchmarks.aligners FOLDER --model MODEL... [--condition all]``

A folder holds TIMIT's files, or TextGrids beside recordings. pocketsphinx is measured where it is installed (`pip
install pocketsphinx`). Percentages are of the boundaries, both ends of every word or phone, within a collar. Aligners
may fail on some recordings, or have other phones: a second table has what all have. With all conditions the last tables
have a row per condition: mean (95 % interval) and median in ms, and percent within 10, 20, 25, 50 and 100 ms.
"""

from __future__ import annotations

import argparse
import importlib.util
from importlib.metadata import version
from pathlib import Path

from benchmarks.aligners.recordings import add_cut, labelled
from benchmarks.aligners.systems import PocketSphinx, System, isotone_system
from benchmarks.aligners.tables import Row, beside, report
from benchmarks.aligners.worse import add_condition, made_worse


def _arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.aligners",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", nargs="+", default=[], help="models of isotone")
    add_condition(parser)
    parser.add_argument(
        "--unrefined", action="store_true", help="rows of the models without the last step, too"
    )
    parser.add_argument(
        "--judged",
        action="store_true",
        help="rows of the models as they are by default, too: recordings\n"
        "of which a word is left out are not aligned",
    )
    # cut labels lie on no frames
    labels = parser.add_mutually_exclusive_group()
    labels.add_argument(
        "--frames",
        type=float,
        metavar="MS",
        help="the labels are another aligner's, on frames of MS milliseconds: also\n"
        "tables with every boundary at the start of its frame",
    )
    add_cut(labels)
    arguments = parser.parse_args()
    if arguments.frames is not None and not 0 < arguments.frames < float("inf"):
        parser.error("argument --frames: milliseconds above 0.")
    return arguments


def main() -> None:
    """Run the measurement."""
    arguments = _arguments()
    models: list[str] = arguments.model
    # by the folder's name, where that tells them apart
    short = len({Path(model).name for model in models}) == len(models)
    systems: dict[str, System] = {
        f"isotone, {Path(model).name if short else model}": isotone_system(model) for model in models
    }
    own = list(zip(systems, models))
    if arguments.judged:
        systems |= {f"{name}, judged": isotone_system(m, judged=True) for name, m in own}
    if arguments.unrefined:
        systems |= {f"{name}, unrefined": isotone_system(m, refined=False) for name, m in own}
    if importlib.util.find_spec("pocketsphinx"):
        systems[f"pocketsphinx {version('pocketsphinx')}"] = PocketSphinx()
    recordings = list(labelled(arguments.folder, arguments.cut))
    if not recordings:
        raise SystemExit(f"error: no labelled recordings in {arguments.folder}.")
    rows: dict[str, dict[str, Row]] = {}
    for name, heard in made_worse([r.samples for r in recordings], arguments.condition):
        for tier, row in report(name, systems, recordings, heard, arguments.frames).items():
            rows.setdefault(tier, {})[name] = row
    for tier, own in rows.items() if arguments.condition == "all" else ():
        print(f"\n**{tier}**\n\n{beside(f'{arguments.folder.name}, {len(recordings)} recordings', own)}")


if __name__ == "__main__":
    main()
