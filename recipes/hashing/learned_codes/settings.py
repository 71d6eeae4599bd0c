"""Settings of an experiment: a retrieval task, an encoder, and a grid of systems, bits and seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from isotone.training.grid import Schedule
from isotone.training.loader import RecipeError, load
from learned_codes.data import SOURCES
from learned_codes.objectives import OBJECTIVES
from learned_codes.shallow import CODERS


@dataclasses.dataclass
class Experiment:
    """A whole experiment.

    Attributes:
        data: ``name`` of the task and its options.
        relevant: Affinity from which on an item counts as relevant: in AP, and for methods of binary affinities.
        encoder: ``name`` and options, see :func:`isotone_contrastive.embedder.build_embedder`; None: linear codes of
            the items themselves.
        size, hidden, parts: Of the embedding under the codes.
        bits: Lengths of the codes.
        systems: Methods by the name of their row: ``kind``, options of its loss, and ``scale``, ``first_scale`` of the
            tanh.
        train: See :class:`isotone.training.grid.Schedule`.
        seeds: Of weights and batches; the data are the same for all.
        output: Folder of the results.
    """

    data: dict[str, Any] = MISSING
    relevant: int = 1
    encoder: dict[str, Any] | None = MISSING
    size: int = 64
    hidden: int = 0
    parts: int = 3
    bits: list[int] = MISSING
    systems: dict[str, dict[str, Any]] = MISSING
    train: Schedule = dataclasses.field(default_factory=Schedule)
    seeds: list[int] = MISSING
    output: str = MISSING


def load_experiment(path: Path | str, overrides: Sequence[str] = ()) -> Experiment:
    """Read an experiment and check its values; errors as of :func:`isotone.training.loader.load`."""
    experiment = load(Experiment, path, overrides)
    if experiment.data.get("name") not in SOURCES:
        raise RecipeError(f"{path}: expected data.name among {', '.join(SOURCES)}.")
    for name, system in experiment.systems.items():
        if system.get("kind") not in {**OBJECTIVES, **CODERS}:
            known = ", ".join({**CODERS, **OBJECTIVES})
            raise RecipeError(f"{path}: {name!r} expects a kind among {known}; got {system.get('kind')!r}.")
    if not (experiment.bits and experiment.seeds and experiment.systems):
        raise RecipeError(f"{path}: expected at least one system, one length of codes and one seed.")
    return experiment
