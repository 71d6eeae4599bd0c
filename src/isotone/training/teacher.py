"""Fixed alignments of the training split: by a finished model, or by the one in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isotone.files import atomic_write
from isotone.interfaces import Aligner
from isotone.model import Model
from isotone.pipeline.rows import alignable
from isotone.progress import counted
from isotone.registries import aligners
from isotone.registry import nearest
from isotone.training.data import Utterances
from isotone.types import PAST_END, Emissions, Targets

#: Utterances aligned side by side; one at a time where padding would change the encoder's output.
BATCH = 8


def teacher_paths(
    source: Path | str,
    data: Utterances,
    cache: Path,
    device: torch.device | str = "cpu",
    head: str = "",
    aligner: Mapping[str, Any] | None = None,
) -> dict[int, np.ndarray]:
    """Align every utterance by a finished model, the teacher.

    Args:
        source: The teacher: a run or model folder.
        data: Utterances, tokenised with the labels of the teacher.
        cache: File for the paths; an existing file is read, whatever made it, so that resumed training has the same.
        device: Device that the teacher runs on.
        head: Head of the teacher to align. Default: the teacher's timing head.
        aligner: Name and options of the aligner. Default: the teacher's own.

    Returns:
        As :func:`aligned_paths`.

    Raises:
        ValueError: teacher and student have different labels, or the teacher has no such head.
    """
    if cache.is_file():
        return _read(cache)
    teacher = Model.load(source).to(device).eval()
    if teacher.tokenizer.labels != data.tokenizer.labels:
        raise ValueError(
            f"The teacher {source} has other labels than this recipe: train it on the same data first."
        )
    return aligned_paths(teacher, data, cache, head, aligner)


def aligned_paths(
    model: Model, data: Utterances, cache: Path, head: str = "", aligner: Mapping[str, Any] | None = None
) -> dict[int, np.ndarray]:
    """Align every utterance by a model with its current weights, without dropout.

    Args:
        model: The model, on any device.
        data: Utterances with the model's labels.
        cache: File for the paths; an existing file is read, whatever made it, instead of aligning.
        head: Head to align. Default: the model's timing head.
        aligner: Name and options of the aligner. Default: the model's own.

    Returns:
        Utterance index to ``(T,)`` int16: each frame's token index, -1 for blank. An utterance with too few frames for
        its text has -2 on all frames.

    Raises:
        ValueError: the model has no such head.
    """
    if cache.is_file():
        return _read(cache)
    head = head or model.decoding.times or model.decoding.text
    _check_head(model, head)
    align = aligners.create(aligner or model.decoding.aligner)
    device = next(model.parameters()).device
    size = BATCH if getattr(model.encoder, "exact_padding", True) else 1
    order = sorted(range(len(data)), key=lambda index: data.seconds[index])  # batches with little padding
    paths: dict[int, np.ndarray] = {}
    was = model.training
    model.eval()
    starts = range(0, len(data), size)
    for start in counted(starts, "Alignments of the training split", len(starts)):
        examples = list(data.readable(order[start : start + size]))
        if not examples:
            continue
        batch = data.collate(examples)
        with torch.inference_mode():
            emissions = model(batch.audio.to(device), batch.lengths.to(device), {head})[head].to("cpu")
            found = _paths(align, emissions, batch.targets)
        for index, path, frames in zip(batch.rows, found, emissions.lengths.tolist()):
            paths[index] = path[:frames].numpy().astype(np.int16)
    model.train(was)
    with atomic_write(cache, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **{str(k): v for k, v in sorted(paths.items())})
    return paths


class Realignment:
    """Alignments of the training split by the model in training, renewed in rounds.

    Each round is a file in the run folder, so that a resumed run has the same alignments. Before the first round,
    utterances keep the paths that they have, such as a teacher's; without any, paths are empty.

    Args:
        model: The model in training; only its heads' names are checked.
        data: The training split, whose ``paths`` are set.
        after: Shares of training, 0 to 1, at which the rounds are.
        folder: Run folder.
        head, aligner: As in :func:`aligned_paths`.

    Raises:
        ValueError: a share outside its range, or the model has no such head.
    """

    def __init__(
        self,
        model: Model,
        data: Utterances,
        after: Sequence[float],
        folder: Path,
        head: str = "",
        aligner: Mapping[str, Any] | None = None,
    ) -> None:
        if not all(0 <= share <= 1 for share in after):
            raise ValueError(f"realign.after expects shares of training from 0 to 1; got {list(after)}.")
        if head:
            _check_head(model, head)
        self.data, self.folder = data, folder
        self.after = sorted(after)
        self.head, self.aligner = head, aligner
        self.share: float | None = None
        if not data.paths:
            data.paths = {index: np.empty(0, np.int16) for index in range(len(data))}

    def due(self, progress: float) -> bool:
        """Return whether another round's alignments apply at this share of training, 0 to 1."""
        return self._latest(progress) != self.share

    def align(self, progress: float, model: Model | None) -> None:
        """Set the alignments of the latest round; without a model, read those that another process wrote."""
        self.share = self._latest(progress)
        cache = self.folder / f"realigned-{self.share:.4f}.npz"
        if model is None:
            self.data.paths = _read(cache)
        else:
            self.data.paths = aligned_paths(model, self.data, cache, self.head, self.aligner)

    def forget(self) -> None:
        """Remove the rounds of an earlier run in this folder that left no checkpoint to resume from."""
        for old in self.folder.glob("realigned-*.npz"):
            old.unlink()

    def _latest(self, progress: float) -> float | None:
        return max((share for share in self.after if share <= progress), default=None)


def _check_head(model: Model, head: str) -> None:
    """Raise ValueError unless the model has a head of that name."""
    if head not in model.heads:
        known = list(model.heads)
        raise ValueError(
            f"No head {head!r} to align.{nearest(head, known)} The model has: {', '.join(known)}."
        )


def _paths(align: Aligner, emissions: Emissions, targets: Targets) -> Tensor:
    """Align a batch; return tokens ``(B, T)`` as in :class:`isotone.types.FramePath`, -2 in rows that cannot align."""
    out = torch.full(emissions.logits.shape[:2], PAST_END)
    rows, coupling, _ = alignable(lambda rows: align(emissions.rows(rows), targets.rows(rows)), len(out))
    if coupling is not None:
        out[rows] = coupling.path(out.shape[1]).tokens
    return out


def _read(cache: Path) -> dict[int, np.ndarray]:
    with np.load(cache) as stored:
        return {int(k): stored[k] for k in stored.files}
