"""The maths of OTTC: targets with blanks between repeats, label weights, and the loss."""

from __future__ import annotations

import torch
from torch import Tensor

from isotone.kernels.coupling import couple
from isotone.kernels.cross_entropy import pair_cross_entropy
from isotone.types import length_mask


def insert_blanks(labels: Tensor, lengths: Tensor, blank: int) -> tuple[Tensor, Tensor, Tensor]:
    """Put a blank between equal neighbours, and nowhere else: GOOD becomes G O blank O D.

    Args:
        labels: ``(B, U)`` int64; padding is never read.
        lengths: ``(B,)`` int64.
        blank: Label number of the blank.

    Returns:
        The new labels ``(B, U')`` int64, padded with blanks; their lengths ``(B,)``; and for each of them the
        number of the token it was, -1 for inserted blanks and padding.
    """
    size = labels.shape[1]
    valid = length_mask(lengths, size)
    repeats = torch.zeros_like(valid)
    repeats[:, 1:] = (labels[:, 1:] == labels[:, :-1]) & valid[:, 1:]
    shift = torch.cumsum(repeats, 1)
    new_lengths = lengths + (shift[:, -1] if size else 0)
    new_size = _width(new_lengths, 2 * size - 1)
    # padding goes to one column more, which is cut off
    place = torch.where(valid, torch.arange(size, device=labels.device) + shift, new_size)
    out = labels.new_full((len(labels), new_size + 1), blank).scatter_(1, place, labels)
    origin = torch.full_like(out, -1)
    origin.scatter_(1, place, torch.arange(size, device=labels.device).expand_as(place))
    return out[:, :new_size], new_lengths, origin[:, :new_size]


def insert_silence(
    labels: Tensor, lengths: Tensor, blank: int, silence: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Put a silence before, between and after the tokens; between equal neighbours the blank stands for it.

    Args:
        labels: ``(B, U)`` int64; padding is never read.
        lengths: ``(B,)`` int64.
        blank: Label number of the blank.
        silence: Label number of the silence (it may be the blank).

    Returns:
        As :func:`insert_blanks`: labels ``(B, 2 U + 1)``, lengths ``2 n + 1``, and the tokens they were.
    """
    valid = length_mask(lengths, labels.shape[1])
    repeats = torch.zeros_like(valid)
    repeats[:, 1:] = labels[:, 1:] == labels[:, :-1]
    out = labels.new_full((len(labels), 2 * labels.shape[1] + 1), silence)
    out[:, :-1:2] = torch.where(valid & repeats, blank, silence)
    out[:, 1::2] = torch.where(valid, labels, blank)
    origin = torch.full_like(out, -1)
    origin[:, 1::2] = torch.where(valid, torch.arange(labels.shape[1], device=labels.device), -1)
    return out, 2 * lengths + 1, origin


def collapse_frames(frame_labels: Tensor, kept: Tensor, blank: int) -> tuple[Tensor, Tensor, Tensor]:
    """Leave frames out, merge repeats among the others, remove blanks.

    Args:
        frame_labels: ``(B, T)`` int64.
        kept: ``(B, T)`` bool; the other frames are as if they were not there.
        blank: Label number of the blank.

    Returns:
        The tokens' labels ``(B, U)`` padded with blanks, their number ``(B,)``, and for every frame the
        number of its token ``(B, T)``, -1 where it has none.
    """
    size = frame_labels.shape[1]
    frame = torch.arange(size, device=frame_labels.device)
    last_kept = torch.cummax(torch.where(kept, frame, -1), 1).values
    before = torch.cat([torch.full_like(last_kept[:, :1], -1), last_kept[:, :-1]], 1)
    previous = torch.where(before >= 0, frame_labels.gather(1, before.clamp(min=0)), blank)
    carries = kept & (frame_labels != blank)
    starts = carries & (frame_labels != previous)
    number = torch.cumsum(starts, 1) - 1
    count = starts.sum(1)
    most = _width(count, size)
    labels = frame_labels.new_full((len(frame_labels), most + 1), blank)
    labels.scatter_(1, torch.where(starts, number, most), frame_labels)
    return labels[:, :most], count, torch.where(carries, number, -1)


def share_repeats(paths: Tensor, labels: Tensor) -> Tensor:
    """Divide frames evenly among equal neighbours that touch: the scores do not say where one ends.

    Args:
        paths: ``(B, T)`` int64, for every frame the number of its token, negative where it has none.
        labels: ``(B, U)`` int64.

    Returns:
        ``(B, T)`` int64, paths that spell the same labels frame by frame.
    """
    size = paths.shape[1]
    if size == 0:
        return paths
    carries = paths >= 0
    spelt = torch.where(carries, labels.gather(1, paths.clamp(min=0)), -1)
    enters, begins = carries.clone(), torch.ones_like(carries)
    enters[:, 1:] &= paths[:, 1:] != paths[:, :-1]
    begins[:, 1:] = (spelt[:, 1:] != spelt[:, :-1]) | (carries[:, 1:] != carries[:, :-1])
    # the tokens that are visited, in order; and of every run of frames of one label its first frame and size
    visit = (torch.cumsum(enters, 1) - 1).clamp(min=0)
    visited = paths.new_zeros(len(paths), size + 1).scatter_(1, torch.where(carries, visit, size), paths)
    run = torch.cumsum(begins, 1) - 1
    frames = torch.zeros_like(run).scatter_add_(1, run, torch.ones_like(run))
    tokens = torch.zeros_like(run).scatter_add_(1, run, enters.long())
    frame = torch.arange(size, device=paths.device)
    first = torch.cummax(torch.where(begins, frame, 0), 1).values
    step = (frame - first) * tokens.gather(1, run) // frames.gather(1, run)
    return torch.where(carries, visited.gather(1, visit.gather(1, first) + step), paths)


def labels_from_paths(paths: Tensor, labels: Tensor, blank: int) -> tuple[Tensor, Tensor, Tensor]:
    """The label sequence that a fixed path spells, blanks included, and how many frames each label has.

    For YES, the path (blank Y blank blank E E S) gives (blank Y blank E S) with frames (1, 1, 2, 2, 1).

    Args:
        paths: ``(B, T)`` int64, for every frame the number of its token, -1 for blank, -2 for padding at
            the end.
        labels: ``(B, U)`` int64.
        blank: Label number of the blank.

    Returns:
        Labels ``(B, R)``, lengths ``(B,)`` and frames ``(B, R)`` float, for the runs of equal entries in
        the paths.
    """
    valid = paths > -2
    starts = valid.clone()
    starts[:, 1:] &= paths[:, 1:] != paths[:, :-1]
    lengths = starts.sum(1)
    size = _width(lengths, paths.shape[1])
    run = torch.where(valid, torch.cumsum(starts, 1) - 1, size)
    frames = torch.zeros(len(paths), size + 1, device=paths.device)
    frames.scatter_add_(1, run, torch.ones_like(run, dtype=frames.dtype))
    frame_labels = torch.where(paths >= 0, labels.gather(1, paths.clamp(min=0)), blank)
    out = labels.new_full((len(labels), size + 1), blank).scatter_(1, run, frame_labels)
    return out[:, :size], lengths, frames[:, :size]


def _width(lengths: Tensor, most: int) -> int:
    """Columns for rows of these lengths: no more than needed where that can be read without waiting."""
    if lengths.device.type != "cpu" or torch.compiler.is_compiling():
        return max(1, most)
    return max(1, int(lengths.max()) if len(lengths) else 1)


def ottc_loss(
    logits: Tensor,
    alpha: Tensor,
    labels: Tensor,
    beta: Tensor,
    frame_lengths: Tensor,
    label_lengths: Tensor,
    required: Tensor | None = None,
) -> Tensor:
    r"""Optimal Temporal Transport Classification: cross-entropy along the coupling of frames and labels.

    :math:`L = -\sum_{ij} \gamma(\alpha, \beta)_{ij} \log p_{y_j}(x_i)`, computed at the n + m - 1 pairs
    where the coupling is not zero. The first derivative is exact in logits, alpha and beta.

    Args:
        logits: ``(B, T, V)`` unnormalised, nats; frames beyond their lengths are never read and get
            gradient 0.
        alpha: ``(B, T)`` OT weights of the frames, non-negative; divided by their sum. From logits:
            :func:`isotone.kernels.coupling.frame_weights`.
        labels: ``(B, U)`` int64, blanks between repeats already inserted.
        beta: ``(B, U)`` weights of the labels, non-negative; divided by their sum.
        frame_lengths, label_lengths: ``(B,)`` int64.
        required: ``(B,)`` frames that a row needs at least. Default: one a label.

    Returns:
        ``(B,)`` nats a unit of mass; float64 for float64 logits, else float32. 0, without gradient, for
        rows that have fewer frames than they need, or no labels.

    Raises:
        ValueError: shapes that do not fit together.

    Numerics: log-sum-exp in float32 (float64 for float64), prefix sums of the weights in float64. Beside the
    logits, their gradient is the one tensor of their size: there is no (B, T, U) tensor and no stored
    log-softmax. No synchronisation with the host on other devices; torch.compile takes it as one graph.

    References: "A Differentiable Alignment Framework for Sequence-to-Sequence Modeling via Optimal
    Transport", 2025, equation 11.
    """
    if logits.ndim != 3 or alpha.shape != logits.shape[:2] or beta.shape != labels.shape:
        raise ValueError(
            "ottc_loss expects logits (B, T, V), alpha (B, T), labels (B, U) and beta (B, U); got "
            f"{tuple(logits.shape)}, {tuple(alpha.shape)}, {tuple(labels.shape)} and {tuple(beta.shape)}."
        )
    if logits.shape[1] == 0 or labels.shape[1] == 0:
        return logits.new_zeros(len(logits), dtype=torch.promote_types(logits.dtype, torch.float32))
    feasible = (label_lengths > 0) & ((label_lengths if required is None else required) <= frame_lengths)
    coupling = couple(alpha, beta, frame_lengths, label_lengths)
    return pair_cross_entropy(
        logits,
        coupling.mass,
        coupling.source,
        labels.gather(1, coupling.target),
        torch.where(feasible, frame_lengths, 0),
    )
