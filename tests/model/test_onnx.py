"""Export of models to ONNX, run by onnxruntime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isotone.model import Model, ModelError
from isotone.model import onnx as export
from isotone.text import tokenizer as tokenizers
from tests.tiny_models import error_of, isotone, save_character_model, save_noise, save_transformers_model

for package in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(package)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def session_of(folder: Path) -> Any:
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.log_severity_level = 3
    return InferenceSession(folder / export.GRAPH, options)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Path]:
    """A model of characters, with heads that read the features and the last layer; and its export."""
    folder = tmp_path_factory.mktemp("onnx")
    model = Model.load(save_character_model(folder / "model"))
    export.export_onnx(model, folder / "out")
    return model, folder / "out"


def test_logits_and_lengths_are_torchs(exported: tuple[Model, Path]) -> None:
    model, folder = exported
    session, rng = session_of(folder), np.random.default_rng(1)
    for size in (100, 719, 720, 4_321, 40_000):
        audio = rng.normal(0, 0.1, (1, size)).astype(np.float32)
        found = dict(zip(names(session), session.run(None, {"audio": audio, "lengths": np.array([size])})))
        with torch.inference_mode():
            expected = model(torch.from_numpy(audio), torch.tensor([size]))
        for name, emissions in expected.items():
            frames = int(emissions.lengths[0])
            assert found[f"{name}.lengths"].tolist() == [frames]
            np.testing.assert_allclose(found[name][0, :frames], emissions.logits[0, :frames], atol=1e-3)


def names(session: Any) -> list[str]:
    return [output.name for output in session.get_outputs()]


def test_padding_changes_nothing(exported: tuple[Model, Path]) -> None:
    session, rng = session_of(exported[1]), np.random.default_rng(2)
    batch, lengths = rng.normal(0, 0.1, (3, 20_000)).astype(np.float32), np.array([20_000, 900, 7_777])
    together = session.run(["ctc", "ottc", "ctc.lengths"], {"audio": batch, "lengths": lengths})
    for row, size in enumerate(lengths):
        inputs = {"audio": batch[row : row + 1, :size], "lengths": lengths[row : row + 1]}
        alone = session.run(["ctc", "ottc", "ctc.lengths"], inputs)
        frames = int(alone[2][0])
        assert frames == together[2][row]
        for one, all_rows in zip(alone[:2], together[:2]):
            np.testing.assert_allclose(one[0, :frames], all_rows[row, :frames], atol=2e-5)


def test_statistics_may_be_given(exported: tuple[Model, Path]) -> None:
    model, folder = exported
    session, rng = session_of(folder), np.random.default_rng(3)
    audio = rng.normal(0, 0.1, (1, 16_000)).astype(np.float32)
    inputs = {"audio": audio, "lengths": np.array([16_000])}
    mean, variance = np.full(80, 3.0, np.float32), np.linspace(1, 4, 80).astype(np.float32)
    (found,) = session.run(["ottc"], inputs | {"mean": mean, "variance": variance})
    tensors = torch.from_numpy(audio), torch.tensor([16_000])
    with torch.inference_mode():
        given = model(*tensors, statistics=(torch.from_numpy(mean), torch.from_numpy(variance)))
    np.testing.assert_allclose(found, given["ottc"].logits, atol=1e-3)
    assert np.abs(found - session.run(["ottc"], inputs)[0]).max() > 0.01
    # energies are those that statistics are made of
    (energies,) = session.run(["energies"], inputs)
    np.testing.assert_allclose(energies[0], model.encoder.front_end.energies(tensors[0][0]), atol=1e-3)


def test_the_folder_describes_the_model(exported: tuple[Model, Path]) -> None:
    model, folder = exported
    about = json.loads((folder / "isotone.json").read_text())
    assert {name: spec["name"] for name, spec in about["heads"].items()} == {"ctc": "ctc", "ottc": "ottc"}
    assert about["reading"]["times"] == "ottc"
    for samples in (399, 400, 719, 720, 1039, 1040, 16_000):
        frames = samples
        for size, step, padding in about["frame_steps"]:
            frames = max(0, (frames + 2 * padding - size) // step + 1)
        assert frames == model.encoder.frames(samples)
    assert tokenizers.load(folder / "tokenizer").labels == model.tokenizer.labels


@pytest.mark.parametrize("norm", ["layer", "group"])
def test_models_of_transformers(norm: str, tmp_path: Path) -> None:
    stable = {
        "feat_extract_norm": norm,
        "do_stable_layer_norm": norm == "layer",
        "conv_bias": norm == "layer",
    }
    model = Model.load(save_transformers_model(tmp_path / "model", **stable))
    assert export.export_onnx(model, tmp_path / "out") <= export.TOLERANCE
    about = json.loads((tmp_path / "out" / "isotone.json").read_text())
    assert about["exact_padding"] == (norm == "layer")
    assert about["normalised"] == "samples"


def test_constants_of_16_bits_are_halved() -> None:
    import onnx
    from onnx import helper, numpy_helper

    exact = np.arange(2000, dtype=np.float32)
    others = exact + np.float32(0.1)
    constants = [numpy_helper.from_array(exact, "exact"), numpy_helper.from_array(others, "others")]
    node = helper.make_node("Add", ["exact", "others"], ["sum"])
    out = helper.make_tensor_value_info("sum", onnx.TensorProto.FLOAT, [2000])
    proto = helper.make_model(
        helper.make_graph([node], "g", [], [out], constants),
        opset_imports=[helper.make_opsetid("", export.OPSET)], ir_version=10,
    )  # fmt: skip
    export.halve(proto)
    onnx.checker.check_model(proto)
    assert [one.data_type for one in proto.graph.initializer] == [
        onnx.TensorProto.FLOAT16,
        onnx.TensorProto.FLOAT,
    ]
    from onnxruntime import InferenceSession

    (found,) = InferenceSession(proto.SerializeToString()).run(None, {})
    assert np.array_equal(found, exact + others)


def test_a_wrong_graph_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model.load(save_character_model(tmp_path / "model"))
    write = export._write_graph

    def other(graph: Any, path: Path) -> None:
        changed = export.Graph(model).eval()
        with torch.no_grad():
            changed.model.heads["ctc"].get_submodule("lm_head").bias[3] += 0.001
        write(changed, path)

    monkeypatch.setattr(export, "_write_graph", other)
    with pytest.raises(ModelError, match=r"by 1\.0e-03"):
        export.export_onnx(model, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_interrupted_export_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model.load(save_character_model(tmp_path / "model"))

    def interrupt(*_: Any) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(export, "_write_graph", interrupt)
    with pytest.raises(KeyboardInterrupt):
        export.export_onnx(model, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_command(tmp_path: Path) -> None:
    model = save_character_model(tmp_path / "model")
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    noise = save_noise(tmp_path / "noise.wav")
    # onto the model itself, and onto a folder of something else
    for taken in (model, tmp_path):
        assert "which would be lost" in error_of("export", model, "--onnx", taken)
    assert {path: path.read_bytes() for path in model.rglob("*") if path.is_file()} == before
    for _ in range(2):  # an export is replaced
        done = isotone("export", model, "--onnx", tmp_path / "out", "--audio", noise)
        assert "differ from torch's by" in done.output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "isotone.json", "model.onnx", "tokenizer",
    ]  # fmt: skip
    assert "give the model that it was made of" in error_of("align", noise, "--model", tmp_path / "out")
    assert "--onnx" in error_of("export", model, "--out", tmp_path / "x", "--audio", noise)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "onnxscript" else object())
    error = error_of("export", tmp_path, "--onnx", tmp_path / "out")
    assert "needs onnxscript: pip install 'isotone[onnx]'" in error
