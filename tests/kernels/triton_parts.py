"""Triton kernels without a GPU: in a process of their own, which can interpret them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(code: str, cache: Path, **environment: str) -> str:
    """Return what a Python programme prints."""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
        env=os.environ | {"TRITON_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"} | environment,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout
