"""Trained rankers behind one interface: OPAS, and the models it is compared with."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any

import torch
from isotone_opas.aggregate import DeepSets
from isotone_opas.baselines import ColBERT, MaxSim
from isotone_opas.elements import Elements
from isotone_opas.embed import Embed, embeds
from isotone_opas.model import OPAS
from torch import Tensor, nn

from ordered_search.settings import Data, Model

# Pairs whose sequences are joined at a time.
_PAIRS = 512


class Ranker(nn.Module, ABC):
    """A model that scores pairs of sequences of elements; higher is better.

    Attributes:
        elements: The transform of windows that the model was trained with.
        share: Size of a training batch in pairs, as a share of OPAS's.
    """

    share = 1.0

    def __init__(self, elements: Elements) -> None:
        super().__init__()
        self.elements = elements

    @property
    def device(self) -> torch.device:
        """Device of the parameters."""
        return next(self.parameters()).device

    @property
    @abstractmethod
    def embedding(self) -> nn.Module:
        """The part that is trained with AdamW and a schedule."""

    @abstractmethod
    def embed(self, elements: Tensor, lengths: Tensor | None = None, *, query: bool) -> Tensor:
        """Embed elements ``(B, L, size)`` with lengths ``(B,)`` for :meth:`scores`: ``(B, ..)``."""

    @abstractmethod
    def scores(self, queries: Tensor, corpus: Tensor, lengths: Tensor) -> Tensor:
        """Score all pairs, ``(Q, C)``; ``lengths`` ``(C,)`` are the items' numbers of elements."""


class OPASRanker(Ranker):
    """OPAS itself.

    Args:
        model: The model, with its elements.
        train_beta: True for those of beta1 and beta2 that learn (tables 1 and 17).
    """

    def __init__(self, model: OPAS, elements: Elements, train_beta: tuple[bool, bool]) -> None:
        super().__init__(elements)
        self.model = model
        learns = torch.tensor(train_beta, dtype=torch.float32)
        model.log_beta.register_hook(lambda gradient: gradient * learns.to(gradient))

    @property
    def embedding(self) -> nn.Module:
        """See :class:`Ranker`."""
        return self.model.embed

    def embed(self, elements: Tensor, lengths: Tensor | None = None, *, query: bool) -> Tensor:
        """See :class:`Ranker`."""
        return self.model.embed(elements, lengths)

    def scores(self, queries: Tensor, corpus: Tensor, lengths: Tensor) -> Tensor:
        """See :class:`Ranker`."""
        return self.model.score_all(queries, corpus, None, lengths)


class ColBERTRanker(Ranker):
    """MaxSim of vectors trained for it (appendix H.6)."""

    def __init__(self, embed: Embed, elements: Elements) -> None:
        super().__init__(elements)
        self.model, self._score = ColBERT(embed, input_size=elements.size), MaxSim()

    @property
    def embedding(self) -> nn.Module:
        """See :class:`Ranker`."""
        return self.model

    def embed(self, elements: Tensor, lengths: Tensor | None = None, *, query: bool) -> Tensor:
        """See :class:`Ranker`."""
        return self.model(elements, lengths, query=query)

    def scores(self, queries: Tensor, corpus: Tensor, lengths: Tensor) -> Tensor:
        """See :class:`Ranker`."""
        return self._score(queries, corpus, None, lengths + 1)


class SetRanker(Ranker):
    """One vector per sequence by DeepSets, and the hinge score of two (appendix L.2).

    Args:
        embed: Embedding of elements.
        elements: The elements.
        normalised: ``2 sigmoid(-sum (h_q - h_c)_+)`` in place of the sum itself.
    """

    def __init__(self, embed: Embed, elements: Elements, normalised: bool) -> None:
        super().__init__(elements)
        self._embed, self.normalised = embed, normalised
        self.sets = DeepSets(size=embed.size, width=embed.size, out=embed.size)

    @property
    def embedding(self) -> nn.Module:
        """See :class:`Ranker`."""
        return self._embed

    def embed(self, elements: Tensor, lengths: Tensor | None = None, *, query: bool) -> Tensor:
        """See :class:`Ranker`."""
        return self.sets(self._embed(elements, lengths), lengths)

    def scores(self, queries: Tensor, corpus: Tensor, lengths: Tensor) -> Tensor:
        """See :class:`Ranker`."""
        rows = [-(query - corpus).clamp(min=0).sum(1) for query in queries]
        total = torch.stack(rows)
        return 2 * torch.sigmoid(total) if self.normalised else total


class DirectRanker(Ranker):
    """A transformer over query and item, one after the other, and a linear layer on the mean (appendix L.7).

    The score is unbounded, and every pair needs a pass of the transformer.
    """

    share = 1 / 16

    def __init__(self, embed: Embed, elements: Elements) -> None:
        super().__init__(elements)
        self._embed, self.out = embed, nn.Linear(embed.size, 1)

    @property
    def embedding(self) -> nn.Module:
        """See :class:`Ranker`."""
        return self._embed

    def embed(self, elements: Tensor, lengths: Tensor | None = None, *, query: bool) -> Tensor:
        """See :class:`Ranker`; pairs are embedded, so nothing happens here."""
        return elements

    def scores(self, queries: Tensor, corpus: Tensor, lengths: Tensor) -> Tensor:
        """See :class:`Ranker`."""
        pair = torch.arange(len(queries) * len(corpus), device=queries.device)
        parts = []
        for numbers in pair.split(_PAIRS):
            q, c = numbers // len(corpus), numbers % len(corpus)
            both, size = torch.cat([queries[q], corpus[c]], 1), lengths[c] + queries.shape[1]
            parts.append(self.out(self._embed(both, size).sum(1) / size[:, None])[:, 0])
        return torch.cat(parts).view(len(queries), len(corpus))


def build(model: Model, data: Data, elements: Elements) -> Ranker:
    """Build a ranker from the configuration's ``model`` and ``data``.

    Raises:
        ValueError: no such ranker, or an encoder of speech that does not get samples at its rate.
    """
    spec = _embedding(model, elements)
    if model.name == "opas":
        penalty = dict(model.penalty)
        if penalty["name"] != "constant":
            penalty |= {"rows": data.query, "columns": data.windows}
        if penalty["name"] == "linear":
            penalty["size"] = model.size
        opas = OPAS(
            spec, penalty, dict(model.relaxation), columns=data.windows, growth=model.growth,
            margin=model.margin, hinge=model.hinge, reward=model.reward, beta=tuple(model.beta), elements=elements,
        )  # fmt: skip
        _check_encoder(opas.embed, elements)
        return OPASRanker(opas, elements, tuple(model.train_beta))
    embed = embeds.create(spec)
    _check_encoder(embed, elements)
    makers = {
        "colbert": lambda: ColBERTRanker(embed, elements),
        "deepset1": lambda: SetRanker(embed, elements, False),
        "deepset2": lambda: SetRanker(embed, elements, True),
        "direct": lambda: DirectRanker(embed, elements),
    }
    if model.name not in makers:
        raise ValueError(f"Expected model.name opas, {', '.join(makers)}; got {model.name!r}.")
    return makers[model.name]()


def _embedding(model: Model, elements: Elements) -> dict[str, Any]:
    """Complete the options of the embedding: those that follow from the data, where it takes them."""
    spec = dict(model.embed) | {"size": model.size}
    if "input_size" in inspect.signature(embeds.get(spec["name"])).parameters:
        spec["input_size"] = elements.size
    return spec


def _check_encoder(embed: Embed, elements: Elements) -> None:
    rate = getattr(getattr(embed, "encoder", None), "sample_rate", None)
    if rate is not None and (elements.kind != "raw" or elements.sample_rate != rate):
        raise ValueError(
            f"An encoder of speech hears samples at {rate} Hz: give data.elements=raw data.sample_rate={rate} (got "
            f"{elements.kind} at {elements.sample_rate})."
        )
