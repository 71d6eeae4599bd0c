"""The repository's pages, and the links of a page that lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path

from tests.paths import ROOT

_FENCED = re.compile(r"^ *(```+).*?^ *\1$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def pages() -> list[Path]:
    """The pages of the documentation, READMEs included."""
    folders = ("docs", "plugins", "recipes", "benchmarks")
    found = {path for folder in folders for path in (ROOT / folder).rglob("*.md")}
    # beside models: cards of the hub
    found = {path for path in found if path.parent.name != "model"}
    return sorted(
        found | {ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")}
    )


def broken_links(page: Path) -> list[str]:
    """The relative links of a page whose file or heading does not exist."""
    text = _CODE.sub("", _FENCED.sub("", page.read_text(encoding="utf-8")))
    return [link for link in _LINK.findall(text) if "://" not in link and not _leads_somewhere(page, link)]


def _leads_somewhere(page: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not target.exists():
        return False
    if not anchor:
        return True
    if target.suffix != ".md":
        return bool(re.fullmatch(r"L\d+", anchor))
    text = _FENCED.sub("", target.read_text(encoding="utf-8"))
    return anchor in {_anchor(heading) for heading in _HEADING.findall(text)}


def _anchor(heading: str) -> str:
    """A heading's anchor, as GitHub and the site make it."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
