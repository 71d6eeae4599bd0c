"""The choice of the engine that runs a model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from isotone.batch.keys import model_key
from isotone.batch.options import Options
from isotone.model import Model
from isotone.model.engine import Engine, engine_for
from isotone.model.fetch import model_folder
from isotone.model.onnx_form import check_current, description_of
from isotone.model.onnx_model import OnnxModel
from tests.registering import registered
from tests.tiny_models import save_character_model

PACK = model_folder("english")


def test_the_pack_is_run_by_onnxruntime() -> None:
    assert engine_for("english") == Engine("onnx")
    assert isinstance(Engine("onnx").load("english"), OnnxModel)
    assert isinstance(engine_for("english", "torch").load("english"), Model)


def test_the_form_of_the_pack_is_of_its_weights() -> None:
    """isotone export english --onnx FOLDER_OF_THE_PACK makes it again."""
    check_current(PACK, description_of(PACK))
    assert model_key(OnnxModel(PACK)) == model_key(Model.load("english"))
    assert sum(path.stat().st_size for path in PACK.rglob("*")) < 8e6


def test_what_onnxruntime_cannot_do_is_left_to_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = save_character_model(tmp_path / "plain")
    for source, options, reason in (
        ("english", {"device": "cuda"}, "the device is cuda"),
        ("english", {"aligner": "ottc"}, "the aligner ottc needs torch"),
        ("english", {"aligner": {"name": "soft-dtw"}}, "the aligner soft-dtw needs torch"),
        (plain, {}, "no form for it (isotone export MODEL --onnx"),
    ):
        found = engine_for(source, **options)
        assert (found.name, reason in found.reason) == ("torch", True)
        with pytest.raises(ValueError, match="engine onnx cannot align") as error:
            engine_for(source, "onnx", **options)
        assert reason in str(error.value)
    assert engine_for("english", aligner="ctc").name == "onnx"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert engine_for("english").reason == "onnxruntime is not installed"


def test_a_stale_or_damaged_form_is_not_used(tmp_path: Path) -> None:
    folder = shutil.copytree(PACK, tmp_path / "model")
    assert engine_for(folder).name == "onnx"
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-2] + b"\0\0")
    assert "has changed since" in engine_for(folder).reason
    (folder / "model.safetensors").write_bytes(weights)
    assert engine_for(folder).name == "onnx"
    (folder / "onnx.json").write_text(json.dumps({"format": "onnx 1"}))
    assert "has the format 'onnx 1'" in engine_for(folder).reason
    (folder / "onnx.json").write_text("{")
    assert "is damaged" in engine_for(folder).reason


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(ValueError, match="An engine is auto, onnx or torch; got 'tensorrt'"):
        Options("english", engine="tensorrt").check()


def test_results_do_not_depend_on_the_engine() -> None:
    assert Options("english", engine="onnx").values() == Options("english", engine="torch").values()


def test_a_foreign_aligner_is_run_by_torch() -> None:
    from isotone.interfaces import Aligner
    from isotone.registries import aligners

    class Own(Aligner):
        def __call__(self, emissions, targets):  # type: ignore[no-untyped-def]
            raise NotImplementedError

    with registered(aligners, "own", Own):
        assert engine_for("english", aligner="own").reason == "the aligner own needs torch"


def test_long_recordings_have_the_same_result() -> None:
    samples = 0.1 * np.random.default_rng(0).standard_normal(70 * 16_000).astype(np.float32)
    found = []
    for engine in ("onnx", "torch"):
        pipeline = Options("english", engine=engine).aligning()
        text = pipeline.encode("she had your dark suit in greasy wash water all year")
        found.append(pipeline.align("a", samples, text, judged=False).alignment)
    assert found[0].tier("words").labels == found[1].tier("words").labels
    for one, other in zip(found[0].tier("words"), found[1].tier("words")):
        assert (one.start, one.end) == pytest.approx((other.start, other.end), abs=1e-6)
        assert one.confidence == pytest.approx(other.confidence, abs=1e-6)
