"""Optimisation: AdamW with parameter groups, its schedule, clipping, frozen parameters, and averaged weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from isotone.training.sharding import gather, shard


def make_optimizer(module: nn.Module, settings: Any) -> AdamW:
    """Make an AdamW optimiser; biases and normalisation weights are not decayed.

    Args:
        module: The module to train; parameters that require no gradient are left out.
        settings: :class:`isotone.training.config.Training`.

    Raises:
        ValueError: a group's pattern matches no parameter.
    """
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    used: set[str] = set()
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        scale, decay = 1.0, settings.weight_decay
        matches = [(group, p) for group in settings.groups for p in group.parameters if _matches(name, p)]
        used.update(pattern for _, pattern in matches)
        if matches:  # of several groups the first one counts
            group = matches[0][0]
            scale = group.lr_scale
            decay = settings.weight_decay if group.weight_decay is None else group.weight_decay
        if parameter.ndim < 2:  # biases and the scales of normalisation layers
            decay = 0.0
        groups.setdefault((scale, decay), []).append(parameter)
    idle = [p for g in settings.groups for p in g.parameters if p not in used]
    if idle:
        raise ValueError(f"No trained parameter matches {idle[0]!r} of train.groups.")
    return AdamW(
        [
            {"params": p, "lr": settings.lr * scale, "weight_decay": decay}
            for (scale, decay), p in groups.items()
        ],
        lr=settings.lr,
        betas=(0.9, 0.98),
        fused=True,
    )


def _matches(name: str, pattern: str) -> bool:
    """Tell if a pattern matches a parameter of the objective; the prefix ``model.`` may be left out."""
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"model.{pattern}")


def make_schedule(optimizer: Any, settings: Any, steps: int) -> LambdaLR:
    """Make a schedule: linear warm-up, then linear decay to 0 at ``steps``; every step has a rate above 0."""
    warmup = settings.warmup_steps or round(settings.warmup_share * steps)
    warmup = max(1, min(warmup, steps - 1))

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        return max(0.0, (steps - step) / max(1, steps - warmup))

    return LambdaLR(optimizer, factor)


def clip_groups(module: nn.Module, apart: Sequence[str]) -> list[list[nn.Parameter]]:
    """Group the parameters whose gradients are clipped together: first the rest, then one group per pattern.

    Raises:
        ValueError: a pattern matches no parameter outside of the patterns before it.
    """
    left = {name: p for name, p in module.named_parameters() if p.requires_grad}
    groups = []
    for pattern in apart:
        found = [name for name in left if _matches(name, pattern)]
        if not found:
            raise ValueError(f"No trained parameter matches {pattern!r} of train.clip_apart.")
        groups.append([left.pop(name) for name in found])
    # never an empty group: accelerate unscales gradients with the first one
    return [group for group in (list(left.values()), *groups) if group]


class Frozen:
    """Parameters that are frozen for a part of the training.

    A frozen parameter has no gradient, so that neither the step nor the weight decay changes it.

    Args:
        module: The module that has the parameters.
        freezes: :class:`isotone.training.config.Freeze` entries.

    Raises:
        ValueError: a pattern matches no parameter.
    """

    def __init__(self, module: nn.Module, freezes: Sequence[Any]) -> None:
        self.rules: list[tuple[float, float, list[nn.Parameter]]] = []
        named = list(module.named_parameters())
        for freeze in freezes:
            for pattern in freeze.parameters:
                found = [p for n, p in named if _matches(n, pattern)]
                if not found:
                    raise ValueError(f"No parameter matches {pattern!r} of train.freeze.")
                self.rules.append((freeze.start, freeze.end, found))

    def apply(self, progress: float) -> None:
        """Drop the gradients of the parameters that are frozen at this share of the training, 0 to 1."""
        for start, end, parameters in self.rules:
            if start <= progress < end:
                for parameter in parameters:
                    parameter.grad = None  # not zero: AdamW would still decay the weights and use its moments


class Average:
    r"""An exponential moving average of the parameters, for evaluation and for the saved model.

    After step t it is :math:`\bar w \leftarrow d_t \bar w + (1 - d_t) w` with
    :math:`d_t = \min(d, (1 + t) / (10 + t))`: at the start the average quickly forgets the untrained weights.

    Args:
        module: The module that has the parameters, already on its device and sharded.
        decay: d, from 0 to below 1.

    Raises:
        ValueError: a decay outside its range.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"train.average expects a decay from 0 to below 1; got {decay}.")
        self.decay = decay
        self.steps = 0
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        self.values = [p.detach().clone() for p in self.parameters]

    @torch.no_grad()
    def update(self) -> None:
        """Update the average with the parameters after a step."""
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self.values, [p.detach() for p in self.parameters], 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Replace the parameters by their averages inside the block."""
        self.swap()
        try:
            yield
        finally:
            self.swap()

    def state_dict(self) -> dict[str, int | Tensor]:
        """Return the state for a checkpoint: the number of steps, and the averages gathered from their shards."""
        return {"steps": self.steps, **{str(i): gather(v) for i, v in enumerate(self.values)}}

    def load_state_dict(self, state: dict[str, int | Tensor]) -> None:
        """Restore the state of a checkpoint."""
        self.steps = int(state["steps"])
        for i, value in enumerate(self.values):
            value.copy_(shard(torch.as_tensor(state[str(i)]), value))

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange parameters and averages, in place: optimiser and shards keep pointing at the same tensors."""
        for parameter, value in zip(self.parameters, self.values):
            kept = parameter.detach().clone()
            parameter.copy_(value)
            value.copy_(kept)
