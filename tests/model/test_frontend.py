"""The front ends against transformers' feature extractors, and the padding beyond an utterance's end."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import SeamlessM4TFeatureExtractor, Wav2Vec2FeatureExtractor

from isotone.model.frontend import LogMel, Waveform

SIZES = [9000, 400, 6137, 560, 3999]  # 560 samples are two 10 ms frames; 6137 an odd number of them


def sounds(sizes: list[int] = SIZES, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [
        (0.1 * rng.normal(size=n) + 0.3 * np.sin(np.arange(n) * rng.uniform(0.05, 1.5))).astype(np.float32)
        for n in sizes
    ]


def padded(rows: list[np.ndarray], fill: float = 0.0, extra: int = 0) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(r) for r in rows])
    batch = torch.full((len(rows), int(lengths.max()) + extra), fill)
    for row, samples in zip(batch, rows):
        row[: len(samples)] = torch.from_numpy(samples)
    return batch, lengths


# transformers takes the variance of a single frame
@pytest.mark.filterwarnings("ignore:Degrees of freedom:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_log_mel_is_the_extractor_of_transformers() -> None:
    rows = sounds()
    features, lengths = LogMel()(*padded(rows))
    theirs = SeamlessM4TFeatureExtractor()(rows, sampling_rate=16_000, return_tensors="pt")
    assert lengths.tolist() == theirs["attention_mask"].sum(1).tolist() == [27, 0, 18, 1, 11]
    for row, n in enumerate(lengths.tolist()):
        torch.testing.assert_close(features[row, :n], theirs["input_features"][row, :n], rtol=1e-3, atol=2e-3)


def test_log_mel_of_another_size() -> None:
    rows = sounds([8000, 5000])
    extractor = SeamlessM4TFeatureExtractor(feature_size=40, num_mel_bins=40, stride=3)
    theirs = extractor(rows, sampling_rate=16_000, return_tensors="pt", pad_to_multiple_of=3)
    features, lengths = LogMel(bands=40, stack=3)(*padded(rows))
    assert features.shape[2] == 120
    for row, n in enumerate(lengths.tolist()):
        torch.testing.assert_close(features[row, :n], theirs["input_features"][row, :n], rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("normalize", [True, False])
def test_waveform_is_the_extractor_of_transformers(normalize: bool) -> None:
    rows = sounds()
    values, lengths = Waveform(16_000, normalize)(*padded(rows))
    extractor = Wav2Vec2FeatureExtractor(do_normalize=normalize, return_attention_mask=True)
    theirs = extractor(rows, sampling_rate=16_000, return_tensors="pt", padding=True)
    assert lengths.tolist() == SIZES
    torch.testing.assert_close(values, theirs["input_values"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("front", [LogMel(), Waveform(16_000, True)], ids=["log-mel", "waveform"])
def test_padding_is_never_read(front: torch.nn.Module) -> None:
    rows = sounds()
    zeros, _ = front(*padded(rows))
    nan, lengths = front(*padded(rows, fill=torch.nan))
    assert torch.equal(zeros, nan)
    longer, _ = front(*padded(rows, fill=torch.inf, extra=3333))
    for row, n in enumerate(lengths.tolist()):
        alone, _ = front(*padded([rows[row]]))
        torch.testing.assert_close(zeros[row, :n], alone[0, :n], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(longer[row, :n], alone[0, :n], rtol=1e-4, atol=1e-4)
        assert not zeros[row, n:].any()
        assert not longer[row, n:].any()


@pytest.mark.parametrize("samples", [1, 399, 400, 559, 560, 561, 879, 880, 16_000])
def test_log_mel_counts_frames(samples: int) -> None:
    """A stacked frame needs the windows of both of its halves: 400 + 160 samples, and 320 more for each next."""
    front = LogMel()
    features, lengths = front(*padded(sounds([samples])))
    expected = max(0, (samples - 560) // 320 + 1)
    assert int(front.frames(torch.tensor(samples))) == int(lengths) == expected
    assert features.shape[1] >= expected
    assert torch.isfinite(features).all()


def test_log_mel_grid() -> None:
    """A click is where the grid says: in the frame that covers it, not in the ones around."""
    front = LogMel()
    assert front.grid.hop_s == 0.02
    assert front.grid.offset_s == 0.0075
    quiet = 1e-4 * np.random.default_rng(0).normal(size=16_000).astype(np.float32)
    for sample in range(4000, 4320, 40):
        clicked = quiet.copy()
        clicked[sample] = 0.9
        features, _ = front(*padded([clicked]))
        best = features[0].mean(1).argmax().item()
        assert abs(front.grid.frames(sample / 16_000) - (best + 0.5)) <= 1.0


def test_log_mel_is_exact_under_autocast() -> None:
    batch = padded(sounds())
    front = LogMel()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half, _ = front(*batch)
    assert torch.equal(half, front(*batch)[0])
