"""Recordings made worse for a measurement: one condition by its name, or all of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

import numpy as np

from isotone.training.conditions import CLEAN, Samples, conditions


def add_condition(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--condition``."""
    parser.add_argument("--condition", default=CLEAN, help="one condition by its name, or all")


def made_worse(
    samples: Sequence[Samples], condition: str, rate: int = 16_000
) -> Iterator[tuple[str, list[Samples]]]:
    """Iterate over conditions: their names, and all recordings under them.

    Args:
        samples: The recordings; babble is mixed from them, too.
        condition: The name of one, or ``all``.
        rate: Hz.

    Raises:
        SystemExit: no condition has that name.
    """
    changes = conditions(samples, rate)
    chosen = [name for name in changes if condition in ("all", name)]
    if not chosen:
        raise SystemExit(f"error: the conditions are {'; '.join(changes)}; and all.")
    for name in chosen:
        yield name, [changes[name](own, np.random.default_rng(i)) for i, own in enumerate(samples)]
