"""space/app.py: its function without gradio, and its server where gradio is installed."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
import soundfile

from isotone import format as files
from isotone.text.espeak import SAMPLE_RATE, Engine
from tests.paths import ROOT
from tests.tiny_models import save_noise

APP = ROOT / "space/app.py"
TEXT = "She washed the dog, and the dog was happy."


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, in an environment without gradio."""
    monkeypatch.setitem(sys.modules, "gradio", None)
    spec = importlib.util.spec_from_file_location("space_app", APP)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "space_app", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("talk") / "talk.wav"
    soundfile.write(path, Engine().say(TEXT).samples, SAMPLE_RATE)
    return path


def test_words_phones_page_and_files(app: ModuleType, talk: Path, tmp_path: Path) -> None:
    found = app.aligned(talk, TEXT, tmp_path)
    assert [row[2] for row in found.words] == TEXT.split()
    assert all(len(row) == len(app.COLUMNS) for row in found.words)
    assert found.words[3][3] == "d ao g"
    times = [time for row in found.words for time in row[:2]]
    assert times == sorted(times)
    assert all(0 <= row[4] <= 1 for row in found.words)
    read = files.read(tmp_path / "alignment.TextGrid")
    assert [s.start for s in read.tier("words") if s.label] == pytest.approx(
        [row[0] for row in found.words], abs=1e-3
    )
    assert "She washed the dog" in (tmp_path / "alignment.srt").read_text()
    assert {path.name for path in (*found.files, found.page)} == {path.name for path in tmp_path.iterdir()}
    shown = app.framed(found.page)
    assert shown.startswith("<iframe")
    assert "<script" not in shown, "all of the page is escaped"


def test_what_cannot_be_aligned_is_explained(
    app: ModuleType, talk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for recording, text, said in ((None, TEXT, "no recording"), (talk, " \n", "no text")):
        with pytest.raises(ValueError, match=said):
            app.aligned(recording, text, tmp_path)
    with pytest.raises(ValueError, match=r"9 words and the recording 0\.2 s"):
        app.aligned(save_noise(tmp_path / "short.wav", 0.2), TEXT, tmp_path)
    monkeypatch.setattr(app, "LONGEST_S", 1)
    with pytest.raises(ValueError, match="The recording has 2 s, and 1 are the most here"):
        app.aligned(talk, TEXT, tmp_path)


def test_the_server_answers(talk: Path, tmp_path: Path) -> None:
    """As a visitor's browser asks it; another process, for gradio's own warnings are no errors of ours."""
    if importlib.util.find_spec("gradio") is None:
        pytest.skip("gradio is not installed: pip install 'isotone[space]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    environment = {
        **os.environ, "GRADIO_SERVER_PORT": port, "GRADIO_ANALYTICS_ENABLED": "False",
        "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path),
    }  # fmt: skip
    ask = (
        "import sys; from gradio_client import Client, handle_file\n"
        "client = Client(f'http://127.0.0.1:{sys.argv[1]}/', verbose=False)\n"
        "words, notes, page, files = client.predict(handle_file(sys.argv[2]), sys.argv[3], api_name='/align')\n"
        "print(*[row[2] for row in words['data']])\nprint(*[f.rsplit('/')[-1] for f in files])\n"
        "try:\n    client.predict(None, 'text', api_name='/align')\nexcept Exception as error:\n    print(error)\n"
    )
    with subprocess.Popen([sys.executable, APP], env=environment, stdout=subprocess.DEVNULL) as server:
        try:
            _wait_for(int(port), server)
            done = subprocess.run(
                [sys.executable, "-c", ask, port, talk, TEXT],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            server.terminate()
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines == [
        TEXT, "alignment.TextGrid alignment.srt alignment.page.html",
        "There is no recording: upload one, or record one.",
    ]  # fmt: skip
    assert not list(tmp_path.glob("isotone-*")), "the folder of an answer goes with it"


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end and server.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"no server on port {port}: exit code {server.poll()}")
