"""Paths without their blanks, and as couplings.

A path ``(B, T)`` has for each frame the number of the token that it carries, -1 for blank, -2 past the end.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from isotone.kernels._subframe import MOST, subframe_row
from isotone.kernels.threads import each_task
from isotone.tensors import Tensor, torch
from isotone.types import Coupling, check_integers, length_mask

#: Rules for blank frames between tokens, and for those before the first and after the last.
BlankRule = Literal["leave", "previous", "split"]
EdgeRule = Literal["leave", "fill"]


def check_blank_rules(rule: str, edges: str) -> None:
    """Raise ValueError unless both are rules of :func:`fill_blanks`."""
    if rule not in get_args(BlankRule) or edges not in get_args(EdgeRule):
        raise ValueError(
            f"Expected a rule for blanks among {get_args(BlankRule)} and one for edges among "
            f"{get_args(EdgeRule)}; got {rule!r} and {edges!r}."
        )


def fill_blanks(paths: Tensor, rule: BlankRule, edges: EdgeRule = "fill") -> Tensor:
    """Give the blank frames of paths to the tokens beside them, so that no token ends before the next begins.

    Args:
        paths: ``(B, T)`` int64.
        rule: For blanks between two tokens. ``"leave"`` changes nothing at all, ``"previous"`` gives them to
            the token before, ``"split"`` gives the first half to the token before (the odd frame with it)
            and the rest to the token after.
        edges: For blanks before the first and after the last token: ``"fill"`` gives them to that token,
            ``"leave"`` keeps them blank.

    Returns:
        ``(B, T)`` int64. Rows without tokens, and padding, stay as they are.

    Raises:
        ValueError: unknown rule.
    """
    check_blank_rules(rule, edges)
    size = paths.shape[1]
    if rule == "leave" or size == 0:
        return paths
    frame = torch.arange(size, device=paths.device).expand_as(paths)
    carried = paths >= 0
    # the nearest frames with tokens on both sides
    before = torch.where(carried, frame, -1).cummax(1).values
    after = torch.where(carried, frame, size).flip(1).cummin(1).values.flip(1)
    has_before, has_after = before >= 0, after < size
    to_before = has_before & ((rule == "previous") | (2 * frame <= before + after) | ~has_after)
    source = torch.where(to_before, before, after).clamp(0, size - 1)
    blank = (paths == -1) & ((has_before & has_after) if edges == "leave" else (has_before | has_after))
    return torch.where(blank, paths.gather(1, source), paths)


def coupling_from_paths(
    paths: Tensor, frame_lengths: Tensor, target_lengths: Tensor, scores: Tensor | None = None
) -> Coupling:
    """The coupling of hard paths: mass 1 from every frame that carries a token to that token.

    Args:
        paths: ``(B, T)`` int64; blank frames are not in the coupling.
        frame_lengths: ``(B,)`` int64, frames.
        target_lengths: ``(B,)`` int64, tokens.
        scores: ``(B,)`` log-probabilities of the paths, nats.

    Returns:
        K is the largest number of frames with tokens in a row, at least 1.
    """
    check_integers(frame_lengths, target_lengths)
    carried = paths >= 0
    count = carried.sum(1)
    size = max(1, int(count.max()) if len(count) else 1)
    if paths.shape[1] == 0:
        empty = paths.new_zeros(len(paths), 1)
        return Coupling(empty, empty, empty.float(), frame_lengths, target_lengths, scores)
    # frames with tokens first, in order; the padding repeats the last of them
    order = torch.argsort(~carried, dim=1, stable=True)[:, :size]
    last = order.gather(1, (count - 1).clamp(min=0)[:, None])
    valid = length_mask(count, size)
    source = torch.where(valid, order, last)
    target = paths.gather(1, source).clamp(min=0)
    return Coupling(source, target, valid.float(), frame_lengths, target_lengths, scores)


def subframe_coupling(
    paths: Tensor,
    logits: Tensor,
    labels: Tensor,
    frame_lengths: Tensor,
    target_lengths: Tensor,
    scores: Tensor | None = None,
) -> Coupling:
    r"""A path as a coupling whose boundaries lie between frames: finer than the hop.

    A frame with a boundary inside scores well for both labels. Where a path goes from a to b between frames t
    and t + 1, the boundary is moved by :math:`p_{t+1}(a) - p_t(b)` frames, where p is the posterior of one of the two
    labels against the other; the two tokens share the frame that it then lies in. In a best path, boundaries move by
    less than half a frame.

    Args:
        paths: ``(B, T)`` int64, token of every frame, -1 for blank, -2 past the end.
        logits: ``(B, T, V)`` unnormalised scores of the labels; only differences within a frame are used.
        labels: ``(B, U)`` int64, label of every token.
        frame_lengths, target_lengths: ``(B,)``.
        scores: ``(B,)`` scores of the paths, where known.

    Returns:
        Mass 1 per frame that carries a token. Hardening gives the path back, except for tokens of one frame that lose
        most of it.
    """
    check_integers(frame_lengths, target_lengths)
    if paths.shape[1] == 0:
        return coupling_from_paths(paths, frame_lengths, target_lengths, scores)
    moved = _moved_by_loops if paths.device.type == "cpu" else _moved_by_tensors
    return moved(paths, logits, labels, (frame_lengths, target_lengths), scores)


def _moved_by_loops(
    paths: Tensor, logits: Tensor, labels: Tensor, lengths: tuple[Tensor, Tensor], scores: Tensor | None
) -> Coupling:
    rows, size = paths.shape
    source, target = np.zeros((2, rows, 2 * size), np.int64)
    mass, counts = np.zeros((rows, 2 * size), np.float32), np.zeros(rows, np.int64)
    given = (np.ascontiguousarray(x.detach().numpy()) for x in (paths, logits.float(), labels))
    each_task(subframe_row, rows, 4 * rows * size, *given, source, target, mass, counts)
    kept = max(1, int(counts.max(initial=0)))
    entries = (torch.from_numpy(source[:, :kept].copy()), torch.from_numpy(target[:, :kept].copy()))
    return Coupling(*entries, torch.from_numpy(mass[:, :kept].copy()), *lengths, scores)


def _moved_by_tensors(
    paths: Tensor, logits: Tensor, labels: Tensor, lengths: tuple[Tensor, Tensor], scores: Tensor | None
) -> Coupling:
    token = paths.clamp(min=0)
    before, after = token[:, :-1], token[:, 1:]
    boundary = (paths[:, :-1] >= 0) & (paths[:, 1:] >= 0) & (before != after)
    a, b = (labels.gather(1, t)[..., None] for t in (before, after))
    early, late = logits[:, :-1].float(), logits[:, 1:].float()
    of_next = torch.sigmoid((early.gather(2, b) - early.gather(2, a))[..., 0])
    of_last = torch.sigmoid((late.gather(2, a) - late.gather(2, b))[..., 0])
    shift = torch.where(boundary, of_last - of_next, 0.0).nan_to_num(0.0).clamp(-MOST, MOST)
    zero = shift.new_zeros(len(shift), 1)
    to_last = torch.cat([zero, shift.clamp(min=0)], 1)
    to_next = torch.cat([(-shift).clamp(min=0), zero], 1)
    last, following = torch.cat([token[:, :1], before], 1), torch.cat([after, token[:, -1:]], 1)
    mass = torch.stack([to_last, 1 - to_last - to_next, to_next], 2) * (paths >= 0)[..., None]
    frame = torch.arange(paths.shape[1], device=paths.device)[None, :, None].expand_as(mass)
    target = torch.stack([last, token, following], 2)
    whole = Coupling(frame.flatten(1), target.flatten(1), mass.flatten(1), *lengths, scores)
    return whole.select(whole.mass > 0)
