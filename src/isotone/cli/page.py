"""The command ``page``: thin, over :func:`isotone.batch.page_files`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotone.cli import options as opt
from isotone.cli.console import AsJson, OutOption, explained, path_argument
from isotone.cli.outcomes import finish, interrupted
from isotone.cli.replacing import KeepEdited, Overwrite, Prune, Redo

_Paths = Annotated[
    list[Path],
    typer.Argument(
        help="Recordings and their alignments: files, or folders with either or both. A folder that `isotone align` "
        "wrote knows its recordings.",
        parser=path_argument,
    ),
]


def page(
    paths: _Paths,
    beside: opt.Beside = [],  # noqa: B006
    out_dir: OutOption = Path("pages"),
    overwrite: Overwrite = False,
    keep_edited: KeepEdited = False,
    redo: Redo = False,
    prune: Prune = False,
    jobs: opt.Jobs = 0,
    as_json: AsJson = False,
) -> None:
    """Write a page for every recording: wave, spectrogram and tiers, to look at, to listen to and to correct.

    A page is one file with the sound in it. It opens offline in any browser: click a word to hear it, Tab plays, arrow
    keys walk, i and o zoom. Doubtful words and boundaries are listed, where the alignment has confidences (JSON, CSV)
    or --beside gives other systems. Drag a boundary, and save the tiers as a TextGrid, which every command reads.

    OUT/index.html lists the pages, those to look at first on top. `isotone align --page` writes pages beside its files.

    Example: isotone page aligned/ --beside reference/; isotone page talk.wav talk.TextGrid
    """
    from isotone.batch import Target, Workers, page_files

    with explained(), interrupted(out_dir):
        target = Target(out_dir, (), overwrite, redo, prune, page=True, keep_edited=keep_edited)
        outcome = page_files(paths, target, beside=beside, workers=Workers(jobs))
    finish(outcome, out_dir, pages=True, as_json=as_json)
