"""Options of what is written again in an output folder, and what is replaced."""

from __future__ import annotations

from typing import Annotated

import typer

Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite", help="Replace files in OUT that isotone did not write, or that were changed since."
    ),
]
KeepEdited = Annotated[
    bool,
    typer.Option(
        "--keep-edited",
        help="Keep files in OUT that were changed since isotone wrote them, and do the rest; they are listed.",
    ),
]
Redo = Annotated[bool, typer.Option("--redo", help="Repeat recordings whose files are up to date.")]
Prune = Annotated[
    bool,
    typer.Option(
        "--prune",
        help="Remove the files of recordings that are no longer in the input folders. Changed ones stay.",
    ),
]
