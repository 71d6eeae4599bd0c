"""Evaluation of an embedder: accuracy of matching two views, and linear probes on frozen features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from isotone_contrastive.embedder import Embedder
from isotone_contrastive.functional import check_views
from scipy.optimize import linear_sum_assignment
from torch import Tensor


def matching_accuracy(a: Tensor, b: Tensor) -> float:
    """Return the share of items, 0 to 1, that the optimal assignment by Euclidean distances matches with themselves.

    Args:
        a: ``(N, D)`` one view.
        b: ``(N, D)`` the other, in the same order.
    """
    check_views(a, b)
    rows, columns = linear_sum_assignment(torch.cdist(a.double(), b.double()).cpu().numpy())
    return float((rows == columns).mean())


def linear_probe(
    train_features: Tensor,
    train_labels: Sequence[int],
    test_features: Tensor,
    test_labels: Sequence[int],
    *,
    decay: float = 1e-3,
    iterations: int = 1000,
) -> float:
    """Return the accuracy, 0 to 1, of logistic regression on frozen features.

    Test classes that train lacks count as errors.

    Args:
        train_features: ``(N, D)``; they are standardised, and those of test by the same numbers.
        train_labels: N classes.
        test_features: ``(M, D)``.
        test_labels: M classes.
        decay: Weight of half of the squared weights beside the mean loss; the bias is free.
        iterations: At most, of L-BFGS.

    Raises:
        ImportError: scikit-learn is not installed.
    """
    from sklearn.linear_model import LogisticRegression

    mean, deviation = train_features.mean(0), train_features.std(0).clamp(min=1e-6)
    x, y = (((f - mean) / deviation).double().cpu().numpy() for f in (train_features, test_features))
    # scikit-learn weighs the summed loss, not the mean
    model = LogisticRegression(C=1 / (decay * len(x)), max_iter=iterations).fit(x, train_labels)
    return float(model.score(y, test_labels))


def probe_all(
    embedder: Embedder,
    inputs: Mapping[str, Sequence[Tensor]],
    labels: Mapping[str, Mapping[str, Sequence[int]]],
) -> dict[str, float]:
    """Compute :func:`linear_probe` for every kind of label, by its name.

    Args:
        embedder: Its features are read.
        inputs: Of ``train`` and ``test``.
        labels: Of ``train`` and ``test``: classes by kind.
    """
    train_features, test_features = (embedder.embed(inputs[s], features=True) for s in ("train", "test"))
    return {
        kind: linear_probe(train_features, classes, test_features, labels["test"][kind])
        for kind, classes in labels["train"].items()
    }
