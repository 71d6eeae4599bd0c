"""One self-contained HTML page: text, tables, figures, code and sound, with nothing to fetch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from isotone.files import atomic_write
from isotone.report.assets import CSS, POLICY
from isotone.report.markup import escape
from isotone.report.sections import Heading, Section


def page(
    title: str,
    sections: Sequence[Section],
    *,
    subtitle: str = "",
    facts: Mapping[str, object] | None = None,
    language: str = "en",
) -> str:
    """The page's HTML; see :func:`write_report`."""
    keys = [f"s{i}" for i in range(1, len(sections) + 1)]
    body = "\n".join(section.markup(key) for key, section in zip(keys, sections))
    heads = [(k, s) for k, s in zip(keys, sections) if isinstance(s, Heading) and s.level == 2]
    links = "".join(f'<li><a href="#{k}">{escape(s.title)}</a></li>' for k, s in heads)
    contents = f'<nav aria-label="Contents"><ol>{links}</ol></nav>' if len(heads) > 1 else ""
    rows = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in (facts or {}).items())
    listed = f'<dl class="facts">{rows}</dl>' if rows else ""
    below = f'<p class="subtitle">{escape(subtitle)}</p>' if subtitle else ""
    css = CSS + "".join(dict.fromkeys(s.css for s in sections))
    script = "".join(dict.fromkeys(s.script for s in sections))
    return f"""<!DOCTYPE html>
<html lang="{escape(language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{css}</style>
</head>
<body>
<div class="layout">
<header><h1>{escape(title)}</h1>{below}{listed}</header>
{contents}
<main>
{body}
</main>
<footer>Written by isotone. This page is one file: everything it shows is inside it.</footer>
</div>
{f"<script>{script}</script>" if script else ""}
</body>
</html>
"""


def write_report(
    path: Path | str,
    title: str,
    sections: Sequence[Section],
    *,
    subtitle: str = "",
    facts: Mapping[str, object] | None = None,
    language: str = "en",
) -> Path:
    """Write a self-contained page: it opens anywhere, needs no network, is light or dark as set.

    All text is escaped; labels may hold anything. Equal contents give equal files.

    Args:
        path: Where the page goes.
        title: Heading and name of the window.
        sections: Text, tables, figures ... in order; :class:`Heading` parts them.
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
