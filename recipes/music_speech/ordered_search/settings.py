"""The schema of the experiments; ``base.yaml`` has every value with a comment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from isotone.training.experiments import experiments
from isotone.training.loader import Presets, load

HERE = Path(__file__).parents[1]
EXPERIMENTS = experiments(HERE, shared=None)


@dataclass
class Data:
    """Recordings, and the queries and corpora that are made of them."""

    source: str = MISSING
    kind: str = MISSING
    root: str | None = None
    join_s: float = MISSING
    recordings: int = MISSING
    recording_s: float = MISSING
    sample_rate: int = MISSING
    window_s: float = MISSING
    windows: int = MISSING
    query: int = MISSING
    variable: bool = MISSING
    copies: int = MISSING
    train_copies: int = MISSING
    masks: int = MISSING
    mask_s: float = MISSING
    snr_db: float | None = None
    queries: int = MISSING
    phases: int = MISSING
    shares: dict[str, float] = MISSING
    elements: str = MISSING
    bands: int = MISSING
    frames: int = MISSING
    seed: int = MISSING


@dataclass
class Model:
    """The ranker; ``embed``, ``penalty`` and ``relaxation`` are plugins with their options."""

    name: str = MISSING
    size: int = MISSING
    embed: dict[str, Any] = MISSING
    penalty: dict[str, Any] = MISSING
    relaxation: dict[str, Any] = MISSING
    growth: float | None = None
    margin: float = MISSING
    hinge: bool = MISSING
    reward: str = MISSING
    beta: list[float] = MISSING
    train_beta: list[bool] = MISSING


@dataclass
class Pretrain:
    """Self-supervision of the embedding before it is trained."""

    task: str = MISSING
    steps: int = MISSING
    lr: float = MISSING
    batch: int = MISSING
    recordings: int | None = None
    contrast: dict[str, Any] = MISSING


@dataclass
class Train:
    """Training of the ranker."""

    steps: int = MISSING
    batch: int = MISSING
    positives: int = MISSING
    batch_items: int = MISSING
    negatives: int = MISSING
    recordings: int | None = None
    margin: float = MISSING
    order_weight: float = MISSING
    order_margin: float = MISSING
    embed_lr: float = MISSING
    weight_decay: float = MISSING
    warmup: float = MISSING
    lr: float = MISSING
    l2: float = MISSING
    clip: float = MISSING
    freeze_embed: bool = MISSING
    evaluate_every: int = MISSING


@dataclass
class Evaluate:
    """Scores and figures; ``baselines`` by name, each a scorer and its number of queries."""

    odc_queries: int = MISSING
    odc_shuffles: int | None = None
    memory_queries: int = MISSING
    alignments: int = MISSING
    distances: int = MISSING
    temperatures: list[float] = MISSING
    baselines: dict[str, Any] = MISSING


@dataclass
class Hashing:
    """The first stage of a search: hyperplanes, and indexes to compare them with."""

    run: bool = MISSING
    bits: int = MISSING
    tables: int = MISSING
    silver: bool = MISSING
    lr: float = MISSING
    batch: int = MISSING
    aggregate_steps: int = MISSING
    aggregates: list[str] = MISSING
    training: dict[str, Any] = MISSING
    indexes: list[str] = MISSING
    options: dict[str, Any] = MISSING


@dataclass
class Settings:
    """A whole experiment."""

    data: Data = field(default_factory=Data)
    model: Model = field(default_factory=Model)
    model_from: str | None = None
    pretrain: Pretrain = field(default_factory=Pretrain)
    train: Train = field(default_factory=Train)
    evaluate: Evaluate = field(default_factory=Evaluate)
    hashing: Hashing = field(default_factory=Hashing)
    seed: int = MISSING
    threads: int = MISSING
    cache: str | None = None
    output: str | None = None


def load_settings(name: str, overrides: Sequence[str] = ()) -> Settings:
    """Read an experiment, see :func:`isotone.training.loader.load`.

    ``data=PRESET`` and ``size=PRESET`` come before the experiment.

    Raises:
        FileNotFoundError: no such experiment.
        RecipeError: no such preset or key, or an override that is not ``key=value``.
    """
    presets = Presets(keys=("data", "size"), folder="presets", before=True)
    settings = load(Settings, HERE / f"{name}.yaml", overrides, presets=presets)
    if settings.output is None:
        settings.output = f"runs/music_speech/{settings.data.kind}/{name}"
    return settings
