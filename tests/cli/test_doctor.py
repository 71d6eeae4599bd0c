"""``isotone doctor``: what is amiss on a machine, and what to do."""

from __future__ import annotations

import json
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace

import pytest

from isotone.cli import doctor as module
from tests.tiny_models import isotone


def report(*expected_states: str) -> dict[str, dict]:
    result = isotone("doctor", "--json", code=1 if "problem" in expected_states else 0)
    rows = json.loads(result.stdout)
    assert {row["state"] for row in rows} <= {"ok", "note", "problem"}
    return {row["what"]: row for row in rows}


def test_a_sound_machine_has_no_problem() -> None:
    rows = report()
    assert rows["isotone"]["found"].startswith("0.")
    assert {"torch", "kernels", "threads", "alignment", "this folder", "temporary files"} <= set(rows)
    assert rows["alignment"]["found"].startswith("2 s of noise by the pack 'english'")
    assert all(row["advice"] for row in rows.values() if row["state"] != "ok")


def test_what_is_amiss_is_told_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken():
        yield module.Finding("a thing", "ok", "here")
        raise RuntimeError("no such luck")

    versions = {"torch": "2.10.1+cu130", "torchaudio": "2.9.0", "numba": "9.1.0"}

    def version_of(name: str) -> str:
        if name == "soxr":
            raise PackageNotFoundError(name)
        return versions.get(name) or version(name)

    monkeypatch.setattr(module, "version", version_of)
    monkeypatch.setattr(module, "CHECKS", (module._versions, broken, module._kernels))
    rows = report("problem")
    assert rows["torchaudio"]["advice"] == 'pip install "torchaudio==2.10.*"'
    assert (rows["soxr"]["state"], rows["soxr"]["found"]) == ("problem", "not installed")
    assert rows["numba"]["found"] == "9.1.0 is not in the range <0.69,>=0.61"
    assert rows["numba"]["advice"] == 'pip install "numba<0.69,>=0.61"'
    assert rows["a thing"]["state"] == "ok"
    assert (rows["broken"]["state"], rows["broken"]["found"]) == ("problem", "RuntimeError: no such luck")
    assert rows["kernels"]["state"] in ("ok", "note"), "a check that fails does not end the report"


def test_the_report_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECKS", (module._audio, module._folders))
    monkeypatch.setattr("isotone.audio.decoding.decoder", lambda: None)
    lines = isotone("doctor").stdout.splitlines()
    assert lines[:2] == [
        "note     m4a, mp4, webm: no decoder",
        "         Install ffmpeg, or: pip install torchcodec",
    ]
    assert lines[2].startswith("ok       this folder:")
    assert lines[-1] == "Problems: none. Notes: 1."
    quiet = isotone("doctor", "--quiet").stdout.splitlines()
    assert quiet == lines[:-1]


def test_a_folder_that_cannot_be_written_to_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "CHECKS", (module._folders,))
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path / "gone"))
    monkeypatch.setattr(module.shutil, "disk_usage", lambda folder: SimpleNamespace(free=2**29))
    monkeypatch.chdir(tmp_path)
    rows = report("problem")
    assert rows["temporary files"]["state"] == "problem"
    assert "No such file or directory" in rows["temporary files"]["found"]
    assert "TMPDIR" in rows["temporary files"]["advice"]
    assert rows["this folder"]["found"] == f"{tmp_path} has 0.50 GiB left"
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_a_gpu_that_torch_cannot_use_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECKS", (module._devices,))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    monkeypatch.setattr(module.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert report()["device"]["state"] == "note"


def test_kernels_among_temporary_files_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "CHECKS", (module._kernels,))
    assert "compiled kernels" not in report() or "NUMBA_CACHE_DIR" in os.environ
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    assert "kept in" in report()["compiled kernels"]["found"]
