"""Experiments from configuration: a grid of systems and seeds, one task, a table of means and spreads."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console
from torch import nn

from isotone.corpus.voices import SAMPLE_RATE
from isotone.files import atomic_folder, atomic_write
from isotone.registry import nearest
from isotone.training.augment import Chain
from isotone.training.config import RecipeError
from isotone_contrastive.data import SOURCES, Pool, Recordings
from isotone_contrastive.embedder import Embedder, build_embedder, save_encoder
from isotone_contrastive.figures import sweep_figure, write
from isotone_contrastive.losses import zero_gradient_share
from isotone_contrastive.qare import QARe, build_loss
from isotone_contrastive.training import Schedule, matching_accuracy, probe_all, train

_TASKS = ("matching", "probing")


@dataclass
class System:
    """One row of the table.

    Attributes:
        pairwise: The loss of pairs: ``name`` and options.
        qare: ``beta``, ``alpha``, ``top`` of :class:`QARe`; without it the loss is left alone.
        steps: Training steps, where not those of ``train``.
    """

    pairwise: dict[str, Any] = MISSING
    qare: dict[str, Any] | None = None
    steps: int | None = None


@dataclass
class Experiment:
    """A whole experiment.

    Attributes:
        task: ``matching`` (two voices of a word are its views) or ``probing`` (two augmentations of a recording are).
        data: ``name`` of the data set and its options.
        encoder: ``conv`` or an encoder of isotone, and its options.
        size, hidden, parts: Dimensions of the projection, width of its hidden layer (0: none), and parts of time that
            are averaged apart, see :class:`isotone_contrastive.embedder.Embedder`.
        augment: Augmentations of waveforms, by name and options (probing).
        views: Augmented views prepared of each recording, from which batches draw (probing).
        systems: Losses by the name of their row.
        betas: A system with ``qare`` becomes one for each of these weights: a sweep, with a figure.
        train: See :class:`isotone_contrastive.training.Schedule`.
        seeds: Of initial weights and batches; the data stay as they are.
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
    """Read an experiment: ``base.yaml`` of its folder, the file itself, then ``key=value`` overrides.

    Raises:
        FileNotFoundError: no such file; the message lists the folder's experiments.
        RecipeError: unknown or missing keys, or values that do not fit.
    """
    path = Path(path)
    if not path.is_file():
        known = sorted(p.stem for p in path.parent.glob("*.yaml") if p.stem != "base")
        raise FileNotFoundError(
            f"No experiment {path.stem!r}.{nearest(path.stem, known)} There is: {', '.join(known) or 'nothing'}."
        )
    if wrong := [item for item in overrides if "=" not in item]:
        raise RecipeError(f"An override is key=value; got {wrong[0]!r}.")
    layers = [p for p in (path.with_name("base.yaml"), path) if p.is_file()]
    try:
        plain = OmegaConf.merge(*map(OmegaConf.load, layers), OmegaConf.from_dotlist(list(overrides)))
        plain = OmegaConf.merge({"output": f"runs/contrastive/{path.stem}"}, plain)
        merged = OmegaConf.merge(OmegaConf.structured(Experiment), plain)
        missing = sorted(OmegaConf.missing_keys(merged))
    except OmegaConfBaseException as error:
        raise RecipeError(f"{path}: {' '.join(str(error).split())}") from error
    if missing:
        raise RecipeError(f"{path}: no value for {', '.join(missing)}. Give it as {missing[0]}=VALUE.")
    experiment = cast(Experiment, OmegaConf.to_object(cast(DictConfig, merged)))
    if not (experiment.systems and experiment.seeds):
        raise RecipeError(f"{path}: expected at least one system and one seed.")
    if experiment.task not in _TASKS or experiment.data.get("name") not in SOURCES:
        raise RecipeError(
            f"{path}: expected a task among {', '.join(_TASKS)} and data.name among {', '.join(SOURCES)}; got "
            f"{experiment.task!r} and {experiment.data.get('name')!r}."
        )
    return experiment


def grid(experiment: Experiment) -> dict[str, System]:
    """The systems by name; in a sweep those with QARe stand for one a beta, and beta 0 is the loss alone."""
    if not experiment.betas:
        return experiment.systems
    systems: dict[str, System] = {}
    for name, system in experiment.systems.items():
        if system.qare is None:
            systems[name] = system
            continue
        for beta in experiment.betas:
            systems[f"{name}, beta {beta:g}"] = System(
                system.pairwise, {**system.qare, "beta": beta}, system.steps
            )
    return systems


class Matching:
    """Instance matching: two views of unseen items are to be assigned to each other.

    Args:
        experiment: Its ``data`` are read.
        embedder: Any with the experiment's body: computes the inputs.
    """

    def __init__(self, experiment: Experiment, embedder: Embedder) -> None:
        options = {**experiment.data}
        splits = SOURCES[options.pop("name")](**options)
        self.pools = {split: _two_voices(part, embedder) for split, part in splits.items()}

    def scores(self, embedder: Embedder, split: str) -> tuple[dict[str, float], torch.Tensor, torch.Tensor]:
        """Matching accuracy of a split's first recordings, and their vectors in both views."""
        pool = self.pools[split]
        a, b = (embedder.embed([pool.inputs[i[0]] for i in side]) for side in (pool.first, pool.second))
        return {"accuracy": matching_accuracy(a, b)}, a, b

    def run(
        self, embedder: Embedder, loss: nn.Module, schedule: Schedule, seed: int
    ) -> tuple[dict[str, float], torch.Tensor, torch.Tensor]:
        """Train with dev's best weights; scores on test, and vectors of training items."""
        train(
            embedder, loss, self.pools["train"], schedule, seed=seed,
            evaluate=lambda: self.scores(embedder, "dev")[0]["accuracy"],
        )  # fmt: skip
        _, a, b = self.scores(embedder, "train")
        return self.scores(embedder, "test")[0], a[: schedule.batch_size], b[: schedule.batch_size]


class Probing:
    """Self-supervision on unlabelled recordings, then linear classifiers on frozen features.

    Args:
        experiment: Its ``data``, ``augment`` and ``views`` are read.
        embedder: Any with the experiment's body: computes the inputs.
    """

    def __init__(self, experiment: Experiment, embedder: Embedder) -> None:
        options = {**experiment.data}
        splits = SOURCES[options.pop("name")](**options)
        self.labels = {split: part.labels for split, part in splits.items()}
        self.inputs = {split: embedder.body.inputs(part.samples) for split, part in splits.items()}
        chain, count = Chain(experiment.augment), experiment.views
        rng = np.random.default_rng(17)
        views: list[torch.Tensor] = []
        for samples in splits["train"].samples:
            views += embedder.body.inputs(chain.views(samples, rng, count))
        of_item = [list(range(i * count, (i + 1) * count)) for i in range(len(splits["train"].samples))]
        self.pool = Pool(views, of_item, of_item)

    def run(
        self, embedder: Embedder, loss: nn.Module, schedule: Schedule, seed: int
    ) -> tuple[dict[str, float], torch.Tensor, torch.Tensor]:
        """Train, then probe; accuracies by label, and vectors of two views of some training recordings."""
        train(embedder, loss, self.pool, schedule, seed=seed)
        scores = probe_all(embedder, self.inputs, self.labels)
        items = range(min(schedule.batch_size, len(self.pool)))
        a, b = self.pool.draw(items, np.random.default_rng(0))
        return scores, embedder.embed(a), embedder.embed(b)


def _two_voices(part: Recordings, embedder: Embedder) -> Pool:
    items = sorted(set(part.item))
    inputs = embedder.body.inputs(part.samples)
    return Pool(inputs, [part.of(i, 0) for i in items], [part.of(i, 1) for i in items])


def run(experiment: Experiment) -> Path:
    """Run every system with every seed that the results lack, then write the table (and a sweep's figure).

    An interrupted run goes on where it stood when it is called again: rows are kept as they come, in ``rows.jsonl``,
    with the configuration in ``experiment.yaml``.

    Returns:
        The output folder.

    Raises:
        RecipeError: the folder holds the results of another configuration, or the encoder wants another sample rate.
    """
    folder = Path(experiment.output)
    rows = _resume(experiment, folder)
    done = {(row["system"], row["seed"]) for row in rows}
    systems = grid(experiment)
    console = Console(stderr=True)
    todo = [(name, seed) for seed in experiment.seeds for name in systems if (name, seed) not in done]
    if todo:
        console.print(f"preparing {experiment.data['name']}", highlight=False)
        first = _embedder(experiment, 0)
        if first.body.sample_rate != SAMPLE_RATE:
            raise RecipeError(
                f"The data are at {SAMPLE_RATE} Hz; the encoder wants {first.body.sample_rate} Hz."
            )
        task = (Matching if experiment.task == "matching" else Probing)(experiment, first)
    for name, seed in todo:
        system = systems[name]
        start = time.perf_counter()
        schedule = experiment.train
        if system.steps is not None:
            schedule = Schedule(**{**vars(schedule), "steps": system.steps})
        embedder, loss = _embedder(experiment, seed), build_loss(system.pairwise, system.qare)
        scores, a, b = task.run(embedder, loss, schedule, seed)
        pairwise = loss.pairwise if isinstance(loss, QARe) else loss
        if experiment.save:
            with atomic_folder(folder / "encoders" / f"{name} {seed}".replace(" ", "_")) as target:
                save_encoder(embedder, target)
        rows.append({
            "system": name, "seed": seed, "beta": (system.qare or {}).get("beta", 0.0), "scores": scores,
            "zero_gradient_share": zero_gradient_share(pairwise, a, b),
            "seconds": round(time.perf_counter() - start, 2),
        })  # fmt: skip
        with atomic_write(folder / "rows.jsonl") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        said = ", ".join(f"{kind} {100 * score:.1f} %" for kind, score in scores.items())
        console.print(f"{name}, seed {seed}: {said} ({rows[-1]['seconds']:.0f} s)", highlight=False)
    text = table(rows)
    with atomic_write(folder / "table.md") as file:
        file.write(text)
    if experiment.betas:
        write(sweep_figure(rows), folder / "beta")
    sys.stdout.write(text)
    return folder


def _embedder(experiment: Experiment, seed: int) -> Embedder:
    torch.manual_seed(seed)
    options = {"size": experiment.size, "hidden": experiment.hidden, "parts": experiment.parts}
    return build_embedder(experiment.encoder, **options)


def _resume(experiment: Experiment, folder: Path) -> list[dict[str, Any]]:
    """The rows of an earlier run of the same configuration; seeds may have been added."""
    config = OmegaConf.structured(experiment)
    told = folder / "experiment.yaml"
    if told.is_file() and {**OmegaConf.load(told), "seeds": []} != {**config, "seeds": []}:
        raise RecipeError(
            f"{folder} holds results of another configuration (experiment.yaml). Choose another output, or remove it."
        )
    with atomic_write(told) as file:
        file.write(OmegaConf.to_yaml(config))
    rows = folder / "rows.jsonl"
    return [json.loads(line) for line in rows.read_text("utf-8").splitlines()] if rows.is_file() else []


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Means and standard deviations over the seeds in percent, as a Markdown table, systems in order."""
    kinds = list(rows[0]["scores"])
    lines = [
        f"| system | {' | '.join(f'{kind} %' for kind in kinds)} | negatives without gradient % | seeds |",
        "|---" * (len(kinds) + 3) + "|",
    ]
    for name in dict.fromkeys(row["system"] for row in rows):
        own = [row for row in rows if row["system"] == name]
        cells = [_spread([row["scores"][kind] for row in own]) for kind in kinds]
        cells.append(_spread([row["zero_gradient_share"] for row in own]))
        lines.append(f"| {name} | {' | '.join(cells)} | {len(own)} |")
    return "\n".join(lines) + "\n"


def _spread(values: Sequence[float]) -> str:
    mean = 100 * statistics.fmean(values)
    return f"{mean:.1f} ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else f"{mean:.1f}"
