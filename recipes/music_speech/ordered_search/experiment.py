"""An experiment from data to scores and figures, in a run folder that can be resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.utils import DistributedType
from isotone_opas.baselines import scorers
from isotone_opas.embed import Embed
from rich.console import Console
from safetensors.torch import load_file
from safetensors.torch import save as save_tensors

from isotone import indexes
from isotone.files import atomic_write
from isotone.report.style import save
from isotone.training.loader import differences, load_saved, to_yaml
from isotone.training.processes import check_processes
from ordered_search import evaluation
from ordered_search.pictures import pictures
from ordered_search.prepared import load_or_prepare
from ordered_search.pretraining import pretrain
from ordered_search.rankers import OPASRanker, Ranker, build
from ordered_search.sets import SearchSet, build_elements
from ordered_search.settings import Data, Settings
from ordered_search.tables import tables
from ordered_search.training import CHECKPOINT, Trainer

CONFIG, SCORES, WEIGHTS, MODEL = "config.yaml", "scores.json", "ranker.safetensors", "model"
# Settings that may differ when a run is continued.
_MAY_DIFFER = ("output", "cache", "threads", "evaluate", "hashing")
# Settings of data in which a run must agree with the run its model is from.
_SHAPE = ("sample_rate", "window_s", "windows", "query", "elements", "bands", "frames")


def run(config: Settings, base: Path) -> str:
    """Run an experiment to its end, from its last checkpoint on.

    It trains on accelerate's device, alone or as one of several processes (``accelerate launch``).

    Args:
        config: From :func:`ordered_search.settings.load_settings`.
        base: Folder that relative folders refer to.

    Returns:
        Tables of the report, in Markdown; empty on other processes than the main one.

    Raises:
        ValueError: the folder holds another experiment, or the configuration does not fit together.
        FileNotFoundError: data or a run to take a model from are not there.
        ImportError, LookupError, TypeError: see :func:`check`.
    """
    accelerator = _accelerator()
    console = Console(stderr=True, quiet=not accelerator.is_main_process)
    assert config.output is not None
    folder = base / config.output
    check(config)
    with accelerator.main_process_first():
        _claim(folder, config, write=accelerator.is_main_process)
    torch.set_num_threads(config.threads)
    torch.manual_seed(config.seed)
    ranker = None if config.model_from is None else _load_ranker(base / config.model_from, config.data)
    kept = None if config.cache is None else base / config.cache
    with accelerator.main_process_first():  # the others read what it keeps
        elements, sets = load_or_prepare(config.data, kept, None if ranker is None else ranker.elements)
    console.print("; ".join(
        f"{name}: {len(data.queries)} queries, {len(data.corpus)} items" for name, data in sets.items()
    ))  # fmt: skip
    if ranker is None:
        ranker = build(config.model, config.data, elements)
        _train(config, ranker, sets, folder, console, accelerator)
    report = {}
    if accelerator.is_main_process:
        _save_model(folder, ranker)
        report = _evaluate(config, ranker, sets, folder)
        with atomic_write(folder / SCORES) as file:
            file.write(json.dumps(report, indent=1) + "\n")
        console.print(f"wrote {folder}", highlight=False)
    accelerator.end_training()
    return tables(report) if report else ""


def check(config: Settings) -> None:
    """Build the baselines and indexes, which are used after the training, so that it does not end in vain.

    Raises:
        ImportError: a package that one needs is not installed.
        LookupError, TypeError: an unknown name or option.
    """
    for spec in config.evaluate.baselines.values():
        scorers.create(spec["scorer"])
    for name in config.hashing.indexes if config.hashing.run else ():
        indexes.build(name, size=config.model.size, **config.hashing.options.get(name, {}))


def _accelerator() -> Accelerator:
    """Make accelerate's connection to the device and the other processes.

    Raises:
        ValueError: it is of a kind that spreads the weights, or does not connect the processes.
    """
    accelerator = Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])
    check_processes(accelerator)
    if accelerator.distributed_type in (DistributedType.DEEPSPEED, DistributedType.FSDP):
        raise ValueError(
            "These models are small: train them by data parallelism, without DeepSpeed and FSDP."
        )
    return accelerator


def _train(
    config: Settings,
    ranker: Ranker,
    sets: dict[str, SearchSet],
    folder: Path,
    console: Console,
    accelerator: Accelerator,
) -> None:
    """Pretrain the embedding where the run is new, then train the ranker from its last checkpoint on."""
    if config.pretrain.steps and not (folder / CHECKPOINT).is_file():
        if not isinstance(ranker.embedding, Embed):
            raise ValueError(f"The embedding of {config.model.name} has no pretraining: pretrain.steps=0.")
        # every process does the same, as batches of a contrast cannot be divided
        loss = pretrain(ranker.embedding, sets["train"], config.pretrain, config.seed, accelerator.device)
        console.print(f"pretrained the embedding: {config.pretrain.task} loss {loss:.3f}")
    trainer = Trainer(ranker, sets, config.train, config.seed, folder, accelerator)
    trainer.run(lambda step, loss, score: console.print(
        f"step {step}: loss {loss:.4f}, MAP on dev {score:.4f}", highlight=False
    ))  # fmt: skip


def _claim(folder: Path, config: Settings, *, write: bool) -> None:
    """Write the configuration; raise where the folder holds a run with another one."""
    path = folder / CONFIG
    if path.is_file() and (changed := differences(path, config, ignored=_MAY_DIFFER)):
        raise ValueError(
            f"{folder} holds a run with other settings: {'; '.join(changed[:5])}. Give output=FOLDER, or remove it."
        )
    if write:
        with atomic_write(path) as file:
            file.write(to_yaml(config))


def _save_model(folder: Path, ranker: Ranker) -> None:
    """Write the ranker's weights with its elements' statistics, and an OPAS model as a folder of its own."""
    state = {k: v.detach().cpu().contiguous().clone() for k, v in ranker.state_dict().items()}
    with atomic_write(folder / WEIGHTS, "wb") as file:
        file.write(save_tensors(state))
    if isinstance(ranker, OPASRanker):
        ranker.model.save(folder / MODEL)


def _load_ranker(source: Path, data: Data) -> Ranker:
    """Load the ranker of a finished run, for data of the same shape.

    Raises:
        FileNotFoundError: no finished run.
        ValueError: the data has another shape.
    """
    if not (source / CONFIG).is_file() or not (source / WEIGHTS).is_file():
        raise FileNotFoundError(f"{source} holds no finished run. Give the folder of one as model_from.")
    config = load_saved(Settings, source / CONFIG)
    there, here = ({key: getattr(d, key) for key in _SHAPE} for d in (config.data, data))
    if other := {key: value for key, value in there.items() if here[key] != value}:
        raise ValueError(
            f"The model of {source} was trained with {', '.join(f'{k}={v}' for k, v in other.items())}; give "
            f"{' '.join(f'data.{k}={v}' for k, v in other.items())}."
        )
    ranker = build(config.model, config.data, build_elements(config.data))
    ranker.load_state_dict(load_file(source / WEIGHTS))
    return ranker.eval()


def _evaluate(config: Settings, ranker: Ranker, sets: dict[str, SearchSet], folder: Path) -> dict[str, Any]:
    """Score the ranker and the baselines, and draw the figures."""
    data, options = sets["test"], config.evaluate
    torch.manual_seed(config.seed)
    scores, times = evaluation.score_matrix(ranker, data)
    name = {"opas": "OPAS", "colbert": "MaxSim (trained)"}.get(config.model.name, config.model.name)
    own = {**evaluation.quality(scores, data), **times, "queries": len(data.queries)}
    if options.odc_queries:
        own["ODC"] = evaluation.order_capacity(
            ranker, data, options.odc_queries, options.odc_shuffles, config.seed
        )
    if options.memory_queries:
        own |= evaluation.score_peak(ranker, data, options.memory_queries)
    rows = {
        name: own,
        **evaluation.baselines(options.baselines, data, config.seed, options.memory_queries),
    }
    report: dict[str, Any] = {"scores": rows, "sizes": {
        split: {"queries": len(part.queries), "items": len(part.corpus)} for split, part in sets.items()
    }}  # fmt: skip
    more, drawn = pictures(config, ranker.cpu(), sets, scores, rows)
    for file, figure in drawn.items():
        save(figure, folder / "figures" / f"{file}.png")
    return report | more
