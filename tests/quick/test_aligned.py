"""Alignments of one call: saved, printed, and shown in a notebook."""

from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from isotone import format as files
from isotone.alignment import Alignment, Segment, Tier
from isotone.format import FormatError
from isotone.quick import Aligned
from isotone.quick.figure import PIECE_S, PIECES

EVIL = '<script>alert("x")</script> & {0} $\\frac{x'


def aligned(seconds: float = 2.0, text: str = "so it is", warnings: tuple[str, ...] = ()) -> Aligned:
    """An alignment with one phone per letter."""
    words = text.split()
    step = seconds / (len(words) + 1)
    spans = [(word, (i + 0.5) * step, (i + 1.4) * step) for i, word in enumerate(words)]
    phones = [
        Segment(letter, start + (end - start) * i / len(word), start + (end - start) * (i + 1) / len(word))
        for word, start, end in spans
        for i, letter in enumerate(word)
    ]
    tiers = (Tier("words", tuple(Segment(*span) for span in spans)), Tier("phones", tuple(phones)))
    samples = np.random.default_rng(0).normal(0, 0.1, round(16_000 * seconds)).astype(np.float32)
    return Aligned(Alignment("talk", seconds, tiers, -0.5), text, "tiny", warnings, 0.9, samples)


@pytest.mark.parametrize("name", ["a.TextGrid", "a.json", "a.csv", "a.ctm", "A.TEXTGRID"])
def test_the_suffix_is_the_format(tmp_path: Path, name: str) -> None:
    path = aligned().save(tmp_path / "new" / name)
    assert files.read(path).tier("words").labels == ["so", "it", "is"] or [
        x for x in files.read(path).tier("words").labels if x
    ] == ["so", "it", "is"]


def test_a_format_can_be_named(tmp_path: Path) -> None:
    path = aligned().save(tmp_path / "a.txt", format="textgrid")
    assert path.read_text().startswith("File type")
    with pytest.raises(LookupError, match="Did you mean 'textgrid'"):
        aligned().save(tmp_path / "b", format="textgird")
    with pytest.raises(FormatError, match=r"\.docx.*format="):
        aligned().save(tmp_path / "a.docx")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_nothing_is_replaced_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.TextGrid"
    path.write_text("by hand")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        aligned().save(path)
    assert path.read_text() == "by hand"
    aligned().save(path, overwrite=True)
    assert path.read_text() != "by hand"
    assert [p.name for p in tmp_path.iterdir()] == ["a.TextGrid"]


def test_print_shows_a_table() -> None:
    lines = str(aligned(warnings=("it is short",))).splitlines()
    assert lines[0] == "talk: 2.000 s, model tiny, score -0.50"
    assert lines[1].split() == ["start", "end", "words"]
    assert lines[2].split() == ["0.250", "0.700", "so", "s", "o"]
    assert [line.split()[2:] for line in lines[3:5]] == [["it", "i", "t"], ["is", "i", "s"]]
    assert lines[5] == "warning: it is short"
    assert "samples" not in repr(aligned()), "an array has no place there"


class Page(HTMLParser):
    """Elements of a page, with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_notebook_shows_pictures_and_runs_nothing() -> None:
    found = aligned(text=EVIL, warnings=(EVIL,))
    html = found._repr_html_()
    page = Page(html)
    assert {tag for tag, _ in page.elements} == {"div", "p", "img"}
    assert EVIL in page.text, "the warning, as text"
    (image,) = (attributes for tag, attributes in page.elements if tag == "img")
    assert image["alt"] == EVIL
    kind, _, data = (image["src"] or "").partition(",")
    assert kind == "data:image/png;base64"
    picture = matplotlib.image.imread(io.BytesIO(base64.b64decode(data)))
    assert picture.shape[0] > 200
    assert picture.std() > 0.05, "something is drawn"
    assert not re.findall(r"https?://", html), "nothing to fetch"


def test_long_recordings_are_shown_in_pieces() -> None:
    assert aligned(PIECE_S + 0.1)._repr_html_().count("<img") == 2
    long = aligned(PIECE_S * PIECES + 30)._repr_html_()
    assert long.count("<img") == PIECES
    assert "print()" in long
    assert "print()" not in aligned()._repr_html_()
