"""Training with the margin loss (equation 9), on one or several devices, resumable after any checkpoint."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from accelerate import Accelerator
from isotone_opas.functional import explore_negatives
from torch import Tensor, nn

from isotone.files import atomic_write
from ordered_search.batches import Batch, StepLoss, draw_batch
from ordered_search.evaluation import ranking
from ordered_search.rankers import Ranker
from ordered_search.sets import SearchSet
from ordered_search.settings import Train

CHECKPOINT, METRICS = "checkpoint.pt", "metrics.jsonl"


def pairs(data: SearchSet, negatives: int, seed: int) -> Tensor:
    """Choose the pairs that are learned from, ``(Q, C)``: all positives, and random negatives of every query."""
    generator = torch.Generator().manual_seed(seed)
    items, valid = explore_negatives(data.relevant | ~data.counted, negatives, None, generator)
    drawn = torch.zeros(data.relevant.shape, dtype=torch.int64).scatter_add(1, items, valid.long()) > 0
    return data.relevant | (drawn & data.counted)


class Trainer:
    """Moves a ranker's parameters, writes metrics and checkpoints, and keeps the weights that are best on dev.

    Of several processes each takes a part of a batch's queries, so that all together make the step of one; the main one
    evaluates and writes.

    Args:
        ranker: Trained in place, on accelerate's device.
        sets: ``train`` and ``dev``.
        options: The configuration's ``train``.
        seed: Of batches and dropout.
        folder: The run's.
        accelerator: Default: one that accelerate makes of the environment.
    """

    def __init__(
        self,
        ranker: Ranker,
        sets: dict[str, SearchSet],
        options: Train,
        seed: int,
        folder: Path,
        accelerator: Accelerator | None = None,
    ) -> None:
        self.ranker, self.sets, self.options, self.seed, self.folder = ranker, sets, options, seed, folder
        self.accelerator = accelerator or Accelerator()
        self.allowed = pairs(sets["train"], options.negatives, seed)
        if options.freeze_embed:
            ranker.embedding.requires_grad_(False)
        self.loss: nn.Module = self.accelerator.prepare(StepLoss(ranker, options))
        self.optimisers: list[torch.optim.Optimizer] = []
        embedding = list(ranker.embedding.parameters())
        known = {id(p) for p in embedding}
        # L2 is for the penalty model; beta, on a log scale, has none
        rest = [(name, p) for name, p in ranker.named_parameters() if id(p) not in known]
        groups = [
            {"params": [p for name, p in rest if "log_beta" not in name], "weight_decay": options.l2},
            {"params": [p for name, p in rest if "log_beta" in name], "weight_decay": 0.0},
        ]
        if not options.freeze_embed:
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
        self.best_state = self._state()

    def run(self, report: Callable[[int, float, float], None] = lambda step, loss, score: None) -> None:
        """Train to the last step, from the last checkpoint on; the main process's ranker ends with the best weights.

        Args:
            report: Called at every evaluation with step, loss and mean average precision on dev.
        """
        self._resume()
        options, began = self.options, time.perf_counter()
        while self.step < options.steps:
            loss = self._one_step()
            self.step += 1
            if self.step % options.evaluate_every and self.step != options.steps:
                continue
            if self.accelerator.is_main_process:
                score = ranking(self.ranker, self.sets["dev"])["MAP"]
                if score > self.best:
                    self.best, self.best_state = score, self._state()
                self._log({"step": self.step, "loss": loss, "dev_MAP": score, **self._betas(),
                           "seconds": time.perf_counter() - began})  # fmt: skip
                self.save()
                report(self.step, loss, score)
            self.accelerator.wait_for_everyone()
        self.ranker.load_state_dict(self.best_state)
        self.ranker.eval()

    def _one_step(self) -> float:
        """Take one step; return the loss of the whole batch."""
        place, world = self.accelerator.process_index, self.accelerator.num_processes
        generator = torch.Generator().manual_seed(hash((self.seed, self.step, 1)) % 2**31)
        options = self.options
        batch = draw_batch(self.sets["train"], self.allowed, options, self.ranker.share, generator)
        # dropout; the first process draws what one alone does
        torch.manual_seed(hash((self.seed, self.step, place) if place else (self.seed, self.step)) % 2**31)
        self.ranker.train()
        part: Batch = batch.part(place, world).to(self.accelerator.device)
        loss = self.loss(part)
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        # gradients are means over the processes, and the loss is a sum over them
        self.accelerator.backward(loss * world)
        trained = [p for p in self.ranker.parameters() if p.requires_grad]
        nn.utils.clip_grad_norm_(trained, options.clip)
        for optimiser in self.optimisers:
            optimiser.step()
        if not options.freeze_embed:
            self.schedule.step()
        return float(self.accelerator.reduce(loss.detach(), "sum"))

    def _state(self) -> dict[str, Tensor]:
        return {k: v.detach().clone() for k, v in self.ranker.state_dict().items()}

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
        main = self.accelerator.is_main_process
        if not path.is_file():
            if main:
                metrics.unlink(missing_ok=True)
            return
        state = torch.load(path, weights_only=True, map_location="cpu")
        self.step, self.best, self.best_state = state["step"], state["best"], state["best_state"]
        self.ranker.load_state_dict(state["ranker"])
        for optimiser, saved in zip(self.optimisers, state["optimisers"]):
            optimiser.load_state_dict(saved)
        if state["schedule"] is not None:
            self.schedule.load_state_dict(state["schedule"])
        if not main:
            return
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
