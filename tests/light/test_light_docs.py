"""The command lines of docs/light.md, run as they stand there without torch."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests import doc_blocks
from tests.light.conftest import Run
from tests.paths import ROOT
from tests.tiny_models import save_noise

BLOCKS = doc_blocks.blocks(ROOT / "docs/light.md")
COMMANDS = [
    command
    for block in BLOCKS
    if block.kind == "sh"
    for command in doc_blocks.commands(block)
    if command.words[0] == "isotone-light"
]


def test_the_commands_are_found() -> None:
    assert len(COMMANDS) >= 5


def test_the_block_in_python_runs(
    without_torch: Run, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_noise(Path("talk.wav"), 2.0)
    (block,) = [block for block in BLOCKS if block.kind == "python"]
    without_torch(built, "-c", block.code)
    assert "washed" in Path("talk.TextGrid").read_text()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.words[1:]))
def test_a_command(
    command: doc_blocks.Command,
    without_torch: Run,
    built: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "she washed the dog"
    for name in ("talk", "film", "speech/anna/a", "speech/b"):
        save_noise(Path(f"{name}.wav"), 2.0, text=text)
    Path("film.wav").rename("film.mkv")  # the content says what it is
    Path("film.srt").write_text(f"1\n00:00:00,000 --> 00:00:02,000\n{text}\n")
    (model,) = built.rglob("model.onnx")
    shutil.copytree(model.parent, "joint-onnx")
    before = set(Path().rglob("*"))
    printed = without_torch(built, "-m", "isotone_light", *command.words[1:]).stdout
    written = {path.name for path in {*Path().rglob("*")} - before if path.is_file()}
    stems = {Path(word).stem for word in command.words if Path(word).suffix in (".wav", ".mkv")} or {"a", "b"}
    assert {Path(name).stem for name in written} >= stems
    assert bool(printed.strip()) or "--quiet" in command.words
