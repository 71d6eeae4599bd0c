"""Training with the margin loss (equation 9), resumable after any checkpoint."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from isotone_opas.functional import explore_negatives, margin_loss
from torch import Tensor, nn

from isotone.files import atomic_write
from ordered_search.evaluation import ranking
from ordered_search.rankers import Ranker
from ordered_search.sets import SearchSet
from ordered_search.settings import Train

CHECKPOINT, METRICS = "checkpoint.pt", "metrics.jsonl"


def draw(
    data: SearchSet,
    allowed: Tensor,
    batch: int,
    positives: int,
    items: int,
    recordings: int | None,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Draw a batch: queries, and the corpus items that they are scored with.

    Args:
        data: The training set.
        allowed: ``(Q, C)`` bool, the pairs that are learned from.
        batch: Queries.
        positives: Items of each.
        items: Items in all, at least; those beyond the positives are drawn from the corpus.
        recordings: Number of recordings that queries and items are from: items of one voice or tune are the hardest
            to distinguish. None for all.
        generator: Of the draw.

    Returns:
        Numbers of queries, ``batch`` at most, and of items, without repetition.
    """
    known = data.query_recording.unique()
    from_here = known[torch.randperm(len(known), generator=generator)[:recordings]]
    pool = torch.isin(data.query_recording, from_here).nonzero()[:, 0]
    queries = pool[torch.randperm(len(pool), generator=generator)[:batch]]
    own, _ = explore_negatives(data.relevant[queries], 0, positives, generator)
    near = torch.isin(data.item_recording, from_here)
    useful = (allowed[queries].any(0) & near).nonzero()[:, 0]
    more = useful[torch.randperm(len(useful), generator=generator)[: max(0, items - own.numel())]]
    return queries, torch.cat([own.flatten(), more]).unique()


def pairs(data: SearchSet, negatives: int, seed: int) -> Tensor:
    """Choose the pairs that are learned from, ``(Q, C)``: all positives, and random negatives of every query."""
    generator = torch.Generator().manual_seed(seed)
    items, valid = explore_negatives(data.relevant | ~data.counted, negatives, None, generator)
    drawn = torch.zeros(data.relevant.shape, dtype=torch.int64).scatter_add(1, items, valid.long()) > 0
    return data.relevant | (drawn & data.counted)


def step_loss(
    ranker: Ranker, data: SearchSet, allowed: Tensor, options: Train, generator: torch.Generator
) -> Tensor:
    """Compute the loss of one batch."""
    batch = max(1, round(options.batch * ranker.share**0.5))
    count = max(2, round(options.batch_items * ranker.share**0.5))
    queries, items = draw(data, allowed, batch, options.positives, count, options.recordings, generator)
    lengths = data.lengths[items]
    x = ranker.embed(data.queries[queries], query=True)
    y = ranker.embed(data.corpus[items], lengths, query=False)
    scores = ranker.scores(x, y, lengths)
    relevant, valid = data.relevant[queries][:, items], allowed[queries][:, items]
    loss = margin_loss(scores, relevant, options.margin, valid).mean()
    if not options.order_weight:
        return loss
    orders = torch.rand(len(queries), x.shape[1], generator=generator).argsort(1)
    shuffled = data.queries[queries].gather(1, orders[..., None].expand_as(data.queries[queries]))
    other = ranker.scores(ranker.embed(shuffled, query=True), y, lengths)
    moved = (orders != torch.arange(orders.shape[1])).any(1)[:, None]
    gap = (options.order_margin + other - scores).clamp(min=0) * (relevant & moved)
    return loss + options.order_weight * gap.sum() / relevant.sum().clamp(min=1)


class Trainer:
    """Moves a ranker's parameters, writes metrics and checkpoints, and keeps the weights that are best on dev.

    Args:
        ranker: Trained in place.
        sets: ``train`` and ``dev``.
        options: The configuration's ``train``.
        seed: Of batches and dropout.
        folder: The run's.
    """

    def __init__(
        self, ranker: Ranker, sets: dict[str, SearchSet], options: Train, seed: int, folder: Path
    ) -> None:
        self.ranker, self.sets, self.options, self.seed, self.folder = ranker, sets, options, seed, folder
        self.allowed = pairs(sets["train"], options.negatives, seed)
        embedding = list(ranker.embedding.parameters())
        known = {id(p) for p in embedding}
        # L2 is for the penalty model; beta, on a log scale, has none
        rest = [(name, p) for name, p in ranker.named_parameters() if id(p) not in known]
        groups = [
            {"params": [p for name, p in rest if "log_beta" not in name], "weight_decay": options.l2},
            {"params": [p for name, p in rest if "log_beta" in name], "weight_decay": 0.0},
        ]
        self.optimisers: list[torch.optim.Optimizer] = []
        if options.freeze_embed:
            ranker.embedding.requires_grad_(False)
        else:
            self.optimisers.append(
                torch.optim.AdamW(embedding, options.embed_lr, weight_decay=options.weight_decay)
            )
            warmup = max(1, round(options.warmup * options.steps))
            self.schedule = torch.optim.lr_scheduler.LambdaLR(
                self.optimisers[0],
                lambda step: min(
                    (step + 1) / warmup, (options.steps - step) / max(1, options.steps - warmup)
                ),
            )
        if groups := [group for group in groups if group["params"]]:
            self.optimisers.append(torch.optim.Adam(groups, options.lr))
        self.step, self.best = 0, -1.0
        self.best_state = {k: v.clone() for k, v in ranker.state_dict().items()}

    def run(self, report: Callable[[int, float, float], None] = lambda step, loss, score: None) -> None:
        """Train to the last step, from the last checkpoint on; the ranker ends with the best weights.

        Args:
            report: Called at every evaluation with step, loss and mean average precision on dev.
        """
        self._resume()
        options, began = self.options, time.perf_counter()
        while self.step < options.steps:
            torch.manual_seed(hash((self.seed, self.step)) % 2**31)
            generator = torch.Generator().manual_seed(hash((self.seed, self.step, 1)) % 2**31)
            self.ranker.train()
            loss = step_loss(self.ranker, self.sets["train"], self.allowed, options, generator)
            for optimiser in self.optimisers:
                optimiser.zero_grad()
            loss.backward()
            trained = [p for p in self.ranker.parameters() if p.requires_grad]
            nn.utils.clip_grad_norm_(trained, options.clip)
            for optimiser in self.optimisers:
                optimiser.step()
            if not options.freeze_embed:
                self.schedule.step()
            self.step += 1
            if self.step % options.evaluate_every == 0 or self.step == options.steps:
                score = ranking(self.ranker, self.sets["dev"])["MAP"]
                if score > self.best:
                    self.best = score
                    self.best_state = {k: v.clone() for k, v in self.ranker.state_dict().items()}
                self._log({"step": self.step, "loss": float(loss.detach()), "dev_MAP": score, **self._betas(),
                           "seconds": time.perf_counter() - began})  # fmt: skip
                self.save()
                report(self.step, float(loss.detach()), score)
        self.ranker.load_state_dict(self.best_state)
        self.ranker.eval()

    def _betas(self) -> dict[str, float]:
        found = [p for name, p in self.ranker.named_parameters() if name.endswith("log_beta")]
        return {f"beta{i + 1}": float(b) for p in found for i, b in enumerate(p.detach().exp())}

    def _log(self, row: dict[str, float]) -> None:
        with (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def save(self) -> None:
        """Write a checkpoint."""
        state = {
            "step": self.step, "best": self.best, "best_state": self.best_state,
            "ranker": self.ranker.state_dict(), "optimisers": [o.state_dict() for o in self.optimisers],
            "schedule": None if self.options.freeze_embed else self.schedule.state_dict(),
        }  # fmt: skip
        with atomic_write(self.folder / CHECKPOINT, "wb") as file:
            torch.save(state, file)

    def _resume(self) -> None:
        path = self.folder / CHECKPOINT
        metrics = self.folder / METRICS
        if not path.is_file():
            metrics.unlink(missing_ok=True)
            return
        state = torch.load(path, weights_only=True)
        self.step, self.best, self.best_state = state["step"], state["best"], state["best_state"]
        self.ranker.load_state_dict(state["ranker"])
        for optimiser, saved in zip(self.optimisers, state["optimisers"]):
            optimiser.load_state_dict(saved)
        if state["schedule"] is not None:
            self.schedule.load_state_dict(state["schedule"])
        # the rows after the checkpoint will be written again
        rows = metrics.read_text("utf-8").splitlines() if metrics.is_file() else []
        with atomic_write(metrics) as file:
            file.writelines(f"{row}\n" for row in rows if _step(row) <= self.step)


def _step(row: str) -> float:
    """Read the step of a line; infinity for a line that was cut short."""
    try:
        return float(json.loads(row)["step"])
    except ValueError:
        return float("inf")
