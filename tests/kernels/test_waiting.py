"""Torch's threads sleep while they wait, unless users want otherwise."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_SHOW = "import os, sys, isotone; print(os.environ.get('OMP_WAIT_POLICY'), 'torch' in sys.modules)"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "PASSIVE False"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE False"),
        ({"GOMP_SPINCOUNT": "9"}, "None False"),
    ],
)
def test_threads_sleep_unless_the_environment_says_otherwise(given: dict[str, str], expected: str) -> None:
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    found = subprocess.check_output([sys.executable, "-c", _SHOW], env={**environment, **given}, text=True)
    assert found.strip() == expected, "it is set before torch is imported"
