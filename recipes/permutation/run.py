"""OT4P's experiments: `python recipes/permutation/run.py EXPERIMENT [key=value ...]`, on the CPU."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import results
import torch
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from isotone.registry import nearest
from isotone.training.experiments import experiment_arguments

HERE = Path(__file__).parent
EXPERIMENTS = sorted(path.stem for path in HERE.glob("*.yaml") if path.stem != "base")


def load(name: str, overrides: list[str]) -> DictConfig:
    """An experiment's configuration: base.yaml, its own file, then ``key=value`` of the command line.

    ``methods=[a,b]`` picks some of the methods; ``methods.a.lr=0.1`` changes one.

    Raises:
        ValueError: no such experiment or key.
    """
    if name not in EXPERIMENTS:
        raise ValueError(
            f"No experiment {name!r}.{nearest(name, EXPERIMENTS)} There is: {', '.join(EXPERIMENTS)}."
        )
    config = OmegaConf.merge(OmegaConf.load(HERE / "base.yaml"), OmegaConf.load(HERE / f"{name}.yaml"))
    config.output = f"{config.output}/{name}"
    OmegaConf.set_struct(config, True)
    picked = [text for text in overrides if text.startswith("methods=[")]
    try:
        config = OmegaConf.merge(config, OmegaConf.from_dotlist([t for t in overrides if t not in picked]))
        for text in picked:
            names = OmegaConf.from_dotlist([text]).methods
            config.methods = {str(method): config.methods[str(method)] for method in names}
    except OmegaConfBaseException as error:
        raise ValueError(f"{' '.join(overrides)}: {error}") from None
    if not isinstance(config, DictConfig):
        raise ValueError(f"Expected the file of {name} to hold names and values.")
    return config


def main(arguments: list[str]) -> list[dict[str, Any]]:
    """Run an experiment; write its rows, a table beside the paper's, a figure and the configuration."""
    config = load(arguments[0], arguments[1:])
    torch.set_num_threads(config.threads)
    experiment = importlib.import_module(config.experiment)
    console = Console(stderr=True)
    rows: list[dict[str, Any]] = []
    columns = SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=experiment.total(config))
        for row in experiment.run(config):
            rows.append(row)
            done = f"{row['setting']}, {row['method']}, seed {row['seed']}: {row['precision']:.2f} %"
            progress.update(task, advance=1, description=done)
            console.print(f"{done}, {row['seconds']:.1f} s", highlight=False)
            results.write(Path(config.output), config, rows)
    print(results.table(config, rows))
    console.print(f"wrote {config.output}", highlight=False)
    return rows


if __name__ == "__main__":
    name, overrides = experiment_arguments(f"{__doc__}\nExperiments: {', '.join(EXPERIMENTS)}")
    try:
        main([name, *overrides])
    except ValueError as error:
        raise SystemExit(f"error: {error}") from None
