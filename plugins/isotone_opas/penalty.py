"""Models of the order's penalties lambda (the paper's LamModel), one per query element, for every pair."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor, nn

from isotone.registry import Registry
from isotone.types import length_mask, mask_rows
from isotone_opas.functional import shift_rows
from isotone_opas.kernels import PenaltyNetwork

penalties: Registry[Penalty] = Registry("penalty", "isotone.opas.penalties")


class Penalty(nn.Module, ABC):
    """Pairs to penalties ``(B, m)``, each at least 0; the first row's is 0, as are those beyond the lengths."""

    def forward(
        self,
        similarity: Tensor,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None = None,
        corpus_lengths: Tensor | None = None,
    ) -> Tensor:
        """Return the penalties of pairs.

        Args:
            similarity: ``(B, m, n)`` inner products, 0 beyond the lengths.
            queries: ``(B, m, d)``, 0 beyond the lengths.
            corpus: ``(B, n, d)``, 0 beyond the lengths.
            query_lengths, corpus_lengths: ``(B,)`` int64. Default: all.

        Raises:
            ValueError: queries or items longer than the model is made for.
        """
        values = self.raw(similarity, queries, corpus, query_lengths)
        first = torch.zeros_like(values[:, :1])
        return mask_rows(torch.cat([first, values[:, 1:]], 1), query_lengths)

    @abstractmethod
    def raw(
        self, similarity: Tensor, queries: Tensor, corpus: Tensor, query_lengths: Tensor | None
    ) -> Tensor:
        """Return the penalties of all rows ``(B, m)``, the first one's and those beyond the lengths included."""

    def compiled(self) -> PenaltyNetwork | Tensor | None:
        """Return a form for fast scoring: a network, or penalties ``(rows,)`` equal for all pairs; None for neither."""
        return None


@penalties.register("constant")
class ConstantPenalty(Penalty):
    """The same penalty everywhere.

    Args:
        value: At least 0.
    """

    def __init__(self, *, value: float = 1.0) -> None:
        super().__init__()
        if not value >= 0:
            raise ValueError(f"ConstantPenalty expects a value of at least 0; got {value}.")
        self.value = value

    def raw(
        self, similarity: Tensor, queries: Tensor, corpus: Tensor, query_lengths: Tensor | None
    ) -> Tensor:
        """See :meth:`Penalty.raw`."""
        return similarity.new_full(similarity.shape[:2], self.value)

    def compiled(self) -> Tensor:
        """See :meth:`Penalty.compiled`."""
        return torch.tensor(self.value)


@penalties.register("linear")
class LinearPenalty(Penalty):
    """Sigmoid of one linear layer on query and item, one after the other (appendix L.1).

    Args:
        rows: Most elements of a query.
        columns: Most elements of a corpus item.
        size: d of the embeddings.
    """

    def __init__(self, *, rows: int, columns: int, size: int = 128) -> None:
        super().__init__()
        self.rows, self.columns = rows, columns
        self.linear = nn.Linear((rows + columns) * size, rows)

    def raw(
        self, similarity: Tensor, queries: Tensor, corpus: Tensor, query_lengths: Tensor | None
    ) -> Tensor:
        """See :meth:`Penalty.raw`."""
        _check_size(similarity, self.rows, self.columns)
        m = queries.shape[1]
        both = [_pad_rows(queries, self.rows), _pad_rows(corpus, self.columns)]
        return torch.sigmoid(self.linear(torch.cat(both, 1).flatten(1)))[:, :m]


@penalties.register("convolutional")
class ConvolutionalPenalty(Penalty):
    """Convolutions along the rows of the similarities (appendix H.3).

    Three convolutions with kernels of n/4, n/8 and n/16 columns, each with a maximum over pairs and ReLU; one of n/16
    with a channel for every row, averaged over the query's rows and pooled to ``bins``; ReLU, Linear, ReLU, Linear,
    sigmoid. Kernels have between one column and all that are left, and a width of one column is not pooled: so there is
    a model for every n. Similarities do not tell which row is which. The mean over the rows makes the penalties blind
    to the query's order, unless ``stagger`` shows each row the next ones.

    Args:
        rows: Most elements of a query (the number of penalties).
        columns: n: most elements of a corpus item; shorter ones are padded with zeros to it.
        stagger: Rows below its own that a kernel sees (appendix L.3).
        channels: Of each of the three convolutions.
        bins: Columns after pooling.
    """

    def __init__(
        self, *, rows: int, columns: int, stagger: int = 0, channels: int = 4, bins: int = 20
    ) -> None:
        super().__init__()
        if min(rows, columns, channels, bins) < 1 or stagger < 0:
            raise ValueError(
                "ConvolutionalPenalty expects rows, columns, channels and bins of at least 1 and stagger >= 0; "
                f"got {rows}, {columns}, {channels}, {bins} and {stagger}."
            )
        self.rows, self.columns, self.stagger, self.bins = rows, columns, stagger, bins
        inputs, width = stagger + 1, columns
        self.convolutions = nn.ModuleList()
        self.pooled: list[bool] = []
        for share in (4, 8, 16):
            taps = min(max(1, columns // share), width)
            self.convolutions.append(nn.Conv2d(inputs, channels, (1, taps)))
            width -= taps - 1
            self.pooled.append(width > 1)
            width = width // 2 if width > 1 else width
            inputs = channels
        self.last = nn.Conv2d(channels, rows, (1, min(max(1, columns // 16), width)))
        self.dense = nn.Sequential(nn.Linear(bins, rows), nn.ReLU(), nn.Linear(rows, 1), nn.Sigmoid())

    def raw(
        self, similarity: Tensor, queries: Tensor, corpus: Tensor, query_lengths: Tensor | None
    ) -> Tensor:
        """See :meth:`Penalty.raw`."""
        _check_size(similarity, self.rows, self.columns)
        rows, width = similarity.shape[1:]
        values = shift_rows(nn.functional.pad(similarity, (0, self.columns - width)), self.stagger)
        for convolution, pooled in zip(self.convolutions, self.pooled):
            values = convolution(values)
            if pooled:
                values = nn.functional.max_pool2d(values, (1, 2))
            values = values.relu()
        # the convolution is linear: its mean over the rows is that of their mean
        if query_lengths is None:
            values = values.mean(2, keepdim=True)
        else:
            mask = length_mask(query_lengths, rows)[:, None, :, None]
            count = query_lengths.clamp(min=1)[:, None, None, None]
            values = (values * mask).sum(2, keepdim=True) / count
        values = nn.functional.adaptive_avg_pool2d(self.last(values), (1, self.bins)).relu()
        return self.dense(values.flatten(2))[:, :rows, 0]

    def compiled(self) -> PenaltyNetwork:
        """See :meth:`Penalty.compiled`."""
        convolutions = [*self.convolutions, self.last]
        layers, weights = [], []
        for convolution, pooled in zip(convolutions, [*self.pooled, False]):
            weight = convolution.weight
            layers.append((*weight.shape[:2], weight.shape[3], int(pooled)))
            weights += [weight, convolution.bias]
        layers.append((self.rows, self.bins, 0, 0))
        weights += [p for layer in (self.dense[0], self.dense[2]) for p in (layer.weight, layer.bias)]
        flat = torch.cat([w.detach().float().cpu().flatten() for w in weights])
        return PenaltyNetwork(np.array(layers, np.int64), flat.numpy(), self.columns)


def _check_size(similarity: Tensor, rows: int, columns: int) -> None:
    m, n = similarity.shape[1:]
    if m > rows or n > columns:
        raise ValueError(
            f"This penalty model takes queries of {rows} elements and corpus items of {columns} at most; "
            f"got {m} and {n}. Cut them, or make the model larger."
        )


def _pad_rows(values: Tensor, size: int) -> Tensor:
    return nn.functional.pad(values, (0, 0, 0, size - values.shape[1]))
