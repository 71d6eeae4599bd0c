"""Configuration of accelerate: training on one or several devices and processes, by DDP, FSDP or DeepSpeed."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from accelerate import Accelerator, DistributedDataParallelKwargs
from accelerate.utils import DistributedType, GradientAccumulationPlugin

from isotone.training.loader import flatten


def make_accelerator(recipe: Any, folder: Path) -> Accelerator:
    """Make the accelerator of a run: precision, accumulation, trackers, and the kind of processes.

    Raises:
        ValueError: a kind of processes that training here does not support, options that it does not support, or
            processes that accelerate does not connect.
    """
    settings = recipe.train
    # YAML reads a plain `no` as false
    precision = {"False": "no"}.get(settings.precision, settings.precision)
    trackers = [t for t in settings.trackers if t != "none"]
    accelerator = Accelerator(
        # weights are float32 everywhere; DeepSpeed would cast them to this precision, so it gets autocast below
        mixed_precision="no" if os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true" else precision,
        gradient_accumulation_plugin=GradientAccumulationPlugin(
            num_steps=settings.accumulate, sync_with_dataloader=False, adjust_scheduler=False
        ),
        log_with=trackers or None,
        project_dir=str(folder),
        step_scheduler_with_optimizer=False,
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
    check_processes(accelerator)
    if accelerator.distributed_type == DistributedType.DEEPSPEED:
        configure_deepspeed(accelerator.state.deepspeed_plugin, settings, precision)
    if accelerator.distributed_type == DistributedType.FSDP:
        configure_fsdp(accelerator.state.fsdp_plugin)
    if trackers:
        flat = {k: str(v) for k, v in flatten(asdict(recipe)) if v != {}}
        accelerator.init_trackers("logs", config=flat)
    return accelerator


def check_processes(accelerator: Accelerator) -> None:
    """Check that accelerate has connected the processes that were started.

    Raises:
        ValueError: it has not.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > accelerator.num_processes:
        raise ValueError(
            f"This is one of {world} processes, and accelerate trains them as if each were alone (it has no FSDP on "
            "CPU, for instance): change `accelerate config`."
        )


def configure_deepspeed(plugin: Any, settings: Any, precision: str) -> None:
    """Pass the settings of training on to DeepSpeed, in place.

    Args:
        plugin: accelerate's plugin; its ``deepspeed_config`` is changed.
        settings: :class:`isotone.training.config.Training`.
        precision: ``no``, ``bf16`` or ``fp16``.

    Raises:
        ValueError: settings that DeepSpeed does not support here.
    """
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
    # DeepSpeed requires a number, although batches here vary in size
    config["train_micro_batch_size_per_gpu"] = max(1, settings.batch_size)
    config["gradient_accumulation_steps"] = settings.accumulate
    config["gradient_clipping"] = settings.clip


def _enabled(section: Any) -> bool:
    return isinstance(section, dict) and section.get("enabled") is True


def configure_fsdp(plugin: Any) -> None:
    """Keep the weights float32 under FSDP, in place.

    Raises:
        ValueError: the plugin is not version 2 of FSDP.
    """
    if plugin.fsdp_version != 2:
        raise ValueError(
            "Of FSDP the second version is used here: say fsdp_version: 2 in `accelerate config`."
        )
    # also between processes: only autocast chooses lower precision, as on one device
    plugin.mixed_precision_policy = None
