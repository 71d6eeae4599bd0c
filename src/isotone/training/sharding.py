"""Gather FSDP-sharded weights for evaluation, alignment and files."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accelerate import Accelerator
from accelerate.utils import DistributedType
from torch import Tensor

from isotone.model import Model


class Gathered:
    """A model in training whose sharded weights can be gathered.

    Args:
        model: The model, before its weights are sharded.
        accelerator: The accelerator that shards them, if at all.
    """

    def __init__(self, model: Model, accelerator: Accelerator) -> None:
        self.model = model
        self.accelerator = accelerator
        self.sharded = accelerator.distributed_type == DistributedType.FSDP
        # the tokenizer is shared: it has no weights, and may hold objects that cannot be copied
        self.copy = (
            copy.deepcopy(model, {id(model.tokenizer): model.tokenizer})
            if self.sharded and accelerator.is_main_process
            else None
        )

    @contextmanager
    def __call__(self) -> Iterator[Model | None]:
        """Yield the current model; where weights are sharded, a copy on the main process and None on the others.

        All processes must call it, since each sends its shards.
        """
        if not self.sharded:
            yield self.model
            return
        state = {}
        for name, value in self.model.state_dict().items():
            weights = gather(value)
            if self.copy is not None:
                state[name] = weights.detach().cpu()
        if self.copy is not None:
            self.copy.load_state_dict(state)
            self.copy.to(self.accelerator.device)
        try:
            yield self.copy
        finally:
            if self.copy is not None:
                self.copy.cpu()


def gather(value: Tensor) -> Tensor:
    """Gather a sharded tensor; return any other tensor as it is."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def shard(value: Tensor, example: Any) -> Tensor:
    """Return this process's shard of a full tensor, sharded like the example."""
    if not hasattr(example, "full_tensor"):
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value.to(example.device), example.device_mesh, example.placements)
