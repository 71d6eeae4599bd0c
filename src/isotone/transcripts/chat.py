"""Reading of CHAT, the transcripts of CHILDES and TalkBank: what was said, without its codes.

What counts is what was said, not what was meant. So repetitions and corrected words stay. Replacements are left out, as
are the parts of words that were not said (``(be)cause``). Speech that is not written down as words is ``*``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from isotone.alignment import STAR
from isotone.format.reading import FormatError
from isotone.passage import Passage
from isotone.transcripts.passages import passage
from isotone.transcripts.tiers import spoken

_MAIN = re.compile(r"\*([^:\s]+):[ \t]*(.*)", re.DOTALL)
# between two characters U+0015 stands a part of the recording in milliseconds, in older files after a file's name
_BULLET = re.compile(r"[\x15\u2022]([^\x15\u2022\n]*)[\x15\u2022]")
_SPAN = re.compile(r"(\d+)_(\d+)")
_CONVERSATION = re.compile(r"^@Options:.*\bCA\b", re.MULTILINE)

_UNDERLINE = re.compile("\x02[\x01\x02]")
_CODE = re.compile(r"\[(?!x \d)[^\[\]]*\]")
# the word or group before [x 3] was said three times
_REPEATED = re.compile(r"(<[^<>]*>|(?:(?<=[\s<])|^)[^\s<>]+|^)\s*\[x (\d{1,3})\d*\]")
_MOST_REPEATED = 50
_PAUSE = re.compile(r"\([\d.:]*\)")
_OMITTED = re.compile(r"0(?!\d)\S*")
_UNKNOWN = re.compile(r"(?:xxx?|yyy?|www)(?=[.,;?!]*$)", re.IGNORECASE)
_FORM = re.compile(r"@([a-z]*)[\w:+&-]*")
_PART_OF_SPEECH = re.compile(r"\$[\w:]+")
_NOT_SAID, _WHOLE = re.compile(r"\([^()]*\)"), re.compile(r"\(([^()]+)\)")
# groups, overlaps with their numbers, stress, lengthening, pauses between syllables, and marks of conversation analysis
_MARKS = re.compile(
    "[\u2308\u2309\u230a\u230b][2-9]?|(?<!\\d):+|[<>\u2039\u203a\u3014\u3015^~\u02c8\u02cc\u2021\u201e\u2191\u2193\u21bb\u2260"
    "\u2219\u223e\u2051\u2906\u2907\u2047\u00a7\u204e\u00b0\u21ab\u2206\u2207\u222c\u222e\u2581\u2594\u25c9\u263a\u264b"
    "\u2190\u2192\u2196-\u2199\u21d7\u21d8\u2248\u224b\u221e\u2261]"
)
# a mark goes with the word before it, and is left out at the beginning and after *
_SPACE_BEFORE_MARK = re.compile(r" +(?=[.,;?!]+(?: |$))")
_LOOSE_MARK = re.compile(r"(^|\*)[.,;?!]+(?= |$)")


def read(text: str, tiers: Sequence[str] = ()) -> Iterator[Passage]:
    """Read the main lines of CHAT; their codes are the speakers.

    Args:
        text: The text of the file.
        tiers: The speakers to read, see :func:`isotone.transcripts.tiers.spoken`; by default all.

    Raises:
        FormatError: a main line without a speaker, or no such speaker; the message names the line.
    """
    rows = list(_main_lines(text))
    names = list(dict.fromkeys(name for _, name, _ in rows))
    speakers = spoken(names, tiers) if tiers else {name: name for name in names}
    conversation = _CONVERSATION.search(text) is not None
    for number, name, line in rows:
        if name not in speakers:
            continue
        *parts, rest = _BULLET.split(line)
        for written, bullet in [*zip(parts[::2], parts[1::2]), (rest, "")]:
            said = words_of(written, conversation)
            span = _SPAN.search(bullet)
            start, end = (int(ms) / 1000 for ms in span.groups()) if span else (None, None)
            if any(c.isalnum() or c == STAR for c in said):
                yield passage(said, start, end, f"line {number}", speakers[name])


def _main_lines(text: str) -> Iterator[tuple[int, str, str]]:
    """Iterate over main lines with those that continue them: number, speaker and text."""
    numbered: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line[:1] in ("\t", " ") and numbered:
            numbered[-1] = numbered[-1][0], f"{numbered[-1][1]} {line.strip()}"
        else:
            numbered.append((number, line))
    for number, line in numbered:
        if not line.startswith("*"):
            continue
        if (found := _MAIN.fullmatch(line)) is None:
            raise FormatError(f"line {number}: expected '*SPEAKER:' and what was said; got {line[:80]!r}.")
        yield number, found[1], found[2]


def words_of(line: str, conversation: bool = False) -> str:
    """Return what was said in a main line of CHAT.

    Args:
        line: The line after its speaker, without times.
        conversation: The file is of conversation analysis, where a whole word in brackets was hard to hear.
    """
    line = _REPEATED.sub(_repeated, _CODE.sub(" ", _UNDERLINE.sub("", line)))
    said = (_said(token, conversation) for token in line.split())
    return _LOOSE_MARK.sub(r"\1", _SPACE_BEFORE_MARK.sub("", " ".join(word for word in said if word))).strip()


def _repeated(found: re.Match[str]) -> str:
    return " ".join([found[1]] * min(int(found[2]), _MOST_REPEATED))


def _said(token: str, conversation: bool) -> str:
    """Return what was said of a part of a line without spaces; empty for a code."""
    # linkers and terminators of utterances; events; older marks of pauses
    if token.startswith(("+", "#")):
        return ""
    token = token.lstrip("<\u2039\u3014")
    if token.startswith(("&=", "&{", "&}")) or _PAUSE.fullmatch(token) or _OMITTED.fullmatch(token):
        return ""
    if token.startswith("&"):
        # a filler and a form that is no word can be read; fragments and another speaker's words cannot
        if token[1:2] not in ("-", "~"):
            return STAR
        token = token[2:]
    form = _FORM.search(token)
    kind = form[1] if form else ""
    if kind in ("sl", "u"):  # signs of the hands; a phonetic transcription
        return STAR if kind == "u" else ""
    word = _MARKS.sub("", _PART_OF_SPEECH.sub("", _FORM.sub("", token)))
    whole = _WHOLE.fullmatch(word) if conversation else None
    word = whole[1] if whole else _NOT_SAID.sub("", word)
    if _UNKNOWN.match(word):
        return STAR
    if kind == "k":
        return " ".join(word)
    return word.replace("+", "-").replace("_", " ")
