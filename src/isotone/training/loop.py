"""The training loop; accelerate handles devices, processes and precision."""

from __future__ import annotations

import json
import logging
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from rich.progress import MofNCompleteColumn
from torch.utils.data import DataLoader

from isotone.model import Model
from isotone.progress import bars
from isotone.training import checkpoint
from isotone.training.augment import Chain
from isotone.training.batches import LengthBatches
from isotone.training.data import Augmented, Batch, Replaced, Utterances
from isotone.training.objective import Objective
from isotone.training.optim import Average, Frozen, clip_groups, make_optimizer, make_schedule
from isotone.training.sharding import Gathered, gather
from isotone.training.teacher import Realignment

log = logging.getLogger(__name__)


class Preempted(SystemExit):
    """An exit after SIGTERM, with the code of one: a checkpoint was saved, and the same command resumes training."""


class Trainer:
    """Train an objective for a number of steps.

    Args:
        objective: The objective.
        data: The training split.
        recipe: The configuration, of :class:`isotone.training.config.Recipe`.
        folder: Run folder: ``metrics.jsonl``, ``checkpoints`` and tracker logs go there.
        evaluate: Called with step and model at every evaluation, on the main process; returns metrics to record.
        accelerator: From :func:`isotone.training.processes.make_accelerator`; the caller calls its ``end_training``.
        realignment: Alignments of the training split by the model in training. Default: none.

    Raises:
        ValueError: there are no utterances to train on.
    """

    def __init__(
        self,
        objective: Objective,
        data: Utterances,
        recipe: Any,
        folder: Path,
        evaluate: Callable[[int, Model], dict[str, float]] | None,
        accelerator: Accelerator,
        realignment: Realignment | None = None,
    ) -> None:
        settings = recipe.train
        self.realignment, self.seed = realignment, recipe.seed
        self.settings, self.folder, self.evaluate, self.accelerator = settings, folder, evaluate, accelerator
        self.data = data
        self.change = Chain(settings.augment)
        world = accelerator.num_processes
        self.sampler = LengthBatches(
            data.seconds,
            settings.batch_size * world,
            settings.batch_seconds * world,
            recipe.seed,
            min_size=world,
        )
        batches = len(self.sampler)
        if not batches:
            raise ValueError(
                f"There are {len(data)} utterances to train {world} processes on: see {folder / 'skipped.jsonl'}."
            )
        self.per_epoch = max(1, batches // settings.accumulate)
        self.steps = settings.steps or max(1, settings.epochs * batches // settings.accumulate)
        optimizer = make_optimizer(objective, settings)
        self.schedule = make_schedule(optimizer, settings, self.steps)
        self.raw = objective
        self.gathered = Gathered(objective.model, accelerator)
        self.objective, self.optimizer = accelerator.prepare(objective, optimizer)
        # sharding replaces the parameters: Frozen, clip_groups and Average must look them up after prepare
        self.frozen = Frozen(objective, settings.freeze)
        self.clipped = clip_groups(objective, settings.clip_apart)
        accelerator.register_for_checkpointing(self.schedule)
        self.average = Average(objective, settings.average) if settings.average else None
        if self.average:
            accelerator.register_for_checkpointing(self.average)
        # last: building what is above must not change the numbers that dropout draws
        set_seed(recipe.seed + accelerator.process_index)
        self.step = self.epoch = self.batch = 0
        self._stop = False

    def fit(self) -> Model | None:
        """Train from the newest checkpoint, or from the start, to the last step.

        Returns:
            The model, with averaged weights where ``train.average`` is set. None on other processes than the main one
            where weights are sharded.

        Raises:
            Preempted: SIGTERM arrived; a checkpoint was written first.
            FloatingPointError: a loss or a gradient is not finite; the message names the step and the utterances.
        """
        folder = self.folder / "checkpoints"
        state = checkpoint.load(self.accelerator, folder)
        if state:
            self.step, self.epoch, self.batch = state["step"], state["epoch"], state["batch"]
            log.info("Resuming at step %d of %d.", self.step, self.steps)
        if self.accelerator.is_main_process:
            checkpoint.truncate_metrics(self.folder / "metrics.jsonl", self.step)
        with self._progress() as advance, self._on_sigterm():
            batches = self._batches()
            while self.step < self.steps:
                if self._realigned():
                    # batches that workers loaded ahead have the old alignments: load them again
                    batches = self._batches()
                self._one_step(batches)
                advance(self.step)
                self._after_step(folder)
        if self.average:
            self.average.swap()
        with self.gathered() as model:
            return model

    def _realigned(self) -> bool:
        """Realign the training split if due; return whether alignments changed."""
        progress = self.step / self.steps
        if self.realignment is None or not self.realignment.due(progress):
            return False
        with self.gathered() as model, self.accelerator.main_process_first():
            self.realignment.align(progress, model)  # the main process aligns, the others read its file
        return True

    def _one_step(self, batches: Iterator[Batch]) -> None:
        """Take one optimiser step over ``accumulate`` batches, and record it."""
        started = time.perf_counter()
        self.raw.set_progress(self.step / self.steps)
        self.objective.train()
        # not read off the optimiser, whose groups have scales of their own
        lr = self.settings.lr * self.schedule.lr_lambdas[0](self.step)
        sums: dict[str, float] = {}
        norm = 0.0
        utterances = 0
        for _ in range(self.settings.accumulate):
            batch = next(batches)
            with self.accelerator.accumulate(self.objective):
                with self.accelerator.autocast():
                    total, parts = self.objective(
                        batch.audio.to(self.accelerator.device),
                        batch.lengths.to(self.accelerator.device),
                        batch.targets.to(self.accelerator.device),
                    )
                count = self._count(total)
                # DDP averages gradients over processes: with this factor that is the mean over all utterances
                loss = total.sum() * self.accelerator.num_processes / count
                if not torch.isfinite(loss):
                    bad = [id for id, finite in zip(batch.ids, torch.isfinite(total).tolist()) if not finite]
                    self._diverged("loss", loss.item(), bad or batch.ids)
                self.accelerator.backward(loss)
                self.frozen.apply(self.step / self.steps)
                if self.accelerator.sync_gradients:
                    norm = self._clip()
                    # fp16's gradient scaler skips such steps itself, and lowers its scale
                    if not math.isfinite(norm) and self.accelerator.mixed_precision != "fp16":
                        self._diverged("gradient", norm, batch.ids)
                self.optimizer.step()
                self.optimizer.zero_grad()
            utterances += len(batch.ids) * self.accelerator.num_processes
            for name, value in {"loss": total.detach(), **parts}.items():
                sums[name] = sums.get(name, 0.0) + value.sum().item() / count / self.settings.accumulate
        self.schedule.step()
        if self.average:
            self.average.update()
        self.step += 1
        self._record(
            {
                "step": self.step,
                "epoch": self.epoch,
                **self._over_processes(sums),
                "grad_norm": norm,
                "lr": lr,
                "utterances_per_s": utterances / (time.perf_counter() - started),
            }
        )

    def _clip(self) -> float:
        """Clip the gradients group by group; return their total norm before clipping."""
        clip = self.accelerator.clip_grad_norm_
        norms = []
        for group in self.clipped:
            norms.append(float(gather(clip(group, self.settings.clip))))
            # accelerate's function unscales all gradients of the optimiser, which must happen once per step
            clip = torch.nn.utils.clip_grad_norm_
        return math.hypot(*norms)

    def _diverged(self, what: str, value: float, ids: list[str]) -> NoReturn:
        raise FloatingPointError(
            f"Step {self.step + 1}: the {what} is {value} for {', '.join(ids[:8])}. "
            "Lower train.lr, or look at these utterances."
        )

    def _count(self, rows: torch.Tensor) -> float:
        """Count the utterances of this batch on all processes."""
        if self.accelerator.num_processes == 1:
            return len(rows)
        count = torch.tensor(float(len(rows)), device=rows.device)
        return float(self.accelerator.reduce(count, "sum"))

    def _after_step(self, folder: Path) -> None:
        """Evaluate and save where due; raise Preempted if a stop was requested."""
        every = self.settings.evaluate_every or self.per_epoch
        last = self.step == self.steps
        if self.evaluate and (last or self.step % every == 0):
            with self.average.applied() if self.average else nullcontext(), self.gathered() as model:
                if self.accelerator.is_main_process and model is not None:
                    self._record({"step": self.step, **self.evaluate(self.step, model)})
            self.accelerator.wait_for_everyone()
        stop = self._stopping()
        if last or stop or self.step % (self.settings.save_every or self.per_epoch) == 0:
            state = {"step": self.step, "epoch": self.epoch, "batch": self.batch}
            checkpoint.save(self.accelerator, folder, state, self.settings.keep)
        if stop and not last:
            log.warning(
                "Stopped at step %d of %d; the same command goes on from there.", self.step, self.steps
            )
            raise Preempted(128 + signal.SIGTERM)  # as shells say it: what follows does not take it for done

    def _over_processes(self, values: dict[str, float]) -> dict[str, float]:
        """Sum each value over the processes."""
        if self.accelerator.num_processes == 1:
            return values
        mine = torch.tensor(list(values.values()), device=self.accelerator.device, dtype=torch.float64)
        return dict(zip(values, self.accelerator.reduce(mine, "sum").tolist()))

    def _stopping(self) -> bool:
        """Tell if any process got SIGTERM, so that all stop after the same step."""
        if self.accelerator.num_processes == 1:
            return self._stop
        signalled = torch.tensor(float(self._stop), device=self.accelerator.device)
        return bool(self.accelerator.reduce(signalled, "sum") > 0)

    def _batches(self) -> Iterator[Batch]:
        """Iterate over batches from the current position on, epoch after epoch; each process gets its part."""
        rank, world = self.accelerator.process_index, self.accelerator.num_processes
        while True:
            self.sampler.epoch, self.sampler.start = self.epoch, self.batch
            mine = [batch[rank::world] for batch in self.sampler]
            changed = Augmented(self.data, self.change, self.seed, self.epoch)
            loader = DataLoader(
                Replaced(self.data, changed if self.change.parts else self.data),
                batch_sampler=mine,
                collate_fn=self.data.collate,
                num_workers=self.settings.workers,
                # a generator of its own: making an iterator must not change the random state that dropout uses
                generator=torch.Generator().manual_seed(0),
            )
            for batch in loader:
                self.batch += 1
                yield batch
            self.epoch, self.batch = self.epoch + 1, 0

    def _record(self, row: dict[str, Any]) -> None:
        """Append a row to ``metrics.jsonl`` and send it to the trackers."""
        if not self.accelerator.is_main_process:
            return
        with (self.folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        self.accelerator.log({k: v for k, v in row.items() if k != "step"}, step=row["step"])

    @contextmanager
    def _progress(self) -> Iterator[Callable[[int], None]]:
        with bars(MofNCompleteColumn(), shown=self.accelerator.is_main_process) as progress:
            task = progress.add_task(f"Training {self.folder.name}", total=self.steps, completed=self.step)
            yield lambda step: progress.update(task, completed=step)

    @contextmanager
    def _on_sigterm(self) -> Iterator[None]:
        def stop(_signal: int, _frame: FrameType | None) -> None:
            self._stop = True

        old = signal.signal(signal.SIGTERM, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, old)
