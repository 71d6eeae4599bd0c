"""Assess a model on a split: recognised and forced alignments, on disk and in numbers."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isotone import format as files
from isotone.alignment import Alignment, AlignmentError
from isotone.corpus import reference
from isotone.evaluation import QuietFrames, Report, score
from isotone.evaluation.error_rates import character_error_rate, error_rate
from isotone.files import atomic_write
from isotone.interfaces import Aligner
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.result import Result
from isotone.progress import counted
from isotone.registries import aligners, formats
from isotone.text.tokenizer import Tokenizer, Transcript
from isotone.training.data import Batch, Utterances, evenly

log = logging.getLogger(__name__)

#: Utterances decoded side by side; one at a time where padding would change the encoder's output.
BATCH = 8


@dataclass(frozen=True)
class Decoded:
    """One utterance of a split: corpus row, reference, recognised and forced result.

    The forced result is None where the text needs more frames than the audio has.
    """

    row: dict[str, Any]
    reference: Alignment
    text: str
    recognised: Result
    forced: Result | None


def decode(pipeline: Pipeline, data: Utterances, limit: int = 0, *, forced: bool = True) -> Iterator[Decoded]:
    """Recognise the utterances of a split in their order, and align their transcripts.

    Args:
        pipeline: The model with its decoder and aligner.
        data: The split.
        limit: Number of utterances, spread over the split; 0: all.
        forced: Also align the reference transcript.
    """
    size = BATCH if getattr(pipeline.model.encoder, "exact_padding", True) else 1
    chosen = evenly(len(data), limit or len(data))
    for start in range(0, len(chosen), size):
        examples = list(data.readable(chosen[start : start + size]))
        if not examples:
            continue
        ids = [e.id for e in examples]
        results = pipeline.transcribe_batch(ids, [e.audio for e in examples])
        for example, result in zip(examples, results):
            aligned = None
            if forced:
                try:
                    aligned = pipeline.align(example.id, example.audio, example.transcript)
                except AlignmentError:
                    aligned = None
            row = data.row(example.row)
            yield Decoded(
                row,
                reference(row),
                _written(example.transcript, data.tokenizer),
                result,
                aligned,
            )


def _written(transcript: Transcript, tokenizer: Tokenizer) -> str:
    """Return the text that is to be recognised, also with characters that no model of this tokenizer can write."""
    if transcript.unknown and tokenizer.unit != "phones":
        return " ".join(word.normal for word in transcript.words)
    return tokenizer.decode(list(transcript.tokens))


def assess(model: Model, data: Utterances, folder: Path, seed: int = 0) -> dict[str, Report]:
    """Decode a split into a run folder and score it.

    Writes ``alignments/``, ``forced/`` and ``reference/`` (TextGrid), ``predictions.jsonl`` and ``result.json``. The
    latter has ``forced_frameless``: the mean share of the forced tokens without a frame. Where the corpus has no times
    there are no references, and the result is the error rate.

    Returns:
        Reports by name, ``recognised`` and ``forced``; one with nothing to compare is left out.
    """
    pipeline = Pipeline(model, device=next(model.parameters()).device, check=False, presence=False)
    textgrid = formats.build("textgrid")
    rows: list[Decoded] = []
    with atomic_write(folder / "predictions.jsonl") as file:
        for item in counted(decode(pipeline, data), "Test split", len(data)):
            rows.append(item)
            if item.reference.tiers:
                files.write(item.reference, folder / "reference", textgrid)
            files.write(item.recognised.alignment, folder / "alignments", textgrid)
            if item.forced:
                files.write(item.forced.alignment, folder / "forced", textgrid)
            line = {
                "id": item.reference.id, "audio": item.row["audio"], "start": item.row["start"], "end": item.row["end"],
                "words": item.row["text"], "text": item.text, "recognised": item.recognised.text,
                "frames": item.recognised.frames, "quiet": item.recognised.quiet, **asdict(item.recognised.grid),
                "score": item.recognised.score, "forced_score": item.forced.score if item.forced else None,
                "forced_frameless": item.forced.frameless if item.forced else None,
            }  # fmt: skip
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    phones = model.tokenizer.unit == "phones" and any(r.reference.has("phones") for r in rows)
    tier = "phones" if phones or not model.tokenizer.has_words else "words"
    timed = [r for r in rows if r.reference.has(tier)]
    forced = [(r.forced.alignment, r.reference) for r in timed if r.forced]
    reports: dict[str, Report] = {}
    if timed:
        quiet = {r.reference.id: _quiet_frames(r.recognised) for r in timed if r.recognised.frames}
        recognised = [(r.recognised.alignment, r.reference) for r in timed]
        reports["recognised"] = score(recognised, tier=tier, quiet_frames=quiet, seed=seed)
    if forced:
        reports["forced"] = score(forced, tier=tier, seed=seed)
    result: dict[str, Any] = {name: r.to_dict(per_utterance=False) for name, r in reports.items()}
    if aligned := [r.forced.frameless for r in rows if r.forced]:
        result["forced_frameless"] = sum(aligned) / len(aligned)
    if not timed:
        pairs = [(r.text, r.recognised.text) for r in rows]
        result["error_rate"] = error_rate(pairs)
        if model.tokenizer.has_words:
            result["character_error_rate"] = character_error_rate(pairs)
    with atomic_write(folder / "result.json") as file:
        json.dump(result, file, indent=1)
    return reports


def _quiet_frames(result: Result) -> QuietFrames:
    return QuietFrames.from_spans(result.frames, result.quiet, result.grid.hop_s, result.grid.offset_s)


def snapshot(model: Model, data: Utterances, folder: Path, step: int, settings: Any) -> dict[str, float]:
    """Measure the error rate on dev during training, and save the alignments of the watched utterances for figures."""
    was = model.training
    pipeline = Pipeline(model, device=next(model.parameters()).device, presence=False)
    aligner = aligners.create(settings.watch_aligner) if settings.watch_aligner else pipeline.aligner
    try:
        limit = settings.evaluate_limit
        pairs = [(d.text, d.recognised.text) for d in decode(pipeline, data, limit, forced=False)]
        for example in data.readable(range(min(settings.watch, len(data)))):
            index = example.row
            try:
                arrays = watch(pipeline, aligner, data.collate([example])) | _reference_times(data, index)
            except AlignmentError as error:
                log.warning("Nothing is recorded of %s: %s", example.id, error)
                continue
            np_save(folder / f"step-{step:06d}-{index}.npz", arrays)
    finally:
        model.train(was)
    return {"dev_error_rate": error_rate(pairs)}


def watch(pipeline: Pipeline, aligner: Aligner, batch: Batch) -> dict[str, np.ndarray]:
    """Return the OT weights and the forced alignment of one utterance, per frame of the timing head."""
    device = next(pipeline.model.parameters()).device
    with torch.inference_mode():
        emissions = pipeline.model(batch.audio.to(device), batch.lengths.to(device), {pipeline.times})
    timing = emissions[pipeline.times].to("cpu")
    path = aligner(timing, batch.targets).path(int(timing.lengths[0]))
    return {
        "alpha": timing.weights()[0].numpy(),
        "tokens": path.tokens[0].numpy(),
        "labels": batch.targets.labels[0].numpy(),
        "hop_s": np.array(timing.grid.hop_s),
        "offset_s": np.array(timing.grid.offset_s),
    }


def _reference_times(data: Utterances, index: int) -> dict[str, np.ndarray]:
    """Return each token's start and end in the corpus's times; nothing unless there is one segment per token."""
    row = data.row(index)
    tier = row.get(data.tokenizer.unit)
    if not tier or len(tier["start"]) != len(data.tokenizer.encode_row(row).tokens):
        return {}
    return {"reference_start": np.array(tier["start"]), "reference_end": np.array(tier["end"])}


def np_save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write an ``npz`` file, whole or not at all."""
    with atomic_write(path, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
