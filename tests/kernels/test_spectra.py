"""Powers in bands of frequencies, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from isotone.kernels.spectra import band_powers

RNG = np.random.default_rng(0)


def expected(
    samples: np.ndarray, hop: int, window: np.ndarray, filters: np.ndarray, emphasis: float, centred: bool
) -> np.ndarray:
    rows = []
    for start in range(0, len(samples) - len(window) + 1, hop):
        frame = samples[start : start + len(window)].astype(float)
        frame -= frame.mean() if centred else 0.0
        frame = (frame - emphasis * np.append(frame[0], frame[:-1])) * window
        rows.append(np.abs(np.fft.rfft(frame, 2 * (len(filters) - 1))) ** 2 @ filters)
    return np.stack(rows)


@pytest.mark.parametrize("frames", [1, 15, 16, 17, 33, 300])
@pytest.mark.parametrize(("points", "size"), [(2, 2), (4, 3), (8, 8), (128, 100), (512, 400)])
@pytest.mark.parametrize(("emphasis", "centred"), [(0.0, False), (0.97, True), (0.5, False)])
def test_band_powers_are_those_of_numpy(
    frames: int, points: int, size: int, emphasis: float, centred: bool
) -> None:
    hop = max(1, size // 3)
    samples = RNG.normal(size=(frames - 1) * hop + size + hop - 1).astype(np.float32)
    window = RNG.uniform(0.1, 1, size)
    filters = np.maximum(0, RNG.normal(size=(points // 2 + 1, 5)))
    filters[:, 3] = 0.0
    found = band_powers(samples, hop, window, filters, emphasis, centred)
    assert found.shape == (frames, 5)
    right = expected(samples, hop, window, filters, emphasis, centred)
    np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-12)


def test_a_quiet_frame_beside_a_loud_one_keeps_its_powers() -> None:
    """Two frames share a transform: what one leaves in the other is 10^30 below it."""
    samples = RNG.normal(size=32 * 64).astype(np.float32)
    samples[: 16 * 64] *= 1e4
    samples[16 * 64 :] *= 1e-4
    window, filters = np.hanning(64), np.eye(33)
    found = band_powers(samples, 64, window, filters)
    right = expected(samples, 64, window, filters, 0.0, False)
    np.testing.assert_allclose(found, right, rtol=1e-6)


@pytest.mark.parametrize(("samples", "size", "points"), [(99, 100, 128), (200, 100, 64), (200, 100, 120)])
def test_shapes_that_do_not_fit_are_an_error(samples: int, size: int, points: int) -> None:
    with pytest.raises(ValueError, match=f"a window of {size} and filters for {points} points"):
        band_powers(np.zeros(samples, np.float32), 10, np.ones(size), np.ones((points // 2 + 1, 2)))
