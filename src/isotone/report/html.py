"""One self-contained HTML page: text, tables, figures, code and sound, with nothing to fetch."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from isotone.files import atomic_write
from isotone.report.markup import fill, read
from isotone.report.sections import Heading, Section


def page(
    title: str,
    sections: Sequence[Section],
    *,
    subtitle: str = "",
    facts: Mapping[str, object] | None = None,
    language: str = "en",
    wide: bool = False,
) -> str:
    """Fill the page's template; see :func:`write_report`. ``wide`` takes all of the window's width."""
    keyed = [(f"s{i}", section) for i, section in enumerate(sections, 1)]
    script = "".join(dict.fromkeys(s.script for s in sections))
    return fill(
        "page",
        title=title, subtitle=subtitle, facts=facts or {}, language=language, wide=wide,
        contents=[(key, s.title) for key, s in keyed if isinstance(s, Heading) and s.level == 2],
        css=read("page.css") + "".join(dict.fromkeys(s.css for s in sections)),
        body="\n".join(section.markup(key) for key, section in keyed),
        script=script, trusted=_digest(script),
    )  # fmt: skip


def _digest(script: str) -> str:
    """Return the digest by which a browser knows the page's own script, and runs no other."""
    # the template puts a line break before it
    digest = hashlib.sha256(f"\n{script}".encode()).digest()
    return base64.b64encode(digest).decode("ascii")


def write_report(
    path: Path | str,
    title: str,
    sections: Sequence[Section],
    *,
    subtitle: str = "",
    facts: Mapping[str, object] | None = None,
    language: str = "en",
) -> Path:
    """Write a self-contained page: it needs no network, and follows the reader's light or dark setting.

    All text is escaped; labels may hold anything. Equal contents give equal files.

    Args:
        path: Where the page goes.
        title: Heading and name of the window.
        sections: Text, tables, figures ... in order; :class:`Heading` separates them.
        subtitle: One sentence below the title.
        facts: Short facts below that: corpus, date, version.
        language: Language of the text, as HTML names it.

    Returns:
        The file written.
    """
    path = Path(path)
    text = page(title, sections, subtitle=subtitle, facts=facts, language=language)
    with atomic_write(path) as file:
        file.write(text)
    return path
