"""The schemas of the experiments; their YAML files have every value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import MISSING, OmegaConf

from isotone.training.experiments import experiments
from isotone.training.loader import RecipeError, load

HERE = Path(__file__).parent
NAMES = experiments(HERE, shared=None)


@dataclass
class Experiment:
    """Settings that all experiments share.

    Attributes:
        experiment: Name of the module that runs it.
        methods: Method by name: ``kind``, ``lr`` and options of its class.
        paper: Precision in % as the paper reports it, by method and setting.
        seeds: One row per seed, method and setting.
        threads: Of torch.
        output: Folder of the results.
    """

    experiment: str = MISSING
    methods: dict[str, dict[str, Any]] = MISSING
    paper: dict[str, dict[str, float]] | None = None
    seeds: list[int] = MISSING
    threads: int = MISSING
    output: str = MISSING


@dataclass
class ModeConnectivity(Experiment):
    """Settings of :mod:`mode_connectivity`."""

    networks: list[str] = MISSING
    width: float = MISSING
    kernel: int = MISSING
    iterations: int = MISSING
    rounds: int = MISSING
    baselines: list[str] = MISSING


@dataclass
class NeuronIdentities(Experiment):
    """Settings of :mod:`neuron_identities`."""

    neurons: int = MISSING
    steps: int = MISSING
    noise: float = MISSING
    density: float = MISSING
    radius: float = MISSING
    known: list[float] = MISSING
    iterations: int = MISSING
    samples: int = MISSING


@dataclass
class Synchronisation(Experiment):
    """Settings of :mod:`synchronisation`; ``matching`` is a function of :mod:`instances`."""

    matching: str = MISSING
    points: int = MISSING
    objects: list[int] = MISSING
    outliers: float = MISSING
    noise: float = MISSING
    iterations: int = MISSING
    rounds: int = MISSING
    baselines: list[str] = MISSING


@dataclass
class Boundary(Experiment):
    """Settings of :mod:`boundary`."""

    sizes: list[int] = MISSING
    draws: int = MISSING


SCHEMAS: dict[str, type[Experiment]] = {
    "boundary": Boundary,
    "mode_connectivity": ModeConnectivity,
    "neuron_identities": NeuronIdentities,
    "unknown": NeuronIdentities,
    "synchronisation": Synchronisation,
    "matching": Synchronisation,
    "optimisers": Synchronisation,
    "house": Synchronisation,
}


def load_settings(name: str, overrides: Sequence[str] = ()) -> Experiment:
    """Read an experiment, see :func:`isotone.training.loader.load`.

    ``methods=[a,b]`` picks some of the methods; ``methods.a.lr=0.1`` changes one.

    Raises:
        FileNotFoundError: no such experiment.
        RecipeError: no such key or method.
    """
    picked = [text for text in overrides if text.startswith("methods=[")]
    others = [text for text in overrides if text not in picked]
    settings = load(SCHEMAS.get(name, Experiment), HERE / f"{name}.yaml", others)
    if not any(text.startswith("output=") for text in others):
        settings.output = f"{settings.output}/{name}"  # base.yaml names the folder of all experiments
    for text in picked:
        names = [str(method) for method in OmegaConf.from_dotlist([text]).methods]
        if unknown := [method for method in names if method not in settings.methods]:
            raise RecipeError(f"No method {unknown[0]!r}. There is: {', '.join(settings.methods)}.")
        settings.methods = {method: settings.methods[method] for method in names}
    return settings
