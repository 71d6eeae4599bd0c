"""Restrict an alignment by another head's alignment."""

from __future__ import annotations

import torch
from torch import Tensor

from isotone.types import FramePath


def near_labels(guide: FramePath, tokens: int, origin: Tensor) -> Tensor:
    """The labels that every frame may have so that each token stays between its neighbours in the guide.

    A token may begin at the first frame of the last token before it that the guide has, and end at the last frame of
    the next one after it. A CTC head is rather sure of a frame inside a token, but not of its start and duration.

    Args:
        guide: The other head's alignment.
        tokens: U, the most tokens of a row.
        origin: ``(B, m)`` int64, the token that each label was, -1 for those inserted between tokens.

    Returns:
        ``(B, T, 2)`` int64, the first and the last label of every frame.
    """
    known_frames, path = guide.carried, guide.tokens
    count = origin.new_zeros(len(known_frames), tokens)
    known = count.scatter_add(1, path.clamp(min=0), known_frames.long()) > 0
    numbers = torch.arange(tokens, device=known_frames.device)
    none = numbers.new_zeros(len(known_frames), 1)
    # of every token (and one more) the next that the guide has, itself included, and the one before it
    following = torch.cat([torch.where(known, numbers, tokens), none + tokens], 1)
    following = following.flip(1).cummin(1).values.flip(1)
    preceding = torch.cat([none - 1, torch.where(known, numbers, -1)], 1).cummax(1).values
    before = torch.where(known_frames, path, -1).cummax(1).values
    after = torch.where(known_frames, path, tokens).flip(1).cummin(1).values.flip(1)
    first = preceding.gather(1, after)  # -1: the guide has none before
    last = following.gather(1, before + 1)  # U: the guide has none after
    # from tokens to labels
    places = torch.arange(origin.shape[1], device=origin.device).expand_as(origin)
    index = torch.where(origin < 0, tokens, origin)
    begin = origin.new_zeros(len(origin), tokens + 1).scatter_reduce(
        1, index, places, "amin", include_self=False
    )
    end = origin.new_zeros(len(origin), tokens + 1).scatter_reduce(
        1, index, places, "amax", include_self=False
    )
    begin = torch.where(first < 0, 0, begin.gather(1, first.clamp(min=0)))
    end = torch.where(last == tokens, origin.shape[1], end.gather(1, last))
    return torch.stack([begin, end], -1)
