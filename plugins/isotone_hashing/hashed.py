"""Indexes of codes from hyperplanes: random, trained, or learned for ranking."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from isotone_hashing.codes import HashIndex
from isotone_hashing.engine import Kind
from isotone_hashing.head import HashHead
from isotone_hashing.loss import HyperplaneLoss, TALRLoss
from isotone_hashing.training import Pairs, Progress, fit_hyperplanes, fit_talr


class LSHRandom(HashIndex):
    """Random hyperplanes: the fraction of bits in which two codes differ is the vectors' angle over pi, on average.

    Args:
        size: D, numbers of a vector.
        bits: Bits of all tables together.
        tables, min_shared, layout, fingerprint: As in :class:`HashIndex`.
        seed: Of the hyperplanes.
    """

    name = "lsh-random"

    def __init__(
        self,
        size: int,
        *,
        bits: int = 64,
        tables: int = 1,
        min_shared: int | None = None,
        layout: Kind | Mapping[str, Any] = "flat",
        seed: int = 0,
        fingerprint: str = "",
    ) -> None:
        head = HashHead(size, bits=bits, bias=False, seed=seed)
        super().__init__(
            size, head, tables=tables, min_shared=min_shared, layout=layout, fingerprint=fingerprint,
            options={"seed": seed},
        )  # fmt: skip


class _Learned(HashIndex):
    """Hyperplanes that ``fit`` learns before anything can be added."""

    def __init__(self, size: int, head: HashHead, *, training: dict[str, Any], **shared: Any) -> None:
        super().__init__(size, head, options=training, **shared)
        self.training = training
        self._fitted = False
        #: Losses of the last fit's steps.
        self.losses: list[float] = []

    def _data(self, vectors: Tensor) -> list[np.ndarray]:
        if not self._fitted:
            raise ValueError(f"The index {self.name!r} has to learn first: call fit before add or search.")
        return super()._data(vectors)

    def _learn(
        self, corpus: Tensor, queries: Tensor, positives: Tensor | None, progress: Progress | None
    ) -> None:
        # the tanh's scale is meant for vectors of length 1
        length = corpus.detach().float().norm(dim=1).mean().clamp(min=1e-12).cpu()
        pairs = Pairs(
            corpus.detach().float().cpu() / length,
            queries.detach().float().cpu() / length,
            positives,
            batch_queries=self.training["batch_queries"],
            batch_items=self.training["batch_items"],
            seed=self.training["seed"],
        )
        weight = self.head.weight.data
        if self._fitted:  # a second fit continues from the first
            weight.mul_(length)
        self.losses = self._fit(pairs, progress)
        weight.div_(length)
        self._fitted = True

    @abstractmethod
    def _fit(self, pairs: Pairs, progress: Progress | None) -> list[float]:
        """Train the head; return the loss of every step."""

    def _write(self, folder: Path) -> None:
        if not self._fitted:
            raise ValueError(f"The index {self.name!r} has not learned anything to save: call fit first.")
        super()._write(folder)

    def _read(self, folder: Path) -> None:
        super()._read(folder)
        self._fitted = True


class LSHTrained(_Learned):
    """Trained hyperplanes (OPAS): few collisions with irrelevant items, decided and balanced bits.

    ``fit(corpus, queries, positives)`` trains them. Without positives the labels are silver, as in the paper.

    Args:
        size, bits, tables, min_shared, layout, fingerprint: As in :class:`LSHRandom`, where training starts.
        collision, fence, balance, pairs_of_bits, silver, reduction: As in
            :class:`~isotone_hashing.loss.HyperplaneLoss`.
        scale: Of the tanh in place of the sign, for vectors scaled to a mean length of 1.
        steps, lr: Of Adam.
        batch_queries, batch_items: Queries and items per batch.
        seed: Of the first hyperplanes and the batches.
    """

    name = "lsh-trained"

    def __init__(
        self,
        size: int,
        *,
        bits: int = 64,
        tables: int = 1,
        min_shared: int | None = None,
        layout: Kind | Mapping[str, Any] = "flat",
        collision: float = 1.0,
        fence: float = 0.1,
        balance: float = 1.0,
        pairs_of_bits: float = 1.0,
        silver: int = 5,
        reduction: Literal["mean", "sum"] = "mean",
        scale: float = 5.0,
        steps: int = 500,
        lr: float = 0.01,
        batch_queries: int = 64,
        batch_items: int = 512,
        seed: int = 0,
        fingerprint: str = "",
    ) -> None:
        weights = {
            "collision": collision, "fence": fence, "balance": balance, "pairs_of_bits": pairs_of_bits,
            "silver": silver,
        }  # fmt: skip
        self._loss = HyperplaneLoss(**weights, reduction=reduction)  # type: ignore[arg-type]
        training = {
            **weights, "reduction": reduction, "scale": scale, "steps": steps, "lr": lr,
            "batch_queries": batch_queries, "batch_items": batch_items, "seed": seed,
        }  # fmt: skip
        head = HashHead(size, bits=bits, bias=False, scale=scale, first_scale=None, seed=seed)
        super().__init__(
            size, head, tables=tables, min_shared=min_shared, layout=layout, fingerprint=fingerprint,
            training=training,
        )  # fmt: skip
        self.tables = tables

    def _fit(self, pairs: Pairs, progress: Progress | None) -> list[float]:
        steps, lr = self.training["steps"], self.training["lr"]
        return fit_hyperplanes(
            self.head, self._loss, pairs, tables=self.tables, steps=steps, lr=lr, progress=progress
        )


class LSHTALR(_Learned):
    """Codes that are learned to rank (TALR): tie-aware AP or NDCG is maximised by ``fit``, which needs positives.

    Args:
        size, bits, tables, min_shared, layout, fingerprint: As in :class:`LSHRandom`.
        metric, relaxation, width: As in :class:`~isotone_hashing.loss.TALRLoss`. For ``"ndcg"`` positives
            may be ``(P, 3)``, with affinities.
        scale, first_scale: Of the tanh in place of the sign, as in :class:`~isotone_hashing.head.HashHead`.
        steps, lr, batch_queries, batch_items, seed: As in :class:`LSHTrained`.
    """

    name = "lsh-talr"

    def __init__(
        self,
        size: int,
        *,
        bits: int = 64,
        tables: int = 1,
        min_shared: int | None = None,
        layout: Kind | Mapping[str, Any] = "flat",
        metric: Literal["ap", "ndcg"] = "ap",
        relaxation: Literal["simplified", "integral"] = "simplified",
        width: float = 1.0,
        scale: float = 40.0,
        first_scale: float | None = 1.0,
        steps: int = 500,
        lr: float = 0.01,
        batch_queries: int = 64,
        batch_items: int = 512,
        seed: int = 0,
        fingerprint: str = "",
    ) -> None:
        self._loss = TALRLoss(metric=metric, relaxation=relaxation, width=width)
        training = {
            "metric": metric, "relaxation": relaxation, "width": width, "scale": scale,
            "first_scale": first_scale, "steps": steps, "lr": lr, "batch_queries": batch_queries,
            "batch_items": batch_items, "seed": seed,
        }  # fmt: skip
        head = HashHead(size, bits=bits, scale=scale, first_scale=first_scale, seed=seed)
        super().__init__(
            size, head, tables=tables, min_shared=min_shared, layout=layout, fingerprint=fingerprint,
            training=training,
        )  # fmt: skip

    def _fit(self, pairs: Pairs, progress: Progress | None) -> list[float]:
        steps, lr = self.training["steps"], self.training["lr"]
        return fit_talr(self.head, self._loss, pairs, steps=steps, lr=lr, progress=progress)
