"""Timing of calls in turn, on the CPU or a GPU; inputs of a GPU, and its memory."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Mapping
from typing import Any

# Timed runs of a contender at one size, and how long one round of all contenders may take to be repeated.
_ROUNDS = 3, 101
_LONG_S = 15.0


def interleaved(
    runs: Mapping[str, Callable[[], object]], seconds: float, device: str = "cpu"
) -> dict[str, list[float]]:
    """Time the calls of every run in milliseconds, in rounds, so that a busy machine is busy for all.

    Every round calls each of them once, in a new random order. A result with a number ``ms`` has timed itself, such as
    a step of a training that has set-up; one round is enough of such runs.

    Args:
        runs: By name; each has been run before.
        seconds: Time to continue for. There are at least 3 rounds, unless one takes long.
        device: Device that the runs work on, which is waited for before and after each call.

    Returns:
        One time per round for every run, by name.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    least, most = _ROUNDS
    order = random.Random(0)
    begin = time.perf_counter()
    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for done in range(1, most + 1):
            # after a long call caches are cold and the time slice is spent: a random order spreads that over all
            for name in order.sample(list(runs), len(runs)):
                synchronize(device)
                start = time.perf_counter()
                result = runs[name]()
                synchronize(device)
                spent_ms = 1e3 * (time.perf_counter() - start)
                own_ms = getattr(result, "ms", None)
                least = least if own_ms is None else 1
                times[name].append(spent_ms if own_ms is None else own_ms)
                del result
            spent = time.perf_counter() - begin
            if (done >= least and spent > seconds) or spent > least * max(seconds, _LONG_S):
                break
    finally:
        if collects:
            gc.enable()
    return times


def synchronize(device: str) -> None:
    """Wait until a GPU has finished; the CPU always has."""
    if device != "cpu":
        import torch

        torch.cuda.synchronize()


def moved(value: Any, device: str) -> Any:
    """Move inputs or a result to a device: tensors, what has a method ``on`` or ``to``, and tuples and lists of them.

    Tensors with a gradient become leaves.
    """
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().to(device).requires_grad_(value.requires_grad)
    for name in ("on", "to"):
        if hasattr(value, name):
            return getattr(value, name)(device)
    if isinstance(value, tuple | list):
        parts = [moved(part, device) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def gpu_extra_mib(run: Callable[[], object]) -> float:
    """Measure the peak of torch's memory on the GPU during a call, less that before it, in MiB."""
    import torch

    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = run()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated()
    del result
    return (peak - before) / 2**20
