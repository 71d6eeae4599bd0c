"""``isotone doctor``: what is amiss on a machine, and what to do."""

from __future__ import annotations

import json

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
    assert {"torch", "kernels", "threads", "alignment", "this folder"} <= set(rows)
    assert rows["alignment"]["found"].startswith("2 s of noise by the pack 'english'")
    assert all(row["advice"] for row in rows.values() if row["state"] != "ok")


def test_what_is_amiss_is_told_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken():
        yield module.Finding("a thing", "ok", "here")
        raise RuntimeError("no such luck")

    versions = {"torch": "2.10.1+cu130", "torchaudio": "2.9.0"}
    monkeypatch.setattr(module, "version", lambda name: versions.get(name, "1.0"))
    monkeypatch.setattr(module, "CHECKS", (module._versions, broken, module._kernels))
    rows = report("problem")
    assert rows["torchaudio"]["advice"] == 'pip install "torchaudio==2.10.*"'
    assert rows["a thing"]["state"] == "ok"
    assert (rows["broken"]["state"], rows["broken"]["found"]) == ("problem", "RuntimeError: no such luck")
    assert rows["kernels"]["state"] in ("ok", "note"), "a check that fails does not end the report"


def test_the_report_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECKS", (module._audio, module._folders))
    monkeypatch.setattr("isotone.audio.decoding.decoder", lambda: None)
    lines = isotone("doctor").stdout.splitlines()
    assert lines[0].split() == ["note", "m4a,", "mp4,", "webm:", "no", "decoder"]
    assert lines[1].strip() == "Install ffmpeg, or: pip install torchcodec"
