"""Forced alignment and recognition of many files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from isotone.batch.inputs import find_audio
from isotone.batch.options import Options, Target
from isotone.batch.outcome import Outcome
from isotone.batch.runs import run
from isotone.batch.speech import Aligning, Transcribing
from isotone.transcripts.kaldi import is_data_folder
from isotone.transcripts.reading import MANY


def align_files(
    audio: Sequence[Path],
    options: Options,
    target: Target,
    *,
    text: Path | None = None,
    text_dir: Path | None = None,
    min_score: float | None = None,
    check: bool = True,
) -> Outcome:
    """Align audio files with their transcripts, and write each alignment in each format.

    Args:
        audio: Files or folders.
        options: The model and its options.
        target: Folder and formats of the files. The folder also gets the ledger and, if there are errors or warnings,
            ``errors.jsonl`` and ``warnings.jsonl``.
        text: Transcript of the one audio file, or a manifest, CTM, STM or data folder of Kaldi with those of several.
        text_dir: Folder of transcripts named like the audio, flat or in folders like the audio's. Default: beside the
            audio.
        min_score: Nats per token. Texts with a lower score (:class:`isotone.alignment.Alignment`) are doubtful.
            Default: texts whose agreement is below the model's threshold, see :mod:`isotone.pipeline.doubt`.
        check: Warn of doubtful files; their alignments are written nevertheless.

    Raises:
        ValueError: one transcript for several files, both ``text`` and ``text_dir``, or an option out of range.
        OutputConflict: files that isotone did not write would be overwritten.
        OSError: there is no audio, transcript or folder of that name, or the output folder cannot be created.
        LookupError: there is no such format, aligner or head.
    """
    target.check()
    options.check()
    several = _check_transcripts(audio, text, text_dir)
    if min_score is not None and not min_score <= 0:
        raise ValueError(
            f"--min-score expects a score to fall below, 0 or less (0 is perfect); got {min_score}."
        )
    return run(audio, target, lambda: Aligning(options, target, text, text_dir, min_score, check, several))


def transcribe_files(audio: Sequence[Path], options: Options, target: Target) -> Outcome:
    """Recognise audio files, and write text and times of each in each format; see :func:`align_files`.

    The texts alone are written to ``transcripts.jsonl``.
    """
    target.check()
    options.check()
    return run(audio, target, lambda: Transcribing(options, target))


def _check_transcripts(audio: Sequence[Path], text: Path | None, folder: Path | None) -> bool:
    """Check the places of the transcripts, and tell if one of them is for several recordings."""
    if text is not None and folder is not None:
        raise ValueError("--text and --text-dir are two places for the transcript: give one.")
    if folder is not None and not folder.is_dir():
        raise FileNotFoundError(f"No folder {folder}: --text-dir names a folder of transcripts.")
    if text is None:
        return False
    files = len(find_audio(audio))
    if files > 1 and not (text.is_dir() or text.name.lower().endswith(MANY)):
        raise ValueError(f"--text is the transcript of one file; for {files} files use --text-dir.")
    if not (text.is_file() or (text.is_dir() and is_data_folder(text))):
        raise FileNotFoundError(
            f"No transcript {text}: --text names a transcript, or a data folder of Kaldi."
        )
    return files > 1
