"""CTC beam search for the most likely label sequence; greedy decoding has that of the most likely path."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from isotone.interfaces import Decoder
from isotone.kernels.beam import BEAM, PRUNE, check_scores, prefix_beam_search
from isotone.kernels.paths import BlankRule, EdgeRule
from isotone.text.tokenizer import Tokenizer
from isotone.types import Coupling, Emissions, Targets
from isotone_ctc.align import CTCViterbi
from isotone_ctc.language_model import LanguageModelSearch, ModelUnit


class Hypothesis(NamedTuple):
    """A label sequence and its score.

    Attributes:
        labels: Label numbers, without blanks.
        score: Log-probability in nats, with the language model's weighted part if there is one.
    """

    labels: tuple[int, ...]
    score: float


class BeamCTC(Decoder):
    """Prefix beam search, with an optional n-gram language model; times come from the Viterbi path of the result.

    Without a language model see :func:`isotone.kernels.beam.prefix_beam_search`, with one
    :class:`isotone_ctc.language_model.LanguageModelSearch`.

    Args:
        beam: Hypotheses kept after every frame. A language model of words needs more than one of tokens: about 64.
        prune: Nats. Labels that score lower than their frame's best by more than this make no new hypotheses; with a
            language model, hypotheses so far below the best are dropped. Default: 12, or 5 for a
            language model of tokens.
        model: ARPA file or KenLM binary. Default: no language model.
        alpha: Weight of the language model.
        beta: Insertion bonus, nats per unit of the language model.
        unit: Unit of the language model, ``"tokens"`` or ``"words"``. Default: words if the vocabulary has a word
            delimiter.
        words: File of the words that can be recognised, for a binary model of words.
        blanks: As in :class:`isotone_ctc.align.CTCViterbi`.
        edges: As in :class:`isotone_ctc.align.CTCViterbi`.

    Raises:
        ValueError: an option outside its range, or one of a language model without ``model``.
    """

    ranks = True

    def __init__(
        self,
        *,
        beam: int = BEAM,
        prune: float | None = None,
        model: str | Path | None = None,
        alpha: float = 0.5,
        beta: float = 1.0,
        unit: ModelUnit | None = None,
        words: str | Path | None = None,
        blanks: BlankRule = "leave",
        edges: EdgeRule = "fill",
    ) -> None:
        if beam < 1 or (prune is not None and not prune >= 0) or not alpha >= 0:
            raise ValueError(
                f"BeamCTC expects beam >= 1, prune >= 0 nats and alpha >= 0; got {beam}, {prune} and {alpha}."
            )
        if unit not in (None, "tokens", "words"):
            raise ValueError(f"BeamCTC expects a unit of 'tokens' or 'words'; got {unit!r}.")
        if model is None and (unit is not None or words is not None):
            raise ValueError("BeamCTC: unit and words are about a language model; give its file as model.")
        self.beam, self.prune = beam, prune
        self.model, self.alpha, self.beta, self.unit, self.words = model, alpha, beta, unit, words
        self.viterbi = CTCViterbi(blanks=blanks, edges=edges)
        self._search: LanguageModelSearch | None = None

    def use_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Set the tokenizer, whose labels a language model knows by name.

        Raises:
            MissingLibrary: there is a language model, and flashlight-text is not installed.
            FileNotFoundError, ValueError: the language model cannot be used; see :class:`LanguageModelSearch`.
        """
        if self.model is not None:
            self._search = LanguageModelSearch(
                tokenizer, model=self.model, alpha=self.alpha, beta=self.beta, beam=self.beam, prune=self.prune,
                unit=self.unit, words=self.words,
            )  # fmt: skip

    @torch.no_grad()
    def __call__(self, emissions: Emissions) -> tuple[Targets, Coupling]:
        """Decode.

        Args:
            emissions: Logits ``(B, T, V)``, on any device.

        Returns:
            The tokens, and a coupling of frames and tokens with mass 1 per frame. ``score`` is the log-probability in
            nats of their best path, as from the aligner ``ctc``.

        Raises:
            AlignmentError: a row is not finite; the message names it.
            ValueError: :meth:`use_tokenizer` was not called, and there is a language model.
        """
        best = [list(found[0].labels) for found in self.nbest(emissions, 1)]
        targets = Targets.from_lists(best).to(emissions.logits.device)
        return targets, self.viterbi(emissions, targets)

    @torch.no_grad()
    def nbest(self, emissions: Emissions, count: int) -> list[list[Hypothesis]]:
        """Return at most ``count`` hypotheses per row, the best first; errors as in :meth:`__call__`."""
        log_probs = emissions.log_probs().cpu().numpy()
        lengths = emissions.lengths.cpu().numpy()
        if self.model is None:
            prune = PRUNE if self.prune is None else self.prune
            return _without_model(log_probs, lengths, emissions.blank, self.beam, count, prune)
        if self._search is None:
            raise ValueError(
                "BeamCTC with a language model expects use_tokenizer(tokenizer) before it decodes."
            )
        rows = [row[:frames] for row, frames in zip(log_probs, lengths.tolist())]
        check_scores(np.array([row.max(1, initial=-np.inf).sum(dtype=float) for row in rows]))
        return [[Hypothesis(*found) for found in self._search(row, count)] for row in rows]


def _without_model(
    log_probs: np.ndarray, lengths: np.ndarray, blank: int, beam: int, count: int, prune: float
) -> list[list[Hypothesis]]:
    found = prefix_beam_search(log_probs, lengths, blank, beam=beam, count=min(count, beam), prune=prune)
    return [
        [Hypothesis(tuple(labels[:size]), score) for labels, size, score in zip(*row) if score > -np.inf]
        for row in zip(found.labels.tolist(), found.lengths.tolist(), found.scores.tolist())
    ]
