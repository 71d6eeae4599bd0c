"""The work of ``align`` and ``transcribe`` on one recording."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

import numpy as np

from isotone import audio as sound
from isotone.audio import Samples
from isotone.batch.analysis import measured, oovs_of
from isotone.batch.inputs import read_passages, transcript_of
from isotone.batch.keys import model_key, result_key
from isotone.batch.options import Options, Target
from isotone.batch.pages import PAGE, PAGE_SUFFIX, about, page_of
from isotone.batch.systems import Further
from isotone.batch.work import Done, Inputs, Job, Own, Work
from isotone.batch.writers import writers_for
from isotone.model.check import usable
from isotone.pipeline.doubt import doubtful
from isotone.pipeline.given import align_text, align_texts, has_times
from isotone.pipeline.passages import Passages
from isotone.pipeline.plausible import silence
from isotone.pipeline.result import Result
from isotone.pipeline.verdict import WRONG
from isotone.text.tokenizer import Transcript
from isotone.transcripts import Passage, source_in

log = logging.getLogger(__name__)

# Recordings that are aligned at once: twice as many take no less time.
_AT_ONCE = 8


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
        writers = {name: self.writers[name] for name in job.formats if name != PAGE}
        contents = {name: writer.encoded(alignment) for name, writer in writers.items()}
        shown = dict.fromkeys(note for writer in writers.values() for note in writer.notes(alignment))
        notes = (*warnings, *result.warnings, *shown)
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
        self.slack_s, self.channels, self.tiers = options.slack_s, options.channels, options.tiers
        self.texts = texts or {}
        self._owners = Counter(self.texts.values())
        self.text_dir = text_dir
        self.min_score = min_score
        self.check = check
        # torch encodes several as one batch, in which they get other numbers in the last digits
        self.at_once = _AT_ONCE if self.engine == "onnx" else 1

    def inputs(self, recording: Path, own: Own) -> Inputs:
        """Find the transcript, and the alignments that stand beside in the page."""
        source = transcript_of(recording, self.texts, self.text_dir, own, self.tiers)
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
        return self._made(job, samples, *self.aligned(job, samples))

    def run_all(self, jobs: Sequence[Job], samples: Sequence[Samples]) -> list[Done | None]:
        """Align recordings whose texts have no times at once."""
        noted: list[list[str]] = [[] for _ in jobs]
        given = [self._passages(*one) for one in zip(jobs, samples, noted)]
        plain = [i for i, passages in enumerate(given) if not has_times(passages)]
        found = align_texts(
            self.pipeline,
            [jobs[i].id for i in plain],
            [samples[i][:] for i in plain],
            [given[i] for i in plain],
        )
        out: list[Done | None] = [None] * len(jobs)
        for i, one in zip(plain, found):
            if one is not None:
                out[i] = self._made(jobs[i], samples[i], *one, _notes(jobs[i], noted[i], *one))
        return out

    def _made(
        self,
        job: Job,
        samples: Samples,
        result: Result | Passages,
        transcript: Transcript,
        noted: Sequence[str],
    ) -> Done:
        """Make the contents of a recording's files of its alignment."""
        path = job.path
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
        noted: list[str] = []
        passages = self._passages(job, samples, noted)
        result, transcript = align_text(
            self.pipeline, job.id, samples, passages, self.slack_s, job.path, self.channels
        )
        if not self.check and isinstance(result, Passages) and result.alignment.verdict == WRONG:
            # who does not check a text trusts it: its cues get the times of their words
            result = replace(result, alignment=replace(result.alignment, verdict=""))
        return result, transcript, _notes(job, noted, result, transcript)

    def _passages(self, job: Job, samples: Samples, noted: list[str]) -> Sequence[Passage]:
        """Read the passages of a recording's transcript, and note warnings."""
        source = source_in(job.inputs.files)
        shared = source.is_dir() or self._owners[source] > 1
        seconds = len(samples) / self.sample_rate
        return read_passages(source, seconds, job.path, not shared, noted.append, self.tiers)

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


def _notes(
    job: Job, noted: Sequence[str], result: Result | Passages, transcript: Transcript
) -> Sequence[str]:
    """List the warnings of a recording, its transcript and, unless they are among its own, its text in labels."""
    return (*job.inputs.notes, *noted, *(transcript.notes if isinstance(result, Result) else ()))


class Transcribing(_Speech):
    """Recognition; see :func:`isotone.batch.transcribe_files`."""

    command = "transcribe"
    lists_texts = True

    def __init__(self, options: Options, target: Target) -> None:
        super().__init__(options, target, given_text=False)
        # workers, which make this as well, need not say so again
        if parent_process() is None and not self.pipeline.tokenizer.has_words:
            log.warning(
                "The model %s recognises phones, and no words: name another with --model.", options.model
            )

    def inputs(self, recording: Path, own: Own) -> Inputs:
        """Return no inputs besides the audio."""
        return Inputs()

    def run(self, job: Job, samples: np.ndarray) -> Done:
        """Recognise a recording."""
        return self._done(job, self.pipeline.transcribe(job.id, samples), ())
