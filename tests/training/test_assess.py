"""Files and scores of a split, snapshots during training, and the paths of a teacher."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import jiwer
import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

import isotone.format
from isotone.corpus import reference
from isotone.corpus.timit import TimitCorpus
from isotone.evaluation import score
from isotone.model import DecodingConfig, Model
from isotone.model.encoder import SpeechEncoder
from isotone.pipeline import Pipeline
from isotone.text.tokenizer import CharacterTokenizer
from isotone.training.assess import assess, decode, snapshot
from isotone.training.config import Training
from isotone.training.data import Utterances
from isotone.training.loop import Trainer
from isotone.training.teacher import teacher_paths
from tests.tiny_models import save_character_model

Train = Callable[..., Path]


@pytest.fixture(scope="module")
def run_folder(tiny_recipes: Path, train: Train, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("assessed") / "run"
    return train(tiny_recipes / "joint.yaml", f"output={folder}", "train.steps=30", "train.lr=1e-2")


@pytest.fixture(scope="module")
def model(run_folder: Path) -> Model:
    return Model.load(run_folder)


@pytest.fixture(scope="module")
def test_split(timit_root: Path, model: Model) -> Utterances:
    return Utterances(TimitCorpus(timit_root).load("test"), model.tokenizer, 16_000)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_files_are_what_the_model_says(run_folder: Path, model: Model, test_split: Utterances) -> None:
    """Everything can be had again from the saved model; TextGrids hold times to the millisecond."""
    pipeline = Pipeline(model)
    ids = [test_split[i].id for i in range(2)]
    assert [row["id"] for row in lines(run_folder / "predictions.jsonl")] == ids
    for i, row in enumerate(lines(run_folder / "predictions.jsonl")):
        example = test_split[i]
        recognised = pipeline.transcribe(example.id, example.audio)
        forced = pipeline.align(example.id, example.audio, example.transcript)
        assert row["recognised"] == recognised.text
        assert (row["frames"], row["quiet"]) == (recognised.frames, [list(span) for span in recognised.quiet])
        assert row["score"] == pytest.approx(recognised.score, rel=1e-4)
        assert row["forced_score"] == pytest.approx(forced.score, rel=1e-4)
        assert row["text"] == " ".join(test_split.rows[i]["phones"]["label"])
        assert row["words"] == test_split.rows[i]["text"]
        assert Path(row["audio"]).is_file()
        for name, alignment in (
            ("alignments", recognised.alignment),
            ("forced", forced.alignment),
            ("reference", reference(test_split.rows[i])),
        ):
            written = isotone.format.read(run_folder / name / f"{example.id}.TextGrid")
            kept = [s for s in alignment.tier("phones") if name != "reference" or s.label]
            assert written.tier("phones").labels == [s.label for s in kept]
            for a, b in zip(written.tier("phones"), kept):
                assert (a.start, a.end) == pytest.approx((b.start, b.end), abs=2e-3)
        assert forced.alignment.tier("words").labels == test_split.rows[i]["words"]["label"]


def test_result_is_the_score_of_the_files(run_folder: Path, test_split: Utterances) -> None:
    result = json.loads((run_folder / "result.json").read_text())
    assert set(result) == {"recognised", "forced", "forced_frameless"}
    assert 0 <= result["forced_frameless"] < 1
    values: dict[str, dict[str, float]] = {}
    for name, folder in (("recognised", "alignments"), ("forced", "forced")):
        pairs = []
        for row in test_split.rows:
            pairs.append((isotone.format.read(run_folder / folder / f"{row['id']}.TextGrid"), reference(row)))
        again = {name: m.value for name, m in score(pairs, tier="phones").metrics.items()}
        found = values[name] = {m["metric"]: m["value"] for m in result[name]["metrics"]}
        assert found["per"] == again["per"]
        assert found["idr"] == pytest.approx(again["idr"], abs=2.0)
    assert values["forced"]["per"] == 0
    quiet = [
        sum(end - first for first, end in row["quiet"]) / row["frames"]
        for row in lines(run_folder / "predictions.jsonl")
    ]
    assert values["recognised"]["peaky_raw"] == pytest.approx(100 * np.mean(quiet), abs=1e-6)


def test_decoding_a_part(model: Model, test_split: Utterances) -> None:
    rows = list(decode(Pipeline(model), test_split, 1, forced=False))
    assert len(rows) == 1
    assert rows[0].forced is None
    assert rows[0].text == " ".join(test_split.rows[0]["phones"]["label"])


def test_a_corpus_without_times(test_split: Utterances, tmp_path: Path) -> None:
    """Characters and no word times: there is nothing to compare but the texts."""
    torch.manual_seed(0)
    source = {
        "model_type": "wav2vec2-bert",
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    source |= {"intermediate_size": 16, "feature_projection_input_dim": 160, "position_embeddings_type": None}
    tokenizer = CharacterTokenizer(["<pad>", "|", *"abehiopst"])
    reading = DecodingConfig("ctc", {"name": "ctc-greedy"}, "", {"name": "ctc"})
    model = Model(SpeechEncoder(source), {"ctc": {"name": "ctc"}}, tokenizer, reading).eval()
    nothing = {"label": [], "start": [], "end": []}
    rows = [{**row, "words": nothing, "phones": nothing} for row in test_split.rows]
    data = Utterances(rows, tokenizer, 16_000)
    with torch.no_grad():
        model.heads["ctc"].lm_head.bias[0] = 1e6  # it says nothing
    assert assess(model, data, tmp_path) == {}
    assert json.loads((tmp_path / "result.json").read_text()) == {
        "forced_frameless": 0.0, "error_rate": 1.0, "character_error_rate": 1.0,
    }  # fmt: skip
    assert not (tmp_path / "reference").exists()
    written = isotone.format.read(tmp_path / "forced" / f"{rows[0]['id']}.TextGrid")
    assert written.tier("words").labels == rows[0]["text"].split()
    assert len(isotone.format.read(tmp_path / "alignments" / f"{rows[0]['id']}.TextGrid").tier("words")) == 0

    timed = Utterances(test_split.rows, tokenizer, 16_000)  # word times, and not a word recognised
    reports = assess(model, timed, tmp_path / "timed")
    assert reports["recognised"].metrics["wer"].value == 100.0
    assert reports["forced"].metrics["wer"].value == 0.0


def test_what_a_model_cannot_write_counts_as_errors(timit_root: Path, tmp_path: Path) -> None:
    """Letters that the training texts lack are part of the reference: without them the error rate was too low."""
    model = Model.load(save_character_model(tmp_path / "model"))
    none: dict[str, list] = {"label": [], "start": [], "end": []}
    row = {**TimitCorpus(timit_root).load("test")[0], "words": none, "phones": none}
    rows = [{**row, "id": "a", "text": "One \u4e2d\u6587 two."}, {**row, "id": "b", "text": "Three."}]
    data = Utterances(rows, model.tokenizer, 16_000)
    assert data[0].transcript.unknown
    found = [item.text for item in decode(Pipeline(model), data, forced=False)]
    assert [text.lower() for text in found] == ["one \u4e2d\u6587 two", "three"]


def test_snapshots(model: Model, test_split: Utterances, tmp_path: Path) -> None:
    settings = Training(watch=2, evaluate_limit=0)
    model.train()
    found = snapshot(model, test_split, tmp_path, 7, settings)
    assert model.training
    model.eval()
    pipeline = Pipeline(model)
    pairs = [(d.text, d.recognised.text) for d in decode(pipeline, test_split, forced=False)]
    assert found == {"dev_error_rate": pytest.approx(jiwer.wer([r for r, _ in pairs], [h for _, h in pairs]))}
    for i in range(2):
        with np.load(tmp_path / f"step-000007-{i}.npz") as arrays:
            example = test_split[i]
            with torch.inference_mode():
                sizes = torch.tensor([len(example.audio)])
                head = model(torch.from_numpy(example.audio)[None], sizes)["ottc"]
            np.testing.assert_allclose(arrays["alpha"], head.weights()[0], rtol=1e-5)
            assert arrays["alpha"].sum() == pytest.approx(1.0, abs=1e-5)
            assert arrays["labels"].tolist() == list(example.transcript.tokens)
            tokens = arrays["tokens"]
            assert len(tokens) == int(head.lengths)
            assert sorted(set(tokens.tolist())) == list(range(len(arrays["labels"])))
            assert (np.diff(tokens) >= 0).all()
            assert (float(arrays["hop_s"]), float(arrays["offset_s"])) == (
                head.grid.hop_s,
                head.grid.offset_s,
            )
            np.testing.assert_array_equal(arrays["reference_start"], test_split.rows[i]["phones"]["start"])
            np.testing.assert_array_equal(arrays["reference_end"], test_split.rows[i]["phones"]["end"])


def test_snapshots_of_the_transport(model: Model, test_split: Utterances, tmp_path: Path) -> None:
    """``watch_aligner`` draws the OT weights' own coupling: a frame is its token's that holds most of its weight."""
    snapshot(model, test_split, tmp_path, 1, Training(watch=1, watch_aligner={"name": "ottc"}))
    snapshot(model, test_split, tmp_path, 2, Training(watch=1))
    with np.load(tmp_path / "step-000001-0.npz") as arrays:
        alpha, tokens, labels = (arrays[k] for k in ("alpha", "tokens", "labels"))
    assert (np.diff(labels) != 0).all()  # so no blank stands between two
    ends = np.cumsum(alpha.astype(np.float64)) / alpha.sum(dtype=np.float64)
    starts = np.append(0.0, ends[:-1])
    edges = np.arange(len(labels) + 1) / len(labels)
    held = np.minimum(ends[:, None], edges[1:]) - np.maximum(starts[:, None], edges[:-1])
    assert len(labels) > 3
    assert tokens.tolist() == held.argmax(1).tolist()
    with np.load(tmp_path / "step-000002-0.npz") as arrays:
        assert arrays["tokens"].tolist() != tokens.tolist()  # the Viterbi path of the recipe's own aligner


def test_a_watched_text_that_does_not_fit(
    model: Model, test_split: Utterances, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not recorded, with a warning; the training goes on."""
    row = dict(test_split.rows[0])
    short = Utterances([{**row, "end": 0.1}, dict(test_split.rows[1])], model.tokenizer, 16_000)
    with caplog.at_level(logging.WARNING):
        snapshot(model, short, tmp_path, 1, Training(watch=2))
    assert [p.name for p in tmp_path.iterdir()] == ["step-000001-1.npz"]
    assert f"Nothing is recorded of {row['id']}: " in caplog.text


def test_paths_of_a_teacher(run_folder: Path, model: Model, timit_root: Path, tmp_path: Path) -> None:
    rows = list(TimitCorpus(timit_root).load("train"))
    rows[3] = {**rows[3], "end": 0.1}  # more phones than frames
    data = Utterances(rows, model.tokenizer, 16_000)
    cache = tmp_path / "paths.npz"
    paths = teacher_paths(run_folder, data, cache)
    assert sorted(paths) == list(range(12))
    frames = model.encoder.frames
    for i, path in paths.items():
        example = data[i]
        assert path.dtype == np.int16
        assert len(path) == frames(len(example.audio))
        if i == 3:
            assert (path == -2).all()
            continue
        kept = path[path >= 0]
        assert [int(t) for t, before in zip(kept, [-1, *kept]) if t != before] == list(
            range(len(example.transcript.tokens))
        )
    again = teacher_paths(tmp_path / "no model", data, cache)  # found, and not computed
    assert again.keys() == paths.keys()
    assert all(np.array_equal(again[i], paths[i]) for i in paths)
    other = Utterances(rows, CharacterTokenizer(["<pad>", "|", *"abehiopst"]), 16_000)
    with pytest.raises(ValueError, match=r"The teacher .*run has other labels than this recipe"):
        teacher_paths(run_folder, other, tmp_path / "other.npz")


def test_paths_of_another_teacher_are_not_used(
    run_folder: Path, tiny_recipes: Path, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that left no checkpoint may be started again with another teacher; one that goes on has the same paths."""
    another = train(tiny_recipes / "ctc.yaml", f"output={tmp_path / 'another'}", "train.steps=2", "seed=5")
    recipe = tiny_recipes / "ctc.yaml"
    options = ["objective.ctc.loss={name: single-path}", "train.steps=4", "splits.dev=", "splits.test="]

    def killed(_trainer: Trainer) -> None:
        raise KeyboardInterrupt

    def paths(name: str, teacher: Path) -> dict[str, np.ndarray]:
        folder = train(recipe, f"output={tmp_path / name}", f"teacher={teacher}", *options)
        with np.load(folder / "teacher_paths.npz") as stored:
            return {number: stored[number] for number in stored.files}

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "fit", killed)
        with pytest.raises(KeyboardInterrupt):
            paths("student", another)
    assert (tmp_path / "student" / "teacher_paths.npz").is_file()
    found, fresh = paths("student", run_folder), paths("fresh", run_folder)
    assert found.keys() == fresh.keys()
    assert all(np.array_equal(found[number], fresh[number]) for number in fresh)
    time = (tmp_path / "student" / "teacher_paths.npz").stat().st_mtime_ns
    paths("student", run_folder)
    assert (tmp_path / "student" / "teacher_paths.npz").stat().st_mtime_ns == time


def test_learning_from_a_teacher(run_folder: Path, tiny_recipes: Path, train: Train, tmp_path: Path) -> None:
    """With an utterance that the teacher could not align: it has no loss, and does no harm."""
    options = [
        f"teacher={run_folder}", "objective.ctc.loss={name: single-path}", "data.root=" + str(tmp_path / "TIMIT"),
        "train.batch_size=1", "train.epochs=1", "train.steps=0", f"output={tmp_path / 'run'}",
    ]  # fmt: skip
    shutil.copytree(OmegaConf.load(run_folder / "config.yaml").data.root, tmp_path / "TIMIT")
    folder = tmp_path / "TIMIT" / "TRAIN" / "DR1" / "FAAA0"
    dense = "".join(f"{i * 40} {i * 40 + 40} {'s' if i % 2 else 'iy'}\n" for i in range(60))
    (folder / "SX2.PHN").write_text(dense)  # 60 phones within 0.15 s, 0.5 s in all
    run = train(tiny_recipes / "ctc.yaml", *options)
    values = [row["ctc"] for row in lines(run / "metrics.jsonl") if "loss" in row]
    assert len(values) == 12
    assert values.count(0.0) == 1
    with np.load(run / "teacher_paths.npz") as stored:
        assert [k for k in stored.files if (stored[k] == -2).all()] == ["1"]
