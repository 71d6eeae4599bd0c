"""Margins of the pack: how sure its boundaries are, fitted to scenes whose times are known.

``python recipes/english/margins.py SPEECH... --package plugins/isotone_english``

SPEECH are folders as run.py takes them: their sentences are spoken by synthetic voices. run.py does the same when it
writes a pack; this does it again for one that is there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from spoken.corpus import write_known
from spoken.packing import with_margins, write_model
from spoken.texts import transcripts_in

from isotone.model import Model


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("speech", type=Path, nargs="+", help="folders of real speech with transcripts")
    parser.add_argument("--package", type=Path, required=True, help="the package of the pack")
    parser.add_argument("--out", type=Path, default=Path("runs/english"), help="folder of the scenes")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if absent := [str(path) for path in given.speech if not path.is_dir()]:
        raise SystemExit(f"error: no folder {', '.join(absent)}.")
    model = Model.load(given.package / "model")
    known = write_known(given.out / "known", transcripts_in(given.speech), given.seed)
    model = with_margins(model, known)
    if model.check is None or model.check.margins is None:
        raise SystemExit("error: the model has no thresholds, or nothing in the scenes could be aligned.")
    write_model(model, given.package)
    print(f"{model.check.margins.boundaries:,} boundaries; the pack is in {given.package}.")


if __name__ == "__main__":
    main()
