"""The score of a text in emissions: tokens select frames in order, and the frames between belong to their neighbours.

A selection :math:`t_1 < .. < t_m` scores every frame once: selected ones by their token, the others by the gap that
they lie in. Gaps telescope, so that a selection's score is a sum of one reward per token: the problem that OPAS
relaxes.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from isotone.kernels.assignment import ordered_assignment
from isotone.types import length_mask, mask_rows

#: Score of a frame between two selected ones: that it has the label of either token, the mean of the scores of both, or
#: that of the blank.
Between = Literal["neighbours", "mean", "blank"]


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

    With :math:`\ell_t(v) = \log p_t(v)` and the score :math:`g_{j,t}` of a frame between tokens j and j + 1, a
    selection has the score

    .. math:: \sum_j \ell_{t_j}(y_j) + w \sum_j \sum_{t_j < t < t_{j+1}} g_{j,t}
              = \sum_j R_{j, t_j} + c, \quad
              R_{j,t} = \ell_t(y_j) + w \Bigl(\sum_{s < t} g_{j-1,s} - \sum_{s \le t} g_{j,s}\Bigr),

    where c is w times the sum of the last gap's scores over all frames. For ``"neighbours"`` :math:`g_{j,t}` is the
    logarithm of :math:`p_t(y_j) + p_t(y_{j+1})`; where there is one neighbour, or both are the same label, of its p.

    Args:
        log_probs: ``(B, T, V)`` nats.
        labels: ``(B, U)`` int64.
        frame_lengths, label_lengths: ``(B,)`` int64, at least 1; nothing beyond has an influence or a gradient.
        blank: Label number of the blank.
        between: Score of a frame between two selected ones.
        weight: w, of such a frame beside a selected one.

    Returns:
        R ``(B, U, T)`` and c ``(B,)``, float64 nats.
    """
    frames = length_mask(frame_lengths, log_probs.shape[1])
    read = mask_rows(labels, label_lengths)
    own = _picked(log_probs, read, frames)
    if between == "blank":
        scores = _picked(log_probs, torch.full_like(read[:, :1], blank), frames)
        scores = scores.expand(-1, own.shape[1] + 1, -1)
    else:
        scores = _of_neighbours(own, read, label_lengths, between)
    scores = weight * torch.where(frames[:, None], scores, 0.0)
    upto = scores.cumsum(2)
    before = upto[:, :-1] - scores[:, :-1]
    last = upto[:, :, -1].gather(1, label_lengths[:, None])[:, 0]
    return own + before - upto[:, 1:], last


def _picked(log_probs: Tensor, labels: Tensor, frames: Tensor) -> Tensor:
    """Scores ``(B, U, T)`` of labels, float64; 0 beyond the lengths."""
    picked = log_probs.gather(2, labels[:, None].expand(-1, log_probs.shape[1], -1)).double()
    return torch.where(frames[..., None], picked, 0.0).mT


def _of_neighbours(own: Tensor, labels: Tensor, label_lengths: Tensor, between: Between) -> Tensor:
    """Gap scores ``(B, U + 1, T)``: gap j lies before token j, gap m of a row behind its last one."""
    gap = torch.arange(labels.shape[1] + 1, device=labels.device)
    left = (gap - 1).clamp(min=0).expand(len(labels), -1)
    right = torch.minimum(gap, (label_lengths - 1)[:, None])
    first, second = (own.gather(1, i[..., None].expand(-1, -1, own.shape[2])) for i in (left, right))
    if between == "mean":
        return (first + second) / 2
    same = labels.gather(1, left) == labels.gather(1, right)
    return torch.where(same[..., None], first, torch.logaddexp(first, second))


def best_selection(rewards: Tensor, frame_lengths: Tensor, label_lengths: Tensor) -> Tensor:
    """The largest sum of an ordered selection's rewards ``(B, U, T)``: ``(B,)``. Its gradient is the selection."""
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
