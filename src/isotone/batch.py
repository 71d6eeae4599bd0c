"""Many files at once: each is loaded, aligned and written by itself, and one that fails does not stop the others."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from isotone import audio as sound
from isotone import format as files
from isotone.alignment import Alignment
from isotone.files import atomic_write, check_folder
from isotone.inputs import find_audio, ids_of, read_text, readable, sibling, transcript_path
from isotone.interfaces import Format
from isotone.model import Model, check_source
from isotone.pipeline import Pipeline
from isotone.registries import aligners
from isotone.registries import formats as format_registry
from isotone.result import Result
from isotone.stars import STAR_COST
from isotone.windows import Windows

log = logging.getLogger(__name__)


@dataclass
class Outcome:
    """What came of many files.

    Attributes:
        done: How many came out well.
        errors: ``{"file", "error"}`` of each that did not.
        warnings: ``{"file", "warning"}`` of each that did, but for something one should know.
        texts: What was recognised, by file.
    """

    done: int = 0
    errors: list[dict[str, str]] = field(default_factory=list)
    warnings: list[dict[str, str]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)


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
    window_s: float = Windows.window_s,
    guided: bool = True,
    extra_speech: bool = False,
    star_cost: float = STAR_COST,
    min_score: float | None = None,
) -> Outcome:
    """Forced alignment of audio files with their transcripts, written in each format.

    Args:
        audio: Files or folders.
        model: Model or run folder, or a hub id.
        text: Transcript, where there is one audio file.
        text_dir: Where transcripts named like the audio lie, in folders like the audio's or in none; beside the
            audio by default.
        aligner, times, guided: See :class:`isotone.pipeline.Pipeline`.
        formats: Names of formats.
        out: Folder for the files, and for ``errors.jsonl`` and ``warnings.jsonl`` where there are any.
        device: Where the model runs.
        window_s: Seconds of the windows in which longer audio is encoded; 0: all at once. See
            :class:`isotone.windows.Windows`.
        extra_speech, star_cost: Whether there may be speech that is not in the transcripts; see
            :class:`isotone.pipeline.Pipeline`.
        min_score: Nats a token. Files whose score (:class:`isotone.alignment.Alignment`) is lower are written, and
            listed among the warnings: their transcript is likely another's, or wrong.

    Raises:
        ValueError: one transcript for several files, two places for it, a device that is not there, or an option
            that is out of range.
        OSError: no audio, no transcript or folder of that name, or ``out`` cannot be a folder.
        LookupError: no such format, aligner or head.
    """
    writers = check_command(model, aligner, formats, out, device)
    found = find_audio(audio)
    _check_transcripts(text, text_dir, len(found))
    if min_score is not None and not min_score <= 0:
        raise ValueError(
            f"--min-score expects a score to fall below, 0 or less (0 is perfect); got {min_score}."
        )
    pipeline = Pipeline(
        Model.load(model),
        aligner=aligner,
        times=times,
        device=device,
        windows=Windows(window_s),
        guided=guided,
        extra_speech=extra_speech,
        star_cost=star_cost,
    )

    def one(path: Path, id: str, samples: np.ndarray) -> tuple[Result, str]:
        seconds = len(samples) / pipeline.model.encoder.sample_rate
        words = read_text(text or transcript_path(path, text_dir), seconds)
        transcript = pipeline.encode(words)
        result = pipeline.align(id, samples, transcript)
        warnings = [*_warnings(transcript.unknown, result.score, min_score)]
        if not samples.any():
            warnings.insert(0, "its audio is silent, every sample is 0: the times mean nothing")
        return result, "; ".join(warnings)

    return _each(found, pipeline, one, writers, out, text)


def _check_transcripts(text: Path | None, folder: Path | None, files: int) -> None:
    if text is not None and folder is not None:
        raise ValueError("--text and --text-dir are two places for the transcript: give one.")
    if text is not None and files > 1:
        raise ValueError(f"--text is the transcript of one file; for {files} files use --text-dir.")
    if text is not None and not text.is_file():
        raise FileNotFoundError(f"No transcript {text}: --text names a text file.")
    if folder is not None and not folder.is_dir():
        raise FileNotFoundError(f"No folder {folder}: --text-dir names a folder of transcripts.")


def _warnings(unknown: Sequence[str], score: float, min_score: float | None) -> Iterator[str]:
    if unknown:
        yield f"aligned without what the model has no labels for: {', '.join(map(repr, unknown))}"
    if min_score is not None and not score >= min_score:
        low = f"its score of {score:.3f} is below {min_score:g} nats a token"
        yield f"{low}: the transcript is likely not what is said"


def transcribe_files(
    audio: Sequence[Path],
    model: str,
    *,
    aligner: str | None = None,
    decoder: str | dict[str, Any] | None = None,
    times: str | None = None,
    formats: Sequence[str] = ("textgrid",),
    out: Path = Path("transcripts"),
    device: str = "cpu",
    window_s: float = Windows.window_s,
    guided: bool = True,
) -> Outcome:
    """Recognise audio files and write text and times in each format; arguments as :func:`align_files`.

    A ``decoder`` takes the place of the model's own: a name, or a mapping of a name and options.

    The texts alone are written to ``transcripts.jsonl``.
    """
    writers = check_command(model, aligner, formats, out, device)
    found = find_audio(audio)
    windows = Windows(window_s)
    pipeline = Pipeline(
        Model.load(model),
        aligner=aligner,
        decoder=decoder,
        times=times,
        device=device,
        windows=windows,
        guided=guided,
    )

    def one(path: Path, id: str, samples: np.ndarray) -> tuple[Result, str]:
        result = pipeline.transcribe(id, samples)
        texts[readable(path)] = result.text
        return result, ""

    texts: dict[str, str] = {}
    outcome = _each(found, pipeline, one, writers, out)
    failed = {row["file"] for row in outcome.errors}
    outcome.texts = {file: text for file, text in texts.items() if file not in failed}
    with atomic_write(out / "transcripts.jsonl") as file:
        for name, text in outcome.texts.items():
            file.write(json.dumps({"file": name, "text": text}, ensure_ascii=False) + "\n")
    return outcome


def check_command(
    model: str, aligner: str | None, formats: Sequence[str], out: Path | None, device: str
) -> dict[str, Format]:
    """The formats by name; what is wrong with a command is said before a model is loaded."""
    writers = {name: format_registry.build(name) for name in formats}
    if aligner is not None:
        aligners.get(aligner)
    if out is not None:
        check_folder(out)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"The device {device!r} cannot be used: {str(error).splitlines()[0]}") from error
    check_source(model)
    return writers


def _each(
    found: Sequence[Path],
    pipeline: Pipeline,
    work: Callable[[Path, str, np.ndarray], tuple[Result, str]],
    writers: dict[str, Format],
    out: Path,
    text: Path | None = None,
) -> Outcome:
    out.mkdir(parents=True, exist_ok=True)
    outcome = Outcome()
    for path, id in progress_of(list(zip(found, ids_of(found))), pipeline):
        try:
            if readable(path) != str(path):
                raise ValueError("its name is not Unicode; rename it.")
            samples = sound.load(path, pipeline.model.encoder.sample_rate)
            result, warning = work(path, id, samples)
            _write(result.alignment, writers, out, [path, text or sibling(path.parent, path.stem)])
        except Exception as error:  # whatever it is, the other files are not to suffer
            log.debug("%s", path, exc_info=True)
            outcome.errors.append({"file": readable(path), "error": explain(error, path)})
            continue
        outcome.done += 1
        if warning:
            outcome.warnings.append({"file": readable(path), "warning": warning})
    for name, rows in (("errors", outcome.errors), ("warnings", outcome.warnings)):
        (out / f"{name}.jsonl").unlink(missing_ok=True)
        if rows:
            with atomic_write(out / f"{name}.jsonl") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return outcome


def progress_of(files: Sequence[tuple[Path, str]], pipeline: Pipeline) -> Iterator[tuple[Path, str]]:
    """The files, with a bar of how many are done, and one of how much of a long one is encoded, on a terminal."""
    screen = Console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bars:
        whole = bars.add_task("Files", total=len(files), visible=len(files) > 1)
        window = bars.add_task("", total=1.0, visible=False)
        pipeline.on_window = lambda share: bars.update(window, completed=share, visible=share < 1)
        for path, id in files:
            bars.update(window, description=escape(id), completed=0.0)
            yield path, id
            bars.advance(whole)


def _write(
    alignment: Alignment, writers: dict[str, Format], out: Path, inputs: Sequence[Path | None]
) -> None:
    for name, writer in writers.items():
        # a model of phones gives no words: formats of one tier then take the tier there is
        tier = getattr(writer, "tier", None)
        if isinstance(tier, str) and not alignment.has(tier):
            writer = format_registry.build(name, tier=alignment.tiers[0].name)
        target = out / files.file_name(alignment.id, writer.suffix)
        if target.exists() and any(path and path.exists() and target.samefile(path) for path in inputs):
            raise FileExistsError(f"{target} would be overwritten, which is an input: choose another --out.")
        files.write(alignment, out, writer)


def explain(error: Exception, path: Path) -> str:
    """What went wrong with a file, in a line."""
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    if not isinstance(error, (OSError, ValueError, LookupError, ImportError)):
        text = f"{type(error).__name__}: {text}"
    return readable(text.removeprefix(f"{path}: ") or type(error).__name__)
