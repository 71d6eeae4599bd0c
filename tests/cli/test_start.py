"""Commands import what they use, and no more: imports are most of the time until a first result."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


def imported(code: str, *watched: str) -> list[str]:
    """List those of some modules that a new process has imported after some code."""
    code = f"import sys\n{textwrap.dedent(code)}\nprint([m for m in {watched!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return eval(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("arguments", [["--help"], ["align", "--help"], ["plugins"]], ids=" ".join)
def test_help_and_lists_import_no_torch(arguments: list[str]) -> None:
    code = f"""
        from isotone.cli import app
        app({arguments!r}, standalone_mode=False)
    """
    assert imported(code, "torch", "numba", "scipy", "isotone.cli") == ["isotone.cli"]


def test_alignment_imports_no_training_and_no_matching() -> None:
    code = "from isotone.batch import Options, Target, Workers, align_files"
    others = "transformers", "torchaudio", "accelerate", "datasets", "isotone.warping", "isotone.training"
    assert imported(code, "isotone.batch.commands", "torch", *others) == ["isotone.batch.commands"]
