"""The score of a text in emissions: tokens select frames in order, and the frames between belong to their neighbours.

A selection :math:`t_1 < .. < t_m` scores every frame once: selected ones by their token, the others by the gap that they
lie in. Gaps telescope, so that a selection's score is the sum of one reward per token: the problem that OPAS relaxes.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from isotone.kernels.assignment import ordered_assignment
from isotone.types import length_mask

#: Labels of a frame between two selected ones: those of both tokens, the blank, or any of these.
Between = Literal["neighbours", "blank", "both", "mean"]


def selection_rewards(
    log_probs: Tensor,
    labels: Tensor,
    frame_lengths: Tensor,
    label_lengths: Tensor,
    blank: int,
    *,
    between: Between = "neighbours",
    weight: float = 1.0,
) -> tuple[Tensor, Tensor]:
    r"""Rewards of tokens and frames whose sum over a selection is that selection's score, but for a constant.

    With :math:`\ell_t(v) = \log p_t(v)` and the gap score :math:`g_{j,t}` of a frame between tokens j and j + 1 (for
    ``"neighbours"`` the logarithm of :math:`p_t(y_j) + p_t(y_{j+1})`, at both ends of the only neighbour's p), a
    selection has the score

    .. math:: \sum_j \ell_{t_j}(y_j) + w \sum_j \sum_{t_j < t < t_{j+1}} g_{j,t}
              = \sum_j R_{j, t_j} + c, \quad
              R_{j,t} = \ell_t(y_j) + w \Bigl(\sum_{s < t} g_{j-1,s} - \sum_{s \le t} g_{j,s}\Bigr),

    where c is w times the sum of the last gap's scores over all frames.

    Args:
        log_probs: ``(B, T, V)`` nats.
        labels: ``(B, U)`` int64.
        frame_lengths, label_lengths: ``(B,)`` int64, at least 1; nothing beyond has an influence or a gradient.
        blank: Label number of the blank.
        between: Labels that a frame between two selected ones may have.
        weight: w, of such frames beside selected ones.

    Returns:
        R ``(B, U, T)`` and c ``(B,)``, float64 nats.
    """
    frames = length_mask(frame_lengths, log_probs.shape[1])
    read = torch.where(length_mask(label_lengths, labels.shape[1]), labels, 0)
    every = torch.cat([read, torch.full_like(read[:, :1], blank)], 1)
    picked = log_probs.gather(2, every[:, None].expand(-1, log_probs.shape[1], -1)).double()
    picked = torch.where(frames[..., None], picked, 0.0).mT
    own, of_blank = picked[:, :-1], picked[:, -1:]
    # gap j lies before token j; gap m is the last of a row
    gap = torch.arange(labels.shape[1] + 1, device=labels.device)
    left = (gap - 1).clamp(min=0).expand(len(labels), -1)
    right = torch.minimum(gap, (label_lengths - 1)[:, None])
    first, second = (own.gather(1, i[..., None].expand(-1, -1, own.shape[2])) for i in (left, right))
    same = read.gather(1, left) == read.gather(1, right)
    scores = torch.where(same[..., None], first, torch.logaddexp(first, second))
    if between == "blank":
        scores = of_blank.expand_as(scores)
    elif between == "mean":
        scores = (first + second) / 2
    elif between == "both":
        scores = torch.logaddexp(scores, of_blank)
    scores = weight * torch.where(frames[:, None], scores, 0.0)
    upto = scores.cumsum(2)
    before = upto[:, :-1] - scores[:, :-1]
    last = upto[:, :, -1].gather(1, label_lengths[:, None])[:, 0]
    return own + before - upto[:, 1:], last


def best_selection(rewards: Tensor, frame_lengths: Tensor, label_lengths: Tensor) -> Tensor:
    """The largest sum of an ordered selection's rewards ``(B, U, T)``: ``(B,)``, with the choice's gradient."""
    chosen, _ = ordered_assignment(rewards, label_lengths, frame_lengths)
    of_frames = rewards.gather(2, chosen.clamp(min=0)[..., None])[..., 0]
    return torch.where(chosen >= 0, of_frames, 0.0).sum(1)


def soft_selection(
    rewards: Tensor, frame_lengths: Tensor, label_lengths: Tensor, temperature: float
) -> Tensor:
    r"""The soft maximum of all ordered selections' sums :math:`s`: :math:`\tau \log \sum e^{s / \tau}`, ``(B,)``.

    Its gradient is the expected selection: a plan that keeps order exactly, as Sinkhorn's need not.

    Args:
        rewards: ``(B, U, T)`` finite.
        frame_lengths, label_lengths: ``(B,)`` int64, at least 1, labels no more than frames.
        temperature: :math:`\tau > 0`, nats.
    """
    spare = frame_lengths - label_lengths
    width = int(spare.max()) + 1
    # token j selects one of the frames j .. j + n - m: counted from j on, the next token's are not further left
    offset = torch.arange(width, device=rewards.device)
    total = None
    ends = []
    for j in range(rewards.shape[1]):
        reward = rewards[:, j, (offset + j).clamp(max=rewards.shape[2] - 1)] / temperature
        total = torch.logcumsumexp(reward if total is None else total + reward, 1)
        ends.append(total.gather(1, spare[:, None]))
    return temperature * torch.cat(ends, 1).gather(1, (label_lengths - 1)[:, None])[:, 0]
