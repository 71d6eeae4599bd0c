"""Export of models to ONNX, run by onnxruntime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isotone.batch.keys import model_key
from isotone.model import Model, ModelError
from isotone.model import onnx as export
from isotone.model.encoder import SpeechEncoder
from isotone.model.onnx_form import check_current, description_of
from isotone.model.onnx_model import OnnxModel
from isotone.text import tokenizer as tokenizers
from tests.tiny_models import error_of, isotone, save_character_model, save_noise, save_transformers_model

for package in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(package)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def run(form: OnnxModel, batch: np.ndarray, *lengths: int, statistics: Any = None) -> dict[str, Any]:
    """Emissions of samples ``(B, N)`` as arrays: per head logits and lengths."""
    with form.tensors():
        found = form(batch, np.array(lengths), statistics=statistics)
    return {name: (np.asarray(e.logits), np.asarray(e.lengths)) for name, e in found.items()}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Path]:
    """A model of characters, with heads that read the features and the last layer; and its export."""
    folder = tmp_path_factory.mktemp("onnx")
    model = Model.load(save_character_model(folder / "model"))
    export.export_onnx(model, folder / "out")
    return model, folder / "out"


def test_logits_and_lengths_are_torchs(exported: tuple[Model, Path]) -> None:
    model, folder = exported
    form, rng = OnnxModel(folder), np.random.default_rng(1)
    for size in (100, 719, 720, 4_321, 40_000):
        audio = rng.normal(0, 0.1, (1, size)).astype(np.float32)
        found = run(form, audio, size)
        with torch.inference_mode():
            expected = model(torch.from_numpy(audio), torch.tensor([size]))
        for name, emissions in expected.items():
            frames = int(emissions.lengths[0])
            logits, lengths = found[name]
            assert lengths.tolist() == [frames]
            np.testing.assert_allclose(logits[0, :frames], emissions.logits[0, :frames], atol=1e-3)


def test_padding_changes_nothing(exported: tuple[Model, Path]) -> None:
    form, rng = OnnxModel(exported[1]), np.random.default_rng(2)
    batch, sizes = rng.normal(0, 0.1, (3, 20_000)).astype(np.float32), (20_000, 900, 7_777)
    together = run(form, batch, *sizes)
    for row, size in enumerate(sizes):
        for name, (logits, lengths) in run(form, batch[row : row + 1, :size], size).items():
            frames = int(lengths[0])
            assert frames == together[name][1][row]
            np.testing.assert_allclose(logits[0, :frames], together[name][0][row, :frames], atol=2e-5)


def test_statistics_may_be_given(exported: tuple[Model, Path]) -> None:
    model, folder = exported
    form, rng = OnnxModel(folder), np.random.default_rng(3)
    audio = rng.normal(0, 0.1, (1, 16_000)).astype(np.float32)
    given = np.full(80, 3.0), np.linspace(1, 4, 80)
    with torch.inference_mode():
        tensors = tuple(map(torch.from_numpy, given))
        expected = model(torch.from_numpy(audio), torch.tensor([16_000]), statistics=tensors)
    found = run(form, audio, 16_000, statistics=given)["ottc"][0]
    np.testing.assert_allclose(found, expected["ottc"].logits, atol=1e-3)
    assert np.abs(found - run(form, audio, 16_000)["ottc"][0]).max() > 0.01


@pytest.mark.parametrize("samples", [399, 400, 50_000, 200_001])
def test_statistics_are_torchs(exported: tuple[Model, Path], samples: int) -> None:
    model, folder = exported
    audio = np.random.default_rng(4).normal(0, 0.1, samples).astype(np.float32)
    found, expected = (
        OnnxModel(folder).encoder.statistics(audio),
        model.encoder.statistics(torch.from_numpy(audio)),
    )
    assert (found is None) == (expected is None)
    for one, other in zip(found or (), expected or ()):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_form_beside_weights_takes_them_from_there(tmp_path: Path) -> None:
    folder = save_character_model(tmp_path / "model")
    model = Model.load(folder)
    assert export.add_onnx(model, folder) <= export.TOLERANCE
    assert b"model.safetensors" in (folder / "model.onnx").read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    audio = np.random.default_rng(5).normal(0, 0.1, (1, 9_000)).astype(np.float32)
    with torch.inference_mode():
        expected = model(torch.from_numpy(audio), torch.tensor([9_000]))["ctc"].logits
    form = OnnxModel(folder)
    np.testing.assert_allclose(run(form, audio, 9_000)["ctc"][0], expected, atol=1e-3)
    # isotone itself knows it as the same model
    assert model_key(form) == model_key(model)
    check_current(folder, description_of(folder))
    about = json.loads((folder / "isotone.json").read_text())
    about["reading"]["refine"] = 3.0
    (folder / "isotone.json").write_text(json.dumps(about))
    with pytest.raises(ModelError, match="has changed since"):
        check_current(folder, description_of(folder))


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


@pytest.mark.parametrize("positions", ["relative_key", "rotary"])
def test_wav2vec2_bert_with_positions(positions: str, tmp_path: Path) -> None:
    """The encoder of the tutorial on training, which transformers itself computes."""
    torch.manual_seed(0)
    source = {
        "model_type": "wav2vec2-bert", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 64, "conv_depthwise_kernel_size": 5, "feature_projection_input_dim": 160,
        "position_embeddings_type": positions,
    }  # fmt: skip
    like = Model.load(save_character_model(tmp_path / "like"))
    model = Model(SpeechEncoder(source), like.head_specs, like.tokenizer, like.decoding).eval()
    assert export.export_onnx(model, tmp_path / "out") <= export.TOLERANCE
    assert model.encoder.model.config._attn_implementation == "sdpa", "the model itself stays as it is"


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

    def other(graph: Any, path: Path, weights: Path | None) -> None:
        changed = export.Graph(model).eval()
        with torch.no_grad():
            changed.model.heads["ctc"].get_submodule("lm_head").bias[3] += 0.001
        write(changed, path, weights)

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
    # onto a folder of something else
    assert "which would be lost" in error_of("export", model, "--onnx", tmp_path)
    assert {path: path.read_bytes() for path in model.rglob("*") if path.is_file()} == before
    for _ in range(2):  # an export is replaced
        done = isotone("export", model, "--onnx", tmp_path / "out", "--audio", noise)
        assert "differ from torch's by" in done.output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "isotone.json", "model.onnx", "tokenizer",
    ]  # fmt: skip
    noise.with_suffix(".txt").write_text("hello")
    isotone("align", noise, "--model", tmp_path / "out", "--out", tmp_path / "aligned")
    assert (tmp_path / "aligned" / "noise.TextGrid").is_file()
    others = ("--model", tmp_path / "out", "--out", tmp_path / "others")
    assert "that it was made of" in error_of("align", noise, *others, "--engine", "torch")
    # onto the model itself: beside the weights
    isotone("export", model, "--onnx", model)
    assert {path: path.read_bytes() for path in before} == before
    assert {path.name for path in set(model.rglob("*")) - set(before) if path.is_file()} == {
        "model.onnx",
        "onnx.json",
    }
    assert "--onnx" in error_of("export", model, "--out", tmp_path / "x", "--audio", noise)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "onnxscript" else object())
    error = error_of("export", tmp_path, "--onnx", tmp_path / "out")
    assert "needs onnxscript: pip install 'isotone[onnx]'" in error
