"""Settings of an experiment: a task, its data, and a grid of systems and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from isotone.training.loader import RecipeError, load
from two_views import images  # noqa: F401  (registers a source and an augmentation)
from two_views.data import SOURCES
from two_views.training import Schedule

TASKS = ("matching", "probing")


@dataclass
class System:
    """One row of the table.

    Attributes:
        pairwise: The loss of pairs: ``name`` and options.
        qare: ``beta``, ``alpha``, ``top`` of :class:`isotone_contrastive.qare.QARe`. None: the loss without it.
        steps: Training steps, where not those of ``train``.
        supervised: Kind of label that is learned in place of the loss, an upper bound (probing).
    """

    pairwise: dict[str, Any] = MISSING
    qare: dict[str, Any] | None = None
    steps: int | None = None
    supervised: str = ""


@dataclass
class Experiment:
    """A whole experiment.

    Attributes:
        task: ``matching`` (the views are two voices of a word) or ``probing`` (two augmentations of a recording).
        data: ``name`` of the data set and its options.
        encoder: ``conv`` or an encoder of isotone, and its options.
        size, hidden, parts: Dimensions of the projection, width of its hidden layer (0: none), and parts of time that
            are averaged separately, see :class:`isotone_contrastive.embedder.Embedder`.
        augment: Augmentations of waveforms, by name and options (probing).
        views: Augmented views prepared per recording, from which batches are drawn (probing).
        systems: Losses by the name of their row.
        betas: Weights of a sweep, with a figure: a system with ``qare`` becomes one system per weight.
        train: See :class:`isotone_contrastive.training.Schedule`.
        seeds: Of initial weights and batches; the data are the same for all.
        save: Keep the trained encoders.
        output: Folder of the results.
    """

    task: str = MISSING
    data: dict[str, Any] = MISSING
    encoder: dict[str, Any] = MISSING
    size: int = 64
    hidden: int = 0
    parts: int = 3
    augment: list[dict[str, Any]] = field(default_factory=list)
    views: int = 4
    systems: dict[str, System] = MISSING
    betas: list[float] = field(default_factory=list)
    train: Schedule = field(default_factory=Schedule)
    seeds: list[int] = field(default_factory=lambda: [0, 1, 2])
    save: bool = False
    output: str = MISSING


def load_experiment(path: Path | str, overrides: Sequence[str] = ()) -> Experiment:
    """Read an experiment, see :func:`isotone.training.loader.load`.

    Raises:
        FileNotFoundError: no such file; the message lists the folder's experiments.
        RecipeError: unknown or missing keys, or values that do not fit.
    """
    experiment = load(Experiment, path, overrides)
    if not (experiment.systems and experiment.seeds):
        raise RecipeError(f"{path}: expected at least one system and one seed.")
    if experiment.task not in TASKS or experiment.data.get("name") not in SOURCES:
        raise RecipeError(
            f"{path}: expected a task among {', '.join(TASKS)} and data.name among {', '.join(SOURCES)}; got "
            f"{experiment.task!r} and {experiment.data.get('name')!r}."
        )
    named = [name for name, system in experiment.systems.items() if system.supervised]
    if named and experiment.task != "probing":
        raise RecipeError(f"{path}: {named[0]}: labels are learned in the task probing alone.")
    return experiment


def grid(experiment: Experiment) -> dict[str, System]:
    """Return the systems by name; in a sweep, each system with QARe becomes one per beta (beta 0 is the loss alone)."""
    if not experiment.betas:
        return experiment.systems
    systems: dict[str, System] = {}
    for name, system in experiment.systems.items():
        if system.qare is None:
            systems[name] = system
            continue
        for beta in experiment.betas:
            systems[f"{name}, beta {beta:g}"] = replace(system, qare={**system.qare, "beta": beta})
    return systems
