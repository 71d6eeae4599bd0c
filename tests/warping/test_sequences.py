"""Sequences of any length: coarse first, then in a window."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import isotone
from isotone.alignment import AlignmentError
from isotone.interfaces import Warper
from isotone.testing.warpers import _walk
from isotone.types import Warp, Window
from isotone.warping import sequences
from isotone.warping.sequences import align_sequences


class Noted(Warper):
    """Dynamic time warping that notes its windows, and compares few cells at once."""

    most_cells = 100

    def __init__(self) -> None:
        self.windows: list[Window | None] = []

    def __call__(
        self, x: torch.Tensor, y: torch.Tensor, window: Window | None = None, *, part: bool = False
    ) -> Warp:
        self.windows.append(window)
        return isotone.warpers.build("dtw")(x, y, window, part=part)


def test_arrays_and_the_top_level_name() -> None:
    x = _walk(50).numpy().astype(np.float64)
    found = isotone.align_sequences(x, np.repeat(x, 2, axis=0), "dtw")
    np.testing.assert_allclose(found.places, 2 * np.arange(50) + 0.5)


@pytest.mark.parametrize("part", [False, True])
def test_long_sequences_get_a_window_around_the_coarse_path(
    part: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequences, "_COARSE_CELLS", 10_000)
    x = _walk(600)
    y = torch.cat([x[:250], x[250:350].repeat_interleave(2, 0), x[350:]])
    if part:
        y = torch.cat([_walk(90, seed=6), y])
    made = Noted()
    found = align_sequences(x, y, made, part=part, radius=30)
    (window,) = made.windows
    assert window is not None
    assert window.cells < 0.35 * len(x) * len(y)
    window.check(len(x), len(y))
    whole = align_sequences(x, y, "dtw", part=part)
    assert torch.equal(found.places, whole.places)
    assert found.score == pytest.approx(whole.score, abs=0.1)


def test_short_ones_are_exact() -> None:
    made = Noted()
    align_sequences(_walk(9), _walk(10, seed=1), made)
    assert made.windows == [None]


def test_a_given_window_is_passed_on() -> None:
    made, window = Noted(), Window.whole(30, 40)
    align_sequences(_walk(30), _walk(40), made, window=window)
    assert made.windows == [window]


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.zeros((3, 2)), np.zeros((3, 4)), "vectors of one size; got 2 and 4"),
        (np.zeros(3), np.zeros((3, 4)), r"x as \(positions, numbers\)"),
        (np.zeros((3, 2)), np.zeros((0, 2)), r"y as .* got \(0, 2\)"),
        (np.zeros(3), np.zeros(3), r"x\[:, None\]"),
        (np.zeros((3, 2), complex), np.zeros((3, 2)), "complex128"),
        (np.zeros((3, 2)), np.array([["a", "b"]]), "y as .* real .* <U1"),
        (np.zeros((3, 2)), np.array([[None, 1]]), "object"),
    ],
)
def test_what_are_no_sequences(x: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        align_sequences(x, y)
    with pytest.raises(LookupError, match="nothing"):
        align_sequences(np.zeros((3, 2)), np.zeros((3, 2)), "nothing")


WALK = _walk(40).numpy().astype(np.float64)


@pytest.mark.parametrize("warper", ["dtw", "soft-dtw", "opas"])
@pytest.mark.parametrize("kind", ["int16", "uint32", "int64", ">f4", ">f8", "longdouble", "float16"])
def test_arrays_of_any_real_numbers(warper: str, kind: str) -> None:
    """Pitches of a score are integers; files of other machines have their bytes in another order."""
    x = np.round(100 * WALK / np.abs(WALK).max()) + 100
    y = np.repeat(x, 2, axis=0)
    found = align_sequences(x.astype(kind), y.astype(kind), warper)
    np.testing.assert_allclose(found.places, align_sequences(x, y, warper).places, atol=1e-3)


@pytest.mark.filterwarnings("error")
def test_arrays_that_cannot_be_written_and_views() -> None:
    x, y = WALK.copy(), np.repeat(WALK, 2, axis=0)
    x.flags.writeable = False
    assert torch.equal(align_sequences(x, y).places, align_sequences(WALK, y).places)
    back = align_sequences(x[::-1], y[::-1])
    assert torch.equal(back.places, align_sequences(x[::-1].copy(), y[::-1].copy()).places)
    assert torch.equal(
        align_sequences(x > 0, y > 0).places, align_sequences((x > 0) * 1.0, (y > 0) * 1.0).places
    )


@pytest.mark.parametrize("warper", ["dtw", "soft-dtw", "opas"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e15, 1e19, 1e30])
def test_the_unit_of_the_numbers_does_not_matter(warper: str, kind: type, scale: float) -> None:
    """Also where single precision does not hold the squared distances."""
    x, y = WALK.astype(kind), np.repeat(WALK, 2, axis=0).astype(kind)
    found = align_sequences(x * kind(scale), y * kind(scale), warper)
    np.testing.assert_allclose(found.places, align_sequences(x, y, warper).places, atol=1e-2)
    assert np.isfinite(found.score)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_numbers_without_squares_are_refused(scale: float) -> None:
    with pytest.raises(AlignmentError, match="multiply both sequences"):
        align_sequences(WALK * scale, WALK * scale)
