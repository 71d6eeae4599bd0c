"""Posteriors of paths against sums over all paths, and against torch's CTC loss and its gradient."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import AlignmentError
from isotone.kernels.posteriors import token_posteriors
from isotone.kernels.viterbi import ctc_path, monotone_path

CASES = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32 - 1)
EXACT = 1e-9


def random_log_probs(rng: np.random.Generator, *shape: int, spread: float = 2.0) -> np.ndarray:
    x = rng.normal(size=shape) * spread
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def follows(a: int, b: int, labels: np.ndarray, optional: np.ndarray, blank: bool) -> bool:
    """Return whether a frame in token b may come right after one in token a."""
    if a == b:
        return True
    return b > a and bool(optional[a + 1 : b].all()) and not (blank and labels[a] == labels[b])


def all_paths(frames: int, labels: np.ndarray, optional: np.ndarray, blank: bool) -> list[tuple[int, ...]]:
    found = []
    for path in itertools.product(range(-1 if blank else 0, len(labels)), repeat=frames):
        visited = [u for u in path if u >= 0]
        whole = set(np.flatnonzero(~optional)) <= set(visited)
        in_order = all(
            follows(a, b, labels, optional, blank) for a, b in itertools.pairwise(path) if a >= 0 <= b
        )
        # across blanks: another token, later
        across = all(
            path[s] < path[t]
            for s, t in itertools.combinations(range(frames), 2)
            if path[s] >= 0 <= path[t] and t > s + 1 and set(path[s + 1 : t]) == {-1}
        )
        if whole and in_order and across:
            found.append(path)
    return found


@CASES
@given(seeds, st.integers(1, 5), st.integers(1, 3), st.booleans(), st.booleans())
def test_posteriors_are_sums_over_all_paths(
    seed: int, frames: int, tokens: int, blank: bool, some_optional: bool
) -> None:
    rng = np.random.default_rng(seed)
    log_probs = random_log_probs(rng, 1, frames, 3)
    labels = rng.integers(1, 3, (1, tokens))
    optional = rng.random((1, tokens)) < (0.5 if some_optional else 0.0)
    allowed = all_paths(frames, labels[0], optional[0], blank)
    chosen = np.array([allowed[int(rng.integers(len(allowed)))]]) if allowed else np.zeros((1, frames), int)
    arguments = (log_probs, chosen, labels, np.array([frames]), np.array([tokens]), 0 if blank else None)
    if not allowed:
        with pytest.raises(AlignmentError, match="Row 0"):
            token_posteriors(*arguments, optional=optional)
        return
    weight = np.array(
        [
            np.exp(sum(log_probs[0, t, 0 if u < 0 else labels[0, u]] for t, u in enumerate(path)))
            for path in allowed
        ]
    )
    confidence, likelihood = token_posteriors(*arguments, optional=optional)
    assert likelihood[0] == pytest.approx(np.log(weight.sum()), abs=EXACT)
    for u in range(tokens):
        own = np.flatnonzero(chosen[0] == u)
        shares = [weight[[path[t] == u for path in allowed]].sum() / weight.sum() for t in own]
        if shares:
            assert confidence[0, u] == pytest.approx(np.mean(shares), abs=EXACT)
        else:
            assert np.isnan(confidence[0, u])


def batch(seed: int, rows: int = 5, vocab: int = 9) -> tuple[torch.Tensor, ...]:
    rng = np.random.default_rng(seed)
    m = rng.integers(1, 40, rows)
    n = np.minimum(120, 2 * m + rng.integers(0, 60, rows))
    log_probs = torch.from_numpy(random_log_probs(rng, rows, 120, vocab))
    return (
        log_probs,
        torch.from_numpy(rng.integers(1, vocab, (rows, 40))),
        torch.from_numpy(n),
        torch.from_numpy(m),
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_likelihood_is_torchs_ctc_loss_and_posteriors_its_gradient(seed: int) -> None:
    log_probs, _, n, m = batch(seed, vocab=45)
    # every label once, so that its posterior is its token's
    labels = torch.stack(
        [torch.randperm(44, generator=torch.Generator().manual_seed(seed))[:40] + 1] * len(n)
    )
    logits = log_probs.clone().requires_grad_()
    paths, _ = ctc_path(log_probs, labels, n, m, 0)
    confidence, likelihood = token_posteriors(log_probs, paths, labels, n, m, 0)
    loss = torch.nn.functional.ctc_loss(
        logits.log_softmax(-1).transpose(0, 1), labels, n, m, 0, reduction="none"
    )
    loss.sum().backward()
    assert confidence.dtype == likelihood.dtype == torch.float64
    torch.testing.assert_close(likelihood, -loss.detach(), rtol=1e-12, atol=1e-9)
    posterior = log_probs.exp() - logits.grad
    for b in range(len(n)):
        for u in range(int(m[b])):
            own = (paths[b] == u).nonzero()[:, 0]
            assert confidence[b, u].item() == pytest.approx(
                posterior[b, own, labels[b, u]].mean().item(), abs=1e-9
            )
    assert torch.isnan(confidence[torch.arange(40) >= m[:, None]]).all()


def test_repeats_share_the_likelihood_of_torchs_ctc_loss() -> None:
    for seed in range(5):
        log_probs, labels, n, m = batch(seed, vocab=3)
        n = torch.full_like(n, 120)
        paths, _ = ctc_path(log_probs, labels % 2 + 1, n, m, 0)
        _, likelihood = token_posteriors(log_probs, paths, labels % 2 + 1, n, m, 0)
        loss = torch.nn.functional.ctc_loss(
            log_probs.transpose(0, 1), labels % 2 + 1, n, m, 0, reduction="none"
        )
        torch.testing.assert_close(likelihood, -loss, rtol=1e-12, atol=1e-9)


def test_extreme_scores_neither_under_nor_overflow() -> None:
    """Labels ruled out, as -1e4 or altogether, frame for frame: the log domain, in any order of magnitude."""
    rng = np.random.default_rng(0)
    for scale in (1.0, 50.0, 1e4):
        log_probs = torch.from_numpy(-np.abs(rng.normal(size=(3, 200, 6))) * scale)
        log_probs[:, ::7, 2] = -1e4
        log_probs[:, 5::11, 3] = -torch.inf
        labels = torch.from_numpy(rng.integers(1, 6, (3, 50)))
        n, m = torch.tensor([200, 150, 180]), torch.tensor([50, 20, 1])
        paths, score = ctc_path(log_probs, labels, n, m, 0)
        confidence, likelihood = token_posteriors(log_probs, paths, labels, n, m, 0)
        loss = torch.nn.functional.ctc_loss(log_probs.transpose(0, 1), labels, n, m, 0, reduction="none")
        torch.testing.assert_close(likelihood, -loss, rtol=1e-10, atol=1e-8)
        assert (likelihood >= score - 1e-6).all()
        inside = confidence[~torch.isnan(confidence)]
        assert len(inside) == 71
        assert ((inside >= 0) & (inside <= 1)).all()
        if scale == 1e4:  # nothing else is likely
            assert inside.median() > 0.99


def test_one_possible_path_is_certain() -> None:
    rng = np.random.default_rng(1)
    log_probs, labels = random_log_probs(rng, 1, 30, 5), np.arange(30)[None] % 4 + 1
    n = m = np.array([30])
    path = np.arange(30)[None]
    for blank in (0, None):
        confidence, likelihood = token_posteriors(log_probs, path, labels, n, m, blank)
        np.testing.assert_allclose(confidence, 1.0, atol=1e-12)
        assert likelihood[0] == pytest.approx(log_probs[0, np.arange(30), labels[0]].sum(), abs=EXACT)


def test_rows_do_not_depend_on_their_batch_and_padding_is_never_read() -> None:
    log_probs, labels, n, m = batch(7)
    for blank in (0, None):
        paths, _ = (
            ctc_path(log_probs, labels, n, m, 0) if blank == 0 else monotone_path(log_probs, labels, n, m)
        )
        spoilt, spoilt_labels = log_probs.clone(), labels.clone()
        for b in range(len(n)):
            spoilt[b, n[b] :] = torch.nan
            spoilt_labels[b, m[b] :] = 10**6
        together = token_posteriors(spoilt, paths, spoilt_labels, n, m, blank)
        for b in range(len(n)):
            one = slice(b, b + 1)
            alone = token_posteriors(log_probs[one], paths[one], labels[one], n[one], m[one], blank)
            for x, y in zip(together, alone):
                torch.testing.assert_close(x[one], y, rtol=0, atol=0, equal_nan=True)


def test_arguments_are_checked() -> None:
    log_probs, labels = np.zeros((1, 5, 3)), np.array([[1, 2]])
    n, m, path = np.array([5]), np.array([2]), np.zeros((1, 5), int)
    with pytest.raises(ValueError, match=r"paths of shape \(1, 5\); got \(1, 4\)"):
        token_posteriors(log_probs, path[:, :4], labels, n, m, 0)
    with pytest.raises(
        ValueError, match="Row 0: frame 2 of its path is in token 2; expected tokens from 0 to 1"
    ):
        token_posteriors(log_probs, np.array([[0, 0, 2, 1, 1]]), labels, n, m, 0)
    with pytest.raises(AlignmentError, match=r"Row 0: 2 tokens .* need at least 2 frames, got 1"):
        token_posteriors(log_probs, path, labels, np.array([1]), m, 0)
    with pytest.raises(AlignmentError, match="Row 0: no tokens"):
        token_posteriors(log_probs, path - 1, labels, n, np.array([0]), None)
    broken = log_probs.copy()
    broken[0, 4, 1] = np.nan
    with pytest.raises(AlignmentError, match="Row 0: its log-probabilities hold NaN"):
        token_posteriors(broken, path, labels, n, m, 0)
    broken[0, :, 1] = -np.inf
    with pytest.raises(AlignmentError, match="probability 0"):
        token_posteriors(broken, path, labels, n, m, 0)
