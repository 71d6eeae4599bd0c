"""The command lines of docs/from-mfa.md, run as they stand there by a small model."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.tiny_models import isotone, save_noise, save_phone_model

TABLE = re.findall(
    r"^\| `mfa .*\| `(isotone [^`]+)` \|$", (ROOT / "docs/from-mfa.md").read_text(), re.MULTILINE
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus as MFA has it, a dictionary, transcripts by themselves, and a model of phones."""
    folder = tmp_path_factory.mktemp("mfa")
    for name in ("CORPUS/anna/a1", "CORPUS/ben/b1", "talk"):
        path = save_noise(folder / f"{name}.wav", 1.0)
        for text in (path.with_suffix(".lab"), folder / "TEXTS" / f"{path.stem}.txt"):
            text.parent.mkdir(exist_ok=True)
            text.write_text("aa s iy")
    (folder / "names.dict").write_text("aa\taa\ns\ts\niy\tiy\n")
    save_phone_model(folder / "model")
    return folder


def test_the_table_is_found() -> None:
    assert len(TABLE) >= 12


@pytest.mark.parametrize("line", TABLE)
def test_our_command_line(line: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    _, command, *arguments = (word.replace("OUT", str(tmp_path / "out")) for word in shlex.split(line))
    arguments = [str(tmp_path / "model") if word == "MODEL" else word for word in arguments]
    if command == "evaluate":
        for out in (tmp_path / "out", Path("REFERENCE")):
            isotone("align", "CORPUS", "--out", out, "--model", "model", "--dictionary", "names.dict")
        isotone(command, *arguments)
        return
    if "--jobs" in arguments:  # processes are tested with the schedule; here the options are read
        arguments[arguments.index("--jobs") + 1] = "1"
    found = isotone(command, *arguments, "--model", "model", code=None)
    if command == "adapt":
        assert "2 recordings can be aligned" in found.stderr, "too few of them, and all else is understood"
        return
    assert found.exit_code == 0, found.output
    suffix = ".json" if "--format" in arguments else ".TextGrid"
    names = ["talk"] if "talk.wav" in arguments else ["anna/a1", "ben/b1"]
    assert all((tmp_path / "out" / f"{name}{suffix}").is_file() for name in names)
