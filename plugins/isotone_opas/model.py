"""The model: an embedding, a penalty model, a relaxation, and the score of a query and a corpus item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from isotone.interfaces import Relaxation
from isotone.kernels.assignment import ordered_assignment
from isotone.registries import relaxations
from isotone.types import Coupling, mask_rows
from isotone_opas import embed as _embed
from isotone_opas import functional as F
from isotone_opas import penalty as _penalty
from isotone_opas import scoring
from isotone_opas.checks import all_lengths, check_embeddings
from isotone_opas.elements import Elements
from isotone_opas.storage import CONFIG, WEIGHTS, OPASError, read_config, read_weights, save_model

# The paper's Sinkhorn.
SINKHORN = {"name": "sinkhorn", "temperature": 1.0, "iterations": 20, "tolerance": 0.0}

Spec = str | Mapping[str, Any]


@dataclass(frozen=True)
class Selection:
    """Results of scoring pairs.

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

    A query of m elements is scored against a corpus item of n >= m elements by the best soft, ordered choice P of m of
    them: :math:`s = \sigma(\beta_1 s_F + \beta_2 s_\lambda)`, equations 6 to 8.

    Args:
        embed: Windows to unit vectors: a name of ``isotone_opas.embed.embeds`` with options, or a module.
        penalty: Model of lambda for each pair: a name of ``isotone_opas.penalty.penalties`` with options, or a module.
        relaxation: Reward to plan: a name of ``isotone.relaxations`` with options, or a callable. The default is
            the paper's: 20 iterations of Sinkhorn at tau = 1.
        columns: Longest corpus item, for the positions a.
        growth: Of the positions, see :func:`isotone_opas.functional.positions`; None for ``0 .. n - 1``.
        margin: b, the least increase of the expected position.
        hinge: True where an increase beyond b earns nothing (table 3; the default of the authors' code).
        reward: ``"theorem1"``, or ``"hinge"`` for the paper's PHS.
        beta: Initial weights of s_F and s_lambda, > 0; trained on a log scale.
        elements: Transform of audio to what ``embed`` takes, or its options (see
            :class:`isotone_opas.elements.Elements`); its statistics are saved with the model. None where windows are
            embedded as they are, and nothing is known of their sample rate.

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
        elements: Elements | Mapping[str, Any] | None = None,
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
        self.elements = Elements(**elements) if isinstance(elements, Mapping) else elements
        self.config["elements"] = None if self.elements is None else self.elements.options
        self.margin, self.hinge, self.reward = margin, hinge, reward
        self.log_beta = nn.Parameter(torch.tensor(beta).log())
        self.positions: Tensor
        self.register_buffer("positions", F.positions(columns, growth), persistent=False)

    @property
    def beta(self) -> Tensor:
        """Weights of s_F and s_lambda, ``(2,)``."""
        return self.log_beta.exp()

    def select(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None = None,
        corpus_lengths: Tensor | None = None,
    ) -> Selection:
        """Find plan, penalties and scores of pairs, differentiable.

        Args:
            queries: ``(B, m, d)`` embeddings, from :attr:`embed`.
            corpus: ``(B, n, d)`` embeddings, the item of each query.
            query_lengths, corpus_lengths: ``(B,)`` int64; nothing beyond them is read. Default: all.

        Raises:
            ValueError: shapes or lengths that do not fit, a query longer than its item, or values that are not finite.
        """
        check_embeddings(queries, corpus, query_lengths, corpus_lengths, paired=True)
        queries, corpus = mask_rows(queries, query_lengths), mask_rows(corpus, corpus_lengths)
        similarity = F.similarities(queries, corpus)
        lam = self.penalty(similarity, queries, corpus, query_lengths, corpus_lengths)
        positions = self.positions_of(corpus.shape[1])
        if self.reward == "theorem1":
            reward = F.theorem1_reward(similarity, corpus, lam, positions)
        else:
            reward = F.hinge_reward(queries, corpus)
        plan = self.relaxation(reward, query_lengths, corpus_lengths)
        fit = F.fit_score(queries, corpus, plan)
        order = F.order_score(plan, lam, positions, self.margin, self.hinge)
        return Selection(plan, lam, reward, fit, order, self.combine(fit, order))

    def score(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None = None,
        corpus_lengths: Tensor | None = None,
    ) -> Tensor:
        """Return scores ``(B,)`` of pairs, in (0, 1). Arguments and errors as in :meth:`select`.

        Compiled loops run where no gradient is requested (``torch.no_grad``), on the CPU, with Sinkhorn as relaxation,
        or with the exact selection and no penalties.
        """
        if not scoring.compilable(self, queries):
            return self.select(queries, corpus, query_lengths, corpus_lengths).score
        check_embeddings(queries, corpus, query_lengths, corpus_lengths, paired=True)
        return scoring.pairs_compiled(self, queries, corpus, query_lengths, corpus_lengths)

    def score_all(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None = None,
        corpus_lengths: Tensor | None = None,
        *,
        memory_mib: float = 64.0,
    ) -> Tensor:
        """Return scores ``(Q, C)`` of every query with every item.

        Args:
            queries: ``(Q, m, d)`` embeddings.
            corpus: ``(C, n, d)`` embeddings.
            query_lengths, corpus_lengths: ``(Q,)``, ``(C,)`` int64. Default: all.
            memory_mib: Bound on temporary tensors, beside the result; the scores do not depend on it. (With gradients,
                the tensors of all pairs are kept.)

        Raises:
            ValueError: as :meth:`select`; a query that is longer than any of the items.
        """
        return self.combine(
            *self.parts_all(queries, corpus, query_lengths, corpus_lengths, memory_mib=memory_mib)
        )

    def parts_all(
        self,
        queries: Tensor,
        corpus: Tensor,
        query_lengths: Tensor | None = None,
        corpus_lengths: Tensor | None = None,
        *,
        memory_mib: float = 64.0,
    ) -> tuple[Tensor, Tensor]:
        """Return s_F and s_lambda of every query with every item, ``(Q, C)`` each; else as :meth:`score_all`."""
        check_embeddings(queries, corpus, query_lengths, corpus_lengths, paired=False)
        way = scoring.all_compiled if scoring.compilable(self, queries) else scoring.all_by_tensors
        return way(self, queries, corpus, query_lengths, corpus_lengths, memory_mib)

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
        """Align pairs: find the corpus windows that carry the query elements.

        The windows are those of the exact best ordered selection (``i_1 < .. < i_m`` that minimise
        ``||X_q - X_c[i]||``). A coupling is monotone, which a soft plan need not be: the whole plan is
        ``select(..).plan``.

        Args:
            queries, corpus, query_lengths, corpus_lengths: As in :meth:`select`.
            soft: Use the plan's value at each of these windows as mass, instead of 1.

        Returns:
            Sources are the corpus windows, targets the query elements, K = m; ``score`` is the pair's score.
        """
        found = self.select(queries, corpus, query_lengths, corpus_lengths)
        queries, corpus = mask_rows(queries, query_lengths), mask_rows(corpus, corpus_lengths)
        reward = 2 * F.similarities(queries, corpus) - corpus.square().sum(-1)[:, None]
        path, _ = ordered_assignment(reward, query_lengths, corpus_lengths)
        m = path.shape[1]
        inside = path >= 0
        # padding repeats the last entry
        target = torch.cummax(torch.where(inside, torch.arange(m, device=path.device), 0), 1).values
        source = path.gather(1, target).clamp(min=0)
        mass = (
            found.plan.gather(2, path.clamp(min=0)[..., None])[..., 0]
            if soft
            else torch.ones_like(found.fit)[:, None]
        )
        mass = torch.where(inside, mass, 0.0)
        n_lengths = all_lengths(corpus, corpus_lengths)
        return Coupling(source, target, mass, n_lengths, all_lengths(queries, query_lengths), found.score)

    def save(self, folder: Path | str) -> None:
        """Write the model as a folder, whole or not at all.

        Raises:
            OPASError: a part was given as an object, so it has no configuration to write.
        """
        save_model(self, self.embed, self.config, folder)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Load what :meth:`save` wrote, in evaluation mode, on the CPU.

        Raises:
            OPASError: no such model, or its weights do not fit.
        """
        folder = Path(folder)
        config = read_config(folder)
        model = cls(config.pop("embed"), config.pop("penalty"), config.pop("relaxation"), **config)
        read_weights(model, folder)
        return model.eval()

    def combine(self, fit: Tensor, order: Tensor | float = 0.0) -> Tensor:
        """Combine s_F and s_lambda into scores (equation 8)."""
        beta = self.beta.to(fit.dtype)
        return torch.sigmoid(beta[0] * fit + beta[1] * order)

    def positions_of(self, n: int) -> Tensor:
        """Return the positions a of items of n elements: ``(n,)``.

        Raises:
            ValueError: the model is made for shorter items.
        """
        if n > len(self.positions):
            raise ValueError(
                f"This model takes corpus items of {len(self.positions)} elements at most; got {n}."
            )
        return self.positions[:n]


def _plain(spec: Any) -> dict[str, Any] | None:
    """Return a configuration as a dictionary; None for an object."""
    if isinstance(spec, str):
        return {"name": spec}
    return {str(k): v for k, v in spec.items()} if isinstance(spec, Mapping) else None


__all__ = ["CONFIG", "OPAS", "SINKHORN", "WEIGHTS", "OPASError", "Selection"]
