"""What can be done with a path: give its blanks away, and make it a coupling.

A path ``(B, T)`` has for every frame the number of the token that it carries, -1 for blank, -2 past the end.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from isotone.types import Coupling, length_mask

#: What becomes of blank frames between tokens, and before the first and after the last.
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
        ValueError: no such rule.
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
