"""The message of a first run, and its absence in the second."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CODE = """
import logging
import numba
logging.basicConfig(format="%(message)s")
from isotone.kernels import compiling
from isotone.kernels._sums import _log
compiling.announce()
compiling.announce()
numba.njit(lambda x: x + 1)(1)
logging.warning("ours")
_log(0.5, 1.0)
_log(1, 1)
"""


def test_it_is_said_once_and_only_when_kernels_are_compiled(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for expected in (["ours", "Compiling"], ["ours"]):
        command = [sys.executable, "-c", CODE]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert [line.split()[0] for line in done.stderr.splitlines()] == expected
