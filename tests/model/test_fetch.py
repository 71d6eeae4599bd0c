"""Models of the hub: found in its cache, downloaded, or an error within seconds."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch

from isotone.model import Model
from isotone.model.encoder import SpeechEncoder
from tests.tiny_models import error_of, save_noise, save_phone_model, save_transformers_model

#: Seconds in which a command has to say that it cannot have a model.
LIMIT_S = 5.0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub, and a folder to be in that has no folder of a model's name."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_HUB_ETAG_TIMEOUT", raising=False)
    return tmp_path / "cache"


def keep(cache: Path, folder: Path, repository: str = "somebody/tiny") -> Path:
    """Put a model into the cache as the hub's client does."""
    root = cache / f"models--{repository.replace('/', '--')}"
    shutil.copytree(folder, root / "snapshots" / "0123abcd")
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("0123abcd")
    return root / "snapshots" / "0123abcd"


def at(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Set another address of the hub."""
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> str:
    """A hub at an address where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    at(monkeypatch, f"http://127.0.0.1:{port}")
    return f"127.0.0.1:{port}"


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A hub that takes a call and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        at(monkeypatch, f"http://127.0.0.1:{port}")
        yield f"127.0.0.1:{port}"


class Hub:
    """A hub of one repository, as far as its client asks; without a folder every answer is ``status``."""

    def __init__(self, status: int = 200, folder: Path | None = None) -> None:
        hub = self
        self.requests: list[str] = []
        self.status = status

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.requests.append(self.path)
                name = self.path.split("/resolve/")[-1].partition("/")[2]
                if folder is None or hub.status != 200:
                    self.say(hub.status, b"{}")
                elif "/tree/" in self.path:
                    self.say(200, json.dumps(hub.tree(folder)).encode())
                elif self.path.startswith("/api/models/"):
                    about = {"id": "somebody/tiny", "sha": "a" * 40, "siblings": hub.siblings(folder)}
                    self.say(200, json.dumps(about).encode())
                elif (folder / name).is_file():
                    self.say(200, (folder / name).read_bytes())
                else:
                    self.say(404, b"{}")

            do_HEAD = do_GET

            def say(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("X-Repo-Commit", "a" * 40)
                self.send_header("ETag", f'"{len(body)}-{abs(hash(body))}"')
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    @staticmethod
    def names(folder: Path) -> list[Path]:
        return sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file())

    def siblings(self, folder: Path) -> list[dict[str, str]]:
        return [{"rfilename": str(name)} for name in self.names(folder)]

    def tree(self, folder: Path) -> list[dict[str, object]]:
        return [
            {"type": "file", "path": str(name), "size": (folder / name).stat().st_size, "oid": f"{i:040x}"}
            for i, name in enumerate(self.names(folder))
        ]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def took(source: str) -> tuple[float, Exception]:
    start = time.perf_counter()
    with pytest.raises(OSError) as caught:
        Model.load(source)
    return time.perf_counter() - start, caught.value


def test_an_unknown_id_without_a_network_fails_at_once(refusing: str) -> None:
    seconds, error = took("nobody/nothing")
    assert seconds < LIMIT_S
    assert isinstance(error, ConnectionError)
    assert "nobody/nothing is not on this machine" in str(error)
    assert refusing in str(error)
    assert "could not be reached" in str(error)
    assert "Check the network" in str(error)


def test_a_hub_that_never_answers_is_not_waited_for(silent: str) -> None:
    seconds, error = took("nobody/nothing")
    assert seconds < LIMIT_S
    assert "no answer within 2 s" in str(error) or "timed out" in str(error)
    assert silent in str(error)


def test_the_patience_can_be_set(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "1")
    seconds, _ = took("nobody/nothing")
    assert seconds < 2.0


@pytest.mark.parametrize("status", [401, 404])
def test_a_hub_that_has_no_such_model(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(status)
    at(monkeypatch, hub.address)
    seconds, error = took("nobody/nothing")
    assert seconds < LIMIT_S
    assert isinstance(error, FileNotFoundError)
    assert "No folder nobody/nothing, and the hub" in str(error)
    assert "has no model of that name" in str(error)
    assert "hf auth login" in str(error)


def test_a_hub_out_of_order_is_not_a_name_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, Hub(500).address)
    seconds, error = took("nobody/nothing")
    assert seconds < LIMIT_S
    assert isinstance(error, ConnectionError)
    assert "500" in str(error)


def test_offline_by_wish(monkeypatch: pytest.MonkeyPatch, silent: str) -> None:
    """With HF_HUB_OFFLINE there is no request to the hub."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    seconds, error = took("nobody/nothing")
    assert seconds < 1.5
    assert "offline mode is enabled" in str(error)


def test_the_command_says_it_in_one_line(refusing: str, tmp_path: Path) -> None:
    sound = save_noise(tmp_path / "a.wav", text="a")
    message = error_of("align", sound, "--model", "nobody/nothing", "--out", tmp_path / "out")
    assert "nobody/nothing is not on this machine" in message


@pytest.mark.parametrize("way", ["refusing", "silent", "status"])
@pytest.mark.parametrize("kind", ["transformers", "isotone"])
def test_what_is_in_the_cache_needs_no_network(
    way: str,
    kind: str,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    save = save_transformers_model if kind == "transformers" else save_phone_model
    keep(cache, save(tmp_path / "model"))
    if way == "status":
        at(monkeypatch, Hub(404).address)
    else:
        request.getfixturevalue(way)
    start = time.perf_counter()
    model = Model.load("somebody/tiny")
    assert time.perf_counter() - start < LIMIT_S
    local = Model.load(tmp_path / "model")
    assert model.tokenizer.labels == local.tokenizer.labels
    state = model.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in local.state_dict().items())


def test_a_configuration_without_weights_is_no_model(cache: Path, refusing: str, tmp_path: Path) -> None:
    """The files of an interrupted download are no model."""
    folder = keep(cache, save_transformers_model(tmp_path / "model"))
    (folder / "model.safetensors").unlink()
    _, error = took("somebody/tiny")
    assert "not on this machine" in str(error)


def fetched(hub: Hub, home: Path, *arguments: str) -> Path:
    """Return the files that another process fetches from a hub at another address."""
    code = "import sys; from isotone.model.fetch import fetch; print(fetch(*sys.argv[1:]))"
    environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
    environment.pop("HF_HUB_CACHE", None)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("kind", ["transformers", "isotone"])
def test_a_model_is_fetched_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusing: str
) -> None:
    """The files that a model needs come, no others, and the next time without a network."""
    source = (save_transformers_model if kind == "transformers" else save_phone_model)(tmp_path / "model")
    if kind == "transformers":
        (source / "pytorch_model.bin").write_bytes(b"a pickle that nobody asked for")
        (source / "notes.zip").write_bytes(b"nothing of the model's")
        (source / "README.md").write_text("---\nlanguage: [nl]\n---\n")
    hub = Hub(folder=source)
    folder = fetched(hub, tmp_path / "home", "somebody/tiny")
    hub.close()
    assert (folder / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
    assert not (folder / "pytorch_model.bin").exists()
    assert not (folder / "notes.zip").exists()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "home" / "hub"))
    again = Model.load("somebody/tiny")
    assert again.tokenizer.labels == Model.load(source).tokenizer.labels
    if kind == "transformers":
        assert again.tokenizer.language == "nl"  # its card came with it


def test_an_encoder_to_train_is_refused_as_fast(refusing: str) -> None:
    start = time.perf_counter()
    with pytest.raises(OSError, match=r"No encoder 'nobody/nothing': not a preset .* could not be reached"):
        SpeechEncoder("nobody/nothing")
    assert time.perf_counter() - start < LIMIT_S


def test_an_encoder_from_the_cache(cache: Path, refusing: str, tmp_path: Path) -> None:
    keep(cache, save_transformers_model(tmp_path / "model"))
    kept, local = SpeechEncoder("somebody/tiny"), SpeechEncoder(str(tmp_path / "model"))
    for mine, theirs in zip(kept.parameters(), local.parameters()):
        assert torch.equal(mine, theirs)


def test_a_command_refuses_a_name_before_anything_heavy_is_imported(silent: str, tmp_path: Path) -> None:
    """torch takes longer to import than the hub is waited for."""
    code = (
        "import atexit, sys; atexit.register(lambda: print('torch' in sys.modules)); "
        "from isotone.cli import app; app(sys.argv[1:])"
    )
    command = ["align", str(tmp_path), "--model", "nobody/nothing", "--out", str(tmp_path / "out")]
    environment = {**os.environ, "HF_ENDPOINT": f"http://{silent}", "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", code, *command], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "nobody/nothing is not on this machine" in done.stderr
    assert done.stdout.split() == ["False"]
