"""Settings of an experiment: the mixtures, the network, and a grid of systems and seeds."""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from assigned.assignments import KINDS
from assigned.mixtures import SOURCES
from isotone.training.grid import Schedule
from isotone.training.loader import RecipeError, load


@dataclass
class Experiment:
    """A whole experiment.

    Attributes:
        data: ``name`` of the source of voices, and its options.
        voices: K, voices of a mixture.
        seconds: Length of a mixture.
        mixtures, test_mixtures: Numbers of mixtures; those of the test are of other speakers.
        level_db: Voices differ from the first by up to so much.
        network: ``channels`` and ``layers``.
        systems: Assignments by the name of their row: ``kind`` and options of its class.
        train: See :class:`isotone.training.grid.Schedule`.
        seeds: Of weights and batches; the mixtures are the same for all.
        output: Folder of the results.
    """

    data: dict[str, Any] = MISSING
    voices: int = 2
    seconds: float = 2.0
    mixtures: int = 400
    test_mixtures: int = 100
    level_db: float = 3.0
    network: dict[str, Any] = MISSING
    systems: dict[str, dict[str, Any]] = MISSING
    train: Schedule = field(default_factory=Schedule)
    seeds: list[int] = field(default_factory=lambda: [0, 1, 2])
    output: str = MISSING


def load_experiment(path: Path | str, overrides: abc.Sequence[str] = ()) -> Experiment:
    """Read an experiment and check its values; errors as of :func:`isotone.training.loader.load`."""
    experiment = load(Experiment, path, overrides)
    if experiment.voices < 2 or not (experiment.systems and experiment.seeds):
        raise RecipeError(f"{path}: expected at least two voices, one system and one seed.")
    if experiment.data.get("name") not in SOURCES:
        raise RecipeError(f"{path}: expected data.name among {', '.join(SOURCES)}.")
    for name, system in experiment.systems.items():
        if system.get("kind") not in KINDS:
            raise RecipeError(
                f"{path}: system {name!r} expects a kind among {', '.join(KINDS)}; got {system.get('kind')!r}."
            )
    return experiment
