"""Models whose weights are spread over processes (FSDP), made whole for evaluation, alignment and files."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accelerate import Accelerator
from accelerate.utils import DistributedType
from torch import Tensor

from isotone.model import Model


class Whole:
    """A model in training, with all its weights where it is wanted.

    Args:
        model: Before its weights are spread.
        accelerator: That will spread them, or not.
    """

    def __init__(self, model: Model, accelerator: Accelerator) -> None:
        self.model = model
        self.accelerator = accelerator
        self.spread = accelerator.distributed_type == DistributedType.FSDP
        # the tokenizer is not a part of the weights, and may hold what cannot be copied
        self.copy = (
            copy.deepcopy(model, {id(model.tokenizer): model.tokenizer})
            if self.spread and accelerator.is_main_process
            else None
        )

    @contextmanager
    def __call__(self) -> Iterator[Model | None]:
        """The model as it is now; of one whose weights are spread a copy on the main process, and None on the others.

        All processes call it, for then each gives its weights.
        """
        if not self.spread:
            yield self.model
            return
        state = {}
        for name, value in self.model.state_dict().items():
            weights = full(value)
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


def full(value: Tensor) -> Tensor:
    """All of a tensor of which every process has a part."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def like(value: Tensor, example: Any) -> Tensor:
    """The part of a whole tensor that a process has of the example."""
    if not hasattr(example, "full_tensor"):
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value.to(example.device), example.device_mesh, example.placements)
