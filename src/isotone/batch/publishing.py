"""Folders of reports: written beside what isotone wrote there before, and over nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from isotone.batch.ledger import Ledger, State
from isotone.batch.plan import OutputConflict
from isotone.files import check_folder


@contextmanager
def published(out: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary folder for files; at the end they are written to ``out``, and recorded in its ledger.

    Args:
        out: The folder.
        overwrite: Replace files that isotone did not write, or that were changed since.

    Raises:
        OutputConflict: there are such files, all of which the message names; nothing was written.
        OSError: the folder cannot be written to.
    """
    check_folder(out)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield folder
        files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
        with Ledger(out) as ledger:
            states = {name: ledger.state(name) for name in files}
            others = [n for n, state in states.items() if state in (State.FOREIGN, State.CHANGED)]
            if others and not overwrite:
                raise OutputConflict(
                    f"{len(others)} files in {out} would be overwritten, which isotone did not write or which were "
                    f"changed since: {', '.join(others)}. Choose another --out, or say --overwrite."
                )
            for name, path in files.items():
                ledger.write_report(name, path.read_bytes(), overwrite=overwrite)
