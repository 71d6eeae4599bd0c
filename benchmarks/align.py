"""Forced alignment of known labels: best paths through CTC's lattice, and through one without blanks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.harness import Bench, Peer, Size
from isotone import aligners
from isotone.kernels.viterbi import ctc_path, monotone_path
from isotone.types import Coupling, Emissions, Grid, Targets

Paths = tuple[Tensor, Tensor]


class Batch(NamedTuple):
    log_probs: Tensor  # (B, T, V), blank 0
    labels: Tensor  # (B, S), no two neighbours equal
    frames: Tensor  # (B,), the first row full, the others shorter by up to a half
    tokens: Tensor  # (B,), in proportion
    truth: Tensor  # (B, T), labels of the true alignment


def spoken(dims: Mapping[str, int]) -> Batch:
    """Make noise with a random alignment that stands out as in speech: a token every T / S frames or so.

    Nats: the right label or blank has about 6 over the others, whose noise has a deviation of 1.
    """
    rng = np.random.default_rng(0)
    rows, size, vocab, count = (dims[name] for name in "BTVS")
    labels = 1 + np.cumsum(rng.integers(1, vocab - 2, (rows, count)), 1) % (vocab - 1)
    share = 1 - 0.5 * np.arange(rows) / rows
    frames, tokens = (share * size).astype(np.int64), (share * count).astype(np.int64)
    logits = rng.standard_normal((rows, size, vocab), dtype=np.float32)
    truth = np.zeros((rows, size), np.int64)
    for row, n, m in zip(range(rows), frames, tokens):
        starts = np.sort(rng.choice(np.arange(1, n), m, replace=False))
        stays = rng.random(n) < 0.4  # a frame that continues the token of the frame before
        truth[row, starts] = labels[row, :m]
        follow = np.setdiff1d(starts + 1, starts)
        follow = follow[(follow < n) & stays[np.minimum(follow, n - 1)]]
        truth[row, follow] = truth[row, follow - 1]
        logits[row, np.arange(n), truth[row, :n]] += 6
    log_probs = torch.log_softmax(torch.from_numpy(logits), -1)
    return Batch(log_probs, *(torch.from_numpy(x) for x in (labels, frames, tokens, truth)))


def ours_ctc(given: Batch) -> Paths:
    return ctc_path(given.log_probs, given.labels, given.frames, given.tokens, 0)


def ours_monotone(given: Batch) -> Paths:
    return monotone_path(given.log_probs, given.labels, given.frames, given.tokens)


_build = cache(aligners.build)  # looking a plugin up takes milliseconds


def _aligned(name: str, given: Batch) -> Coupling:
    emissions = Emissions(given.log_probs, given.frames, Grid(0.02))
    return _build(name)(emissions, Targets(given.labels, given.tokens))


def ours_opas(given: Batch) -> Coupling:
    return _aligned("opas", given)


def soft_dtw(given: Batch) -> Coupling:
    return _aligned("soft-dtw", given)


def segmental(given: Batch) -> Coupling:
    return _aligned("segmental", given)


def torchaudio_align(given: Batch) -> Tensor:
    """Align row by row (it takes one at a time); return the scores of the paths, ``(B,)``."""
    from torchaudio.functional import forced_align

    scores = []
    for row, (frames, tokens) in enumerate(zip(given.frames.tolist(), given.tokens.tolist())):
        labels = given.labels[row : row + 1, :tokens].int()
        scores.append(forced_align(given.log_probs[row : row + 1, :frames], labels, blank=0)[1].sum())
    return torch.stack(scores)


def ctc_segmentation(given: Batch) -> list[np.ndarray]:
    """Return the first frames of every row's tokens, aligned in one window like the other contenders."""
    import ctc_segmentation as package

    config = package.CtcSegmentationParameters(
        char_list=[str(label) for label in range(given.log_probs.shape[2])],
        index_duration=1.0,
        backtrack_from_max_t=True,
        preamble_transition_cost_zero=False,
        min_window_size=given.log_probs.shape[1],
    )
    starts = []
    for row, (frames, tokens) in enumerate(zip(given.frames.tolist(), given.tokens.tolist())):
        log_probs = given.log_probs[row, :frames].numpy()
        truth = np.r_[-1, given.labels[row, :tokens].numpy()][:, None]
        timings, _, _ = package.ctc_segmentation(config, log_probs, truth)
        starts.append(timings[1:])
    return starts


def numpy_monotone(given: Batch) -> Tensor:
    """Run the plain dynamic programme, one frame at a time over all tokens; return the scores, ``(B,)``."""
    scores = []
    for row, (frames, tokens) in enumerate(zip(given.frames.tolist(), given.tokens.tolist())):
        emitted = given.log_probs[row, :frames].numpy()
        labels = given.labels[row, :tokens].numpy()
        best = np.full(tokens, -np.inf)
        best[0] = emitted[0, labels[0]]
        entered = np.zeros((frames, tokens), np.bool_)
        for t in range(1, frames):
            np.greater(best[:-1], best[1:], out=entered[t, 1:])
            best[1:] = np.maximum(best[1:], best[:-1])
            best += emitted[t, labels]
        path = np.empty(frames, np.int64)
        u = tokens - 1
        for t in range(frames - 1, -1, -1):
            path[t] = u
            u -= entered[t, u]
        scores.append(emitted[np.arange(frames), labels[path]].sum(dtype=np.float64))
    return torch.tensor(np.array(scores))


def check(given: Batch, result: Paths) -> None:
    """Check that the paths have their scores, and visit every token in turn."""
    for path, score, frames, tokens, labels, log_probs in zip(
        *result, given.frames, given.tokens, given.labels, given.log_probs
    ):
        path = path[:frames]
        of_frame = torch.where(path >= 0, labels[path.clamp(min=0)], 0)
        total = log_probs[:frames].gather(1, of_frame[:, None]).sum(dtype=torch.float64)
        torch.testing.assert_close(score.double(), total, rtol=1e-6, atol=1e-3)
        visited = torch.unique_consecutive(path[path >= 0])
        assert visited.tolist() == list(range(int(tokens))), "the path leaves tokens out"


def check_ctc(given: Batch, result: Paths) -> None:
    """Check also that the paths are no worse than the true alignment."""
    check(given, result)
    for score, frames, log_probs, truth in zip(result[1], given.frames, given.log_probs, given.truth):
        expected = log_probs[:frames].gather(1, truth[:frames, None]).sum(dtype=torch.float64)
        assert score >= expected - 1e-3, f"{score} is less than {expected}, which the true alignment has"


def check_selection(given: Batch, result: Coupling) -> None:
    """Check that 99 of 100 frames of true tokens are given to them, and that no token is left out."""
    path = result.path(given.log_probs.shape[1]).tokens
    spoken = given.truth > 0
    found = torch.where(path >= 0, given.labels.gather(1, path.clamp(min=0)), 0)
    right = (found == given.truth)[spoken].float().mean()
    assert right > 0.99, f"{right:.1%} of the spoken frames have their label"
    for row, tokens in zip(path, given.tokens.tolist()):
        assert torch.unique(row[row >= 0]).tolist() == list(range(tokens)), "tokens are left out"


def same_scores(given: Batch, result: Paths, theirs: Tensor) -> None:
    torch.testing.assert_close(result[1].double(), theirs.double(), rtol=1e-5, atol=1e-2)


def no_worse(given: Batch, result: Paths, theirs: Tensor) -> None:
    """Check that scores are no worse: without equal neighbours every path here is one of CTC's."""
    assert (result[1] <= theirs + 0.01).all(), "it beats the best of more paths"


def same_starts(given: Batch, result: Paths, theirs: list[np.ndarray]) -> None:
    """Check 99 of 100 starts: the peer also lets a token end and begin again, so that it is not quite CTC."""
    for path, starts, frames, tokens in zip(result[0], theirs, given.frames, given.tokens):
        first = np.searchsorted(path[:frames].cummax(0).values.numpy(), np.arange(int(tokens)))
        differing = (first != starts).mean()
        assert differing <= 0.01, f"{differing:.1%} of the tokens start elsewhere"


def _size(b: int, t: int, s: int, v: int = 32, **options: Any) -> Size:
    return Size({"B": b, "T": t, "S": s, "V": v}, **options)


_GPU_SIZES = [
    _size(2, 200, 20, quick=True),
    _size(1, 3000, 400),
    _size(16, 3000, 400),
    _size(64, 1500, 200),
    _size(8, 1500, 60, 4000),
]


BENCHES = [
    Bench(
        name="align",
        about="the best CTC path of known labels, float32 scores",
        inputs=spoken,
        ours=ours_ctc,
        check=check_ctc,
        peers=[
            Peer("torchaudio", torchaudio_align, same_scores, devices=("cpu", "cuda")),
            Peer("ctc-segmentation", ctc_segmentation, same_starts, package="ctc-segmentation"),
        ],
        sizes=[
            _size(1, 200, 20, quick=True),
            _size(1, 750, 100, swept=True),
            _size(1, 1500, 200, swept=True),
            _size(1, 3000, 400, swept=True, targets={"torchaudio": 0.25, "ctc-segmentation": 0.25}),
            _size(1, 6000, 800, swept=True),
            _size(1, 20_000, 2000, targets={"torchaudio": 0.25, "ctc-segmentation": 0.25}),
            _size(16, 3000, 400, targets={"torchaudio": 0.125}, peers=("torchaudio",)),
            _size(1, 180_000, 15_000, memory_mib=1024, peers=()),
        ],
        gpu_sizes=_GPU_SIZES,
        axis="T",
    ),
    Bench(
        name="align-monotone",
        about="the best path without blanks of known labels, float32 scores",
        inputs=spoken,
        ours=ours_monotone,
        check=check,
        peers=[
            Peer("numpy", numpy_monotone, same_scores),
            Peer("torchaudio CTC", torchaudio_align, no_worse, yardstick=True, devices=("cpu", "cuda")),
        ],
        sizes=[
            _size(1, 200, 20, quick=True),
            _size(1, 750, 100, swept=True),
            _size(1, 1500, 200, swept=True),
            _size(1, 3000, 400, swept=True, targets={"torchaudio CTC": 0.25}),
            _size(1, 6000, 800, swept=True),
            _size(1, 20_000, 2000, targets={"torchaudio CTC": 0.25}),
            _size(16, 3000, 400, targets={"torchaudio CTC": 0.125}),
            _size(1, 180_000, 15_000, memory_mib=1024, peers=()),
        ],
        gpu_sizes=_GPU_SIZES,
        axis="T",
    ),
    Bench(
        name="align-opas",
        about="spans around an ordered selection of frames, from emissions to a coupling; other aligners beside it",
        inputs=spoken,
        ours=ours_opas,
        check=check_selection,
        peers=[
            Peer("soft-DTW", soft_dtw, yardstick=True),
            Peer("segmental", segmental, yardstick=True),
        ],
        sizes=[
            _size(1, 200, 20, quick=True),
            _size(1, 750, 100, swept=True, targets={"soft-DTW": 1.0}),
            _size(1, 1500, 200, swept=True, targets={"soft-DTW": 1.0}),
            _size(1, 3000, 400, swept=True, targets={"soft-DTW": 1.0}),
            _size(1, 6000, 800, swept=True, targets={"soft-DTW": 1.0}),
            _size(16, 3000, 400, targets={"soft-DTW": 1.0}),
        ],
        axis="T",
    ),
]
