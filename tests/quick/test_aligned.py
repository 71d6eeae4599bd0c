"""Alignments of one call: saved, printed, and shown in a notebook."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from isotone import format as files
from isotone.alignment import Alignment, Origin, Segment, Tier
from isotone.format import FormatError
from isotone.quick import Aligned
from isotone.quick.figure import PIECE_S, PIECES
from isotone.registries import formats
from isotone.registry import OptionError
from isotone.transcripts import numbered, subtitles

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


def test_an_ending_that_no_format_has_is_an_error_with_all_that_some_have(tmp_path: Path) -> None:
    with pytest.raises(FormatError) as error:
        aligned().save(tmp_path / "a.foo")
    known = {formats.build(name).suffix.lower() for name in formats.names()} | {".phn", ".wrd"}
    assert {".ass", ".ttml", ".rttm", ".srt", ".eaf"} <= known
    assert set(re.findall(r"\.[\w.]*\w(?=[,.] )", str(error.value).split("these have one: ")[1])) == known
    assert aligned().save(tmp_path / "a.supervisions.jsonl").is_file()
    with pytest.raises(FormatError, match=r"expected a suffix of .*\.csv") as error:
        files.read(tmp_path / "a.foo")
    assert ".srt" not in str(error.value), "it can be written alone"


def test_options_of_a_format(tmp_path: Path) -> None:
    for name, arguments in {
        "a": {"level": "word"},
        "b": {"format": {"name": "srt", "level": "word"}},
        "c": {"format": "srt", "level": "word"},
    }.items():
        text = aligned().save(tmp_path / f"{name}.srt", **arguments).read_text()  # type: ignore[arg-type]
        assert text.count("-->") == 3
    with pytest.raises(OptionError, match=r"'srt' has no option 'levle'\. Did you mean 'level'"):
        aligned().save(tmp_path / "d.srt", levle="word")
    with pytest.raises(OptionError, match="'textgrid' has no option 'level'"):
        aligned().save(tmp_path / "d.TextGrid", level="word")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.srt", "b.srt", "c.srt"]


def test_subtitles_that_were_given_keep_their_cues(tmp_path: Path) -> None:
    srt = "1\n00:00:00,000 --> 00:00:01,000\n<i>so</i>\n\n2\n00:00:01,100 --> 00:00:02,000\n♪\n"
    given = numbered(subtitles.srt(srt))
    word = Segment("so", 0.5, 0.9, origin=Origin("so", 3, 5, "so", 0))
    one = replace(aligned(), alignment=Alignment("talk", 3.0, (Tier("words", (word,)),), passages=given))
    with pytest.warns(UserWarning, match="1 of 2 cues has no word with a time .*: cue 2"):
        path = one.save(tmp_path / "a.srt", reading_speed=0)
    assert path.read_text().startswith("1\n00:00:00,500 --> 00:00:00,900\n<i>so</i>\n\n2\n00:00:01,600 -->")


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
