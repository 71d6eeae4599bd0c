"""Restrict an alignment by another head's alignment."""

from __future__ import annotations

from isotone.tensors import Tensor, torch
from isotone.types import FramePath


def near_labels(guide: FramePath, tokens: int, origin: Tensor) -> Tensor:
    """Find the labels that each frame may have so that every token stays between its neighbours in the guide.

    A token may begin at the first frame of the nearest earlier token in the guide. It may end at the last frame of the
    nearest later one. The guide, a CTC head, is sure of a frame inside each token, but not of its start and duration.

    Args:
        guide: The other head's alignment.
        tokens: U, most tokens per row.
        origin: ``(B, m)`` int64, each label's token index, -1 for labels inserted between tokens.

    Returns:
        ``(B, T, 2)`` int64, the positions of the first and the last label that each frame may have.
    """
    known_frames, path = guide.carried, guide.tokens
    count = origin.new_zeros(len(known_frames), tokens)
    known = count.scatter_add(1, path.clamp(min=0), known_frames.long()) > 0
    numbers = torch.arange(tokens, device=known_frames.device)
    none = numbers.new_zeros(len(known_frames), 1)
    # for each token (and one past the last): the nearest token in the guide at or after it, and before it
    following = torch.cat([torch.where(known, numbers, tokens), none + tokens], 1)
    following = following.flip(1).cummin(1).values.flip(1)
    preceding = torch.cat([none - 1, torch.where(known, numbers, -1)], 1).cummax(1).values
    # for each frame: the token that the guide has at or before it, and at or after it
    before = torch.where(known_frames, path, -1).cummax(1).values
    after = torch.where(known_frames, path, tokens).flip(1).cummin(1).values.flip(1)
    first = preceding.gather(1, after)  # -1: no token of the guide lies before
    last = following.gather(1, before + 1)  # U: no token of the guide lies after
    # from tokens to positions of labels; inserted labels are collected in a spare column, U
    positions = torch.arange(origin.shape[1], device=origin.device).expand_as(origin)
    index = torch.where(origin < 0, tokens, origin)
    begin = origin.new_zeros(len(origin), tokens + 1).scatter_reduce(
        1, index, positions, "amin", include_self=False
    )
    end = origin.new_zeros(len(origin), tokens + 1).scatter_reduce(
        1, index, positions, "amax", include_self=False
    )
    begin = torch.where(first < 0, 0, begin.gather(1, first.clamp(min=0)))
    end = torch.where(last == tokens, origin.shape[1], end.gather(1, last))
    return torch.stack([begin, end], -1)
