"""Recognition: decode, rescore, and align the decoded text with the timing head."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from isotone.audio.boundaries import Mover
from isotone.interfaces import Aligner, Decoder
from isotone.model import Model
from isotone.pipeline.placing import Placer
from isotone.pipeline.rescoring import path_scores, rescored
from isotone.pipeline.result import Result, results
from isotone.pipeline.rows import alignable
from isotone.pipeline.texts import targets_of, with_pauses
from isotone.text.tokenizer import Transcript
from isotone.types import Coupling, Emissions, Targets

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recogniser:
    """A decoder, with an aligner for the text that it finds.

    Attributes:
        model: The model.
        decoder: Decoder of the text.
        rescorer: Aligner that scores the decoder's hypotheses with the timing head. None: the first one is taken.
        placer: Aligner of the recognised text. None: the times are the decoder's own.
        star_cost: See :func:`isotone.pipeline.stars.with_star`.
    """

    model: Model
    decoder: Decoder
    rescorer: Aligner | None
    placer: Placer | None
    star_cost: float

    @property
    def heads(self) -> set[str]:
        """Names of the heads whose emissions are needed."""
        decoding, placer = self.model.decoding, self.placer
        rescoring = {decoding.times} if self.rescorer else set()
        return {decoding.text} | rescoring | (placer.heads if placer else set())

    def __call__(
        self,
        ids: Sequence[str],
        seconds: Sequence[float],
        emissions: Mapping[str, Emissions],
        moves: Sequence[Mover] = (),
    ) -> list[Result]:
        """Recognise a batch.

        What moves boundaries moves those of the aligner, see :func:`isotone.pipeline.result.results`.

        Rows that the aligner cannot align, whose text may need more frames than there are, have the decoder's own text
        and times, and a warning is logged.
        """
        text = emissions[self.model.decoding.text]
        decoded = None if self.rescorer else self.decoder(text)
        targets = decoded[0] if decoded else self._rescored(emissions)
        spoken = (targets.lengths > 0).nonzero()[:, 0].tolist() if self.placer else []
        found = self._aligned(spoken, ids, seconds, emissions, targets, moves)
        rest = [row for row in range(len(ids)) if row not in found]
        if rest:
            targets, coupling = decoded or self.decoder(text)
            found |= self._results(
                rest, ids, seconds, text, targets.rows(rest), coupling.rows(rest),
                *self._texts(targets.rows(rest)),
            )  # fmt: skip
        return [found[row] for row in range(len(ids))]

    def _rescored(self, emissions: Mapping[str, Emissions]) -> Targets:
        """Choose the text by both heads, see :mod:`isotone.pipeline.rescoring`."""
        decoding, tokenizer, rescorer = self.model.decoding, self.model.tokenizer, self.rescorer
        assert rescorer is not None

        def nbest(text: Emissions) -> Sequence[Sequence[tuple[Sequence[int], float]]]:
            return self.decoder.nbest(text, decoding.hypotheses)

        def score(timing: Emissions, rows: Sequence[Sequence[int]]) -> np.ndarray:
            texts = [
                with_pauses(tokenizer, tokenizer.recognised(row), rescorer, tokenizer.pauses) for row in rows
            ]
            return path_scores(rescorer, timing, targets_of(texts).to(timing.logits.device))

        text, timing = emissions[decoding.text], emissions[decoding.times]
        timing = timing if rescorer.takes_device else timing.to("cpu")
        return Targets.from_lists(rescored(text, timing, nbest, score, decoding.rescore))

    def _aligned(
        self,
        rows: list[int],
        ids: Sequence[str],
        seconds: Sequence[float],
        emissions: Mapping[str, Emissions],
        targets: Targets,
        moves: Sequence[Mover],
    ) -> dict[int, Result]:
        """Make the results of the rows that the aligner can align."""
        if self.placer is None or not rows:
            return {}
        placer, tokenizer = self.placer, self.model.tokenizer
        transcripts, strings = self._texts(targets.rows(rows))
        texts = [with_pauses(tokenizer, t, placer.aligner, tokenizer.pauses) for t in transcripts]
        emissions = placer.where_aligned(emissions, texts)

        def align(some: list[int]) -> tuple[Targets, Coupling]:
            kept = [rows[i] for i in some]
            of_kept = {head: e.rows(kept) for head, e in emissions.items()}
            names = [ids[row] for row in kept]
            return placer(names, of_kept, targets_of([texts[i] for i in some]), self.star_cost)

        some, placed, errors = alignable(align, len(rows))
        for error in errors.values():
            log.warning("%s The times are the decoder's own.", error)
        if placed is None:
            return {}
        kept = [rows[i] for i in some]
        return self._results(
            kept, ids, seconds, emissions[placer.times], *placed,
            [texts[i].transcript for i in some], [strings[i] for i in some],
            [moves[row] for row in kept] if moves else (),
        )  # fmt: skip

    def _texts(self, targets: Targets) -> tuple[list[Transcript], list[str]]:
        """Turn recognised labels into transcripts and strings."""
        tokenizer, rows = self.model.tokenizer, targets.tolist()
        return [tokenizer.recognised(row) for row in rows], [tokenizer.decode(row) for row in rows]

    def _results(
        self,
        rows: list[int],
        ids: Sequence[str],
        seconds: Sequence[float],
        emissions: Emissions,
        targets: Targets,
        coupling: Coupling,
        transcripts: Sequence[Transcript],
        strings: Sequence[str],
        moves: Sequence[Mover] = (),
    ) -> dict[int, Result]:
        """Make results by row; targets and coupling have only these rows, emissions all."""
        out = results(
            [ids[row] for row in rows], [seconds[row] for row in rows], strings, transcripts,
            self.model.tokenizer, emissions.rows(rows), targets, coupling, self.star_cost,
            moves=moves,
        )  # fmt: skip
        return dict(zip(rows, out))
