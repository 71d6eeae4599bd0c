"""Forced alignment and recognition of many files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isotone.batch.inputs import TranscriptFile, find_audio, find_transcript, read_text
from isotone.batch.options import Options, Target
from isotone.batch.outcome import Outcome
from isotone.batch.runs import run
from isotone.batch.work import Work
from isotone.model.check import usable
from isotone.pipeline import Pipeline
from isotone.pipeline.doubt import doubtful
from isotone.pipeline.result import Result


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
        text: Transcript of the one audio file.
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
    _check_transcripts(audio, text, text_dir)
    if min_score is not None and not min_score <= 0:
        raise ValueError(
            f"--min-score expects a score to fall below, 0 or less (0 is perfect); got {min_score}."
        )
    return run(audio, options, target, Aligning(text, text_dir, min_score, check))


def transcribe_files(audio: Sequence[Path], options: Options, target: Target) -> Outcome:
    """Recognise audio files, and write text and times of each in each format; see :func:`align_files`.

    The texts alone are written to ``transcripts.jsonl``.
    """
    target.check()
    options.check()
    return run(audio, options, target, Transcribing())


@dataclass(frozen=True)
class Aligning(Work):
    """Forced alignment; see :func:`align_files`."""

    text: Path | None
    text_dir: Path | None
    min_score: float | None
    check: bool = True

    command = "align"
    given_text = True

    def inputs(self, recording: Path) -> Mapping[str, Path]:
        """Return the transcript."""
        return {"text": self._transcript(recording).path}

    def run(self, pipeline: Pipeline, path: Path, id: str, samples: np.ndarray) -> tuple[Result, list[str]]:
        """Align a recording."""
        seconds = len(samples) / pipeline.model.encoder.sample_rate
        source = self._transcript(path)
        transcript = pipeline.encode(read_text(source.path, seconds))
        result = pipeline.align(id, samples, transcript)
        silent = () if samples.any() else ("its audio is silent, every sample is 0: the times mean nothing",)
        return result, [*silent, *source.notes, *transcript.notes]

    def _transcript(self, recording: Path) -> TranscriptFile:
        return TranscriptFile(self.text) if self.text else find_transcript(recording, self.text_dir)

    def doubt(self, pipeline: Pipeline, score: float | None, agreement: float | None) -> str:
        """See :meth:`Work.doubt`."""
        if not self.check:
            return ""
        if self.min_score is None:
            return doubtful(agreement, usable(pipeline.model.check))
        if score is None or score >= self.min_score:
            return ""
        low = f"its score of {score:.3f} is below {self.min_score:g} nats per token"
        return f"{low}: the transcript is likely not what is said"


@dataclass(frozen=True)
class Transcribing(Work):
    """Recognition; see :func:`transcribe_files`."""

    command = "transcribe"
    given_text = False

    def inputs(self, recording: Path) -> Mapping[str, Path]:
        """Return no inputs besides the audio."""
        return {}

    def run(self, pipeline: Pipeline, path: Path, id: str, samples: np.ndarray) -> tuple[Result, list[str]]:
        """Recognise a recording."""
        return pipeline.transcribe(id, samples), []


def _check_transcripts(audio: Sequence[Path], text: Path | None, folder: Path | None) -> None:
    if text is not None and folder is not None:
        raise ValueError("--text and --text-dir are two places for the transcript: give one.")
    if text is not None and (files := len(find_audio(audio))) > 1:
        raise ValueError(f"--text is the transcript of one file; for {files} files use --text-dir.")
    if text is not None and not text.is_file():
        raise FileNotFoundError(f"No transcript {text}: --text names a text file.")
    if folder is not None and not folder.is_dir():
        raise FileNotFoundError(f"No folder {folder}: --text-dir names a folder of transcripts.")
