"""Ordered states inside labels: a phone's onset, middle and end, each with a score of its own.

With S states, label v has the numbers ``v, V + v, .., (S - 1) V + v`` among S V scores. The first of them is its
*core*, the state that every token has. The other states, before and after it in time, may be left out of tokens with
too few frames. A number below V is both a label and its core.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from isotone.tensors import Tensor, torch
from isotone.types import Emissions, length_mask


class States(NamedTuple):
    """Label sequences as sequences of states.

    Attributes:
        labels: ``(B, m')`` int64, state numbers.
        lengths: ``(B,)`` int64.
        origin: ``(B, m')`` int64, the position of each state's label, -1 in the padding.
        core: ``(B, m')`` bool, True for the state that its label always has.
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
        labels: ``(B, m)`` int64. Numbers of V and above, such as a star's, are not labels and have no states.
        lengths: ``(B,)`` int64.
        whole: ``(B, m)`` bool, labels with the core alone: blanks and silences inserted between tokens.
        states: S.
        vocab_size: V, number of labels.
    """
    plain = whole | (labels >= vocab_size)
    valid = length_mask(lengths, labels.shape[1])
    state = torch.arange(states, device=labels.device)
    middle = (states - 1) // 2
    # in time the core (number 0) stands in the middle; the others keep their order around it: 1 0 2 for three states
    number = torch.where(state == middle, 0, torch.where(state < middle, state + 1, state))
    spelt = labels[..., None] + torch.where(plain[..., None], 0, number * vocab_size)
    core = (state == middle).expand_as(spelt)
    kept = valid[..., None] & (core | ~plain[..., None])
    # states that are kept move left, the others to an extra column, which is cut off
    size = labels.shape[1] * states
    column = torch.where(kept.flatten(1), torch.cumsum(kept.flatten(1), 1) - 1, size)
    index = torch.arange(labels.shape[1], device=labels.device)[:, None].expand(-1, states).flatten()

    def moved(values: Tensor, padding: int) -> Tensor:
        out = values.new_full((len(labels), size + 1), padding)
        return out.scatter_(1, column, values)[:, :size]

    return States(
        moved(spelt.flatten(1), 0),
        kept.flatten(1).sum(1),
        moved(index.expand(len(labels), -1), -1),
        moved(core.flatten(1).long(), 0) > 0,
    )


def merge_states(emissions: Emissions, states: int) -> Emissions:
    """Turn scores of states into scores of labels: a label's probability is the sum over its states.

    Args:
        emissions: Logits ``(B, T, S V)``; priors, if there are any, are added up in the same way.
        states: S; 1 changes nothing.

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
    """Return V for ``size`` scores: S V, or S V + 1 where the last one is a star's.

    Raises:
        ValueError: ``size`` is neither.
    """
    if size % states > 1:
        raise ValueError(
            f"Expected the scores of {states} states of every label; got {size}, which is no multiple of that. "
            "Give head, loss, aligner and decoder the same number of states."
        )
    return size // states
