"""Waiting of torch's threads: they sleep while there is nothing to do, and do not spin."""

from __future__ import annotations

import os

_NAMES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def ensure_sleep() -> None:
    """Let torch's threads sleep while they wait, unless the environment says how they are to wait.

    OpenMP's threads spin for milliseconds after every operation. Where other programs use the cores, they spin away
    the time that the thread they wait for would need: two threads then take up to ten times what one takes. Torch's
    OpenMP reads the environment when it is loaded, so this comes before the first import of torch.
    """
    if not any(name in os.environ for name in _NAMES):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
