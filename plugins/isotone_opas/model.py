"""The model: an embedding, a penalty model, a relaxation, and the score of a query and a corpus item."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from isotone.files import atomic_folder
from isotone.interfaces import Relaxation
from isotone.kernels.assignment import ordered_assignment
from isotone.registries import relaxations
from isotone.types import Coupling, mask_rows
from isotone_opas import embed as _embed
from isotone_opas import functional as F
from isotone_opas import kernels as kernel
from isotone_opas import penalty as _penalty

CONFIG, WEIGHTS = "opas.json", "model.safetensors"
# Queries that are scored together; with the items of a block their similarities fit the second cache.
_QUERIES, _BLOCK_SIMILARITIES = 32, 1 << 19
# A relaxation that stops earlier than by this much is not what the compiled loops do.
_TOLERANCE = 1e-5
# The paper's Sinkhorn.
SINKHORN = {"name": "sinkhorn", "temperature": 1.0, "iterations": 20, "tolerance": 0.0}

Spec = str | Mapping[str, Any]


class OPASError(ValueError):
    """A folder is no OPAS model, or what is in it does not fit; the message says what."""


@dataclass(frozen=True)
class Selection:
    """What scoring finds out about pairs.

    Attributes:
        plan: ``(B, m, n)`` soft assignment of query elements to corpus elements, 0 beyond the lengths.
        penalties: lambda ``(B, m)``.
        reward: Z ``(B, m, n)``.
        fit: s_F ``(B,)``.
        order: s_lambda ``(B,)``.
        score: ``(B,)`` in (0, 1).
    """

    plan: Tensor
    penalties: Tensor
    reward: Tensor
    fit: Tensor
    order: Tensor
    score: Tensor


class OPAS(nn.Module):
    r"""Learned search for ordered subsequences.

    A query of m elements is scored against a corpus item of n >= m by the best soft choice P of m of its elements, in
    order: :math:`s = \sigma(\beta_1 s_F + \beta_2 s_\lambda)`, equations 6 to 8.

    Args:
        embed: Windows to unit vectors: a name of ``isotone_opas.embed.embeds`` with options, or a module.
        penalty: lambda of each pair: a name of ``isotone_opas.penalty.penalties`` with options, or a module.
        relaxation: Reward to plan: a name of ``isotone.relaxations`` with options, or a callable. The default is
            the paper's: 20 iterations of Sinkhorn at tau = 1.
        columns: Longest corpus item, for the positions a.
        growth: Of the positions, see :func:`isotone_opas.functional.positions`; None for ``0 .. n - 1``.
        margin: b, the least increase of the expected position.
        hinge: Whether an increase beyond b earns nothing (table 3; the authors' code has it so by default).
        reward: ``"theorem1"``, or ``"hinge"`` for the paper's PHS.
        beta: Initial weights of s_F and s_lambda, > 0; trained on a log scale.

    Raises:
        ValueError: an option outside its range.
    """

    def __init__(
        self,
        embed: Spec | _embed.Embed,
        penalty: Spec | _penalty.Penalty,
        relaxation: Spec | Relaxation = SINKHORN,
        *,
        columns: int,
        growth: float | None = 1.2,
        margin: float = 1.0,
        hinge: bool = False,
        reward: Literal["theorem1", "hinge"] = "theorem1",
        beta: tuple[float, float] = (1.0, 0.01),
    ) -> None:
        super().__init__()
        if reward not in ("theorem1", "hinge") or not min(beta) > 0:
            raise ValueError(
                f"OPAS expects reward 'theorem1' or 'hinge' and beta > 0; got {reward!r} and {beta}."
            )
        self.config: dict[str, Any] = {
            "embed": _plain(embed), "penalty": _plain(penalty), "relaxation": _plain(relaxation),
            "columns": columns, "growth": growth, "margin": margin, "hinge": hinge, "reward": reward,
        }  # fmt: skip
        self.embed = embed if isinstance(embed, nn.Module) else _embed.embeds.create(embed)
        self.penalty = penalty if isinstance(penalty, nn.Module) else _penalty.penalties.create(penalty)
        self.relaxation: Relaxation = (
            relaxations.create(relaxation) if isinstance(relaxation, str | Mapping) else relaxation
        )
        self.margin, self.hinge, self.reward = margin, hinge, reward
        self.log_beta = nn.Parameter(torch.tensor(beta).log())
        self.positions: Tensor
        self.register_buffer("positions", F.positions(columns, growth), persistent=False)

    @property
    def beta(self) -> Tensor:
        """Weights of s_F and s_lambda ``(2,)``."""
        return self.log_beta.exp()

    def select(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None = None,
        corpus_lengths: Tensor | None = None,
    ) -> Selection:
        """Plan, penalties and scores of pairs, differentiable.

        Args:
            queries: ``(B, m, d)`` embeddings, from :attr:`embed`.
            corpus: ``(B, n, d)`` embeddings, the item of each query.
            query_lengths, corpus_lengths: ``(B,)`` int64; nothing beyond is read. Default: all.

        Raises:
            ValueError: shapes or lengths that do not fit, a query longer than its item, or values that are not finite.
        """
        _check(queries, corpus, query_lengths, corpus_lengths, paired=True)
        queries, corpus = mask_rows(queries, query_lengths), mask_rows(corpus, corpus_lengths)
        similarity = F.similarities(queries, corpus)
        lam = self.penalty(similarity, queries, corpus, query_lengths, corpus_lengths)
        places = self._places(corpus.shape[1])
        if self.reward == "theorem1":
            reward = F.theorem1_reward(similarity, corpus, lam, places)
        else:
            reward = F.hinge_reward(queries, corpus)
        plan = self.relaxation(reward, query_lengths, corpus_lengths)
        fit = F.fit_score(queries, corpus, plan)
        order = F.order_score(plan, lam, places, self.margin, self.hinge)
        return Selection(plan, lam, reward, fit, order, self._combine(fit, order))

    def score(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None = None,
        corpus_lengths: Tensor | None = None,
    ) -> Tensor:
        """Scores ``(B,)`` of pairs, in (0, 1). Arguments and errors as in :meth:`select`.

        Compiled where no gradient is asked for (``torch.no_grad``), on the CPU, with Sinkhorn as relaxation, or the
        exact selection and no penalties.
        """
        if not self._fast(queries):
            return self.select(queries, corpus, query_lengths, corpus_lengths).score
        _check(queries, corpus, query_lengths, corpus_lengths, paired=True)
        if self._exact:
            return self._combine(kernel.fit_pairs(queries, corpus, query_lengths, corpus_lengths))
        lam = self.penalty.compiled()
        if lam is None:
            clean = mask_rows(queries, query_lengths), mask_rows(corpus, corpus_lengths)
            lam = self.penalty(F.similarities(*clean), *clean, query_lengths, corpus_lengths)
        elif isinstance(lam, Tensor):
            lam = _constant(lam, queries, query_lengths)
        options = self._options(corpus.shape[1])
        parts = kernel.score_pairs(queries, corpus, lam, options, query_lengths, corpus_lengths)
        return self._combine(*parts)

    def score_all(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None = None,
        corpus_lengths: Tensor | None = None,
        *,
        memory_mib: float = 64.0,
    ) -> Tensor:
        """Scores ``(Q, C)`` of every query with every item.

        Args:
            queries: ``(Q, m, d)`` embeddings.
            corpus: ``(C, n, d)`` embeddings.
            query_lengths, corpus_lengths: ``(Q,)``, ``(C,)`` int64. Default: all.
            memory_mib: Bound on temporary tensors, beside the result; the scores do not depend on it. (With
                gradients, what they need is kept for all pairs.)

        Raises:
            ValueError: as :meth:`select`; a query that is longer than any of the items.
        """
        _check(queries, corpus, query_lengths, corpus_lengths, paired=False)
        if self._fast(queries):
            return self._score_compiled(queries, corpus, query_lengths, corpus_lengths, memory_mib)
        return self._score_tensors(queries, corpus, query_lengths, corpus_lengths, memory_mib)

    @torch.no_grad()
    def align(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None = None,
        corpus_lengths: Tensor | None = None,
        *,
        soft: bool = False,
    ) -> Coupling:
        """Which corpus windows carry which query elements, for pairs.

        The windows are those of the exact best ordered selection (``i_1 < .. < i_m`` that minimise
        ``||X_q - X_c[i]||``). A coupling is monotone, which a soft plan need not be: the whole plan is
        ``select(..).plan``.

        Args:
            queries, corpus, query_lengths, corpus_lengths: As in :meth:`select`.
            soft: Mass is what the plan puts on each of these windows, instead of 1.

        Returns:
            Sources are the corpus windows, targets the query elements, K = m; ``score`` is the pair's score.
        """
        found = self.select(queries, corpus, query_lengths, corpus_lengths)
        queries, corpus = mask_rows(queries, query_lengths), mask_rows(corpus, corpus_lengths)
        reward = 2 * F.similarities(queries, corpus) - corpus.square().sum(-1)[:, None]
        path, _ = ordered_assignment(reward, query_lengths, corpus_lengths)
        m = path.shape[1]
        there = path >= 0
        # padding repeats the last entry
        target = torch.cummax(torch.where(there, torch.arange(m, device=path.device), 0), 1).values
        source = path.gather(1, target).clamp(min=0)
        mass = (
            found.plan.gather(2, path.clamp(min=0)[..., None])[..., 0]
            if soft
            else torch.ones_like(found.fit)[:, None]
        )
        mass = torch.where(there, mass, 0.0)
        n_lengths = _full(corpus, corpus_lengths)
        return Coupling(source, target, mass, n_lengths, _full(queries, query_lengths), found.score)

    def save(self, folder: Path | str) -> None:
        """Write the model as a folder, whole or not at all.

        Raises:
            OPASError: a part was given as an object, so that there is no configuration of it to write.
        """
        if missing := [name for name in ("embed", "penalty", "relaxation") if self.config[name] is None]:
            raise OPASError(
                f"The model's {missing[0]} was given as an object; to save a model, give a name or a mapping."
            )
        with atomic_folder(folder) as target:
            config = {**self.config, "embed": {**self.config["embed"], **self.embed.save_parts(target)}}
            text = json.dumps({"format": 1, **config}, indent=2, ensure_ascii=False)
            (target / CONFIG).write_text(text + "\n", encoding="utf-8")
            state = {k: v.detach().cpu().contiguous().clone() for k, v in self.state_dict().items()}
            save_file(state, target / WEIGHTS, metadata={"format": "pt"})

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Load what :meth:`save` wrote, in evaluation mode, on the CPU.

        Raises:
            OPASError: no such model, or its weights do not fit.
        """
        folder = Path(folder)
        try:
            config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise OPASError(f"{folder} holds no OPAS model that can be read: {error}") from error
        if not isinstance(config, dict) or config.pop("format", None) != 1:
            raise OPASError(f"{folder / CONFIG}: expected format 1.")
        if "encoder" in config["embed"]:
            config["embed"]["encoder"]["source"] = str(folder / "encoder")
        model = cls(config.pop("embed"), config.pop("penalty"), config.pop("relaxation"), **config)
        try:
            model.load_state_dict(load_file(folder / WEIGHTS))
        except (OSError, RuntimeError, SafetensorError) as error:
            raise OPASError(f"{folder / WEIGHTS} is missing, damaged or of another model: {error}") from error
        return model.eval()

    def _combine(self, fit: Tensor, order: Tensor | float = 0.0) -> Tensor:
        """Equation 8."""
        beta = self.beta.to(fit.dtype)
        return torch.sigmoid(beta[0] * fit + beta[1] * order)

    def _places(self, n: int) -> Tensor:
        if n > len(self.positions):
            raise ValueError(
                f"This model takes corpus items of {len(self.positions)} elements at most; got {n}."
            )
        return self.positions[:n]

    def _fast(self, queries: Tensor) -> bool:
        """Whether the compiled loops do what this model does."""
        return (
            not torch.is_grad_enabled()
            and queries.device.type == "cpu"
            and queries.dtype == torch.float32
            and self.reward == "theorem1"
            and (self._exact or _sinkhorn(self.relaxation) is not None)
        )

    @property
    def _exact(self) -> bool:
        """Whether the plan is the best ordered selection itself, which needs no penalties."""
        penalty = self.penalty.compiled()
        free = isinstance(penalty, Tensor) and not penalty.any()
        return type(self.relaxation).__name__ == "Ordered" and free

    def _options(self, n: int) -> kernel.Sinkhorn:
        tau, iterations = _sinkhorn(self.relaxation) or (1.0, 1)
        return kernel.Sinkhorn(self._places(n), tau, iterations, self.margin, self.hinge)

    def _score_compiled(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None,
        corpus_lengths: Tensor | None,
        memory_mib: float,
    ) -> Tensor:
        (count, m, _), (items, n, d) = queries.shape, corpus.shape
        exact = self._exact
        options = self._options(n)
        network = self.penalty.compiled()
        floats = memory_mib * 2**18
        group = min(count, _QUERIES)
        # an item's share: its similarities, its vectors twice, and its inner products
        each = group * m * (n + 2) + n * (2 * d + 2 * min(n, d))
        # sixteen items are the least that a thread works on
        cached = max(torch.get_num_threads(), _BLOCK_SIMILARITIES // max(1, group * m * n) // 16) * 16
        block = int(max(1, min(floats // each, cached)))
        out = queries.new_empty(count, items)
        for c in range(0, items, block):
            # inner products of an item's own vectors are for soft plans
            shared = 0 if exact else count * m
            part = kernel.Items.prepare(corpus[c : c + block], _cut(corpus_lengths, c, block), shared)
            for q in range(0, count, group):
                rows, lengths = queries[q : q + group], _cut(query_lengths, q, group)
                if exact:
                    out[q : q + group, c : c + block] = self._combine(kernel.fit_all(rows, part, lengths))
                    continue
                lam: kernel.PenaltyNetwork | Tensor
                if isinstance(network, Tensor):
                    lam = _constant(network, rows, lengths)[..., None].expand(-1, -1, part.count)
                elif network is None:
                    lam = self._all_penalties(
                        rows, corpus[c : c + block], lengths, _cut(corpus_lengths, c, block)
                    )
                else:
                    lam = network
                fit, order = kernel.score_all(rows, part, lam, options, lengths)
                out[q : q + group, c : c + block] = self._combine(fit, order)
        return out

    def _all_penalties(
        self, queries: Tensor, corpus: Tensor, query_lengths: Tensor | None, corpus_lengths: Tensor | None
    ) -> Tensor:
        """Penalties ``(Q, m, C)`` of all pairs, a query at a time."""
        rows = []
        corpus = mask_rows(corpus, corpus_lengths)
        for q in range(len(queries)):
            lengths = None if query_lengths is None else query_lengths[q].expand(len(corpus))
            query = mask_rows(queries[q].expand(len(corpus), -1, -1), lengths)
            rows.append(
                self.penalty(F.similarities(query, corpus), query, corpus, lengths, corpus_lengths).mT
            )
        return torch.stack(rows)

    def _score_tensors(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None,
        corpus_lengths: Tensor | None,
        memory_mib: float,
    ) -> Tensor:
        (count, m, d), (items, n, _) = queries.shape, corpus.shape
        # of a pair: both sequences, and what is made of its m x n matrix
        each = d * (n + 3 * m) + 12 * m * n + 4 * n * n
        pairs = int(max(1, memory_mib * 2**18 // each))
        scores = []
        for first in range(0, count * items, pairs):
            pair = torch.arange(first, min(first + pairs, count * items), device=queries.device)
            q, c = pair // items, pair % items
            lengths = [None if x is None else x[i] for x, i in ((query_lengths, q), (corpus_lengths, c))]
            scores.append(self.select(queries[q], corpus[c], *lengths).score)
        return torch.cat(scores).view(count, items) if scores else queries.new_zeros(count, items)


def _sinkhorn(relaxation: Any) -> tuple[float, int] | None:
    """Temperature and iterations of a relaxation that is Sinkhorn's normalisation with slack; None for others."""
    if type(relaxation).__name__ != "Sinkhorn" or getattr(relaxation, "tolerance", 0) > _TOLERANCE:
        return None
    return float(relaxation.temperature), int(relaxation.iterations)


def _plain(spec: Any) -> dict[str, Any] | None:
    """A configuration as a dictionary; None for an object."""
    if isinstance(spec, str):
        return {"name": spec}
    return {str(k): v for k, v in spec.items()} if isinstance(spec, Mapping) else None


def _constant(value: Tensor, queries: Tensor, lengths: Tensor | None) -> Tensor:
    lam = value.expand(queries.shape[:2]).clone()
    lam[:, :1] = 0
    return mask_rows(lam, lengths)


def _cut(lengths: Tensor | None, first: int, size: int) -> Tensor | None:
    return None if lengths is None else lengths[first : first + size]


def _full(values: Tensor, lengths: Tensor | None) -> Tensor:
    return torch.full((len(values),), values.shape[1], device=values.device) if lengths is None else lengths


def _check(
    queries: Tensor, corpus: Tensor, query_lengths: Tensor | None, corpus_lengths: Tensor | None, paired: bool
) -> None:
    """Raise ValueError for the first thing that is wrong with embeddings and their lengths."""
    if queries.ndim != 3 or corpus.ndim != 3 or queries.shape[2] != corpus.shape[2]:
        raise ValueError(
            "Expected query and corpus embeddings (B, m, d) and (B, n, d) of one d; got "
            f"{tuple(queries.shape)} and {tuple(corpus.shape)}. For a single pair use query[None] and item[None]."
        )
    if paired and len(queries) != len(corpus):
        raise ValueError(f"Expected as many corpus items as queries; got {len(corpus)} and {len(queries)}.")
    for name, values, lengths in (("query", queries, query_lengths), ("corpus item", corpus, corpus_lengths)):
        if lengths is not None:
            if lengths.shape != (len(values),):
                raise ValueError(f"Expected {len(values)} {name} lengths; got shape {tuple(lengths.shape)}.")
            wrong = ((lengths < 1) | (lengths > values.shape[1])).nonzero()
            if len(wrong):
                row = int(wrong[0])
                raise ValueError(
                    f"The {name} {row}: expected a length from 1 to {values.shape[1]}; got {int(lengths[row])}."
                )
        bad = (~torch.isfinite(mask_rows(values.sum(-1), lengths))).any(1).nonzero()
        if len(bad):
            raise ValueError(f"The {name} {int(bad[0])} holds NaN or infinity; expected finite embeddings.")
    m, n = _full(queries, query_lengths), _full(corpus, corpus_lengths)
    too_long = (m > n) if paired else (m > n.min() if len(n) else m > m)
    if too_long.any():
        row = int(too_long.nonzero()[0])
        least = int(n[row]) if paired else int(n.min())
        raise ValueError(
            f"The query {row} has {int(m[row])} elements, its corpus item {least}: a query selects from an item that "
            "is at least as long. Shorten the query, or leave such items out."
        )
