"""The command align with subtitles in and out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.batch.parts import echo, say
from tests.tiny_models import error_of, isotone, lines_of, save_noise

SRT = """1
00:00:00,500 --> 00:00:01,500
<i>So it</i>

2
00:00:01,600 --> 00:00:01,700
[music]

3
00:00:02,400 --> 00:00:01,400
- is
- on
"""
TIMES = r"\d\d:\d\d:\d\d[,.]\d{3}"


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    speech = save_noise(tmp_path / "talk.wav", 4.0)
    (tmp_path / "talk.srt").write_text(SRT)
    return speech


def test_the_cues_that_were_given_come_back_with_other_times(model: Path, talk: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    formats = ("-f", "srt", "-f", "vtt", "-f", "ass", "-f", "ttml")
    said = isotone("align", talk, tmp_path / "talk.srt", "-m", model, *formats, "--no-check", "-o", out)
    text = (out / "talk.srt").read_text()
    assert re.sub(TIMES, "T", text) == re.sub(TIMES, "T", SRT)
    assert text != SRT
    assert (out / "talk.vtt").read_text().count("-->") == (out / "talk.ttml").read_text().count("<p ") == 3
    (row,) = lines_of(out / "warnings.jsonl")
    for part in (
        "talk.srt, cue 3: it ends at 1.4 s, before its start at 2.4 s; it is taken to end where the next one starts",
        "1 of 3 cues has no word with a time and moved with the cues around: cue 2",
    ):
        assert row["warning"].count(part) == 1
        assert part in " ".join(said.stderr.split())


def test_descriptions_in_brackets_are_no_speech(model: Path, talk: Path, tmp_path: Path) -> None:
    (tmp_path / "talk.srt").write_text(
        SRT.replace("[music]", "[door slams]").replace("is\n", "is (SIREN WAILS)\n")
    )
    command = ("align", talk, "-m", model, "-f", "srt", "-f", "csv", "-o")
    isotone(*command, tmp_path / "out")
    assert re.findall(r'"words","(.+?)"', (tmp_path / "out/talk.csv").read_text()) == [
        "So",
        "it",
        "- is",
        "- on",
    ]
    text = (tmp_path / "out/talk.srt").read_text()
    assert re.sub(TIMES, "T", text) == re.sub(TIMES, "T", (tmp_path / "talk.srt").read_text())
    (row,) = lines_of(tmp_path / "out/warnings.jsonl")
    said = "left out as descriptions in brackets (--keep-markup reads them): '[door slams]', '(SIREN WAILS)'"
    assert said in row["warning"]
    isotone(*command, tmp_path / "all", "--keep-markup")
    assert "door" in (tmp_path / "all/talk.csv").read_text()


def test_options_of_formats_on_the_command_line(model: Path, talk: Path, tmp_path: Path) -> None:
    command = ("align", talk, "-m", model, "-o", tmp_path / "out")
    isotone(*command, "-f", "{name: srt, level: word}")
    assert (tmp_path / "out/talk.srt").read_text().count("-->") == 4
    isotone(*command, "-f", "{name: srt, cues: new}")
    assert (tmp_path / "out/talk.srt").read_text().count("-->") < 4, "other options are another file"
    assert "1 of them there before" in isotone(*command, "-f", "{cues: new, name: srt}").stdout
    for spec, message in {
        "{name: srt, levle: word}": "The format 'srt' has no option 'levle'. Did you mean 'level'?",
        "{name: textgrid, level: word}": "The format 'textgrid' has no option 'level'.",
        "{name: srt, level: letter}": "'line' or 'word'; got 'letter'",
        "{srt}": "'{srt}' is no YAML mapping such as {name: srt, level: word}.",
        "{level: word}": "is no YAML mapping such as",
    }.items():
        assert message in error_of(*command, "-f", spec)
    message = error_of(*command, "-f", "srt", "-f", "{name: srt, level: word}")
    assert "both write .srt files: give one" in message


def test_a_transcript_is_never_replaced(model: Path, talk: Path, tmp_path: Path) -> None:
    for more in ((), ("--overwrite",)):
        for given in ((), (tmp_path / "talk.srt",)):
            command = ("align", talk, *given, "-m", model, "-f", "srt", "-o", tmp_path, *more)
            message = isotone(*command, code=2).stderr
            assert "talk.srt: it is an input" in message
            assert "Choose another --out." in message
    assert (tmp_path / "talk.srt").read_text() == SRT
    # of a link to it the link alone is replaced
    (tmp_path / "out").mkdir()
    (tmp_path / "out/talk.srt").symlink_to(tmp_path / "talk.srt")
    isotone("align", talk, "-m", model, "-f", "srt", "-o", tmp_path / "out", "--overwrite")
    assert (tmp_path / "talk.srt").read_text() == SRT


def test_formats_with_options_are_of_the_python_api(tmp_path: Path) -> None:
    say(tmp_path / "in/a.wav", "so it is", 16_000)
    echo(tmp_path / "in", tmp_path / "out", formats=({"name": "srt", "reading_speed": 0}, "vtt"))
    assert "--> 00:00:01,000\nso it is" in (tmp_path / "out/a.srt").read_text()
    assert (tmp_path / "out/a.vtt").is_file()


def test_nothing_moves_where_the_text_is_not_what_is_said(model: Path, talk: Path, tmp_path: Path) -> None:
    said = isotone("align", talk, "-m", model, "-f", "srt", "-o", tmp_path / "out", "--strict", code=2)
    assert "the text is likely not what is said in 1" in said.stderr
    (row,) = lines_of(tmp_path / "out/warnings.jsonl")
    assert "the cues keep the times that they had" in row["warning"]
    assert (tmp_path / "out/talk.srt").read_text().splitlines()[:6] == SRT.splitlines()[:6]
