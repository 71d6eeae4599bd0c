"""Many files at once: each is loaded, aligned and written by itself, and one that fails does not stop the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from isotone import audio as sound
from isotone import format as files
from isotone.evaluation import Comparison, compare
from isotone.evaluation.files import Evaluation, evaluate_paths
from isotone.files import atomic_write
from isotone.model import Model
from isotone.pipeline import Pipeline, Result
from isotone.registries import formats as format_registry
from isotone.text.phones import PHONE_CLASSES

AUDIO_SUFFIXES = (".wav", ".flac", ".ogg", ".mp3", ".sph", ".opus", ".aiff", ".aif")


@dataclass
class Outcome:
    """How many files came out well, and ``{"file", "error"}`` of each that did not."""

    done: int = 0
    errors: list[dict[str, str]] = field(default_factory=list)


def find_audio(paths: Sequence[Path]) -> list[Path]:
    """The audio files among paths; folders are searched, with what lies below them.

    Raises:
        FileNotFoundError: a path is not there, or there is no audio at all.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(p for p in path.rglob("*") if p.suffix.lower() in AUDIO_SUFFIXES and p.is_file())
        else:
            found.append(path)  # one that is not there is an error of that file alone
    if not found:
        raise FileNotFoundError(f"No audio ({', '.join(AUDIO_SUFFIXES)}) in {', '.join(map(str, paths))}.")
    return found


def align_files(
    audio: Sequence[Path],
    model: str,
    *,
    text: Path | None = None,
    text_dir: Path | None = None,
    aligner: str | None = None,
    times: str | None = None,
    formats: Sequence[str] = ("textgrid",),
    out: Path = Path("alignments"),
    device: str = "cpu",
) -> Outcome:
    """Forced alignment of audio files with their transcripts, written in each format.

    Args:
        audio: Files or folders.
        model: Model or run folder, or a hub id.
        text: Transcript, where there is one audio file.
        text_dir: Where transcripts named like the audio lie; beside the audio by default.
        aligner, times: See :class:`isotone.pipeline.Pipeline`.
        formats: Names of formats.
        out: Folder for the files, and for ``errors.jsonl`` where there are errors.
        device: Where the model runs.

    Raises:
        ValueError: one transcript for several files.
    """
    found = find_audio(audio)
    if text is not None and len(found) > 1:
        raise ValueError(f"--text is the transcript of one file; for {len(found)} files use --text-dir.")
    pipeline = Pipeline(Model.load(model), aligner=aligner, times=times, device=device)

    def one(path: Path, id: str, samples: np.ndarray) -> Result:
        words = _read_text(text or _transcript_path(path, text_dir))
        return pipeline.align(id, samples, pipeline.model.tokenizer.encode(words))

    return _each(found, pipeline, one, formats, out)


def transcribe_files(
    audio: Sequence[Path],
    model: str,
    *,
    aligner: str | None = None,
    times: str | None = None,
    formats: Sequence[str] = ("textgrid",),
    out: Path = Path("transcripts"),
    device: str = "cpu",
) -> Outcome:
    """Recognise audio files and write text and times in each format; arguments as :func:`align_files`."""
    found = find_audio(audio)
    pipeline = Pipeline(Model.load(model), aligner=aligner, times=times, device=device)

    def one(path: Path, id: str, samples: np.ndarray) -> Result:
        return pipeline.transcribe(id, samples)

    return _each(found, pipeline, one, formats, out)


def _each(
    found: Sequence[Path],
    pipeline: Pipeline,
    work: Callable[[Path, str, np.ndarray], Result],
    formats: Sequence[str],
    out: Path,
) -> Outcome:
    writers = [format_registry.build(name) for name in formats]
    out.mkdir(parents=True, exist_ok=True)
    names = _ids(found)
    outcome = Outcome()
    for path, id in track(list(zip(found, names)), "Files", transient=True, disable=len(found) < 2):
        try:
            samples = sound.load(path, pipeline.model.encoder.sample_rate)
            result = work(path, id, samples)
            for writer in writers:
                files.write(result.alignment, out, writer)
            outcome.done += 1
        except (OSError, ValueError, LookupError, ImportError) as error:
            outcome.errors.append({"file": str(path), "error": str(error)})
    errors = out / "errors.jsonl"
    errors.unlink(missing_ok=True)
    if outcome.errors:
        with atomic_write(errors) as file:
            for row in outcome.errors:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return outcome


def _ids(found: Sequence[Path]) -> list[str]:
    """File stems; where two files share one, their folders are put before it."""
    stems = [p.stem for p in found]
    return [
        stem if stems.count(stem) == 1 else "_".join((*path.parent.parts[-2:], stem)).strip("/")
        for stem, path in zip(stems, found)
    ]


def _transcript_path(audio: Path, folder: Path | None) -> Path:
    folder = folder or audio.parent
    for suffix in (".txt", ".lab", ".TXT", ".LAB"):
        if (path := folder / f"{audio.stem}{suffix}").is_file():
            return path
    raise FileNotFoundError(f"no transcript: expected {audio.stem}.txt or .lab in {folder}")


def _read_text(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}): save it as UTF-8.") from error
    if not text:
        raise ValueError(f"{path} is empty: expected the transcript.")
    return text


def evaluate_files(
    hyp: Path,
    ref: Path,
    *,
    tier: str = "phones",
    collar_s: float | None = None,
    strict: bool = True,
    against: Path | None = None,
    json_file: Path | None = None,
) -> tuple[dict[str, Evaluation], Comparison | None]:
    """Score files against files, and two hypotheses against each other.

    Args:
        hyp, ref: See :func:`isotone.evaluation.files.evaluate_paths`.
        tier, collar_s, strict: See :func:`isotone.evaluation.score`.
        against: A second hypothesis.
        json_file: Where everything is written as JSON.

    Returns:
        Evaluations by the name of the hypothesis, and the paired comparison where there are two.
    """
    options: dict[str, Any] = {"tier": tier, "collar_s": collar_s, "strict": strict}
    options["classes"] = PHONE_CLASSES if tier == "phones" else None
    names = [hyp.name] if against is None else [str(hyp), str(against)]
    found = {
        name: evaluate_paths(path, ref, **options)
        for name, path in zip(names, [p for p in (hyp, against) if p])
    }
    first, *second = (e.report for e in found.values())
    comparison = compare(first, second[0]) if second else None
    if json_file is not None:
        whole: dict[str, Any] = {name: json.loads(e.to_json()) for name, e in found.items()}
        if comparison is not None:
            whole["comparison"] = comparison.rows()
        with atomic_write(json_file) as file:
            json.dump(whole, file, indent=1, ensure_ascii=False, allow_nan=False)
    return found, comparison
