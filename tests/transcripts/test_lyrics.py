"""Lyrics with times are read as their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotone.transcripts import TranscriptError, open_source
from isotone.transcripts.descriptions import without_descriptions
from isotone.transcripts.lyrics import lrc


def test_lines_last_until_the_next_one() -> None:
    text = "[ar:Ann]\n[ti: so: it]\n\n[00:12.00]so it is\n[0:15:25] on\n[00:20]\n[61:00.5]the end\n[1:00.123]at noon\n"
    assert [(p.text, p.start, p.end, p.where) for p in lrc(text)] == [
        ("so it is", 12.0, 15.25, "line 4"), ("on", 15.25, 20.0, "line 5"), ("at noon", 60.123, 3660.5, "line 8"),
        ("the end", 3660.5, None, "line 7"),
    ]  # fmt: skip


def test_repeated_lines_times_of_words_and_further_lines() -> None:
    words = "<00:01.00>So <00:01.50> it <00:02.00>i<00:02.10>s<00:03.00>"
    text = f"title\n[00:01.00] [00:09.00]{words}\nis on\n[00:04.00]at\n"
    assert [(p.text, p.start, p.end) for p in lrc(text)] == [
        ("So it is\nis on", 1.0, 4.0), ("at", 4.0, 9.0), ("So it is\nis on", 9.0, None),
    ]  # fmt: skip


@pytest.mark.parametrize(("offset", "start"), [("+500", 1.5), ("-500", 2.5), ("5000", 0.0), ("soon", 2.0)])
def test_a_positive_offset_shows_lines_sooner(offset: str, start: float) -> None:
    (found,) = lrc(f"[00:02.00]so\n[offset: {offset}]\n")
    assert found.start == start


def test_round_brackets_are_sung_and_square_ones_are_not() -> None:
    found = list(lrc("[00:01.00](oh yeah)\n[00:02.00][Chorus]\n[00:03.00]so [guitar] it\n"))
    spoken, left_out = without_descriptions(found)
    assert [p.text.split() for p in spoken] == [["(oh", "yeah)"], [], ["so", "it"]]
    assert left_out == ["[Chorus]", "[guitar]"]


def test_a_file_without_times_is_an_error(tmp_path: Path) -> None:
    for name, text in (("a.lrc", "[ar:Ann]\nso it\n"), ("b.lrc", "")):
        (tmp_path / name).write_text(text)
        with pytest.raises(
            TranscriptError, match=rf"{name}.*expected times of lines such as \[00:12.50\]; got none"
        ):
            open_source(tmp_path / name)
    (tmp_path / "c.lrc").write_bytes("[00:01.00]caf\u00e9\r\n[00:02.00]so\r\n".encode("utf-16"))
    assert [p.text for p in open_source(tmp_path / "c.lrc").passages] == ["caf\u00e9", "so"]
