"""How training is shared out over devices and processes: accelerate's ways, and what each of them has to be told."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.utils import DistributedType, GradientAccumulationPlugin

from isotone.training.loader import flatten


def make_accelerator(recipe: Any, folder: Path) -> Accelerator:
    """The accelerator of a run: precision, accumulation, trackers; of one kind of processes or another.

    Raises:
        ValueError: a way of sharing the work that training here does not know, options that do not go with it, or
            processes that do not know of each other.
    """
    settings = recipe.train
    # a plain no in YAML is false
    precision = {"False": "no"}.get(settings.precision, settings.precision)
    trackers = [t for t in settings.trackers if t != "none"]
    accelerator = Accelerator(
        # weights are float32 everywhere; DeepSpeed would make them what is computed with, and gets autocast below
        mixed_precision="no" if os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true" else precision,
        gradient_accumulation_plugin=GradientAccumulationPlugin(
            num_steps=settings.accumulate, sync_with_dataloader=False, adjust_scheduler=False
        ),
        log_with=trackers or None,
        project_dir=str(folder),
        step_scheduler_with_optimizer=False,
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > accelerator.num_processes:
        raise ValueError(
            f"This is one of {world} processes, and accelerate trains them as if each were alone (it has no FSDP on "
            "CPU, for instance): change `accelerate config`."
        )
    if accelerator.distributed_type == DistributedType.DEEPSPEED:
        _tell_deepspeed(accelerator.state.deepspeed_plugin, settings, precision)
    if accelerator.distributed_type == DistributedType.FSDP:
        _tell_fsdp(accelerator.state.fsdp_plugin)
    if trackers:
        flat = {k: str(v) for k, v in flatten(asdict(recipe)) if v != {}}
        accelerator.init_trackers("logs", config=flat)
    return accelerator


def _tell_deepspeed(plugin: Any, settings: Any, precision: str) -> None:
    """Give DeepSpeed what it does itself, and refuse what it does not do."""
    if plugin.zero_stage == 3:
        raise ValueError(
            "Stage 3 of DeepSpeed spreads the weights, and no process could evaluate or save the model: use stage 1 "
            "or 2, or FSDP."
        )
    if settings.freeze:
        raise ValueError(
            "train.freeze takes gradients away, which DeepSpeed has used by then: train without, or with FSDP."
        )
    if settings.clip_apart:
        raise ValueError(
            "DeepSpeed clips all gradients together: train with train.clip_apart=[], or with FSDP."
        )
    config = plugin.deepspeed_config
    if precision == "fp16" or any(_enabled(config.get(name)) for name in ("bf16", "fp16")):
        raise ValueError(
            "With DeepSpeed the precision is train.precision=bf16 or no, and its own configuration has neither fp16 "
            "nor bf16: weights stay float32 here."
        )
    config["torch_autocast"] = {"enabled": precision == "bf16", "dtype": "bfloat16"}
    # a number that it asks for; batches here are not all of one size
    config["train_micro_batch_size_per_gpu"] = max(1, settings.batch_size)
    config["gradient_accumulation_steps"] = settings.accumulate
    config["gradient_clipping"] = settings.clip


def _enabled(section: Any) -> bool:
    return isinstance(section, dict) and section.get("enabled") is True


def _tell_fsdp(plugin: Any) -> None:
    """See that FSDP is the second one, and leave the weights float32."""
    if plugin.fsdp_version != 2:
        raise ValueError(
            "Of FSDP the second version is used here: say fsdp_version: 2 in `accelerate config`."
        )
    # also on their way between processes: autocast decides what is computed in less, as on one device
    plugin.mixed_precision_policy = None
