"""One self-contained HTML page: text, tables, figures, code and sound, with nothing to fetch."""

from __future__ import annotations

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
) -> str:
    """Fill the page's template; see :func:`write_report`."""
    keyed = [(f"s{i}", section) for i, section in enumerate(sections, 1)]
    return fill(
        "page",
        title=title, subtitle=subtitle, facts=facts or {}, language=language,
        contents=[(key, s.title) for key, s in keyed if isinstance(s, Heading) and s.level == 2],
        css=read("page.css") + "".join(dict.fromkeys(s.css for s in sections)),
        body="\n".join(section.markup(key) for key, section in keyed),
        script="".join(dict.fromkeys(s.script for s in sections)),
    )  # fmt: skip


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
