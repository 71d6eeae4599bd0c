"""Cross-entropy at some pairs of frames and labels, without a stored log-softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from isotone.kernels._cross_entropy import block_gradients, block_losses
from isotone.kernels._operations import Operation, differentiable
from isotone.kernels.backends import has_kernels
from isotone.kernels.threads import each_task
from isotone.types import check_integers, length_mask

#: Scores that tensor operations handle at a time: a bound on their temporary tensors.
BLOCK_SCORES = 1 << 22
# Scores in one block of frames of the compiled loops: a tenth of a millisecond.
_TASK_SCORES = 1 << 17
# Work per score, in the half nanoseconds of each_task.
_CELLS = 2


def pair_cross_entropy(
    logits: Tensor, mass: Tensor, source: Tensor, label: Tensor, lengths: Tensor
) -> Tensor:
    r""":math:`\sum_k w_k (\log \sum_v e^{x_{s_k, v}} - x_{s_k, l_k})`: frames s, labels l and masses w.

    Args:
        logits: ``(B, T, V)`` unnormalised x, nats.
        mass: ``(B, K)`` floating w; an entry of mass 0 costs nothing even where its label is impossible.
        source: ``(B, K)`` int64 s in 0 .. T - 1, non-decreasing in a row.
        label: ``(B, K)`` int64 l in 0 .. V - 1; never read in rows of length 0.
        lengths: ``(B,)`` int64, valid frames; sources of a row lie below, and frames beyond are never read.
            A row of length 0 has value 0, and no gradient.

    Returns:
        ``(B,)`` nats; float64 for float64 logits, else float32. Differentiable once in logits and mass.

    Raises:
        ValueError: lengths that are no integers.
        IndexError: a label outside the vocabulary, or a length above T (RuntimeError for other types than float32).
            On CUDA, where nothing waits for the device, the row's value is NaN instead.

    Numerics: the log-sum-exp is taken in float32 for narrower types (float64 for float64), of the scores less the
    largest in their frame: a number added to all of them costs no digits. Sums of float32 on the CPU are float64.
    Beside the logits, their gradient is the one tensor of their size; O(B (T + K)) more. float32 on the CPU is one
    compiled pass each way, on ``torch.get_num_threads()`` threads; CUDA takes two launches each way, without
    synchronisation with the host, and its results are the same each time. All else is tensor operations.
    """
    check_integers(lengths)
    loops = logits.device.type != "cpu" or logits.dtype == torch.float32
    if loops and has_kernels(logits.device):
        wide = torch.promote_types(logits.dtype, torch.float32)
        value, _ = losses_operation(logits, mass.to(wide), source, label, lengths)
        return value
    return TensorCrossEntropy.apply(logits, mass, source, label, lengths)


def _tasks(logits: Tensor) -> tuple[int, int]:
    """Return the frames per block and the blocks per row."""
    size = max(1, _TASK_SCORES // max(1, logits.shape[2]))
    return size, -(-logits.shape[1] // size)


def _losses(
    logits: Tensor, mass: Tensor, source: Tensor, label: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor]:
    """Find the values, and the norms of all frames ``(B, T, 2)``, 0 beyond the lengths."""
    size, blocks = _tasks(logits)
    norms = logits.new_zeros(*logits.shape[:2], 2)
    parts = logits.new_zeros(len(logits), blocks, dtype=torch.float64)
    arrays = [x.detach().contiguous().numpy() for x in (logits, mass, source, label, lengths)]
    each_task(
        block_losses, parts.numel(), _CELLS * logits.numel(), size, *arrays, norms.numpy(), parts.numpy()
    )
    return parts.sum(1).float(), norms


def _fake_losses(logits: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
    wide = torch.promote_types(logits.dtype, torch.float32)
    return logits.new_empty(len(logits), dtype=wide), logits.new_empty(*logits.shape[:2], 2, dtype=wide)


def _gradients(
    grad: Tensor,
    logits: Tensor,
    mass: Tensor,
    source: Tensor,
    label: Tensor,
    lengths: Tensor,
    norms: Tensor,
    for_logits: bool,
    for_mass: bool,
) -> tuple[Tensor, Tensor]:
    """Find the gradients in logits and mass; empty where they are not requested."""
    size, blocks = _tasks(logits)
    # numpy asks for huge pages: the first touch of a gradient of 50 MB then takes 6 ms and not 16
    grad_logits = np.empty(logits.shape if for_logits else (0, 0, 0), np.float32)
    grad_mass = np.zeros(mass.shape if for_mass else (0, 0), np.float32)
    arrays = [x.detach().contiguous().numpy() for x in (logits, mass, source, label, lengths, norms, grad)]
    tasks, cells = blocks * len(logits), _CELLS * logits.numel()
    each_task(block_gradients, tasks, cells, size, *arrays, grad_logits, grad_mass)
    return torch.from_numpy(grad_logits), torch.from_numpy(grad_mass)


def _fake_gradients(grad: Tensor, logits: Tensor, mass: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    for_logits, for_mass = rest[-2:]
    grad_logits = logits.new_empty(logits.shape if for_logits else (0, 0, 0))
    return grad_logits, mass.new_empty(mass.shape if for_mass else (0, 0))


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*inputs, output[1])


def _backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    for_logits, for_mass = ctx.needs_input_grad[:2]
    grads = _gradients_operation(grad, *ctx.saved_tensors, for_logits, for_mass)
    return grads[0] if for_logits else None, grads[1] if for_mass else None, None, None, None


_KERNELS = "isotone.kernels._cross_entropy_cuda"
_gradients_operation = Operation(
    "pair_cross_entropy_backward", _gradients, _fake_gradients, f"{_KERNELS}:gradients"
)
losses_operation = differentiable(
    Operation("pair_cross_entropy", _losses, _fake_losses, f"{_KERNELS}:losses"), _keep, _backward
)


class TensorCrossEntropy(torch.autograd.Function):
    """The cross-entropy by tensor operations, for any device and type."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, mass: Tensor, source: Tensor, label: Tensor, lengths: Tensor
    ) -> Tensor:
        """Find the values."""
        wide = torch.promote_types(logits.dtype, torch.float32)
        blocks = _blocks(logits)
        vocab_size, read = logits.shape[2], (lengths > 0)[:, None]
        peak = logits.amax(-1).to(wide) if vocab_size else logits.new_zeros(logits.shape[:2], dtype=wide)
        rest = torch.cat(
            [
                torch.logsumexp(logits[rows].to(wide) - peak[rows, :, None], -1)
                for rows in (slice(b, b + blocks.step) for b in blocks)
            ]
        )
        # a label outside the vocabulary must not read, or write, another frame's scores: an index past the end raises
        known = (label >= 0) & (label < vocab_size)
        pair = torch.where(known, source * vocab_size + label, logits.shape[1] * vocab_size)
        pair = torch.where(read, pair, 0)
        below = logits.flatten(1).gather(1, pair).to(wide) - peak.gather(1, source)
        nll = rest.gather(1, source) - below
        nll = torch.where(read, nll, 0.0)
        ctx.save_for_backward(logits, peak, rest, mass, source, pair, lengths, nll)
        return torch.where(mass == 0, 0.0, mass.to(wide) * nll).sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Find the gradients in logits and mass."""
        logits, peak, rest, mass, source, pair, lengths, nll = ctx.saved_tensors
        grad_logits = grad_mass = None
        if ctx.needs_input_grad[1]:
            grad_mass = (grad[:, None] * nll).to(mass.dtype)
        if ctx.needs_input_grad[0]:
            weighted = torch.where(lengths[:, None] > 0, grad[:, None] * mass, 0.0).to(rest.dtype)
            frame = torch.zeros_like(rest).scatter_add_(1, source, weighted)
            unread = ~length_mask(lengths, rest.shape[1])
            grad_logits = torch.empty_like(logits, memory_format=torch.contiguous_format)
            blocks = _blocks(logits)
            for b in blocks:
                rows = slice(b, b + blocks.step)
                part = grad_logits[rows]
                if part.dtype != rest.dtype:
                    part = rest.new_empty(part.shape)
                torch.sub(logits[rows].to(rest.dtype), peak[rows, :, None], out=part)
                part.sub_(rest[rows, :, None]).exp_().mul_(frame[rows, :, None]).masked_fill_(
                    unread[rows, :, None], 0.0
                )
                part.view(len(part), -1).scatter_add_(1, pair[rows], -weighted[rows])
                if part.dtype != grad_logits.dtype:
                    grad_logits[rows] = part
        return grad_logits, grad_mass, None, None, None


def _blocks(logits: Tensor) -> range:
    """Return the first rows of blocks of the batch that hold a bounded number of scores."""
    return range(0, len(logits), max(1, BLOCK_SCORES // max(1, logits.shape[1] * logits.shape[2])))
