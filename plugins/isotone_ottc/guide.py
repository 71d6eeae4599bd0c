"""Where tokens may lie, by another head's word: between the frames where it hears their neighbours."""

from __future__ import annotations

import torch
from torch import Tensor


def near_labels(guide: Tensor, tokens: int, origin: Tensor) -> Tensor:
    """The labels that every frame may have where each lies between its neighbours, as they were heard.

    A token may begin where the last one heard before it was first heard, and end where the next one heard after it was
    last heard. A CTC head says rather surely where it hears a token, but not where that begins and how long it lasts.

    Args:
        guide: ``(B, T)`` int64, for every frame the token that is heard there, -1 for none, -2 past the end.
        tokens: U, the most tokens of a row.
        origin: ``(B, m)`` int64, the token that each label was, -1 for those inserted between tokens.

    Returns:
        ``(B, T, 2)`` int64, the first and the last label of every frame.
    """
    heard = guide >= 0
    count = origin.new_zeros(len(guide), tokens)
    known = count.scatter_add(1, guide.clamp(min=0), heard.long()) > 0
    numbers = torch.arange(tokens, device=guide.device)
    none = numbers.new_zeros(len(guide), 1)
    # of every token (and one more) the next that is heard, itself included, and the one before it
    following = torch.cat([torch.where(known, numbers, tokens), none + tokens], 1)
    following = following.flip(1).cummin(1).values.flip(1)
    preceding = torch.cat([none - 1, torch.where(known, numbers, -1)], 1).cummax(1).values
    before = torch.where(heard, guide, -1).cummax(1).values
    after = torch.where(heard, guide, tokens).flip(1).cummin(1).values.flip(1)
    first = preceding.gather(1, after)  # -1: none is heard before
    last = following.gather(1, before + 1)  # U: none is heard after
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
