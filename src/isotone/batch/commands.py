"""Forced alignment and recognition of many files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from isotone.batch.books import AligningBook, check_book
from isotone.batch.crew import Begin
from isotone.batch.inputs import find_recordings
from isotone.batch.ledger import NAME, Ledger
from isotone.batch.options import Options, Target, Workers
from isotone.batch.outcome import Outcome
from isotone.batch.pairs import check_places, paired
from isotone.batch.plan import is_result
from isotone.batch.runs import run
from isotone.batch.speech import Aligning, Transcribing
from isotone.batch.systems import Further


def align_files(
    audio: Sequence[Path],
    options: Options,
    target: Target,
    *,
    text: Path | None = None,
    text_dir: Path | None = None,
    book: Path | None = None,
    min_score: float | None = None,
    check: bool = True,
    beside: Sequence[Path] = (),
    workers: Workers = Workers(),  # noqa: B008 - frozen
) -> Outcome:
    """Align audio files with their transcripts, and write each alignment in each format.

    Args:
        audio: Recordings, folders, and transcripts of recordings, see :func:`isotone.batch.pairs.paired`. Results of an
            earlier run, which a pattern such as ``speech/*`` names as well, are left out.
        options: The model and its options.
        target: Folder and formats of the files. The folder also gets the ledger and, if there are errors or warnings,
            ``errors.jsonl`` and ``warnings.jsonl``.
        text: Transcript of the one audio file, or a manifest, CTM, STM or data folder of Kaldi with those of several.
        text_dir: Folder of transcripts named like the audio, flat or in folders like the audio's. Default: beside the
            audio.
        book: One text that recordings are found in, see :class:`isotone.batch.books.AligningBook`.
        min_score: Nats per token. Texts with a lower score (:class:`isotone.alignment.Alignment`) are doubtful.
            Default: texts whose agreement is below the model's threshold, see :mod:`isotone.pipeline.doubt`.
        check: Warn of doubtful files; their alignments are written nevertheless.
        beside: Files or folders of further alignments of the recordings, which stand beside in their pages.
        workers: Processes or machines that share the work. Scripts that ask for processes need ``if __name__ ==
            "__main__":`` around what they do.

    Raises:
        ValueError: one transcript for several files, both ``text`` and ``text_dir``, ``beside`` without pages, or an
            option out of range.
        OutputConflict: files that isotone did not write would be overwritten.
        OSError: there is no audio, transcript or folder of that name, or the output folder cannot be created.
        LookupError: there is no such format, aligner or head.
    """
    target.check()
    options.check()
    workers = _checked(workers, options)
    check_places(text, text_dir)
    if book is not None:
        check_book(book, audio, [text, text_dir], options.tiers)
    given = paired(_without_results(audio, target.out), text)
    if min_score is not None and not min_score <= 0:
        raise ValueError(
            f"--min-score expects a score to fall below, 0 or less (0 is perfect); got {min_score}."
        )
    if beside and not target.page:
        raise ValueError("--beside adds further alignments to pages: give --page as well.")
    further = Further(find_recordings(given.audio) if beside else (), beside)
    begin: Begin = partial(Aligning, options, target, given.transcripts, text_dir, min_score, check, further)
    if book is not None:
        begin = partial(AligningBook, options, target, book, min_score, check, further)
    return run(given.audio, target, begin, workers=workers)


def transcribe_files(
    audio: Sequence[Path],
    options: Options,
    target: Target,
    workers: Workers = Workers(),  # noqa: B008 - frozen
) -> Outcome:
    """Recognise audio files, and write text and times of each in each format; see :func:`align_files`.

    The texts alone are written to ``transcripts.jsonl``.
    """
    target.check()
    options.check()
    workers = _checked(workers, options)
    return run(audio, target, partial(Transcribing, options, target), workers=workers)


def _without_results(paths: Sequence[Path], out: Path) -> Sequence[Path]:
    """Leave out the files that an earlier run wrote to the output folder, and nobody changed since."""
    if not (out / NAME).is_file() or all(path.is_dir() for path in paths):
        return paths
    with Ledger(out) as ledger:
        return [path for path in paths if not is_result(ledger, Aligning.command, path)] or paths


def _checked(workers: Workers, options: Options) -> Workers:
    workers = replace(workers, gpu=options.device != "cpu")
    workers.check()
    return workers
