"""Hooks of MkDocs: pages that lie elsewhere in the repository, pages made from the code, and links between all of them.

A page of ``docs/`` has the same place on the site; every other page and linked file has its path in the repository. So
``plugins/isotone_ctc/README.md`` is one file for GitHub and the site.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

from docs import reference
from docs.docstrings import DISPLAY, MATH

ROOT = Path(__file__).resolve().parent.parent
#: What is added to pages, made from the code.
_ADDED = {"reference/commands.md": reference.commands, "reference/kernels.md": reference.kernels}
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_ITEM = re.compile(r" *([-*]|\d+\.) ")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that the navigation names from outside ``docs/``, and what they link to."""
    waiting = [ROOT / "docs" / file.src_uri for file in files if file.src_uri.endswith(".md")]
    waiting += [ROOT / name for name in _named(config.nav)]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        if files.get_file_from_path(place_of(path)) is None:
            files.append(File.generated(config, place_of(path), abs_src_path=str(path)))
        if path.suffix == ".md":
            waiting += [target for target in _targets(path) if target.is_file()]
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Make a page's links those of the site, and its lists those of Python-Markdown."""
    if page.file.src_uri in _ADDED:
        markdown += "\n" + _ADDED[page.file.src_uri]()
    source = ROOT / page.file.src_uri
    if not source.is_file():
        source = ROOT / "docs" / page.file.src_uri

    def link(match: re.Match[str]) -> str:
        target = (source.parent / match[2]).resolve()
        if "://" in match[2] or not target.exists():
            return match[0]  # a link that leads nowhere is for MkDocs to name
        if target.is_dir() and not (target / "README.md").is_file():
            return f"{match[1]}{_up(page)}parts.md{match[4]}"
        place = place_of(target / "README.md" if target.is_dir() else target)
        return f"{match[1]}{_up(page)}{place}{match[3] or ''}{match[4]}"

    return "\n".join(line if code else _LINK.sub(link, line) for code, line in _spaced(markdown.split("\n")))


def on_page_content(html: str, **_: Any) -> str:
    """Make the formulas of docstrings MathML, which browsers draw without a script."""

    def formula(match: re.Match[str]) -> str:
        return str(convert(unescape(match[2]), display="block" if match[1] == DISPLAY else "inline"))

    return re.sub(rf"<code>({MATH}|{DISPLAY})(.*?)</code>", formula, html)


def place_of(path: Path) -> str:
    """The path on the site of a file of the repository."""
    return path.relative_to(ROOT).as_posix().removeprefix("docs/")


def _up(page: Any) -> str:
    up = os.path.relpath(".", Path(page.file.src_uri).parent).replace(os.sep, "/")
    return "" if up == "." else f"{up}/"


def _named(nav: Any) -> Iterator[str]:
    """The pages that the navigation names, at any depth."""
    for item in nav:
        value = next(iter(item.values())) if isinstance(item, dict) else item
        if isinstance(value, str):
            yield value
        else:
            yield from _named(value)


def _targets(path: Path) -> Iterator[Path]:
    """The files of the repository that a page links to; a folder stands for its README."""
    for code, line in lines(path.read_text(encoding="utf-8").split("\n")):
        for match in () if code else _LINK.finditer(line):
            target = (path.parent / match[2]).resolve()
            if "://" not in match[2] and target.is_relative_to(ROOT):
                yield target / "README.md" if target.is_dir() else target


def lines(text: list[str]) -> Iterator[tuple[bool, str]]:
    """Lines with True for those of fenced code."""
    fence = ""
    for line in text:
        mark = re.match(r" *(```+)", line)
        if mark and not fence:
            fence = mark[1]
            yield True, line
        else:
            yield bool(fence), line
            if mark and mark[1] == fence:
                fence = ""


def _spaced(text: list[str]) -> Iterator[tuple[bool, str]]:
    """The same with an empty line before a list that follows a paragraph, which GitHub does not need."""
    last = ""
    for code, line in lines(text):
        item = not code and _ITEM.match(line)
        if item and last.strip() and not _ITEM.match(last) and not last.startswith(" "):
            yield False, ""
        yield code, line
        last = line
