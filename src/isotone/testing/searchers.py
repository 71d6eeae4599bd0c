"""Laws of searchers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from torch import Tensor

from isotone.interfaces import Searcher
from isotone.testing.laws import close, require


def check_searcher(searcher: Searcher) -> None:
    """Check a searcher: its attributes, vectors of norm 1 or 0, independent scores, and loading.

    A model of random weights may be checked: the clip that an item was cut from has to score above noise.
    """
    _check_attributes(searcher)
    windows = _sample_windows(searcher)
    lengths = torch.tensor([windows.shape[1], searcher.query_windows, windows.shape[1] - 1])
    vectors = searcher.vectors(windows, lengths)
    shape = (*windows.shape[:2], searcher.size)
    require(vectors.shape == shape, f"vectors are {shape}; got {tuple(vectors.shape)}")
    _check_norms(vectors, lengths)
    close(searcher.vectors(windows, lengths), vectors, "the same windows give the same vectors")
    silent = searcher.vectors(torch.zeros_like(windows), lengths)
    _check_norms(silent, lengths)
    louder = windows.clone()
    louder[1, int(lengths[1]) :] = 0.5
    n = int(lengths[1])
    close(searcher.vectors(louder, lengths)[1, :n], vectors[1, :n], "windows past an item are never read")
    single = searcher.vectors(windows[1:2, :n], lengths[1:2])
    close(single[0], vectors[1, :n], "an item gives the same alone as in a batch")
    if not searcher.contextual:
        window = searcher.vectors(windows[:1, 1:2])
        close(window[0, 0], vectors[0, 1], "a window's vector does not depend on the other windows")
    _check_scores(searcher, vectors, lengths)
    _check_loading(searcher, windows, vectors[:1])


def _check_attributes(searcher: Searcher) -> None:
    require(searcher.sample_rate > 0, f"the sample rate is above 0; got {searcher.sample_rate}")
    require(
        0 < searcher.hop_s <= searcher.window_s, "windows of an item leave nothing out: 0 < hop_s <= window_s"
    )
    require(1 <= searcher.query_windows <= searcher.item_windows, "a query has at most an item's windows")
    require(bool(searcher.fingerprint), "a fingerprint is not empty")


def _sample_windows(searcher: Searcher) -> Tensor:
    """Return three items of noise, ``(3, n, samples)``, each window with a spectrum of its own."""
    rng = torch.Generator().manual_seed(0)
    samples = round(searcher.window_s * searcher.sample_rate)
    n = searcher.item_windows
    spectrum = torch.fft.rfft(torch.randn(3, n, samples, generator=rng))
    bands = torch.rand(3, n, 16, generator=rng) ** 4
    shaped = torch.nn.functional.interpolate(bands.flatten(0, 1)[:, None], spectrum.shape[2])
    return 0.1 * torch.fft.irfft(spectrum * shaped.view_as(spectrum.real), samples)


def _check_norms(vectors: Tensor, lengths: Tensor) -> None:
    require(bool(torch.isfinite(vectors).all()), "vectors are finite")
    norms = torch.cat([row[:n].norm(dim=-1) for row, n in zip(vectors, lengths.tolist())])
    unit = (norms - 1).abs() < 1e-4
    require(bool((unit | (norms == 0)).all()), "vectors have norm 1, or 0 for silence")


def _check_scores(searcher: Searcher, vectors: Tensor, lengths: Tensor) -> None:
    m = searcher.query_windows
    query = vectors[1, :m]
    scores = searcher.score(query, vectors, lengths)
    require(scores.shape == (3,), f"one score per item, (3,); got {tuple(scores.shape)}")
    require(bool(torch.isfinite(scores).all()), f"scores are finite; got {scores.tolist()}")
    require(int(scores.argmax()) == 1, f"an item equal to the query scores highest; got {scores.tolist()}")
    for item, n in enumerate(lengths.tolist()):
        single = searcher.score(query, vectors[item : item + 1, :n], lengths[item : item + 1])
        close(single[0], scores[item], "an item scores the same alone as in a batch")
    order = torch.tensor([2, 0, 1])
    shuffled = searcher.score(query, vectors[order], lengths[order])
    close(shuffled, scores[order], "the order of the items does not matter")
    short = searcher.score(query[:1], vectors, lengths)
    require(bool(torch.isfinite(short).all()), "a query of one window has scores")


def _check_loading(searcher: Searcher, windows: Tensor, vectors: Tensor) -> None:
    with tempfile.TemporaryDirectory() as empty:
        found = type(searcher).load(Path(empty), sample_rate=searcher.sample_rate)
        require(found is None, "a folder that holds no model of this kind loads as None")
    if searcher.source:
        again = type(searcher).load(Path(searcher.source), sample_rate=searcher.sample_rate)
        require(again is not None, "a searcher loads from its source")
        if again is not None:
            require(again.fingerprint == searcher.fingerprint, "the same model has the same fingerprint")
            close(again.vectors(windows[:1]), vectors, "the same model gives the same vectors")
