"""Paths of a command line: recordings, folders, and transcripts of recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotone.batch.inputs import absolute
from isotone.batch.pairs import Given, paired
from tests.tiny_models import error_of, isotone, names_in, save_noise


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with recordings and texts of the names that the tests use."""
    names = (
        "a.wav",
        "b.wav",
        "s1/a.wav",
        "s2/c.flac",
        "a.txt",
        "talk.txt",
        "s1/a.txt",
        "c.lab",
        "a.srt",
        "t/x.txt",
    )
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def given(*names: str, text: str = "") -> dict[str, str]:
    """Pair paths, and return the pairs."""
    found = paired([Path(name) for name in names], Path(text) if text else None)
    here = Path.cwd()
    return {r.relative_to(here).as_posix(): t.as_posix() for r, t in found.transcripts.items()}


def test_transcripts_belong_to_the_recordings_of_their_names(here: Path) -> None:
    assert given("a.wav", "talk.txt") == {"a.wav": "talk.txt"}, "one and one, whatever their names"
    assert given("talk.txt", "a.wav") == {"a.wav": "talk.txt"}, "in any order"
    assert given("s2", "talk.txt") == {"s2/c.flac": "talk.txt"}, "the only recording of a folder"
    assert given("a.wav", "b.wav", "a.txt") == {"a.wav": "a.txt"}, "the other's is looked for beside it"
    assert given("a.wav", "s2", "c.lab") == {"s2/c.flac": "c.lab"}
    assert given("a.wav", "s1", "a.txt", "s1/a.txt") == {"a.wav": "a.txt", "s1/a.wav": "s1/a.txt"}, (
        "beside it"
    )
    assert given("a.wav", "b.wav", "a.txt", "a.srt") == {"a.wav": "a.txt"}, "text goes before subtitles"
    assert given("b.wav", text="a.txt") == {"b.wav": "a.txt"}
    assert paired([Path("s1"), Path("b.wav")]) == Given([Path("s1"), Path("b.wav")])
    assert paired([Path("b.wav")]).transcripts.get(absolute(Path("b.wav"))) is None


@pytest.mark.parametrize(
    ("names", "text", "message"),
    [
        (["a.txt"], "", "No recording: a.txt would be its transcript"),
        (
            ["a.wav", "b.wav", "talk.txt"],
            "",
            r"talk.txt is named after none of the recordings \(a.wav, b.wav\)",
        ),
        (["a.wav", "gone.txt"], "", "No transcript gone.txt"),
        (["a.wav"], "gone.txt", "No transcript gone.txt"),
        (["a.wav", "a.txt"], "talk.txt", "--text talk.txt and a.txt are two transcripts"),
        (["s1/a.wav", "s2", "a.wav", "c.lab", "a.srt", "s1/a.txt"], "", ""),
        (["s1", "s2/c.flac", "t"], "", "t has transcripts and no recordings: give it as --text-dir t"),
        (["a.wav", "b.wav"], "a.txt", "--text is the transcript of one file; for 2 files"),
    ],
)
def test_what_does_not_pair_up_is_said(here: Path, names: list[str], text: str, message: str) -> None:
    if not message:
        assert given(*names) == {"s1/a.wav": "s1/a.txt", "s2/c.flac": "c.lab", "a.wav": "a.srt"}
        return
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        given(*names, text=text)


def test_two_recordings_of_a_transcript(here: Path) -> None:
    (here / "s2/a.flac").touch()
    with pytest.raises(ValueError, match=r"a.txt may belong to s1/a.wav, s2/a.flac: put it beside"):
        given("s1", "s2", "a.txt")
    (here / "a.lab").touch()
    with pytest.raises(ValueError, match=r"a.txt, a.lab are transcripts of a.wav: give one"):
        given("a.wav", "b.wav", "a.txt", "a.lab")


def test_the_command_takes_a_recording_and_its_transcript(model: Path, tmp_path: Path) -> None:
    save_noise(tmp_path / "talk.wav")
    (tmp_path / "words.txt").write_text("go on")
    out = tmp_path / "out"
    isotone(
        "align",
        tmp_path / "talk.wav",
        tmp_path / "words.txt",
        "-m",
        model,
        "-o",
        out,
        "--no-check",
        "--no-edges",
    )
    assert "talk.TextGrid" in names_in(out)
    message = error_of("align", tmp_path / "words.txt", "-m", model, "-o", out)
    assert message.startswith("No recording")
