"""Many files at once: each is loaded, aligned and written by itself, and one that fails does not stop the others."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track

from isotone import audio as sound
from isotone import format as files
from isotone.alignment import Alignment
from isotone.corpus import SILENCE
from isotone.corpus.folder import AUDIO_SUFFIXES
from isotone.evaluation import Comparison, compare
from isotone.evaluation.files import Evaluation, evaluate_paths
from isotone.files import atomic_write
from isotone.interfaces import Format
from isotone.model import Model
from isotone.pipeline import Pipeline, Result
from isotone.registries import aligners
from isotone.registries import formats as format_registry
from isotone.registry import nearest
from isotone.text.normalize import normalize
from isotone.text.phones import PHONE_CLASSES, PHONES_61, PhoneSet, fold

log = logging.getLogger(__name__)

TEXT_SUFFIXES = (".txt", ".lab", ".TXT", ".LAB")

# TIMIT's prompts begin with the first and the last sample
_PROMPT = re.compile(r"0\s+(\d+)\s+(?=\S)")


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


def find_audio(paths: Sequence[Path]) -> list[Path]:
    """The audio files among paths, each once; folders are searched, with what lies below them.

    A file that is not there is kept: it is an error of that file alone.

    Raises:
        FileNotFoundError: none of the paths is there, or there is no audio in them at all.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        inside = sorted(p for p in path.rglob("*") if _is_audio(p, path)) if path.is_dir() else [path]
        found |= {_place(p): p for p in inside}
    if not any(path.exists() for path in paths):
        raise FileNotFoundError(f"No such file or folder: {', '.join(map(str, paths))}.")
    if not found:
        raise FileNotFoundError(
            f"No audio ({', '.join(sorted(AUDIO_SUFFIXES))}) in {', '.join(map(str, paths))}."
        )
    return list(found.values())


def _is_audio(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return path.suffix.lower() in AUDIO_SUFFIXES and not hidden and path.is_file()


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
        text_dir: Where transcripts named like the audio lie, in folders like the audio's or in none; beside the
            audio by default.
        aligner, times: See :class:`isotone.pipeline.Pipeline`.
        formats: Names of formats.
        out: Folder for the files, and for ``errors.jsonl`` and ``warnings.jsonl`` where there are any.
        device: Where the model runs.

    Raises:
        ValueError: one transcript for several files, two places for it, or a device that is not there.
        OSError: no audio, no transcript or folder of that name, or ``out`` cannot be a folder.
        LookupError: no such format, aligner or head.
    """
    writers = _check(model, aligner, formats, out, device)
    found = find_audio(audio)
    if text is not None and text_dir is not None:
        raise ValueError("--text and --text-dir are two places for the transcript: give one.")
    if text is not None and len(found) > 1:
        raise ValueError(f"--text is the transcript of one file; for {len(found)} files use --text-dir.")
    if text is not None and not text.is_file():
        raise FileNotFoundError(f"No transcript {text}: --text names a text file.")
    if text_dir is not None and not text_dir.is_dir():
        raise FileNotFoundError(f"No folder {text_dir}: --text-dir names a folder of transcripts.")
    pipeline = Pipeline(Model.load(model), aligner=aligner, times=times, device=device)

    def one(path: Path, id: str, samples: np.ndarray) -> tuple[Result, str]:
        seconds = len(samples) / pipeline.model.encoder.sample_rate
        words = _read_text(text or _transcript_path(path, text_dir), seconds)
        transcript = pipeline.model.tokenizer.encode(words)
        unknown = ", ".join(map(repr, transcript.unknown))
        warning = f"aligned without what the model has no labels for: {unknown}" if unknown else ""
        return pipeline.align(id, samples, transcript), warning

    return _each(found, pipeline, one, writers, out, text)


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
    """Recognise audio files and write text and times in each format; arguments as :func:`align_files`.

    The texts alone are written to ``transcripts.jsonl``.
    """
    writers = _check(model, aligner, formats, out, device)
    found = find_audio(audio)
    pipeline = Pipeline(Model.load(model), aligner=aligner, times=times, device=device)

    def one(path: Path, id: str, samples: np.ndarray) -> tuple[Result, str]:
        result = pipeline.transcribe(id, samples)
        texts[_readable(path)] = result.text
        return result, ""

    texts: dict[str, str] = {}
    outcome = _each(found, pipeline, one, writers, out)
    failed = {row["file"] for row in outcome.errors}
    outcome.texts = {file: text for file, text in texts.items() if file not in failed}
    with atomic_write(out / "transcripts.jsonl") as file:
        for name, text in outcome.texts.items():
            file.write(json.dumps({"file": name, "text": text}, ensure_ascii=False) + "\n")
    return outcome


def _check(
    model: str, aligner: str | None, formats: Sequence[str], out: Path, device: str
) -> dict[str, Format]:
    """The formats by name; what is wrong with a command is said before a model is loaded."""
    writers = {name: format_registry.build(name) for name in formats}
    if aligner is not None:
        aligners.get(aligner)
    there = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"--out {out} cannot be made: {there} is a file. Choose another folder.")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"The device {device!r} cannot be used: {str(error).splitlines()[0]}") from error
    path = Path(model)
    here = path.parent.is_dir() and path.parent != Path()
    if not path.exists() and (here or path.is_absolute() or len(path.parts) > 2):  # no hub id looks like this
        near = nearest(path.name, [p.name for p in path.parent.iterdir() if p.is_dir()]) if here else ""
        raise FileNotFoundError(f"No model or run folder {model}.{near}")
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
    screen = Console(stderr=True)
    progress = track(
        list(zip(found, _ids(found))),
        "Files",
        console=screen,
        transient=True,
        disable=len(found) < 2 or not screen.is_terminal,
    )
    for path, id in progress:
        try:
            if _readable(path) != str(path):
                raise ValueError("its name is not Unicode; rename it.")
            samples = sound.load(path, pipeline.model.encoder.sample_rate)
            result, warning = work(path, id, samples)
            _write(result.alignment, writers, out, [path, text or _sibling(path.parent, path.stem)])
        except Exception as error:  # whatever it is, the other files are not to suffer
            log.debug("%s", path, exc_info=True)
            outcome.errors.append({"file": _readable(path), "error": _explain(error, path)})
            continue
        outcome.done += 1
        if warning:
            outcome.warnings.append({"file": _readable(path), "warning": warning})
    for name, rows in (("errors", outcome.errors), ("warnings", outcome.warnings)):
        (out / f"{name}.jsonl").unlink(missing_ok=True)
        if rows:
            with atomic_write(out / f"{name}.jsonl") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return outcome


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


def _explain(error: Exception, path: Path) -> str:
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    if not isinstance(error, (OSError, ValueError, LookupError, ImportError)):
        text = f"{type(error).__name__}: {text}"
    return _readable(text.removeprefix(f"{path}: ") or type(error).__name__)


def _readable(text: Path | str) -> str:
    """Text that can be written as UTF-8; a file's name can be any bytes."""
    return str(text).encode("utf-8", "backslashreplace").decode()


def _ids(found: Sequence[Path]) -> list[str]:
    """File stems; where several share one, whatever the case, as much of their paths as tells them apart."""
    paths = [_place(p) for p in found]
    twins = Counter((p.parent, p.stem.casefold()) for p in paths)
    names = stems = [_readable(p.name if twins[p.parent, p.stem.casefold()] > 1 else p.stem) for p in paths]
    for depth in range(1, max(len(p.parts) for p in paths) + 1):
        count = Counter(name.casefold() for name in names)
        if len(count) == len(names):
            break
        names = [
            name if count[name.casefold()] == 1 else _longer(path, stem, depth)
            for path, stem, name in zip(paths, stems, names)
        ]
    return names


def _longer(path: Path, stem: str, depth: int) -> str:
    """The stem with so many folders before it; the whole path where there are not so many."""
    parents = path.parent.parts[1:]
    return "_".join((*parents[-depth:], stem)) if depth <= len(parents) else str(path)


def _place(path: Path) -> Path:
    """The path from the root, without detours; a file that is a link keeps its own name."""
    return path.parent.resolve() / path.name


def _transcript_path(audio: Path, folder: Path | None) -> Path:
    if folder is None:
        places = [audio.parent]
    else:
        # in the folder itself, or below it in folders like the audio's: the most alike counts
        parents = _place(audio).parent.parts[1:]
        places = [folder.joinpath(*parents[start:]) for start in range(len(parents) + 1)]
    for place in places:
        if path := _sibling(place, audio.stem):
            return path
    raise FileNotFoundError(f"no transcript: expected {audio.stem}.txt or .lab in {folder or audio.parent}")


def _sibling(folder: Path, stem: str) -> Path | None:
    """The transcript of that name in a folder, if there is one."""
    paths = (folder / f"{stem}{suffix}" for suffix in TEXT_SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def _read_text(path: Path, seconds: float) -> str:
    """A transcript; the sample numbers before a prompt of TIMIT's are left out."""
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}): save it as UTF-8.") from error
    if (prompt := _PROMPT.match(text)) and abs(int(prompt[1]) / 16_000 - seconds) < 0.1:
        text = text[prompt.end() :]
    if not text:
        raise ValueError(f"{path} is empty: expected the transcript.")
    return text


def _plain_word(label: str) -> str:
    """A word without case and punctuation; silence, and what is nothing without them, as it is."""
    return label if label in SILENCE else normalize(label) or label


def evaluate_files(
    hyp: Path,
    ref: Path,
    *,
    tier: str = "phones",
    collar_s: float | None = None,
    strict: bool = True,
    against: Path | None = None,
    phones: PhoneSet | None = None,
    as_written: bool = False,
    json_file: Path | None = None,
) -> tuple[dict[str, Evaluation], Comparison | None]:
    """Score files against files, and two hypotheses against each other.

    Args:
        hyp, ref: See :func:`isotone.evaluation.files.evaluate_paths`.
        tier, collar_s, strict: See :func:`isotone.evaluation.score`.
        against: A second hypothesis.
        phones: TIMIT phone set that labels of larger sets are folded to, on both sides; None leaves them.
        as_written: Compare words with their case, punctuation and digits; otherwise "Year." is "year".
        json_file: Where everything is written as JSON.

    Returns:
        Evaluations by the name of the hypothesis, and the paired comparison where there are two.

    Raises:
        ValueError: both hypotheses are one, or there is no such phone set. Also what ``evaluate_paths`` raises.
    """
    if against is not None and _place(against) == _place(hyp):
        raise ValueError(
            f"--against {against} is the hypothesis itself: give another one to compare it with."
        )
    options: dict[str, Any] = {"tier": tier, "collar_s": collar_s, "strict": strict}
    options["classes"] = PHONE_CLASSES if tier == "phones" else None
    if phones is not None:
        # a phone that the smaller set does not have (q) is as silent as its closures are
        options["relabel"] = {p: "".join(fold([p], phones)) for p in PHONES_61}
    elif tier == "words" and not as_written:
        options["relabel"] = _plain_word
    names = [hyp.resolve().name] if against is None else [str(hyp), str(against)]
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
