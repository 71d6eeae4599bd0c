"""An experiment from data to scores and figures, in a run folder that can be resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from isotone_opas.embed import Embed
from isotone_opas.model import OPAS
from rich.console import Console
from safetensors.torch import load_file, save_file
from torch import Tensor

from isotone.evaluation import markdown_table
from isotone.files import atomic_write
from isotone.report.style import save
from isotone.training.loader import differences, load_saved, to_yaml
from ordered_search import evaluation, figures, hashing
from ordered_search.prepared import load_or_prepare
from ordered_search.pretraining import pretrain
from ordered_search.rankers import OPASRanker, Ranker, build
from ordered_search.sets import SearchSet, build_elements
from ordered_search.settings import Data, Settings
from ordered_search.training import CHECKPOINT, Trainer

CONFIG, SCORES, WEIGHTS, ELEMENTS, MODEL = (
    "config.yaml", "scores.json", "ranker.safetensors", "elements.safetensors", "model",
)  # fmt: skip
# Queries whose pairs are in the figure of distributions.
_SHOWN = 64
# Settings that may differ when a run is continued.
_MAY_DIFFER = ("output", "cache", "threads", "evaluate", "hashing")
# Settings of data in which a run must agree with the run its model is from.
_SHAPE = ("sample_rate", "window_s", "windows", "query", "elements", "bands", "frames")


def run(config: Settings, base: Path) -> str:
    """Run an experiment to its end, from its last checkpoint on.

    Args:
        config: From :func:`ordered_search.settings.load_settings`.
        base: Folder that relative folders refer to.

    Returns:
        A table of the scores, in Markdown.

    Raises:
        ValueError: the folder holds another experiment, or the configuration does not fit together.
        FileNotFoundError: data or a run to take a model from are not there.
    """
    console = Console(stderr=True)
    assert config.output is not None
    folder = base / config.output
    _claim(folder, config)
    torch.set_num_threads(config.threads)
    torch.manual_seed(config.seed)
    source = None if config.model_from is None else base / config.model_from
    kept = None if config.cache is None else base / config.cache
    fitted = None if source is None else _elements(source, config.data)
    elements, sets = load_or_prepare(config.data, kept, fitted)
    console.print("; ".join(
        f"{name}: {len(data.queries)} queries, {len(data.corpus)} items" for name, data in sets.items()
    ))  # fmt: skip
    if source is None:
        ranker = build(config.model, config.data, elements.size)
        _train(config, ranker, sets, folder, console)
    else:
        ranker = _load_ranker(source)
    _save_model(folder, ranker, elements)
    report = _evaluate(config, ranker, sets, folder)
    with atomic_write(folder / SCORES) as file:
        file.write(json.dumps(report, indent=1) + "\n")
    console.print(f"wrote {folder}", highlight=False)
    return table(report["scores"])


def _train(
    config: Settings, ranker: Ranker, sets: dict[str, SearchSet], folder: Path, console: Console
) -> None:
    """Pretrain the embedding where the run is new, then train the ranker from its last checkpoint on."""
    if config.pretrain.steps and not (folder / CHECKPOINT).is_file():
        if not isinstance(ranker.embedding, Embed):
            raise ValueError(f"The embedding of {config.model.name} has no pretraining: pretrain.steps=0.")
        loss = pretrain(ranker.embedding, sets["train"], config.pretrain, config.seed)
        console.print(f"pretrained the embedding: {config.pretrain.task} loss {loss:.3f}")
    trainer = Trainer(ranker, sets, config.train, config.seed, folder)
    trainer.run(lambda step, loss, score: console.print(
        f"step {step}: loss {loss:.4f}, MAP on dev {score:.4f}", highlight=False
    ))  # fmt: skip


def table(scores: dict[str, dict[str, float]]) -> str:
    """Write scores in Markdown, one row per method."""
    columns = {
        "MAP": "{:.4f}",
        "MRR": "{:.4f}",
        "ODC": "{:.1f}",
        "ms_per_pair": "{:.4f}",
        "queries": "{:.0f}",
    }
    rows = (
        [name, *(form.format(row[key]) if key in row else "" for key, form in columns.items())]
        for name, row in scores.items()
    )
    return markdown_table(["method", *columns], rows)


def _claim(folder: Path, config: Settings) -> None:
    """Write the configuration; raise where the folder holds a run with another one."""
    path = folder / CONFIG
    if path.is_file() and (changed := differences(path, config, ignored=_MAY_DIFFER)):
        raise ValueError(
            f"{folder} holds a run with other settings: {'; '.join(changed[:5])}. Give output=FOLDER, or remove it."
        )
    with atomic_write(path) as file:
        file.write(to_yaml(config))


def _save_model(folder: Path, ranker: Ranker, elements: Elements) -> None:
    """Write the ranker's weights, the elements' statistics, and an OPAS model as a folder of its own."""
    for name, module in ((WEIGHTS, ranker), (ELEMENTS, elements)):
        state = {k: v.detach().contiguous().clone() for k, v in module.state_dict().items()}
        temporary = folder / f".{name}.tmp"
        save_file(state, temporary)
        temporary.replace(folder / name)
    if isinstance(ranker, OPASRanker):
        ranker.model.save(folder / MODEL)


def _config(source: Path) -> Settings:
    if not (source / CONFIG).is_file() or not (source / WEIGHTS).is_file():
        raise FileNotFoundError(f"{source} holds no finished run. Give the folder of one as model_from.")
    return load_saved(Settings, source / CONFIG)


def _elements(source: Path, data: Data) -> Elements:
    trained = _config(source).data
    there, here = ({key: getattr(d, key) for key in _SHAPE} for d in (trained, data))
    if other := {key: value for key, value in there.items() if here[key] != value}:
        raise ValueError(
            f"The model of {source} was trained with {', '.join(f'{k}={v}' for k, v in other.items())}; give "
            f"{' '.join(f'data.{k}={v}' for k, v in other.items())}."
        )
    elements = build_elements(data)
    elements.load_state_dict(load_file(source / ELEMENTS))
    return elements


def _load_ranker(source: Path) -> Ranker:
    config = _config(source)
    ranker = build(config.model, config.data, build_elements(config.data).size)
    ranker.load_state_dict(load_file(source / WEIGHTS))
    return ranker.eval()


def _evaluate(config: Settings, ranker: Ranker, sets: dict[str, SearchSet], folder: Path) -> dict[str, Any]:
    """Score the ranker and the baselines, and draw the figures."""
    data, options = sets["test"], config.evaluate
    torch.manual_seed(config.seed)
    scores, times = evaluation.score_matrix(ranker, data)
    name = {"opas": "OPAS", "colbert": "MaxSim (trained)"}.get(config.model.name, config.model.name)
    own = {**evaluation.quality(scores, data), **times, "queries": len(data.queries)}
    if options.odc_queries:
        own["ODC"] = evaluation.order_capacity(
            ranker, data, options.odc_queries, options.odc_shuffles, config.seed
        )
    rows = {name: own, **evaluation.baselines(options.baselines, data, config.seed)}
    report: dict[str, Any] = {"scores": rows, "sizes": {
        split: {"queries": len(part.queries), "items": len(part.corpus)} for split, part in sets.items()
    }}  # fmt: skip
    title = f"{config.data.kind}, {config.data.source}"
    drawn = {"time": figures.precision_against_time(rows, title)}
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
    drawn["distributions"] = figures.distributions(panels, data.of(shown), title)
    if model is not None and config.hashing.run:
        report["hashing"] = hashing.compare(model, sets, scores, config.hashing, config.seed)
        drawn["indexes"] = figures.index_curves(report["hashing"], title)
    for file, figure in drawn.items():
        save(figure, folder / "figures" / f"{file}.png")
    return report


@torch.no_grad()
def _fits(model: OPAS, data: SearchSet) -> Tensor:
    """Compute s_F of every pair ``(Q, C)``."""
    corpus = torch.cat([model.embed(x, n) for x, n in zip(data.corpus.split(256), data.lengths.split(256))])
    queries = model.embed(data.queries)
    rows = []
    for query in queries:
        of_query = query.expand(len(corpus), -1, -1)
        rows.append(model.select(of_query, corpus, None, data.lengths).fit)
    return torch.stack(rows)
