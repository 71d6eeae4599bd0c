"""Many files: which are found, what they are called, and that nothing one of them does harms the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import isotone, lines_of, save_character_model, save_noise

from isotone import aligners
from isotone import format as files
from isotone.batch import align_files
from isotone.files import safe_name
from isotone.inputs import find_audio, ids_of, read_text, transcript_path
from isotone.interfaces import Aligner
from isotone.types import Coupling, Emissions, Targets

DATA = Path(
    os.environ.get("ISOTONE_TEST_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data")
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("models") / "characters")


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
    # a file that is named counts whatever its ending, and a missing one is an error of its own
    assert find_audio([Path("notes.txt"), Path("gone.wav")]) == [Path("notes.txt"), Path("gone.wav")]


def test_nothing_found_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No audio \(.*\.wav.*\) in"):
        find_audio([tmp_path])
    with pytest.raises(FileNotFoundError, match=r"No such file or folder: .*gone"):
        find_audio([tmp_path / "gone"])


def test_a_stem_is_the_name_where_it_is_enough(tmp_path: Path) -> None:
    paths = [tmp_path / "x/a.wav", tmp_path / "y/b.wav"]
    assert ids_of(paths) == ["a", "b"]


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["DR1/FAKS0/SA1.WAV", "DR2/FAKS1/SA1.WAV", "DR2/FAKS1/SX3.WAV"], ["FAKS0_SA1", "FAKS1_SA1", "SX3"]),
        (["x/s/a.wav", "y/s/a.wav"], ["x_s_a", "y_s_a"]),
        (["x/a.wav", "x/a.flac"], ["a.wav", "a.flac"]),
        (["x/a.wav", "y/A.wav"], ["x_a", "y_A"]),
        (["x/a.wav", "y/a.wav", "y/x_a.wav"], ["corpus_x_a", "y_a", "corpus_y_x_a"]),
    ],
)
def test_names_say_as_much_as_tells_them_apart(paths: list[str], names: list[str]) -> None:
    assert ids_of([Path("/corpus", p) for p in paths]) == names


PARTS = st.sampled_from(["a", "A", "b", "a_b", "_", "a.b", "ß"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(PARTS, min_size=1, max_size=4).map(tuple), min_size=1, max_size=8, unique=True))
def test_no_two_files_share_a_name(parts: list[tuple[str, ...]]) -> None:
    paths = [Path("/", *p[:-1], p[-1] + suffix) for p in parts for suffix in (".wav", ".flac")]
    names = ids_of(paths)
    written = [files.file_name(name) for name in names]
    assert max(Counter(written).values()) == 1
    assert all(safe_name(name) == name for name in written)


# Transcripts


def test_a_transcript_folder_may_be_flat_or_like_the_audios(tmp_path: Path) -> None:
    for name in ("a.txt", "s1/a.lab", "s2/t/b.txt"):
        (tmp_path / "text" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "text" / name).write_text(name)
    text = tmp_path / "text"
    assert transcript_path(tmp_path / "speech/s1/a.wav", text) == text / "s1/a.lab"
    assert transcript_path(tmp_path / "speech/s3/a.wav", text) == text / "a.txt"
    assert transcript_path(tmp_path / "speech/s2/t/b.wav", text) == text / "s2/t/b.txt"
    with pytest.raises(FileNotFoundError, match=r"expected b\.txt or \.lab in"):
        transcript_path(tmp_path / "speech/b.wav", text)
    assert transcript_path(tmp_path / "text/a.wav", None) == text / "a.txt"


def test_sample_numbers_before_a_prompt_of_timits_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "sa1.txt"
    path.write_text("\ufeff0 46797 She had your dark suit.\r\n", encoding="utf-8")
    assert read_text(path, 46797 / 16_000) == "She had your dark suit."
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
    assert sorted(p.name for p in out.iterdir()) == [f"u{i:02}.TextGrid" for i in range(50)]
    assert {p.stem: p.read_text() for p in out.glob("*.TextGrid") if p.stem != "u17"} == written


class Moody:
    """An aligner that fails, in a way nobody expected, on audio longer than a second."""

    def __init__(self) -> None:
        self.inner: Aligner = aligners.build("ctc")

    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        if int(emissions.lengths.max()) > 50:
            raise RuntimeError("out of memory")
        return self.inner(emissions, targets)


def test_an_error_that_nobody_expected_is_one_files_error(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(aligners._registered, "moody", Moody)
    save_noise(tmp_path / "long.wav", 2.0, text="a")
    save_noise(tmp_path / "short.wav", 0.8, text="a")
    outcome = align_files([tmp_path], str(model), aligner="moody", out=tmp_path / "out")
    assert outcome.done == 1
    assert [(Path(e["file"]).name, e["error"]) for e in outcome.errors] == [
        ("long.wav", "RuntimeError: out of memory")
    ]
    assert (tmp_path / "out/short.TextGrid").is_file()


def test_what_is_read_is_never_overwritten(model: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "u.wav", text="go on")
    result = isotone("align", speech, "-m", model, "-f", "audacity", "-o", tmp_path, code=1)
    assert "an input" in result.stderr
    result = isotone("transcribe", speech, "-m", model, "-f", "audacity", "-o", tmp_path, code=1)
    assert "an input" in result.stderr
    assert speech.with_suffix(".txt").read_text() == "go on"


def test_files_of_one_name_each_get_their_own(model: Path, tmp_path: Path) -> None:
    for folder, seconds in (("x", 1.0), ("y", 2.0)):
        save_noise(tmp_path / folder / "a.wav", seconds, text=f"from {folder}")
    save_noise(tmp_path / "y/a.flac", 3.0)
    isotone("align", tmp_path, tmp_path / "x/a.wav", "-m", model, "-f", "json", "-o", tmp_path / "out")
    found = {p.stem: files.read(p) for p in (tmp_path / "out").iterdir()}
    assert {name: a.duration for name, a in found.items()} == {"a": 1.0, "a.wav": 2.0, "a.flac": 3.0}
    assert {name: a.tier("words").labels[1] for name, a in found.items()} == {
        "a": "x", "a.wav": "y", "a.flac": "y",
    }  # fmt: skip


# A kill in the middle

KILLED = """
import os, sys, time
from isotone import cli
writes = 0
def fsync(handle):
    # everything is written to the temporary file, and nothing renamed yet
    global writes
    writes += 1
    if writes == 2:
        print("writing", flush=True)
        time.sleep(600)
os.fsync = fsync
cli.app(sys.argv[1:])
"""


def test_a_kill_leaves_no_half_file(model: Path, tmp_path: Path) -> None:
    for i in range(3):
        save_noise(tmp_path / f"speech/u{i}.wav", text="go on", seed=i)
    out = tmp_path / "out"
    command = ["align", str(tmp_path / "speech"), "-m", str(model), "-o", str(out)]
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "writing\n"
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    seen = [p.name for p in out.iterdir() if not p.name.startswith(".")]
    assert seen == ["u0.TextGrid"]
    assert files.read(out / "u0.TextGrid").tier("words").labels
    assert [p for p in out.iterdir() if p.name not in seen], "the kill came too early or too late"
    isotone(*command)
    assert set(files.read_folder(out).alignments) == {"u0", "u1", "u2"}
    assert files.read_folder(out).errors == []
