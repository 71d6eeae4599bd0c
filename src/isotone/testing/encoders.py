"""Laws of encoders."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Collection
from pathlib import Path

import torch
from torch import Tensor

from isotone.interfaces import Encoder
from isotone.testing.laws import check_names, close, require
from isotone.types import Encoded, Frames, length_mask

#: Tolerances of frames: a convolution sums in another order for another batch.
_FRAMES = (1e-3, 1e-4)


def check_encoder(encoder: Encoder, *, without: Collection[str] = frozenset()) -> None:
    """Check an encoder: shapes and lengths, padding, independent rows, statistics, gradients, saving and loading.

    Args:
        encoder: The encoder.
        without: ``alone`` leaves out that an utterance gives the same frames alone as in a padded batch, which group
            normalisation over time does not keep.
    """
    check_names(without, ("alone",))
    encoder = copy.deepcopy(encoder).eval()
    audio, lengths = _sample_audio(encoder)
    with torch.no_grad():
        out = encoder(audio, lengths)
        _check_shapes(encoder, out, audio, lengths)
        bare = encoder(audio, lengths, hidden=False)
        _same(bare.features, out.features, "features do not depend on hidden states")
        bad = audio.masked_fill(~length_mask(lengths, audio.shape[1]), torch.nan)
        _same_encoded(encoder(bad, lengths), out, "padding is never read")
        order = torch.tensor([2, 0, 1])
        shuffled = encoder(audio[order], lengths[order])
        _same(shuffled.read("last"), _rows(out.read("last"), order), "the order of a batch does not matter")
        if "alone" not in without:
            _check_alone(encoder, audio, lengths, out)
        _check_statistics(encoder, audio[:1], lengths[:1])
        _check_saved(encoder, audio, lengths, out)
    _check_gradients(encoder, bad, lengths)


def _sample_audio(encoder: Encoder) -> tuple[Tensor, Tensor]:
    """Return noise ``(3, N)`` of 0.6, 0.4 and 0.25 s; the longest comes first."""
    lengths = torch.tensor([round(s * encoder.sample_rate) for s in (0.6, 0.4, 0.25)])
    audio = 0.1 * torch.randn(3, int(lengths[0]), generator=torch.Generator().manual_seed(0))
    return audio.masked_fill(~length_mask(lengths, audio.shape[1]), 0.0), lengths


def _check_shapes(encoder: Encoder, out: Encoded, audio: Tensor, lengths: Tensor) -> None:
    require(len(out.hidden) > 0, "hidden states are returned when requested")
    sources = ["features", "last", *range(len(out.hidden))]
    for source in sources:
        frames, size = out.read(source), encoder.size(source)
        require(
            frames.values.shape[2] == size, f"{source!r} has {size} features; got {frames.values.shape[2]}"
        )
        valid = frames.values[length_mask(frames.lengths, frames.values.shape[1])]
        require(bool(torch.isfinite(valid).all()), f"{source!r} is finite")
        require(frames.grid.hop_s > 0, "frames follow each other in time")
        for samples, count in zip(lengths.tolist(), frames.lengths.tolist()):
            off = abs(frames.grid.seconds(count) - samples / encoder.sample_rate)
            most = 2 * frames.grid.hop_s + 0.025  # the last window of a front end may not be full
            require(off <= most, f"frames of {source!r} span the audio; they end {off:.3f} s from its end")
    expected = [encoder.frames(n) for n in lengths.tolist()]
    got = out.read("last").lengths.tolist()
    require(got == expected, f"frames() gives the frames of the last layer, {got}; got {expected}")


def _check_alone(encoder: Encoder, audio: Tensor, lengths: Tensor, out: Encoded) -> None:
    for row, samples in enumerate(lengths.tolist()):
        single = encoder(audio[row : row + 1, :samples], lengths[row : row + 1]).read("last")
        batched = _rows(out.read("last"), torch.tensor([row]))
        _same(single, batched, "an utterance gives the same alone as in a batch")


def _check_statistics(encoder: Encoder, audio: Tensor, lengths: Tensor) -> None:
    statistics = encoder.statistics(audio[0])
    if statistics is None:
        return
    own = encoder(audio, lengths, statistics=statistics)
    expected = encoder(audio, lengths)
    _same_encoded(own, expected, "audio's own statistics are those that it is normalised by")


def _check_saved(encoder: Encoder, audio: Tensor, lengths: Tensor, out: Encoded) -> None:
    with tempfile.TemporaryDirectory() as folder:
        encoder.save(Path(folder))
        loaded = type(encoder).load(Path(folder)).eval()
    require(loaded.sample_rate == encoder.sample_rate, "a loaded encoder expects the same sample rate")
    weights = encoder.state_dict()
    shapes = {name: value.shape for name, value in loaded.state_dict().items()}
    require(
        shapes == {name: value.shape for name, value in weights.items()},
        "a loaded encoder has weights of the same names and shapes",
    )
    loaded.load_state_dict(weights)
    _same_encoded(loaded(audio, lengths), out, "a loaded encoder with the same weights gives the same")


def _check_gradients(encoder: Encoder, audio: Tensor, lengths: Tensor) -> None:
    last = encoder(audio, lengths).read("last")
    valid = length_mask(last.lengths, last.values.shape[1])
    last.values[valid].square().sum().backward()
    grads = [p.grad for p in encoder.parameters() if p.grad is not None]
    require(any(bool(grad.any()) for grad in grads), "the parameters get gradients")
    finite = all(bool(torch.isfinite(grad).all()) for grad in grads)
    require(finite, "padding is never read: gradients of the parameters")


def _rows(frames: Frames, index: Tensor) -> Frames:
    return Frames(frames.values[index], frames.lengths[index], frames.grid)


def _same(got: Frames, expected: Frames, law: str) -> None:
    require(torch.equal(got.lengths, expected.lengths) and got.grid == expected.grid, law)
    for a, b, n in zip(got.values, expected.values, got.lengths.tolist()):
        close(a[:n], b[:n], law, _FRAMES)


def _same_encoded(got: Encoded, expected: Encoded, law: str) -> None:
    _same(got.features, expected.features, law)
    require(len(got.hidden) == len(expected.hidden), law)
    for a, b in zip(got.hidden, expected.hidden):
        _same(a, b, law)
