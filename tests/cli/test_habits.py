"""Habits that all commands share: exit codes, --json, --quiet, progress, and completion in the shells."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from rich.console import Console
from rich.progress import TimeRemainingColumn

from isotone import format as files
from isotone import progress
from isotone.batch.adapting import Outcome
from isotone.cli import app
from isotone.cli import doctor as doctor_module
from isotone.training.adapt import Adapted
from tests.cli.test_scores import fake_run, utterance
from tests.paths import ROOT
from tests.report.test_results import save_run, timed
from tests.search.parts import collection, sounds, write
from tests.tiny_models import isotone, save_character_model, save_noise

PLAIN = ("--no-check", "--no-edges")


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, recordings good and bad, alignments, runs and an index."""
    base = tmp_path_factory.mktemp("workshop")
    save_character_model(base / "model")
    for folder in ("good", "mixed"):
        save_noise(base / folder / "a.wav", text="so it is")
        save_noise(base / folder / "c.wav", text="not at all", seed=1)
    (base / "mixed/b.wav").write_bytes(b"no sound")
    (base / "mixed/b.txt").write_text("nothing")
    for folder, broken in (("labels", False), ("broken", True)):
        files.write(utterance("a"), base / folder, "textgrid")
        files.write(utterance("b"), base / folder, "textgrid")
        if broken:
            (base / folder / "b.TextGrid").write_text("no TextGrid")
    for name in ("a", "b"):
        save_noise(base / f"speech/{name}.wav")
    fake_run(base / "run", 0.01)
    save_run(base / "joint", timed(8.0, 20.0))
    (base / "text.txt").write_text("one two three\n")
    collection(base / "sounds")
    write(base / "clip.wav", sounds(9.0, 0)[48_000:80_000])
    write(base / "other.wav", sounds(3.0, 77))
    isotone("search", "index", base / "sounds", "--out", base / "index")
    return base


@pytest.fixture(autouse=True)
def _there(workshop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workshop)


#: What is run for a command and an exit code; OUT is a new folder.
SCENES: dict[tuple[str, int], str] = {
    ("align", 0): "good -m model -o OUT --no-check --no-edges",
    ("align", 1): "mixed -m model -o OUT --no-check --no-edges",
    ("align", 2): "good -m model -o OUT --no-edges --min-score 0 --strict",
    ("transcribe", 0): "good -m model -o OUT",
    ("transcribe", 1): "mixed -m model -o OUT",
    ("match", 0): "good/a.wav good/c.wav -o OUT",
    ("match", 1): "good/a.wav mixed -o OUT",
    ("page", 0): "speech labels -o OUT",
    ("page", 1): "speech broken -o OUT",
    ("adapt", 0): "good -m model -o OUT",
    ("adapt", 1): "mixed -m model -o OUT",
    ("adapt", 3): "labels -m model -o OUT",
    ("score-check", 0): "good -m model",
    ("score-check", 1): "mixed -m model",
    ("evaluate", 0): "labels labels",
    ("evaluate", 1): "broken labels",
    ("search index", 0): "sounds -o OUT",
    ("search index", 1): "mixed -o OUT",
    ("search add", 0): "clip.wav --index INDEX",
    ("search add", 1): "mixed/b.wav --index INDEX",
    ("search remove", 0): "sounds/sound1.wav --index INDEX",
    ("search query", 0): "index clip.wav",
    ("search query", 3): "index other.wav --threshold 0.99",
    ("doctor", 0): "",
    ("doctor", 1): "",
    ("report", 0): "run -o OUT",
    ("results", 0): "joint -o OUT",
    ("lm", 0): "text.txt -o OUT",
    ("export", 0): "model --onnx OUT",
    ("synth", 0): "OUT --hours 0.001 --test-hours 0.001",
    ("plugins", 0): "",
    ("train", 2): "nowhere.yaml",
}
#: Commands whose every success takes long: other tests see them.
LONG = {("train", 0), ("export", 0), ("synth", 0)}


def leaves() -> dict[str, typer.core.TyperCommand]:
    """All commands by their names."""
    found = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found |= {f"{name} {sub}": c for sub, c in inner.items()} if inner else {name: command}
    return found


def table() -> dict[str, dict[int, str]]:
    """The exit codes of the page, by command: what they mean."""
    section = (
        (ROOT / "docs/use.md").read_text(encoding="utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    )
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    head, _, *rest = [[cell.strip() for cell in row] for row in rows]
    codes = [int(cell) for cell in head[1:]]
    return {
        name: {code: said for code, said in zip(codes, cells) if said}
        for names, *cells in rest
        for name in re.findall(r"`([\w -]+)`", names)
    }


@pytest.fixture
def arranged(tmp_path: Path, workshop: Path, monkeypatch: pytest.MonkeyPatch):
    """A function that gives the arguments of a scene, and arranges what it needs."""

    def arrange(command: str, code: int) -> list[str]:
        out, index = tmp_path / "out", tmp_path / "index"
        text = SCENES[command, code]
        if command == "doctor":
            state = "problem" if code else "ok"
            monkeypatch.setattr(
                doctor_module, "CHECKS", (lambda: iter([doctor_module.Finding("x", state, "y")]),)
            )
        if command == "adapt":  # its training is tested elsewhere
            measured = Adapted(0.2, 0.2 if code == 3 else 0.1, 0 if code == 3 else 5)
            errors = [{"file": "b.wav", "error": "no sound"}] if code == 1 else []
            monkeypatch.setattr(
                "isotone.batch.adapting.adapt_files", lambda *a, **k: Outcome(measured, 5, 1, 0, errors)
            )
        if "INDEX" in text:
            shutil.copytree(workshop / "index", index)
        return [
            *command.split(),
            *(word.replace("OUT", str(out)).replace("INDEX", str(index)) for word in text.split()),
        ]

    return arrange


# Exit codes


def test_the_table_has_every_command_and_every_scene() -> None:
    found = table()
    assert set(found) == set(leaves())
    cells = {(command, code) for command, codes in found.items() for code in codes if code != 2}
    assert cells == {scene for scene in SCENES if scene[1] not in (0, 2)}
    assert all(2 in codes for codes in found.values()), "an impossible command ends with 2"


@pytest.mark.parametrize("scene", [s for s in SCENES if s not in LONG], ids=str)
def test_commands_end_with_the_code_of_the_table(scene: tuple[str, int], arranged) -> None:
    isotone(*arranged(*scene), code=scene[1])


@pytest.mark.parametrize("command", leaves())
def test_what_is_impossible_ends_with_2(command: str) -> None:
    assert isotone(*command.split(), "--nonsense", code=2).stdout == ""


@pytest.mark.parametrize("command", ["plugins", "evaluate"])
def test_ctrl_c_ends_with_130(command: str, arranged, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("isotone.registry.Registry.describe", interrupt)
    monkeypatch.setattr("isotone.evaluation.files.evaluate_files", interrupt)
    assert "interrupted" in isotone(*arranged(command, 0), code=130).stderr


# --json and --quiet

JSON = {name: next(p for p in command.params if "--json" in p.opts) for name, command in leaves().items()
        if any("--json" in p.opts for p in command.params)}  # fmt: skip


def test_what_a_script_may_read_is_json() -> None:
    assert set(leaves()) - set(JSON) == {"train", "lm", "export", "synth", "stream"}, (
        "these write what they name, or lines of JSON"
    )


@pytest.mark.parametrize("scene", [s for s in SCENES if s[0] in JSON and s != ("align", 2)], ids=str)
def test_json_is_all_of_the_standard_output(scene: tuple[str, int], arranged) -> None:
    option = ["--json"] if JSON[scene[0]].is_flag else ["--json", "-"]  # type: ignore[attr-defined]
    arguments = arranged(*scene)
    done = isotone(*arguments, *option, code=scene[1])
    found = json.loads(done.stdout)
    assert found or (scene[0] == "plugins")
    if "OUT" in SCENES[scene] and scene[0] != "report":
        assert found.get("out", found.get("index")) == (
            arguments[arguments.index("-o") + 1] if scene[1] != 3 else None
        )
    if scene[1] == 1 and "errors" in found:
        assert {"file", "error"} == set(found["errors"][0])


def test_the_outcome_names_the_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = isotone("align", "good", "-m", "model", "-o", out, "-f", "srt", "-f", "json", *PLAIN, "--json")
    found = json.loads(done.stdout)
    assert (found["done"], found["there"], found["errors"]) == (2, 0, [])
    assert {name for names in found["files"].values() for name in names} == {
        "a.json",
        "a.srt",
        "c.json",
        "c.srt",
    }
    assert all((out / name).is_file() for names in found["files"].values() for name in names)
    again = json.loads(
        isotone("align", "good", "-m", "model", "-o", out, *PLAIN, "-f", "srt", "--json").stdout
    )
    assert again["there"] == 2
    texts = json.loads(
        isotone("transcribe", "good", "-m", "model", "-o", tmp_path / "texts", "--json").stdout
    )["texts"]
    assert {Path(file).name for file in texts} == {"a.wav", "c.wav"}


def test_a_query_prints_what_it_would_write(tmp_path: Path) -> None:
    done = isotone("search", "query", "index", "clip.wav", "--json", "-o", tmp_path / "out")
    assert json.loads(done.stdout) == json.loads((tmp_path / "out/results.json").read_text())


@pytest.mark.parametrize(
    "command", ["align", "match", "page", "adapt", "search index", "search add", "search remove", "lm"]
)
def test_quiet_commands_say_nothing_when_all_is_well(command: str, arranged) -> None:
    arguments = arranged(command, 0)
    done = isotone(*arguments, "--quiet")
    assert done.stdout == ""
    notes = [line for line in done.stderr.splitlines() if not line.startswith(("warning", "  "))]
    assert notes == []


def test_quiet_commands_give_results_and_errors(arranged, tmp_path: Path) -> None:
    done = isotone("transcribe", "mixed", "-m", "model", "-o", tmp_path / "out", "--quiet", code=1)
    assert [line.split(":")[0].rsplit("/")[-1] for line in done.stdout.splitlines()] == ["a.wav", "c.wav"]
    assert "error: 1 failed" in done.stderr
    assert "boundaries" in isotone("evaluate", "labels", "labels", "-q").stdout
    assert "Model: english" in isotone("transcribe", "good", "-o", tmp_path / "loud").stderr
    assert "Model: english" not in isotone("transcribe", "good", "-o", tmp_path / "low", "-q").stderr


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A terminal in place of standard error; what it got."""
    screen = io.StringIO()
    monkeypatch.setattr(
        progress, "Console", lambda stderr: Console(file=screen, force_terminal=True, width=100)
    )
    return screen


def test_progress_shows_the_time_left_unless_quiet(terminal: io.StringIO, arranged, tmp_path: Path) -> None:
    isotone("align", "good", "-m", "model", "-o", tmp_path / "loud", *PLAIN)
    assert "0/2" in terminal.getvalue()
    terminal.truncate(0)
    isotone("align", "good", "-m", "model", "-o", tmp_path / "low", *PLAIN, "--quiet")
    assert terminal.getvalue() == ""
    with progress.quiet():
        assert list(progress.counted([1, 2], "Unseen", 2)) == [1, 2]
    assert terminal.getvalue() == ""
    assert list(progress.counted(range(3), "Seen", 3)) == [0, 1, 2]
    said = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", terminal.getvalue())
    assert re.search(r"Seen .*3/3 0:00:\d\d", said), "at its end the time that it took"
    assert isinstance(progress.bars().columns[-1], TimeRemainingColumn)
    assert not progress.is_quiet()


# Completion


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``isotone`` on the path of the shells."""
    script = tmp_path / "bin" / "isotone"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m isotone "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


SHELLS = {
    "bash": 'eval "$(isotone --show-completion)"; COMP_WORDS=(isotone {word}); COMP_CWORD=1; '
    '$(complete -p isotone | grep -o "_[a-z_]*") isotone; printf "%s\\n" "${{COMPREPLY[@]}}"',
    "zsh": 'autoload -Uz compinit; compinit -u -d "$TMPDIR/zcompdump"; eval "$(isotone --show-completion)"; '
    '_arguments() {{ print -r -- "$@" }}; words=(isotone {word}); CURRENT=2; $_comps[isotone]',
    "fish": "isotone --show-completion | source; complete -C 'isotone {word}'",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands(shell: str, program: None, tmp_path: Path) -> None:
    """As ``isotone --install-completion`` has it: the shell runs what ``--show-completion`` prints."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")
    environment = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    for word, found in (("transc", "transcribe"), ("score-", "score-check")):
        code = SHELLS[shell].format(word=word)
        done = subprocess.run(
            [shell, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert found in done.stdout, done.stdout + done.stderr
        assert "synth" not in done.stdout
