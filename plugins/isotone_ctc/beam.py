"""CTC beam search: the likeliest label sequence, where greedy decoding takes that of the likeliest path."""

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
        score: Nats: log-probability, and with a language model its weighted share.
    """

    labels: tuple[int, ...]
    score: float


class BeamCTC(Decoder):
    """Prefix beam search, with an n-gram language model if there is one; times by the Viterbi path of the result.

    Without a language model see :func:`isotone.kernels.beam.prefix_beam_search`, with one
    :class:`isotone_ctc.language_model.LanguageModelSearch`.

    Args:
        beam: Hypotheses kept after every frame. Words want more of them than tokens: 64 or so.
        prune: Nats by which a label may score less than its frame's best to make new hypotheses, and with a language
            model a hypothesis less than the best. Default: 12, with a language model of tokens 5.
        model: ARPA file or KenLM binary. Default: no language model.
        alpha: Weight of the language model.
        beta: Nats that every unit of the language model adds: insertion bonus.
        unit: Whether the language model is one of ``"tokens"`` or of ``"words"``. Default: of words where the
            vocabulary has a word delimiter.
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
        """Tell the decoder what the labels are: a language model knows them by name.

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
            The tokens, and frames to tokens with mass 1; ``score`` is the log-probability in nats of their best
            path, as the aligner ``ctc`` gives it.

        Raises:
            AlignmentError: a row is not finite; the message names it.
            ValueError: a language model, and :meth:`use_tokenizer` was not called.
        """
        best = [list(found[0].labels) for found in self.nbest(emissions, 1)]
        targets = Targets.from_lists(best).to(emissions.logits.device)
        return targets, self.viterbi(emissions, targets)

    @torch.no_grad()
    def nbest(self, emissions: Emissions, count: int) -> list[list[Hypothesis]]:
        """The best hypotheses of every row, the best first, at most ``count`` of them; raises as :meth:`__call__`."""
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
