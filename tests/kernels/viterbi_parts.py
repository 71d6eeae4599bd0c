"""Random emissions, and paths by their definitions."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

CASES = settings(max_examples=60, deadline=None)


seeds = st.integers(0, 2**32 - 1)


EXACT = 1e-9  # float64 sums of at most a few hundred terms


FLOAT32 = 1e-5  # relative: scores are rounded to float32 once, torchaudio also sums in it


def random_log_probs(rng: np.random.Generator, *shape: int) -> np.ndarray:
    x = rng.normal(size=shape) * 2
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def lengths(*n: int) -> np.ndarray:
    return np.array(n)


def merge(labels: tuple[int, ...]) -> list[int]:
    return [label for label, _ in itertools.groupby(labels)]


def frame_labels(path: np.ndarray, labels: np.ndarray, blank: int) -> tuple[int, ...]:
    return tuple(blank if u < 0 else int(labels[u]) for u in path)


def path_score(log_probs: np.ndarray, chosen: tuple[int, ...]) -> float:
    return float(sum(log_probs[t, v] for t, v in enumerate(chosen)))


def runs(path: tuple[int, ...]) -> list[int]:
    return [len(list(group)) for _, group in itertools.groupby(path)]


def monotone_paths(frames: int, tokens: int, optional: np.ndarray, least: int) -> list[tuple[int, ...]]:
    """Every path that :func:`monotone_path` may choose from."""
    required = set(np.flatnonzero(~optional).tolist())
    return [
        a
        for a in itertools.combinations_with_replacement(range(tokens), frames)
        if required <= set(a) and min(runs(a)) >= least
    ]


def ragged(
    rng: np.random.Generator, rows: int, frames: int, tokens: int, vocab: int
) -> tuple[np.ndarray, ...]:
    log_probs = random_log_probs(rng, rows, frames, vocab)
    labels = rng.integers(1, vocab, (rows, tokens))
    n = rng.integers(2 * tokens, frames + 1, rows)
    m = rng.integers(1, tokens + 1, rows)
    return log_probs, labels, n, m
