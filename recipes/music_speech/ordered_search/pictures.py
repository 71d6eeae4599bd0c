"""All figures of an experiment, and the numbers that come with them."""

from __future__ import annotations

from typing import Any

import torch
from isotone_opas.model import OPAS
from matplotlib.figure import Figure
from torch import Tensor

from ordered_search import evaluation, figures, hashing
from ordered_search.rankers import Ranker
from ordered_search.sets import SearchSet
from ordered_search.settings import Settings

# Queries whose pairs are in the figure of distributions.
_SHOWN = 64


def pictures(
    config: Settings,
    ranker: Ranker,
    sets: dict[str, SearchSet],
    scores: Tensor,
    rows: dict[str, dict[str, float]],
) -> tuple[dict[str, Any], dict[str, Figure]]:
    """Draw the figures of an experiment.

    Args:
        config: The settings.
        ranker: Trained, on the CPU.
        sets: ``train`` and ``test``.
        scores: Of the test set, ``(Q, C)``.
        rows: The table of scores.

    Returns:
        More parts of the report, and the figures by the names of their files.
    """
    data, options = sets["test"], config.evaluate
    title = f"{config.data.kind}, {config.data.source}"
    report: dict[str, Any] = {}
    drawn = {
        "time": figures.precision_against(rows, "ms_per_pair", "milliseconds per pair, one thread", title)
    }
    if options.memory_queries:
        label = f"peak memory of {options.memory_queries} queries, MiB"
        drawn["memory"] = figures.precision_against(rows, "peak_mib", label, title)
    shown = torch.randperm(len(data.queries))[:_SHOWN]
    panels = {"score": scores[shown]}
    model = evaluation.opas_of(ranker)
    if model is not None:
        panels["s_F"] = _fits(model, data.of(shown))
        queries, items = figures.positive_pairs(data, options.alignments, config.seed)
        found = figures.plans(model, data, queries, items, options.temperatures)
        hits = (found["exact"] * found["drawn"]).sum() / found["drawn"].sum()
        report["exact_alignment_windows_found"] = float(hits)
        drawn["alignments"] = figures.alignments(found, title)
        pairs = figures.positive_pairs(data, options.distances, config.seed)
        apart, against = figures.plan_distances(model, data, *pairs)
        drawn["distances"] = figures.distances(apart, against, title)
        report["plan_distance"] = {"mean": float(apart.mean())} | {
            f"correlation with {name}": _correlation(apart, values) for name, values in against.items()
        }
    drawn["distributions"] = figures.distributions(panels, data.of(shown), title)
    if model is not None and config.hashing.run:
        report["hashing"], report["set_vectors"] = hashing.compare(
            model, sets, scores, config.hashing, config.seed
        )
        drawn["indexes"] = figures.index_curves(report["hashing"], title)
    return report, drawn


def _correlation(x: Tensor, y: Tensor) -> float:
    """Correlate two vectors; 0 where one of them is constant."""
    return float(torch.corrcoef(torch.stack([x, y]))[0, 1].nan_to_num())


@torch.no_grad()
def _fits(model: OPAS, data: SearchSet) -> Tensor:
    """Compute s_F of every pair ``(Q, C)``."""
    corpus = torch.cat([model.embed(x, n) for x, n in zip(data.corpus.split(256), data.lengths.split(256))])
    return model.parts_all(model.embed(data.queries), corpus, None, data.lengths)[0]
