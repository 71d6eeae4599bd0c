"""The configuration of decoding: the heads that give text and times, their decoder and their aligners."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotone.text.tokenizer import Tokenizer


class ModelError(ValueError):
    """A model folder cannot be used; the message names the part that is missing or does not match."""


def set_language(tokenizer: Tokenizer, language: str) -> None:
    """Set the language of texts, in place of the one saved with the tokenizer; ModelError if it is not read."""
    try:
        tokenizer.use_language(language)
    except ValueError as error:
        raise ModelError(f"The model does not read the language {language!r}: {error}") from error


@dataclass
class DecodingConfig:
    """The heads that text and times come from. Recipes and saved models have it in their section ``reading``.

    Attributes:
        text: Name of the head that text is decoded from.
        decoder: Decoder of the text: name and options.
        times: Name of the head whose forced alignment of the decoded text gives the times. Empty: the decoder's own.
        aligner: Aligner of the times: name and options; also used when the text is given.
        guide: Name of a head whose alignment restricts the tokens, for an aligner that takes a guide. Where text and
            recording differ, a head with a narrow receptive field fails more often than one that sees the whole
            recording. Empty: none.
        guide_aligner: Aligner of the guide: name and options.
        beside: Name of a head whose scores are mixed into those of the timing head: one that sees more, and is wrong
            less often by 50 ms. Empty: none.
        share: Weight of ``beside`` in the mixture of log-probabilities, 0 to 1; the timing head has the rest.
        refine: Weight of the sound against the aligner in the place of boundaries, see
            :mod:`isotone.audio.boundaries`. 0: they stay where the aligner placed them.
        rescore: Weight of the timing head in the choice among the decoder's hypotheses, see
            :func:`isotone.pipeline.rescoring.rescored`. 0: the decoder alone.
        hypotheses: Most hypotheses to choose from.
    """

    text: str
    decoder: dict[str, Any]
    times: str = ""
    aligner: dict[str, Any] = field(default_factory=dict)
    guide: str = ""
    guide_aligner: dict[str, Any] = field(default_factory=dict)
    beside: str = ""
    share: float = 0.2
    refine: float = 0.0
    rescore: float = 0.0
    hypotheses: int = 32

    def check_heads(self, heads: Sequence[str]) -> None:
        """Raise ModelError unless the configuration fits a model with these heads."""
        for name in (self.text, self.times, self.guide, self.beside):
            if name and name not in heads:
                raise ModelError(f"Text or times are read from a head {name!r}; the model has {list(heads)}.")
        if self.rescore < 0 or self.hypotheses < 1:
            raise ModelError(
                f"reading.rescore is a weight of 0 or more; got {self.rescore}. It chooses among one of "
                f"reading.hypotheses or more; got {self.hypotheses}."
            )
        if not 0 <= self.refine < math.inf:
            raise ModelError(f"reading.refine is a weight of 0 or more, such as 5; got {self.refine}.")
        if self.rescore and not self.times:
            raise ModelError("reading.rescore is the weight of another head, and reading.times names none.")
        if self.beside and not (self.times and self.beside != self.times and 0 <= self.share <= 1):
            raise ModelError(
                "reading.beside names a head to mix with another one, reading.times, and reading.share is its weight "
                f"from 0 to 1; got {self.beside!r}, {self.times!r} and {self.share}."
            )
        if self.guide and not self.guide_aligner:
            raise ModelError(f"The guide {self.guide!r} needs an aligner: guide_aligner: {{name: ctc}}.")
