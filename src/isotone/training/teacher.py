"""Fixed alignments from a finished model, for the losses that need them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from rich.progress import track

from isotone.alignment import AlignmentError
from isotone.files import atomic_write
from isotone.kernels.viterbi import ctc_path
from isotone.model import Model
from isotone.training.data import Utterances


def teacher_paths(
    source: Path | str, data: Utterances, cache: Path, device: torch.device | str = "cpu"
) -> dict[int, np.ndarray]:
    """The Viterbi path of every utterance under a trained CTC model.

    Args:
        source: The teacher: a run or model folder.
        data: Utterances, tokenised by the student's tokenizer, which must be the teacher's.
        cache: File the paths are kept in, so that resuming does not compute them again.
        device: Where the teacher runs.

    Returns:
        Utterance number to ``(T,)`` int16: for every frame the number of its token, -1 for blank; -2 on all frames
        of an utterance whose text needs more than there are.

    Raises:
        ValueError: teacher and student have different labels.
    """
    if cache.is_file():
        with np.load(cache) as stored:
            return {int(k): stored[k] for k in stored.files}
    teacher = Model.load(source).to(device).eval()
    if teacher.tokenizer.labels != data.tokenizer.labels:
        raise ValueError(
            f"The teacher {source} has other labels than this recipe: train it on the same data first."
        )
    head = teacher.reading.text
    paths: dict[int, np.ndarray] = {}
    for number in track(range(len(data)), description="Teacher's alignments", transient=True):
        batch = data.collate([data[number]])
        with torch.inference_mode():
            emissions = teacher(batch.audio.to(device), batch.lengths.to(device), {head})[head].to("cpu")
        try:
            path, _ = ctc_path(
                emissions.log_probs(),
                batch.targets.labels,
                emissions.lengths,
                batch.targets.lengths,
                emissions.blank,
            )
        except AlignmentError:
            path = torch.full(emissions.logits.shape[:2], -2)
        paths[number] = path[0].numpy().astype(np.int16)
    with atomic_write(cache, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **{str(k): v for k, v in paths.items()})
    return paths
