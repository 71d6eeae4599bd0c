"""AdamW with parameter groups, linear warm-up and decay, parameters that are frozen for a while, averaged weights."""

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
    """AdamW; biases and normalisation weights are not decayed.

    Args:
        module: Its parameters that require gradients are trained.
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
        if matches:
            group = matches[0][0]
            scale = group.lr_scale
            decay = settings.weight_decay if group.weight_decay is None else group.weight_decay
        if parameter.ndim < 2:
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
    """Whether a parameter is meant; patterns may leave out that the model is a part of the objective."""
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"model.{pattern}")


def make_schedule(optimizer: Any, settings: Any, steps: int) -> LambdaLR:
    """Linear warm-up to the peak, then linear decay to 0 at ``steps``; no step is made with 0."""
    warmup = settings.warmup_steps or round(settings.warmup_share * steps)
    warmup = max(1, min(warmup, steps - 1))

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        return max(0.0, (steps - step) / max(1, steps - warmup))

    return LambdaLR(optimizer, factor)


def clip_groups(module: nn.Module, apart: Sequence[str]) -> list[list[nn.Parameter]]:
    """The parameters whose gradients are clipped together: those of each pattern, and before them all others.

    Raises:
        ValueError: a pattern matches no parameter that is left.
    """
    left = {name: p for name, p in module.named_parameters() if p.requires_grad}
    groups = []
    for pattern in apart:
        found = [name for name in left if _matches(name, pattern)]
        if not found:
            raise ValueError(f"No trained parameter matches {pattern!r} of train.clip_apart.")
        groups.append([left.pop(name) for name in found])
    return [group for group in (list(left.values()), *groups) if group]


class Frozen:
    """Which parameters rest at a point of the training.

    A resting parameter gets no gradient, so that neither the step nor the weight decay moves it.

    Args:
        module: Whose parameters.
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
        """Drop the gradients of the parameters that rest at this share of the training."""
        for start, end, parameters in self.rules:
            if start <= progress < end:
                for parameter in parameters:
                    parameter.grad = None


class Average:
    r"""An exponential moving average of the parameters, for evaluation and for the model that is kept.

    After step t it is :math:`\bar w \leftarrow d_t \bar w + (1 - d_t) w` with
    :math:`d_t = \min(d, (1 + t) / (10 + t))`: at the start the average forgets what the weights were before training.

    Args:
        module: Whose parameters; on devices and in shards as they are when this is made.
        decay: d, 0 to 1.

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
        """Take in the parameters after a step."""
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self.values, [p.detach() for p in self.parameters], 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The parameters are their averages inside the block."""
        self.swap()
        try:
            yield
        finally:
            self.swap()

    def state_dict(self) -> dict[str, int | Tensor]:
        """What a checkpoint keeps."""
        return {"steps": self.steps, **{str(i): gather(v) for i, v in enumerate(self.values)}}

    def load_state_dict(self, state: dict[str, int | Tensor]) -> None:
        """Go on from a checkpoint."""
        self.steps = int(state["steps"])
        for i, value in enumerate(self.values):
            value.copy_(shard(torch.as_tensor(state[str(i)]), value))

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange parameters and averages."""
        for parameter, value in zip(self.parameters, self.values):
            kept = parameter.detach().clone()
            parameter.copy_(value)
            value.copy_(kept)
