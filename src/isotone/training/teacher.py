"""Fixed alignments of the training split: by a finished model, or by the one in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import track
from torch import Tensor

from isotone.files import atomic_write
from isotone.interfaces import Aligner
from isotone.model import Model
from isotone.pipeline.rows import alignable
from isotone.registries import aligners
from isotone.registry import nearest
from isotone.training.data import Utterances
from isotone.types import PAST_END, Emissions, Targets

#: Utterances aligned side by side; one at a time where padding would change what the encoder says.
BATCH = 8


def teacher_paths(
    source: Path | str,
    data: Utterances,
    cache: Path,
    device: torch.device | str = "cpu",
    head: str = "",
    aligner: Mapping[str, Any] | None = None,
) -> dict[int, np.ndarray]:
    """The alignment of every utterance by a finished model.

    Args:
        source: The teacher: a run or model folder.
        data: Utterances, tokenised by the student's tokenizer, which must be the teacher's.
        cache: File the paths are kept in, so that resuming does not compute them again.
        device: Where the teacher runs.
        head: Head of the teacher that is aligned. Default: the one that it reads times from.
        aligner: What aligns it. Default: the teacher's own.

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
    """The alignment of every utterance by a model as it is, without dropout.

    Args:
        model: On any device.
        data: Utterances with the model's labels.
        cache: File the paths are written to, or read from where it is there.
        head: Head that is aligned. Default: the one that the model reads times from.
        aligner: Name and options of what aligns it. Default: the model's own.

    Returns:
        Utterance number to ``(T,)`` int16: for every frame the number of its token, -1 for blank; -2 on all frames
        of an utterance whose text needs more than there are.

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
    order = sorted(range(len(data)), key=lambda number: data.seconds[number])
    paths: dict[int, np.ndarray] = {}
    was = model.training
    model.eval()
    for start in track(
        range(0, len(data), size), description="Alignments of the training split", transient=True
    ):
        batch = data.collate([data[number] for number in order[start : start + size]])
        with torch.inference_mode():
            emissions = model(batch.audio.to(device), batch.lengths.to(device), {head})[head].to("cpu")
            found = _paths(align, emissions, batch.targets)
        for number, path, frames in zip(batch.rows, found, emissions.lengths.tolist()):
            paths[number] = path[:frames].numpy().astype(np.int16)
    model.train(was)
    with atomic_write(cache, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **{str(k): v for k, v in sorted(paths.items())})
    return paths


class Realignment:
    """Alignments by the model in training that are fixed until the next round.

    Each round is a file in the run folder, so that a run that was interrupted goes on with the same alignments.
    Before the first round, utterances have the paths that were there, such as a teacher's, or empty ones.

    Args:
        model: The model in training, which tells whether there is such a head.
        data: The training split, whose ``paths`` are set.
        after: Shares of training, 0 to 1, at which the split is aligned.
        folder: Run folder.
        head, aligner: As in :func:`aligned_paths`.

    Raises:
        ValueError: a share outside its range, or no such head.
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
            data.paths = {number: np.empty(0, np.int16) for number in range(len(data))}

    def due(self, progress: float) -> bool:
        """Whether another round's alignments are wanted at this share of training."""
        return self._latest(progress) != self.share

    def align(self, progress: float, model: Model | None) -> None:
        """Give the split the alignments of the latest round; without a model, those that another process wrote."""
        self.share = self._latest(progress)
        cache = self.folder / f"realigned-{self.share:.4f}.npz"
        if model is None:
            self.data.paths = _read(cache)
        else:
            self.data.paths = aligned_paths(model, self.data, cache, self.head, self.aligner)

    def forget(self) -> None:
        """Remove the rounds of a run that was begun in this folder and left nothing to go on from."""
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
    """Tokens of paths ``(B, T)``, see :class:`isotone.types.FramePath`."""
    out = torch.full(emissions.logits.shape[:2], PAST_END)
    rows, coupling, _ = alignable(lambda rows: align(emissions.rows(rows), targets.rows(rows)), len(out))
    if coupling is not None:
        out[rows] = coupling.path(out.shape[1]).tokens
    return out


def _read(cache: Path) -> dict[int, np.ndarray]:
    with np.load(cache) as stored:
        return {int(k): stored[k] for k in stored.files}
