"""The sentences of a page in Markdown, and their lengths in words."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_FENCED = re.compile(r"^ *(```+).*?^ *\1 *$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_IMAGE = re.compile(r"!\[[^]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
_CODE = re.compile(r"(`+).+?\1", re.DOTALL)
_FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.DOTALL)
_ITEM = re.compile(r"^ *(?:[-*+]|\d+\.) +")
_SKIPPED = re.compile(r"^ *(#|\||!!!)")
_END = re.compile(
    r"""(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bal)(?<!\bFig)(?<!\bNo)[.!?]["')*_]*(?=\s+["'(*_]*[A-Z0-9])"""
)
_WORD = re.compile(r"\w")


def sentences(markdown: str) -> Iterator[str]:
    """Iterate over the sentences of paragraphs and lists.

    Code blocks, tables, headings and pictures are left out. A link counts as its text, code in a line as one word.
    """
    text = _COMMENT.sub("", _FENCED.sub("\n\n", _FRONT.sub("", markdown)))
    text = _LINK.sub(r"\1", _IMAGE.sub("", text))
    text = _FORMULA.sub("Formula", _CODE.sub("Code", text))
    for block in _blocks(text):
        start = 0
        for found in _END.finditer(block):
            yield block[start : found.end()].strip()
            start = found.end()
        yield block[start:].strip()


def _blocks(text: str) -> Iterator[str]:
    """Join the lines of each paragraph and of each item of a list."""
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("    ") and not lines:  # indented code
            continue
        item = _ITEM.match(line)
        if item or not line.strip() or _SKIPPED.match(line):
            if lines:
                yield " ".join(lines)
            lines = []
        if line.strip() and not _SKIPPED.match(line):
            lines.append(line[item.end() :] if item else line.strip())


def length(sentence: str) -> int:
    """The number of words: what has a letter or a digit, between spaces."""
    return sum(bool(_WORD.search(part)) for part in sentence.split())


def too_long(markdown: str, most: int) -> list[str]:
    """The sentences with more than ``most`` words, each with its length."""
    return [f"{length(found)}: {found}" for found in sentences(markdown) if length(found) > most]
