"""The work of ``align`` and ``transcribe`` on one recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from isotone import audio as sound
from isotone.audio import Samples
from isotone.batch.analysis import measured, oovs_of
from isotone.batch.inputs import TranscriptFile, absolute, find_transcript, read_passages
from isotone.batch.keys import model_key, result_key
from isotone.batch.options import Options, Target
from isotone.batch.pages import PAGE, PAGE_SUFFIX, about, page_of
from isotone.batch.systems import Further
from isotone.batch.work import Done, Inputs, Job, Own, Work
from isotone.batch.writers import writers_for
from isotone.model.check import usable
from isotone.pipeline.doubt import doubtful
from isotone.pipeline.given import align_text
from isotone.pipeline.passages import Passages
from isotone.pipeline.plausible import silence
from isotone.pipeline.result import Result
from isotone.text.tokenizer import Transcript
from isotone.transcripts import source_in


class _Speech(Work):
    """Work by a model of speech.

    Args:
        options: The model and its use.
        target: Formats of the files.
        given_text: True where texts are given.

    Raises:
        ValueError, OSError: a model that cannot be loaded.
    """

    def __init__(self, options: Options, target: Target, given_text: bool) -> None:
        self.pipeline: Any = options.aligning() if given_text else options.pipeline()
        self.engine = self.pipeline.model.engine
        self.sample_rate = self.pipeline.model.encoder.sample_rate
        self.writers = writers_for(target.formats, self.pipeline.tokenizer.tiers(given_text))
        self.suffixes = {name: writer.suffix for name, writer in self.writers.items()}
        if target.page:
            self.suffixes[PAGE] = PAGE_SUFFIX
        self._model, self._options = model_key(self.pipeline.model), options.values()

    def key(self, digests: Mapping[str, str]) -> str:
        """See :meth:`Work.key`."""
        return result_key(self._model, digests, self._options)

    def watch(self, on_part: Callable[[float], None]) -> None:
        """See :meth:`Work.watch`: it is told of every window."""
        self.pipeline.watch(on_part)

    def _done(self, job: Job, result: Result | Passages, warnings: Sequence[str]) -> Done:
        alignment = replace(result.alignment, audio=job.path)
        contents = {n: self.writers[n].encoded(alignment) for n in job.formats if n != PAGE}
        notes = (*warnings, *result.warnings)
        return Done(contents, notes, result.score, result.agreement, result.text, verdict=alignment.verdict)


class Aligning(_Speech):
    """Forced alignment; see :func:`isotone.batch.align_files`."""

    command = "align"

    #: Seconds of audio that are kept in memory; longer recordings lie on disk.
    memory_s = 600.0

    def __init__(
        self,
        options: Options,
        target: Target,
        texts: Mapping[Path, Path] | None = None,
        text_dir: Path | None = None,
        min_score: float | None = None,
        check: bool = True,
        further: Further = Further((), ()),  # noqa: B008 - nothing is added to it
    ) -> None:
        super().__init__(options, target, given_text=True)
        self.further = further
        self.slack_s, self.channels = options.slack_s, options.channels
        self.texts = texts or {}
        self._owners = Counter(self.texts.values())
        self.text_dir = text_dir
        self.min_score = min_score
        self.check = check

    def inputs(self, recording: Path, own: Own) -> Inputs:
        """Find the transcript, and the alignments that stand beside in the page."""
        given = self.texts.get(absolute(recording)) if self.texts else None
        source = TranscriptFile(given) if given else find_transcript(recording, self.text_dir, own)
        return Inputs({**source.files, **self.further.inputs(recording)}, source.notes)

    def key(self, digests: Mapping[str, str]) -> str:
        """See :meth:`Work.key`."""
        beside = {"beside": self.further.names} if self.further.names else {}
        return result_key(self._model, digests, {**self._options, **beside})

    def load(self, recording: Path) -> Samples:
        """Read the samples of a recording; those of a long one lie on disk."""
        return sound.store(recording, self.sample_rate, self.memory_s)

    def run(self, job: Job, samples: Samples) -> Done:
        """Align a recording."""
        path = job.path
        result, transcript, noted = self.aligned(job, samples)
        notes = [*silence(samples), *noted]
        oovs = oovs_of(self.pipeline.tokenizer, transcript)
        del transcript  # that of hours of speech is large
        analysis = measured(result.alignment, samples, self.sample_rate, oovs)
        done = self._done(job, result, notes)
        if PAGE in job.formats:
            warned = [text for text in (self.doubt(done.score, done.agreement), *done.warnings) if text]
            alignments = {"isotone": result.alignment}
            self.further.add_to(alignments, path)
            shown = page_of(path, job.id, samples[:], self.sample_rate, alignments, warned)
            done = replace(done, contents={**done.contents, PAGE: shown})
            analysis |= about(result.alignment)
        return replace(done, analysis=analysis)

    def aligned(self, job: Job, samples: Any) -> tuple[Result | Passages, Transcript, Sequence[str]]:
        """Return the alignment of a recording, the text in labels, and warnings."""
        path, source = job.path, source_in(job.inputs.files)
        noted: list[str] = []
        shared = source.is_dir() or self._owners[source] > 1
        passages = read_passages(source, len(samples) / self.sample_rate, path, not shared, noted.append)
        result, transcript = align_text(
            self.pipeline, job.id, samples, passages, self.slack_s, path, self.channels
        )
        notes = transcript.notes if isinstance(result, Result) else ()
        return result, transcript, (*job.inputs.notes, *noted, *notes)

    def doubt(self, score: float | None, agreement: float | None) -> str:
        """See :meth:`Work.doubt`."""
        if not self.check:
            return ""
        if self.min_score is None:
            return doubtful(agreement, usable(self.pipeline.model.check))
        if score is None or score >= self.min_score:
            return ""
        low = f"its score of {score:.3f} is below {self.min_score:g} nats per token"
        return f"{low}: the transcript is likely not what is said"


class Transcribing(_Speech):
    """Recognition; see :func:`isotone.batch.transcribe_files`."""

    command = "transcribe"
    lists_texts = True

    def __init__(self, options: Options, target: Target) -> None:
        super().__init__(options, target, given_text=False)

    def inputs(self, recording: Path, own: Own) -> Inputs:
        """Return no inputs besides the audio."""
        return Inputs()

    def run(self, job: Job, samples: np.ndarray) -> Done:
        """Recognise a recording."""
        return self._done(job, self.pipeline.transcribe(job.id, samples), ())
