"""Every line of shell in the README and in docs/*.md: commands of isotone run as they stand, each in a fresh folder.

The folder has what the pages name (:mod:`tests.doc_scene`). Programs of others are not run: their arguments are held
against what this repository has. Pages whose blocks run in order, the tutorials, are in :mod:`tests.test_docs`.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import soundfile

from tests import doc_blocks, doc_outside, doc_scene
from tests.doc_blocks import Block, Command
from tests.paths import ROOT
from tests.tiny_models import isotone

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "space/README.md",
]
MFA = re.findall(
    r"^\| `mfa .*\| `(isotone [^`]+)` \|$", (ROOT / "docs/from-mfa.md").read_text(), re.MULTILINE
)
#: Options whose lines are only parsed, and the tests that run them.
ELSEWHERE = {"--cluster": "tests/batch/test_cluster.py"}
#: What trains the English pack, or exports a model; the slow test runs it.
SLOW = {"adapt", "--adapt", "--onnx"}
#: Commands whose result is what they print.
PRINTS = {"stream", "evaluate", "score-check", "plugins", "doctor"}
#: What has to be there before a command, which another line of its page makes.
BEFORE = {("search", kind): "isotone search index recordings/ --out my.index" for kind in ("add", "remove")}


def lines(page: Path) -> list[str]:
    """The lines of a page's blocks of shell, in which a backslash joins two."""
    found = [block.code for block in doc_blocks.blocks(page) if block.kind == "sh"]
    return [line for code in found for line in code.replace("\\\n", " ").splitlines() if line.strip()]


def of(line: str) -> list[Command]:
    return list(doc_blocks.commands(Block(ROOT, 0, "sh", "", f"{line}\n")))


LINES = [(page.name, line) for page in PAGES for line in lines(page)] + [
    ("from-mfa.md", line) for line in MFA
]
OURS = [(page, line) for page, line in LINES if of(line)[0].words[0] == "isotone"]
OTHERS = sorted({line for _, line in LINES if of(line)[0].words[0] not in ("isotone", "isotone-light")})
QUICK = [(page, line) for page, line in OURS if not any(SLOW & {*c.words} for c in of(line))]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, tiny_recipes: Path) -> Path:
    folder = tmp_path_factory.mktemp("scene")
    doc_scene.make(folder, tiny_recipes)
    return folder


@pytest.fixture
def run(
    scene: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timit_root: Path
) -> Callable[[str], None]:
    """Run a line in a copy of the scene."""

    def go(line: str) -> None:
        shutil.copytree(scene, tmp_path / "here")
        monkeypatch.chdir(tmp_path / "here")
        line = line.replace("/corpora/TIMIT", str(timit_root))
        line = re.sub(r"--jobs \d+", "--jobs 1", line)  # processes are tested with the schedule
        data = (soundfile.read("talk.wav", dtype="int16")[0]).tobytes()
        for command in of(line):
            if before := BEFORE.get(tuple(command.words[1:3])):
                doc_blocks.execute(of(before)[0])
            if set(ELSEWHERE) & set(command.words):
                doc_blocks.parse(command.words)
            elif not _has_result(command, data):
                return

    return go


def _has_result(command: Command, data: bytes) -> bool:
    """Run a command; fail where it neither writes nor prints. False where adaptation finds no better model."""
    _make_room(command)
    began = time.time_ns()
    if command.words[1] == "adapt":  # a few synthetic sentences may teach nothing
        done = isotone(*command.words[1:], code=None)
        assert done.exit_code in (0, 3), done.stderr
        return done.exit_code == 0
    printed = doc_blocks.execute(command, data if command.source else b"")
    if command.words[1] in PRINTS:
        assert printed, "nothing is printed"
    else:
        written = [path for path in Path().rglob("*") if path.is_file() and path.stat().st_mtime_ns >= began]
        assert written, "nothing is written"
    return True


def _make_room(command: Command) -> None:
    """Remove what another command of the scene wrote to the folder that this one writes to."""
    words = command.words
    if words[1] in ("align", "transcribe", "adapt") and "--out" in words:
        shutil.rmtree(words[words.index("--out") + 1], ignore_errors=True)


@pytest.mark.parametrize(("page", "line"), QUICK, ids=lambda value: value[:60])
def test_a_line_runs(page: str, line: str, run: Callable[[str], None]) -> None:
    run(line)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "line"), sorted({*OURS} - {*QUICK}), ids=lambda value: value[:60])
def test_a_long_line_runs(page: str, line: str, run: Callable[[str], None]) -> None:
    run(line)


@pytest.mark.parametrize("line", OTHERS)
def test_a_line_for_another_program_is_right(line: str) -> None:
    for command in of(line):
        doc_outside.check(command.words)


def test_a_wrong_line_is_seen(run: Callable[[str], None]) -> None:
    with pytest.raises(AssertionError, match="No transcript nowhere"):
        run("isotone align talk.wav nowhere.txt")
    with pytest.raises(ValueError, match="no extra wrong"):
        doc_outside.check(["pip", "install", "isotone[wrong]"])
    with pytest.raises(ValueError, match="no target"):
        doc_outside.check(["make", "wrong"])
    with pytest.raises(ValueError, match="No such option"):
        doc_outside.check(["docker", "run", "isotone", "align", "--wrong"])
    with pytest.raises(ValueError, match="no marker fuzz"):
        doc_outside.check(["python", "-m", "pytest", "-m", "fuzz"])
    with pytest.raises(ValueError, match="no check for rm"):
        doc_outside.check(["rm", "talk.wav"])


def test_all_lines_are_found() -> None:
    assert len(MFA) >= 12
    assert len(OURS) >= 50
    assert {page for page, _ in LINES} >= {
        "README.md",
        "use.md",
        "viewer.md",
        "from-mfa.md",
        "light.md",
        "built.md",
    }
