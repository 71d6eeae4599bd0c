"""The command ``isotone-light``: recordings and transcripts to files with times."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from isotone_light import __version__

if TYPE_CHECKING:
    from isotone.batch.inputs import Recording, TranscriptFile
    from isotone.batch.pairs import Given
    from isotone.interfaces import Format
    from isotone.pipeline.forced import ForcedPipeline

_ABOUT = """Align a given text with its recording: find the time of each word and phone. No torch, no network.

Examples:
  isotone-light talk.wav talk.txt
  isotone-light speech/ -o aligned --format textgrid --format json
  isotone-light film.mkv film.srt --format srt

OUT mirrors the input's folders: speech/dr1/sa1.wav becomes OUT/dr1/sa1.TextGrid. One bad file does not stop the others:
it is reported, and the exit code is 1. With 2 nothing was done. The first use after an installation compiles the
aligner for this processor, which takes about half a minute; --prepare does so, and nothing else.
"""

FORMATS = (
    "textgrid", "json", "csv", "ctm", "srt", "vtt", "ass", "ttml", "lrc", "audacity", "elan", "timit", "rttm",
    "mfa-json", "mfa-csv", "whisperx", "lhotse", "nemo-ctm",
)  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """Make the parser of the arguments."""
    made = argparse.ArgumentParser(
        "isotone-light", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add(
        "paths",
        nargs="*",
        type=_path,
        metavar="PATH",
        help="recordings, folders, and transcripts of the same names",
    )
    add(
        "-o", "--out", type=Path, default=Path("alignments"), help="folder of the files (default: alignments)"
    )
    add(
        "--format",
        action="append",
        choices=FORMATS,
        help="format of the files, may be repeated (default: textgrid)",
    )
    add("--text-dir", type=Path, help="folder of the transcripts (default: beside the recordings)")
    add(
        "--tier",
        action="append",
        default=[],
        help="tier of the transcripts that holds speech, may be repeated",
    )
    add("--model", type=Path, help="folder that isotone export --onnx wrote (default: English)")
    add("--dictionary", type=Path, action="append", default=[], help="pronunciations, may be repeated")
    add("--rules", type=Path, action="append", default=[], help="readings of written forms, may be repeated")
    add("--closures", action="store_true", help="show the closures of stops as segments of their own")
    add("--margins", action="store_true", help="say how sure every boundary is, as isotone align does")
    add("--extra-speech", action="store_true", help="allow speech between the words that is not in the text")
    add(
        "--slack",
        type=float,
        default=1.0,
        help="seconds by which the times of a transcript may be wrong (default: 1)",
    )
    add("--overwrite", action="store_true", help="replace files that are there")
    add("--resume", action="store_true", help="leave out recordings whose files are there")
    add("--quiet", "-q", action="store_true", help="print warnings and errors alone: no progress, no summary")
    add("--json", action="store_true", help="print the outcome as JSON, and nothing else on standard output")
    add("--prepare", action="store_true", help="compile the aligner for this processor, and do nothing else")
    add("--version", action="version", version=f"isotone-light {__version__}")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    options = parser().parse_args(arguments)
    try:
        if options.prepare:
            return _prepare()
        if not options.paths:
            raise ValueError(
                "Nothing to align: give a recording and its transcript, or a folder. -h shows examples."
            )
        return _align(options)
    except (OSError, ValueError, LookupError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: --resume goes on", file=sys.stderr)
        return 130


@dataclass(frozen=True)
class _Task:
    """A recording, its transcript where one was given, and the files that are written."""

    recording: Recording
    text: Path | None
    files: dict[Path, Format]


@dataclass
class _Outcome:
    """The folder of the files, their names by recording, and what went wrong."""

    out: str
    files: dict[str, list[str]] = field(default_factory=dict)
    errors: list[dict[str, str]] = field(default_factory=list)
    warnings: list[dict[str, str]] = field(default_factory=list)


def _align(options: argparse.Namespace) -> int:
    from isotone_light.calls import ENGLISH, pipeline

    from isotone.batch.pairs import paired
    from isotone.files import check_folder
    from isotone.text.options import TextOptions

    given = paired(options.paths)
    check_folder(options.out)
    aligner = pipeline(
        options.model or ENGLISH, TextOptions(None, tuple(options.dictionary), False, tuple(options.rules)),
        closures=options.closures, extra_speech=options.extra_speech, margins=options.margins,
    )  # fmt: skip
    tasks = _tasks(given, options, aligner)
    outcome = _Outcome(str(options.out))
    for number, task in enumerate(tasks, 1):
        name = task.recording.id
        try:
            for warning in _run(task, aligner, options):
                outcome.warnings.append({"file": name, "warning": warning})
                print(f"{name}: {warning}", file=sys.stderr)
            outcome.files[name] = [path.relative_to(options.out).as_posix() for path in task.files]
        except (OSError, ValueError, LookupError) as error:
            outcome.errors.append({"file": name, "error": str(error)})
            print(f"error: {name}: {error}", file=sys.stderr)
        if len(tasks) > 1 and sys.stderr.isatty() and not options.quiet:
            print(f"{number} of {len(tasks)}", end="\r", file=sys.stderr)
    if options.json:
        print(json.dumps(asdict(outcome), indent=2, ensure_ascii=False))
    elif not options.quiet:
        print(f"{len(outcome.files)} of {len(tasks)} files aligned, in {options.out}")
    return 1 if outcome.errors else 0


def _tasks(given: Given, options: argparse.Namespace, aligner: ForcedPipeline) -> list[_Task]:
    """List the work, after the check that no file is replaced."""
    from isotone.batch.inputs import absolute, find_recordings
    from isotone.batch.writers import writers_for
    from isotone.format.files import file_name

    writers = writers_for(dict.fromkeys(options.format or ["textgrid"]), aligner.tokenizer.tiers(True))
    tasks: list[_Task] = []
    owners: dict[Path, Path] = {}
    for recording in find_recordings(given.audio):
        *parents, name = recording.id.split("/")
        folder = options.out.joinpath(*map(file_name, parents))
        files = {folder / file_name(name, writer.suffix): writer for writer in writers.values()}
        for file in files:
            if file in owners:
                raise ValueError(
                    f"{owners[file]} and {recording.path} would both become {file}: align them one after the other, "
                    "into different folders."
                )
            owners[file] = recording.path
        if not (options.resume and all(file.is_file() for file in files)):
            tasks.append(_Task(recording, given.transcripts.get(absolute(recording.path)), files))
    _check_inputs(tasks, options)
    there = [str(file) for task in tasks for file in task.files if file.exists()]
    if there and not options.overwrite:
        raise FileExistsError(
            f"{len(there)} files would be replaced: {', '.join(there[:5])}{' ...' if there[5:] else ''}. Choose "
            "another --out, or say --overwrite, or --resume to leave out what is done."
        )
    return tasks


def _check_inputs(tasks: Sequence[_Task], options: argparse.Namespace) -> None:
    """Raise FileExistsError where a transcript or a recording would be replaced, which --overwrite does not allow."""
    from isotone.batch.inputs import absolute

    files = {absolute(file): file for task in tasks for file in task.files if file.exists()}
    for task in tasks:
        with suppress(FileNotFoundError):  # a missing transcript is an error of its recording
            for path in (task.recording.path, _transcript(task, options).path):
                if file := files.get(absolute(path)) or files.get(path.resolve()):
                    raise FileExistsError(f"{file} is an input, and would be replaced: choose another --out.")


def _transcript(task: _Task, options: argparse.Namespace) -> TranscriptFile:
    """Return the transcript that a recording was given, or find it."""
    from isotone.batch.inputs import TranscriptFile, find_transcript

    return (
        TranscriptFile(task.text)
        if task.text
        else find_transcript(task.recording.path, options.text_dir, tiers=options.tier)
    )


def _run(task: _Task, aligner: ForcedPipeline, options: argparse.Namespace) -> tuple[str, ...]:
    """Align one recording, and write its files; return the warnings."""
    from isotone.files import put
    from isotone.quick.one import align_one

    path = task.recording.path
    source = _transcript(task, options)
    result = align_one(aligner, "", path, source.path, slack_s=options.slack, tiers=options.tier)
    contents = {file: writer.dumps(result.alignment) for file, writer in task.files.items()}
    shown = dict.fromkeys(note for writer in task.files.values() for note in writer.notes(result.alignment))
    for file, content in contents.items():
        put(file, content.encode(), replace=options.overwrite)
    return (*source.notes, *result.warnings, *shown)


def _prepare() -> int:
    """Compile what alignment runs, by a use of it."""
    import numpy as np
    from isotone_light.calls import align

    noise = np.random.default_rng(0).normal(0, 0.1, 48_000).astype(np.float32)
    align(noise, "Prepare the aligner, and the rest of it.", rate=16_000)
    align(noise, "Prepare the aligner.", rate=16_000, extra_speech=True)
    print("The aligner is compiled.")
    return 0


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError(
            "an empty argument; expected a file or a folder (the current one is '.')."
        )
    return Path(text)
