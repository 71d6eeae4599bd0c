"""Size, times and memory of isotone-light in a fresh environment: ``python -m light.measure WHEEL``.

Makes a virtual environment, installs the wheel with what it needs, and prints JSON: the environment's size, with no
compiled kernels; seconds and processor seconds of ``--version``, of the import, of the first use, which compiles, and
of later ones, a TextGrid of a file of three seconds by a new process; and each process's largest memory. Except for the
first use, the quickest of five counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import soundfile

from benchmarks.processes import timed

# Without modules of other places.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

_TEXT = "She had your dark suit in greasy wash water"


def installed(wheel: Path, folder: Path) -> Path:
    """Install a wheel into a new virtual environment, which has nothing else; return its Python."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        str(wheel.resolve()),
    ]
    subprocess.run(command, check=True, env=_ENVIRONMENT)
    return python


def mebibytes(folder: Path) -> float:
    """Compute the size of a folder's files on disk, in 2^20 bytes as ``du`` does; links are not followed."""
    sizes = (path.lstat().st_blocks * 512 for path in folder.rglob("*"))
    return round(sum(sizes) / 2**20, 1)


def measured(command: Sequence[str | Path]) -> dict[str, float]:
    """Run a command, and measure seconds, processor seconds and its largest memory."""
    spent = timed(command, _ENVIRONMENT)
    return {"s": round(spent.clock_s, 2), "cpu_s": round(spent.cpu_s, 2), "MiB": round(spent.mib)}


def quickest(command: Sequence[str | Path]) -> dict[str, float]:
    """Run a command five times, and return the measurement of the quickest."""
    return min((measured(command) for _ in range(5)), key=lambda row: row["s"])


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path, help="from python -m light.build")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = installed(options.wheel, folder / "environment")
        size = mebibytes(folder / "environment")
        noise = np.random.default_rng(0).normal(0, 0.1, 48_000)
        soundfile.write(folder / "a.wav", noise, 16_000)
        (folder / "a.txt").write_text(_TEXT)
        light = [python, "-m", "isotone_light"]
        align = [*light, folder / "a.wav", folder / "a.txt", "-o", folder / "out", "--overwrite"]
        rows = {
            "environment MiB": size,
            "first use, compiling": measured(align),
            "--version": quickest([*light, "--version"]),
            "import": quickest([python, "-c", "import isotone_light.calls"]),
            "TextGrid of 3 s": quickest(align),
        }
    print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
