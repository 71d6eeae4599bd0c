"""Laws of warpers."""

from __future__ import annotations

import torch
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.interfaces import Warper
from isotone.testing.laws import raises, require
from isotone.types import Window

# Positions by which a place may be off where the sequences agree but for their speed.
_OFF = 5.0


def check_warper(warper: Warper) -> None:
    """Check a warper: places in order, of equal, slower and partial sequences, in windows; and its errors."""
    require(isinstance(warper, Warper), "a warper is a subclass of isotone.interfaces.Warper")
    x = _walk(60)
    before = x.clone()
    own = torch.arange(60, dtype=torch.float64)
    _check_places(warper, x, x, own, 0.5, "a sequence lies on itself")
    require(torch.equal(x, before), "the sequences are not changed")
    slow = x.repeat_interleave(2, 0)
    _check_places(warper, x, slow, 2 * own + 0.5, _OFF, "a sequence lies on itself at half the speed")
    found = warper(x, _walk(45, seed=1))
    _check_warp(found.places, 60, 45)
    require(isinstance(found.score, float), "the score is a number")
    around = torch.cat([_walk(50, seed=2), x, _walk(30, seed=3)])
    _check_places(
        warper, x, around, own + 50, _OFF, "with `part` a sequence lies where it is a part", part=True
    )
    late = Window((own.long() - 1).clamp(min=0), (own.long() + 9).clamp(max=60))
    shifted = torch.cat([x[:1].repeat(5, 1), x[:-5]])
    places = warper(x, shifted, late).places
    _check_warp(places, 60, 60)
    require(bool(((places >= late.low) & (places < late.high)).all()), "places lie in the window")
    broken = x.clone()
    broken[3] = torch.nan
    raises(AlignmentError, lambda: warper(broken, x), "a vector that is not finite")
    raises(AlignmentError, lambda: warper(x, broken), "a place that is not finite")
    raises(ValueError, lambda: warper(x, x[:, :2]), "vectors of two sizes")
    raises(ValueError, lambda: warper(x, x, Window.whole(59, 60)), "a window of another length")


def _walk(length: int, seed: int = 0) -> Tensor:
    """Smooth vectors ``(length, 4)``: neighbours are alike, as frames of audio are."""
    draw = torch.Generator().manual_seed(seed)
    steps = torch.randn(length + 4, 4, generator=draw)
    return steps.unfold(0, 5, 1).mean(-1).cumsum(0)


def _check_warp(places: Tensor, n: int, m: int) -> None:
    require(places.dtype == torch.float64 and places.shape == (n,), "places are float64, one per position")
    require(bool(torch.isfinite(places).all()), "places are finite")
    require(bool((places.diff() >= 0).all()), "places never decrease")
    require(bool(((places >= 0) & (places <= m - 1)).all()), "places lie within the other sequence")


def _check_places(
    warper: Warper, x: Tensor, y: Tensor, expected: Tensor, tolerance: float, law: str, part: bool = False
) -> None:
    places = warper(x, y, part=part).places
    _check_warp(places, len(x), len(y))
    off = float((places - expected).abs().max())
    require(off <= tolerance, f"{law}, to {tolerance} positions; got {off:.2f}")
