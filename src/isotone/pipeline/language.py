"""Texts in another language than the model's: wrong ones of which a lexicon of its language lists few words.

Both must hold. Names and jargon that fit the sound are no other language. A text in another language that is read
aloud fits the sound as well, and is judged by that alone. Where the model has no labels for most of a text, the text
cannot fit, and its words decide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, Self

from isotone.model.check import Check, usable
from isotone.pipeline.doubt import doubtful
from isotone.pipeline.result import Result
from isotone.pipeline.verdict import NO_SPEECH, WRONG
from isotone.text.transcript import Transcript

#: Verdict on such a text.
ANOTHER_LANGUAGE = "another language"

#: Least share of the different words of a text in the model's language that its lexicon lists. Fewer are listed of
#: 0.1 % of LibriSpeech's sentences with eight different words or more. In German, Spanish, Italian, Polish, Portuguese,
#: Czech and Esperanto fewer are listed of 96 to 100 % of such texts.
LEAST_FAMILIAR = 0.8

#: Share of words for which the model has no labels, as in other scripts, above which a text is not read.
MOST_UNREAD = 0.5


class Signs(NamedTuple):
    """Signs of a text that it is in another language.

    Attributes:
        familiar: Share of its different words that the lexicon lists; None where that is not known.
        unread: True where the model has no labels for most of its words.
    """

    familiar: float | None
    unread: bool

    @classmethod
    def of(cls, transcript: Transcript) -> Self:
        """Return the signs of a text."""
        return cls(transcript.familiar, transcript.unread > MOST_UNREAD * len(transcript.words))


def another_language(signs: Signs, agreement: float | None, check: Check | None, verdict: str = "") -> str:
    """Return a warning of a text in another language; empty where it is not known to be one.

    Args:
        signs: What its words say.
        agreement: Its agreement with the audio, where known.
        check: The model's threshold of the agreement.
        verdict: The verdict on it so far, where there is one.
    """
    if signs.familiar is None or signs.familiar >= LEAST_FAMILIAR or verdict == NO_SPEECH:
        return ""
    if not (signs.unread or verdict == WRONG or doubtful(agreement, usable(check))):
        return ""
    share = f"of its different words {100 * signs.familiar:.0f} % are in the model's lexicon"
    return f"the text is in another language than the model's: {share}"


def in_language(result: Result, transcript: Transcript, check: Check | None) -> Result:
    """Give a result the verdict that its text is in another language, with a warning, where it is."""
    verdict = result.alignment.verdict
    warning = another_language(Signs.of(transcript), result.agreement, check, verdict)
    if not warning:
        return result
    alignment = replace(result.alignment, verdict=ANOTHER_LANGUAGE)
    return replace(result, alignment=alignment, warnings=(*result.warnings, warning))
