"""The words of the documentation: sentences of 25 words at most."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doc_links import pages
from tests.doc_sentences import length, sentences, too_long
from tests.paths import ROOT

MOST = 25
PAGES = [page for page in pages() if page.name != "CHANGELOG.md" and "reference" not in page.parts]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_sentences_are_short(page: Path) -> None:
    found = too_long(page.read_text(encoding="utf-8"), MOST)
    assert not found, "\n".join(found)


def test_sentences_are_found() -> None:
    page = """---
title: a page with front matter
---
# A heading that is none. Really

One is here, with [a link of five words](https://example.org/a.b?c). Two has `code that counts as one` and 3.4.1
in it! (Three is in brackets.) "Four" asks: e.g. where?

| a | table. Is none |
|---|---|

![Three words here](a.png)

- An item ends without a point
- Another one

```sh
isotone align a.wav   # No sentence. None
```

    indented code. Is none

Last one, with $x + y. Z$ in it.
"""
    found = list(sentences(page))
    assert [text.split()[0].strip('"(') for text in found] == [
        "One", "Two", "Three", "Four", "An", "Another", "Last",
    ]  # fmt: skip
    assert [length(text) for text in found] == [9, 7, 4, 4, 6, 2, 6]
    assert too_long(page, 8) == [f"9: {found[0]}"]
