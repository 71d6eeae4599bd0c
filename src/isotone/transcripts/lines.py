"""Reading of NIST's files of lines: CTM, with a word per line, and STM, with an utterance per line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from isotone.alignment import SILENCE
from isotone.format.reading import FormatError, numbered_lines
from isotone.passage import Passage
from isotone.transcripts.passages import passage, seconds

_LABEL = re.compile(r"<[^<>\s]*(?:,[^<>\s]*)+>\s*|<>\s*")
# of the alternatives { um / uh / @ } the first counts; @ is no word
_CHOICE = re.compile(r"\{([^{}/]*)/[^{}]*\}")
# the number of a pronunciation: the(2)
_VARIANT = re.compile(r"(?<=\w)\(\d+\)")
# between <ALT_BEGIN> and <ALT_END> stand alternatives, separated by <ALT>; <b> is a breath
_ALTERNATIVES = frozenset({"<ALT_BEGIN>", "<ALT>", "<ALT_END>"})
_NO_WORDS = _ALTERNATIVES | {"<B>"}
_NO_SPEECH = frozenset({"inter_segment_gap", "excluded_region"})


def ctm(text: str) -> Iterator[Passage]:
    """Read CTM: a passage per word; channels of one recording are speakers, unless the file names these.

    Of alternatives the first counts.

    Raises:
        FormatError: a line is not CTM, or alternatives do not end; the message names the line.
    """
    rows = [(number, line.split()) for number, line in numbered_lines(text) if not line.startswith(";;")]
    for number, fields in rows:
        if len(fields) < 5:
            line = " ".join(fields)
            raise FormatError(
                f"line {number}: expected 'id channel start duration word [confidence]'; got {line[:80]!r}."
            )
    channels: dict[str, set[str]] = {}
    for _, fields in rows:
        channels.setdefault(fields[0], set()).add(fields[1])
    further = 0  # the line at which a second or later alternative begins
    for number, (id, channel, start, duration, word, *more) in rows:
        if word.upper() in _ALTERNATIVES:
            further = number if word.upper() == "<ALT>" else 0
        if further or word.upper() in _NO_WORDS or word.lower() in SILENCE:
            continue
        speaker = channel if len(channels[id]) > 1 else None
        if len(more) > 2 and more[2] not in ("NA", "unknown"):
            speaker = more[2]
        where = f"line {number}"
        end = (seconds(start, where) or 0.0) + (seconds(duration, where) or 0.0)
        yield passage(word.replace("<space>", " "), start, end, where, speaker, (id,))
    if further:
        raise FormatError(
            f"line {further}: expected <ALT_END> after this alternative; got the end of the file."
        )


def stm(text: str) -> Iterator[Passage]:
    """Read STM; marked gaps and excluded regions are left out."""
    for number, line in numbered_lines(text):
        if line.startswith(";;"):
            continue
        fields = line.split(maxsplit=5)
        if len(fields) < 5:
            raise FormatError(
                f"line {number}: expected 'file channel speaker start end [<label>] text'; got {line[:80]!r}."
            )
        id, _, speaker, start, end = fields[:5]
        said = _LABEL.sub("", fields[5], count=1) if len(fields) > 5 else ""
        if speaker in _NO_SPEECH or said.strip() == "ignore_time_segment_in_scoring":
            continue
        said = _VARIANT.sub("", _CHOICE.sub(r"\1", said)).replace("@", " ")
        yield passage(" ".join(said.split()), start, end, f"line {number}", speaker, (id,))
