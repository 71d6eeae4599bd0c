"""Many files: finding and naming them, and errors of one that leave the others as they are."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from isotone import aligners
from isotone import format as files
from isotone.batch import Options, Target, align_files
from isotone.batch.inputs import find_audio, find_recordings, find_transcript, read_text
from isotone.interfaces import Aligner
from isotone.types import Coupling, Emissions, Targets
from tests.paths import DATA
from tests.scripts import Script
from tests.tiny_models import error_of, isotone, lines_of, names_in, save_noise

# What is found


def test_folders_are_searched_and_files_come_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["b/x.flac", "a.wav", "b/c/y.MP3", "b/notes.txt", ".hidden/z.wav", "b/._x.wav", "b/d.wav/e.ogg"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [tmp_path / name for name in ("a.wav", "b/c/y.MP3", "b/d.wav/e.ogg", "b/x.flac")]
    assert find_audio([tmp_path]) == found
    monkeypatch.chdir(tmp_path / "b")
    assert len(find_audio([tmp_path / "a.wav", tmp_path, Path("../a.wav"), Path("c/y.MP3")])) == 4
    # a file that is named counts whatever its ending, but for texts, and a missing one is an error of its own
    (tmp_path / "b/talk.dat").touch()
    named = [Path("notes.txt"), Path("talk.dat"), Path("gone.wav")]
    assert find_audio(named) == named[1:]


def test_nothing_found_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No audio \(.*\.wav.*\) in"):
        find_audio([tmp_path])
    with pytest.raises(FileNotFoundError, match=r"No such file or folder: .*gone"):
        find_audio([tmp_path / "gone"])


def test_a_name_is_the_path_below_the_folder(tmp_path: Path) -> None:
    for name in ("DR1/FAKS0/SA1.WAV", "DR1/a.b.flac", "x.wav"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [r.id for r in find_recordings([tmp_path])] == ["DR1/FAKS0/SA1", "DR1/a.b", "x"]
    assert [r.id for r in find_recordings([tmp_path / "DR1"])] == ["FAKS0/SA1", "a.b"]
    assert [r.id for r in find_recordings([tmp_path / "DR1/a.b.flac", tmp_path / "x.wav"])] == ["a.b", "x"]
    # the outermost folder counts, in whatever order they are given, and a file in it has its name from there
    given = [tmp_path / "x.wav", tmp_path / "DR1/FAKS0", tmp_path, tmp_path / "DR1"]
    assert [r.id for r in find_recordings(given)] == ["DR1/FAKS0/SA1", "DR1/a.b", "x"]


def test_linked_folders_are_searched_and_circles_end(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/a.wav").touch()
    (tmp_path / "there/back").symlink_to(tmp_path / "in")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/s1").symlink_to(tmp_path / "there")
    (tmp_path / "in/s2").symlink_to(tmp_path / "there")
    assert [r.id for r in find_recordings([tmp_path / "in"])] == ["s1/a", "s2/a"]


# Transcripts


def test_a_transcript_folder_may_be_flat_or_like_the_audios(tmp_path: Path) -> None:
    for name in ("a.txt", "s1/a.lab", "s2/t/b.txt"):
        (tmp_path / "text" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "text" / name).write_text(name)
    text = tmp_path / "text"
    assert find_transcript(tmp_path / "speech/s1/a.wav", text).path == text / "s1/a.lab"
    assert find_transcript(tmp_path / "speech/s3/a.wav", text).path == text / "a.txt"
    assert find_transcript(tmp_path / "speech/s2/t/b.wav", text).path == text / "s2/t/b.txt"
    with pytest.raises(FileNotFoundError, match=r"expected b\.txt, \.lab or one with times .* in "):
        find_transcript(tmp_path / "speech/b.wav", text)
    assert find_transcript(tmp_path / "text/a.wav", None).path == text / "a.txt"


def test_sample_numbers_before_a_prompt_of_timits_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "sa1.txt"
    path.write_text("\ufeff0 46797 She had your dark suit.\r\n", encoding="utf-8")
    text = read_text(path, 46797 / 16_000)
    assert text == " " * 8 + "She had your dark suit.\n", "positions are those in the file"
    assert read_text(path, 10.0).startswith("0 46797 She"), "these are not this file's samples"
    path.write_text("0 people came")
    assert read_text(path, 1.0) == "0 people came"


@pytest.mark.skipif(not (DATA / "timit_sample").is_dir(), reason=f"no TIMIT sample in {DATA}")
def test_timits_own_prompts_are_aligned_without_their_numbers(model: Path, tmp_path: Path) -> None:
    speaker = DATA / "timit_sample/dr3-falk0"
    isotone("align", speaker / "sx186.wav", "-m", model, "-f", "json", "-o", tmp_path)
    assert files.read(tmp_path / "sx186.json").tier("words").labels == [
        "Would", "a", "tomboy", "often", "play", "outdoors?",
    ]  # fmt: skip


# One bad file


def test_one_bad_file_among_fifty(model: Path, tmp_path: Path) -> None:
    for i in range(50):
        save_noise(tmp_path / f"speech/u{i:02}.wav", 0.7, text="go on", seed=i)
    whole = (tmp_path / "speech/u17.wav").read_bytes()
    (tmp_path / "speech/u17.wav").write_bytes(whole[:1000])
    out = tmp_path / "out"
    result = isotone("align", tmp_path / "speech", "-m", model, "-o", out, code=1)
    assert result.stdout == f"49 of 50 files written to {out}\n"
    assert "1 failed" in result.stderr
    (row,) = lines_of(out / "errors.jsonl")
    assert row["file"] == str(tmp_path / "speech/u17.wav")
    assert "cut short" in row["error"]
    written = {p.stem: p.read_text() for p in out.glob("*.TextGrid")}
    assert sorted(written) == [f"u{i:02}" for i in range(50) if i != 17]
    # again, with the file mended: everything is there, and nothing of the error is left
    (tmp_path / "speech/u17.wav").write_bytes(whole)
    isotone("align", tmp_path / "speech", "-m", model, "-o", out)
    assert names_in(out) == [f"u{i:02}.TextGrid" for i in range(50)]
    assert {p.stem: p.read_text() for p in out.glob("*.TextGrid") if p.stem != "u17"} == written


class Moody(Aligner):
    """An aligner that fails with an unexpected error on audio longer than a second."""

    def __init__(self) -> None:
        self.inner: Aligner = aligners.build("ctc")

    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        if int(emissions.lengths.max()) > 50:
            raise RuntimeError("out of memory")
        return self.inner(emissions, targets)


def test_an_error_that_nobody_expected_is_one_files_error(
    model: Path, tmp_path: Path, register: Callable[..., None]
) -> None:
    register(aligners, "moody", Moody)
    save_noise(tmp_path / "long.wav", 2.0, text="a")
    save_noise(tmp_path / "short.wav", 0.8, text="a")
    outcome = align_files([tmp_path], Options(str(model), aligner="moody"), Target(tmp_path / "out"))
    assert outcome.done == 1
    assert [(Path(e["file"]).name, e["error"]) for e in outcome.errors] == [
        ("long.wav", "RuntimeError: out of memory")
    ]
    assert (tmp_path / "out/short.TextGrid").is_file()


def test_what_is_read_is_never_overwritten(model: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "u.wav", text="go on")
    for command, reason in (("align", "it is an input"), ("transcribe", "not written by isotone")):
        message = error_of(command, speech, "-m", model, "-f", "audacity", "-o", tmp_path)
        assert message.startswith("1 file would be overwritten; nothing was done. Choose another --out")
        assert (
            f"{tmp_path / 'u.txt'}: {reason}"
            in isotone(command, speech, "-m", model, "-f", "audacity", "-o", tmp_path, code=2).stderr
        )
    # not even where one says so
    error_of("align", speech, "-m", model, "-f", "audacity", "-o", tmp_path, "--overwrite")
    assert speech.with_suffix(".txt").read_text() == "go on"


# A kill in the middle

KILLED = """
import os, sys, time
from isotone import cli
from isotone.batch import ledger
writes, put = 0, ledger.put
def counted(*arguments, **options):
    global writes
    writes += 1
    put(*arguments, **options)
def fsync(handle):
    # everything is written to the temporary file, and nothing has its name yet
    if writes == 2:
        print("writing", flush=True)
        time.sleep(600)
ledger.put, os.fsync = counted, fsync
cli.app(sys.argv[1:])
"""


def test_a_kill_leaves_no_half_file(model: Path, tmp_path: Path) -> None:
    for i in range(3):
        save_noise(tmp_path / f"speech/u{i}.wav", text="go on", seed=i)
    out = tmp_path / "out"
    command = ["align", str(tmp_path / "speech"), "-m", str(model), "-o", str(out)]
    child = Script(KILLED, *command)
    child.wait_for("writing")
    child.signal(signal.SIGKILL)
    child.wait()
    seen = [p.name for p in out.iterdir() if not p.name.startswith(".")]
    assert seen == ["u0.TextGrid"]
    assert files.read(out / "u0.TextGrid").tier("words").labels
    assert list(out.glob(".*.tmp")), "the kill came too early or too late"
    assert "3 of 3 files written" in (output := isotone(*command).stdout)
    assert "(1 of them there before)" in output
    assert not list(out.glob(".*.tmp")), "what the kill left was taken over"
    assert set(files.read_folder(out).alignments) == {"u0", "u1", "u2"}
    assert files.read_folder(out).errors == []
