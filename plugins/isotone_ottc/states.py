"""Ordered states inside labels: a phone's onset, middle and end, each with a score of its own.

With S states, label v has the numbers ``v, V + v, .., (S - 1) V + v`` among S V scores. The first of them is its
*core*, the state that every token has; the others, in time before and after it, are left out of tokens of too few
frames. So a number below V means a label as well as its core.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from isotone.types import Emissions, length_mask


class States(NamedTuple):
    """Labels spelt by their states.

    Attributes:
        labels: ``(B, m')`` int64, state numbers.
        lengths: ``(B,)`` int64.
        origin: ``(B, m')`` int64, the position that each state's label had, -1 in the padding.
        core: ``(B, m')`` bool, whether it is the state that its label always has.
    """

    labels: Tensor
    lengths: Tensor
    origin: Tensor
    core: Tensor


def check_states(who: str, states: int) -> None:
    """Raise ValueError unless there is at least one state."""
    if states < 1:
        raise ValueError(f"{who} expects states >= 1; got {states}.")


def spell_states(labels: Tensor, lengths: Tensor, whole: Tensor, states: int, vocab_size: int) -> States:
    """Replace labels by their ordered states.

    Args:
        labels: ``(B, m)`` int64, labels or (stars, above all of them) other numbers, which have no states.
        lengths: ``(B,)`` int64.
        whole: ``(B, m)`` bool, labels that keep their core alone: blanks and silences put between tokens.
        states: S.
        vocab_size: V, labels.
    """
    plain = whole | (labels >= vocab_size)
    valid = length_mask(lengths, labels.shape[1])
    state = torch.arange(states, device=labels.device)
    middle = (states - 1) // 2
    # in time the core stands in the middle, and the others keep their order around it
    number = torch.where(state == middle, 0, torch.where(state < middle, state + 1, state))
    spelt = labels[..., None] + torch.where(plain[..., None], 0, number * vocab_size)
    core = (state == middle).expand_as(spelt)
    kept = valid[..., None] & (core | ~plain[..., None])
    place = torch.cumsum(kept.flatten(1), 1) - 1
    size = labels.shape[1] * states
    place = torch.where(kept.flatten(1), place, size)
    index = torch.arange(labels.shape[1], device=labels.device)[:, None].expand(-1, states).flatten()

    def moved(values: Tensor, padding: int) -> Tensor:
        out = values.new_full((len(labels), size + 1), padding)
        return out.scatter_(1, place, values)[:, :size]

    return States(
        moved(spelt.flatten(1), 0),
        kept.flatten(1).sum(1),
        moved(index.expand(len(labels), -1), -1),
        moved(core.flatten(1).long(), 0) > 0,
    )


def merge_states(emissions: Emissions, states: int) -> Emissions:
    """Emissions of labels: a label is as probable as its states together.

    Args:
        emissions: Logits ``(B, T, S V)``; priors, where there are any, are added up alike.
        states: S. 1 changes nothing.

    Raises:
        ValueError: the number of logits is no multiple of S.
    """
    if states == 1:
        return emissions
    labels = label_count(emissions.logits.shape[-1], states)
    log_prior = emissions.log_prior
    if log_prior is not None:
        log_prior = torch.logsumexp(log_prior.unflatten(-1, (states, labels)), -2)
    logits = torch.logsumexp(emissions.logits.unflatten(-1, (states, labels)), -2)
    return replace(emissions, logits=logits, log_prior=log_prior)


def label_count(size: int, states: int) -> int:
    """V, where there are so many scores: S V, or one more where the last is a star's.

    Raises:
        ValueError: there is no such V.
    """
    if size % states > 1:
        raise ValueError(
            f"Expected the scores of {states} states of every label; got {size}, which is no multiple of that. "
            "Give head, loss, aligner and decoder the same number of states."
        )
    return size // states
