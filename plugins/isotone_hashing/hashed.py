"""Indexes of codes that hyperplanes give: random, trained, or learned for ranking; searched by FAISS."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from isotone_hashing.engine import Kind, Layout
from isotone_hashing.head import HashHead
from isotone_hashing.indexes import VectorIndex, binary_engine, packed
from isotone_hashing.loss import HyperplaneLoss, TALRLoss
from isotone_hashing.training import Pairs, Progress, fit_hyperplanes, fit_talr

_HEAD = "head.safetensors"


class HashIndex(VectorIndex):
    """Items by their codes: L tables of K bits each.

    Args:
        size: D, numbers of a vector.
        head: Gives the L K bits.
        tables: L.
        min_shared: Bits that an item must share with the query in some table to be found at all (soft-indexing
            search; K is the buckets of classical LSH). Default: all items are ranked, by all bits.
        layout: A kind of :class:`~isotone_hashing.engine.Layout`, or a mapping with ``kind`` and its options.
        fingerprint: What made the vectors.
        options: The other options of the class, for the folder.

    Raises:
        ValueError: bits that cannot be shared out evenly, or options outside their range.
    """

    def __init__(
        self,
        size: int,
        head: HashHead,
        *,
        tables: int,
        min_shared: int | None,
        layout: Kind | Mapping[str, Any],
        fingerprint: str,
        options: dict[str, Any],
    ) -> None:
        how = Layout(layout) if isinstance(layout, str) else Layout(**layout)
        of_all = {"bits": head.bits, "tables": tables, "min_shared": min_shared}
        given = layout if isinstance(layout, str) else dict(layout)
        super().__init__(size, fingerprint=fingerprint, options={**of_all, "layout": given, **options})
        if tables < 1 or head.bits % tables:
            raise ValueError(f"Expected tables that share {head.bits} bits evenly; got {tables}.")
        self.head = head.eval()
        self.table_bits = head.bits // tables
        self.min_shared = min_shared
        if min_shared is None:
            self._engines = [binary_engine(head.bits, how)]
            return
        if not 1 <= min_shared <= self.table_bits:
            raise ValueError(
                f"Expected min_shared from 1 to {self.table_bits} bits of a table; got {min_shared}."
            )
        if how.kind == "hnsw":
            raise ValueError("Soft-indexing search (min_shared) needs layout 'flat' or 'ivf'; got 'hnsw'.")
        self._engines = [binary_engine(self.table_bits, how) for _ in range(tables)]

    def codes(self, vectors: Tensor) -> np.ndarray:
        """The codes of vectors ``(N, D)``: ``(N, L K)`` bool."""
        return self.head.codes(torch.from_numpy(self._vectors(vectors)))

    def candidates(self, queries: Tensor) -> list[list[str]]:
        """Everything that soft-indexing search finds, however much it is; best first.

        Raises:
            ValueError: the index was made without ``min_shared``.
        """
        if self.min_shared is None:
            raise ValueError("Candidates are what shares min_shared bits: make the index with that option.")
        found = self._shared(self._data(queries))
        return [[self._id[row] for row in rows.tolist()] for _, rows in found]

    def _data(self, vectors: Tensor) -> list[np.ndarray]:
        bits = self.codes(vectors)
        return [packed(table) for table in np.split(bits, len(self._engines), axis=1)]

    def _search(self, data: list[np.ndarray], top: int) -> tuple[np.ndarray, np.ndarray]:
        if self.min_shared is None:
            scores, rows = super()._search(data, top)
            return scores - np.float32(self._engines[0].size - self.head.bits), rows
        scores = np.full((len(data[0]), top), -np.inf, np.float32)
        rows = np.full(scores.shape, -1)
        for q, (score, row) in enumerate(self._shared(data)):
            n = min(top, len(row))
            scores[q, :n], rows[q, :n] = score[:n], row[:n]
        return scores, rows

    def _shared(self, data: list[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of every query the items that share enough bits in some table: the most bits shared in one, and rows."""
        radius = self.table_bits - (self.min_shared or 0)
        found = [engine.within(of_table, radius) for engine, of_table in zip(self._engines, data)]
        filling = self._engines[0].size - self.table_bits
        out = []
        for q in range(len(data[0])):
            score = np.concatenate([s[at[q] : at[q + 1]] for at, s, _ in found]) - np.float32(filling)
            row = np.concatenate([r[at[q] : at[q + 1]] for at, _, r in found])
            order = np.lexsort((row, -score))
            _, first = np.unique(row[order], return_index=True)
            best = order[np.sort(first)]
            out.append((score[best], row[best]))
        return out

    def _write(self, folder: Path) -> None:
        save_file(self.head.state_dict(), folder / _HEAD)

    def _read(self, folder: Path) -> None:
        try:
            self.head.load_state_dict(load_file(folder / _HEAD))
        except Exception as error:  # safetensors' own error is no subclass of anything
            raise ValueError(f"{_HEAD} does not hold the hyperplanes ({error}).") from error


class LSHRandom(HashIndex):
    """Random hyperplanes: two codes differ in a share of their bits that is the angle of the vectors over pi.

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
        #: The loss of every step of the last fit.
        self.losses: list[float] = []

    def _data(self, vectors: Tensor) -> list[np.ndarray]:
        if not self._fitted:
            raise ValueError(f"The index {self.name!r} has to learn first: call fit before add or search.")
        return super()._data(vectors)

    def _learn(
        self, corpus: Tensor, queries: Tensor, positives: Tensor | None, progress: Progress | None
    ) -> None:
        # the scale of a tanh is meant for vectors of length 1
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
        if self._fitted:  # a second fit goes on where the first ended
            weight.mul_(length)
        self.losses = self._fit(pairs, progress)
        weight.div_(length)
        self._fitted = True

    @abstractmethod
    def _fit(self, pairs: Pairs, progress: Progress | None) -> list[float]:
        """Train the head; the loss of every step."""

    def _write(self, folder: Path) -> None:
        if not self._fitted:
            raise ValueError(f"The index {self.name!r} has not learned anything to save: call fit first.")
        super()._write(folder)

    def _read(self, folder: Path) -> None:
        super()._read(folder)
        self._fitted = True


class LSHTrained(_Learned):
    """Trained hyperplanes (OPAS): few collisions with what is not wanted, decided and balanced bits.

    ``fit(corpus, queries, positives)`` trains them; without positives the labels are silver, as in the paper.

    Args:
        size, bits, tables, min_shared, layout, fingerprint: As in :class:`LSHRandom`, where training begins.
        collision, fence, balance, pairs_of_bits, silver, reduction: As in
            :class:`~isotone_hashing.loss.HyperplaneLoss`.
        scale: Of the tanh that stands for the sign, for vectors whose mean length is 1 (they are scaled).
        steps, lr: Of Adam.
        batch_queries, batch_items: Of a batch.
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
        scale, first_scale: Of the tanh that stands for the sign, as in :class:`~isotone_hashing.head.HashHead`.
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
