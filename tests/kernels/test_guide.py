"""Tokens between their neighbours in a guide, by definition."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.kernels.guide import near_labels
from isotone.types import FramePath

seeds = st.integers(0, 2**32 - 1)


def random_guide(frames: int, tokens: int, draw: torch.Generator) -> torch.Tensor:
    """A path with blanks through some of the tokens."""
    path = torch.randint(0, tokens, (1, frames), generator=draw).sort().values
    return torch.where(torch.rand(1, frames, generator=draw) < 0.5, -1, path)


def allowed(guide: list[int], token: int, frame: int) -> bool:
    """Return whether a token lies between its neighbours in this frame, as :func:`near_labels` defines it."""
    before = [u for u in guide if 0 <= u < token]
    after = [u for u in guide if u > token]
    begins = guide.index(max(before)) if before else 0
    ends = len(guide) - 1 - guide[::-1].index(min(after)) if after else len(guide)
    return begins <= frame <= ends


@settings(max_examples=100, deadline=None)
@given(seeds, st.integers(1, 9), st.integers(1, 5), st.booleans())
def test_labels_near_a_frame(seed: int, frames: int, tokens: int, inserted: bool) -> None:
    draw = torch.Generator().manual_seed(seed)
    guide = random_guide(frames, tokens, draw)
    origin = torch.arange(tokens)
    if inserted:  # a label that is no token before every token and after the last, and two states a token
        origin = torch.stack([torch.full((tokens,), -1), origin, origin], 1).flatten()
        origin = torch.cat([origin, torch.tensor([-1])])
    padded = torch.cat([guide, torch.full((1, 2), -2)], 1)
    near = near_labels(FramePath(padded), tokens, origin[None])[0, :frames].tolist()
    for t, (first, last) in enumerate(near):
        tokens_of = {u for i, u in enumerate(origin.tolist()) if first <= i <= last and u >= 0}
        assert tokens_of == {u for u in range(tokens) if allowed(guide[0].tolist(), u, t)}
        assert not inserted or first == 0 or origin[first - 1] == -1, "all states of the first"
