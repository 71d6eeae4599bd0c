"""The command lines of docs/viewer.md, run as they stand there by a small model."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.tiny_models import isotone, save_character_model, save_noise

TEXT = (ROOT / "docs/viewer.md").read_text()
LINES = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings, their alignments by isotone, a reference, and corrections."""
    folder = tmp_path_factory.mktemp("viewer")
    for name in ("speech/dr1/sa1", "speech/sa2", "talk"):
        save_noise(folder / f"{name}.wav", text="so it is")
    model = save_character_model(folder / "model")
    isotone("align", folder / "speech", "-m", model, "-o", folder / "aligned")
    isotone("align", folder / "talk.wav", "-m", model, "-o", folder)
    for name in ("reference", "corrected"):
        shutil.copytree(folder / "aligned", folder / name, ignore=shutil.ignore_patterns(".*"))
    return folder


def test_the_lines_are_found() -> None:
    assert len(LINES) == 9


@pytest.mark.parametrize("line", LINES)
def test_a_command_line(line: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(folder, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    _, command, *arguments = shlex.split(line, comments=True)
    own = ["--model", "model"] if command in ("align", "adapt") else []
    if command == "align" and "aligned" in arguments:
        shutil.rmtree("aligned")
    found = isotone(command, *arguments, *own, code=None)
    if command == "adapt":
        assert "2 recordings can be aligned" in found.stderr, "too few of them, and all else is understood"
        return
    assert found.exit_code == 0, found.output
    if command == "evaluate":
        return
    out = Path(arguments[arguments.index("--out") + 1])
    names = ["talk"] if "talk.wav" in arguments else ["dr1/sa1", "sa2"]
    suffix = ".page.html" if command == "page" or "--page" in arguments else ".TextGrid"
    assert all((out / f"{name}{suffix}").is_file() for name in names)
    assert (out / "index.html").is_file() == (suffix == ".page.html")


def test_the_keys_are_those_of_the_page() -> None:
    """Every key of the table is one that the script knows."""
    script = (ROOT / "src/isotone/report/templates/viewer_viewer.js").read_text()
    for key in ("Tab", "PageUp", "PageDown", "Home", "End", "Escape"):
        assert f"{key}:" in script
    (row,) = re.findall(r"^\| (i, o, a, n, b) \|", TEXT, re.MULTILINE)
    for key in row.split(", "):
        assert f"{key}: () => this.command(" in script
