"""Every experiment on TIMIT, a few steps long, on a miniature corpus in TIMIT's layout."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from omegaconf import OmegaConf
from transformers import Wav2Vec2Config, Wav2Vec2FeatureExtractor, Wav2Vec2ForPreTraining

import isotone.format
from isotone.corpus.timit import TimitCorpus
from isotone.model import Model
from isotone.training.config import RecipeError, load_recipe
from isotone.training.objective import Objective
from isotone.types import Targets
from tests.paths import RECIPES

RECIPE = RECIPES / "timit"
PLAIN = {name: OmegaConf.load(path) for name, path in sorted({
    path.stem: path for folder in (RECIPE.parent / "models", RECIPE) for path in folder.glob("*.yaml")
}.items())}  # fmt: skip
PRESETS = [name for name, recipe in PLAIN.items() if "data" in recipe and name != "base"]
EXPERIMENTS = [name for name in PLAIN if name not in (*PRESETS, "base", "paper", "small")]
LEARNERS = [name for name in EXPERIMENTS if "teacher" in PLAIN[name]]
SHORT = ["train.steps=3", "train.batch_size=4", "train.evaluate_every=2", "train.trackers=[none]"]

Run = Callable[[str], Path]


@pytest.fixture(scope="session")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in for facebook/wav2vec2-large-lv60: the same classes, with fewer and random weights."""
    folder = tmp_path_factory.mktemp("pretrained")
    torch.manual_seed(0)
    config = Wav2Vec2Config(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, conv_dim=[8] * 7,
        feat_extract_norm="layer", do_stable_layer_norm=True, conv_bias=True, num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2, codevector_dim=8, proj_codevector_dim=8, num_codevectors_per_group=4,
    )  # fmt: skip
    Wav2Vec2ForPreTraining(config).save_pretrained(folder)
    Wav2Vec2FeatureExtractor(return_attention_mask=True).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def experiment(
    tmp_path_factory: pytest.TempPathFactory, timit_root: Path, pretrained: Path, train: Callable[..., Path]
) -> Run:
    """Run an experiment, once; those that need a teacher or a start get the run of ``ctc``, which lies beside them."""
    folder = tmp_path_factory.mktemp("experiments")

    def go(name: str) -> Path:
        if (folder / name).exists():
            return folder / name
        overrides = [f"data.root={timit_root}", f"encoder.source={pretrained}", f"output={folder / name}"]
        if name in (*LEARNERS, "timing"):
            go("ctc")
        return train(RECIPE / f"{name}.yaml", *overrides, *SHORT)

    return go


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_there_are_experiments_and_presets() -> None:
    assert {"ctc", "ottc", "joint", "single_path", "ottc_oracle_beta", "ottc_fixed_alpha"} <= set(EXPERIMENTS)
    assert set(LEARNERS) == {"single_path", "ottc_oracle_beta"}
    assert "synthetic" in PRESETS


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiment(name: str, experiment: Run, timit_root: Path) -> None:
    folder = experiment(name)
    rows = lines(folder / "metrics.jsonl")
    recipe = OmegaConf.load(folder / "config.yaml")
    terms = {name for name, term in recipe.objective.items() if term.weight}
    assert [row["step"] for row in rows if "loss" in row] == [1, 2, 3]
    assert all(row[term] > 0 for row in rows if "loss" in row for term in terms)
    assert [row["step"] for row in rows if "dev_error_rate" in row] == [2, 3]
    corpus = TimitCorpus(timit_root).load("test")
    assert [row["id"] for row in lines(folder / "predictions.jsonl")] == corpus["id"][:]
    result = json.loads((folder / "result.json").read_text())
    assert set(result) == {"recognised", "forced", "forced_frameless"}
    for row in corpus:
        for kind in ("alignments", "forced"):
            alignment = isotone.format.read(folder / kind / f"{row['id']}.TextGrid")
            assert alignment.duration == pytest.approx(row["end"], abs=1e-3)
            assert alignment.has("phones")
        assert alignment.tier("words").labels == row["words"]["label"]
        spoken = [p for p in row["phones"]["label"] if p != "sil"]
        assert alignment.tier("phones").labels == spoken
    model = Model.load(folder)
    assert set(model.heads) == set(recipe.heads)
    assert model.tokenizer.labels[1:] == sorted(
        {p for row in TimitCorpus(timit_root).load("train") for p in row["phones"]["label"]}
    )
    assert (folder / "teacher_paths.npz").is_file() == (name in LEARNERS)


def test_a_finished_ottc_is_read_otherwise(
    experiment: Run, train: Callable[..., Path], timit_root: Path
) -> None:
    """The same weights, text by another decoder, and times by Viterbi instead of the transport."""
    finished = experiment("ottc")
    again = train(
        RECIPE / "ottc_segmental.yaml", f"data.root={timit_root}", f"init={finished}", "train.epochs=0",
        f"encoder.source={OmegaConf.load(finished / 'config.yaml').encoder.source}", f"output={finished}-segmental",
    )  # fmt: skip
    ours, theirs = (Model.load(folder) for folder in (again, finished))
    assert all(torch.equal(ours.state_dict()[k], v) for k, v in theirs.state_dict().items())
    assert ours.decoding != theirs.decoding
    assert theirs.decoding.aligner == {"name": "ottc"}
    ids = [row["id"] for row in lines(again / "predictions.jsonl")]
    times = [
        [
            [
                (p.start, p.end)
                for p in isotone.format.read(folder / "forced" / f"{id}.TextGrid").tier("phones")
            ]
            for id in ids
        ]
        for folder in (again, finished)
    ]
    assert times[0] != times[1]


def test_a_timing_head_leaves_the_model_as_it_is(experiment: Run) -> None:
    before, after = (Model.load(experiment(name)).state_dict() for name in ("ctc", "timing"))
    assert all(torch.equal(after[name], value) for name, value in before.items())
    fresh = [name for name in after if name not in before]
    assert all(name.startswith("heads.ottc.") for name in fresh)
    folder = experiment("timing")
    model = Model.load(folder)
    objective = Objective(model, OmegaConf.to_container(OmegaConf.load(folder / "config.yaml").objective))  # type: ignore[arg-type]
    layers = []
    model.encoder.model.encoder.register_forward_hook(lambda *_: layers.append(1))
    targets = Targets.from_lists([[1, 2]])
    loss, parts = objective(torch.randn(1, 16_000), torch.tensor([16_000]), targets)
    assert set(parts) == {"ottc"}
    assert torch.equal(loss, parts["ottc"])
    assert not layers, "no layer of the encoder is computed"


def test_pretrained_weights_are_used_and_the_front_end_rests(experiment: Run, pretrained: Path) -> None:
    theirs = Wav2Vec2ForPreTraining.from_pretrained(pretrained).wav2vec2.state_dict()
    ours = {
        k.removeprefix("encoder.model."): v for k, v in Model.load(experiment("ctc")).state_dict().items()
    }
    front = [k for k in theirs if k.startswith("feature_extractor.")]
    assert len(front) == 28
    assert all(torch.equal(ours[k], theirs[k]) for k in front)
    name = "encoder.layers.0.attention.q_proj.weight"
    assert not torch.equal(ours[name], theirs[name])
    torch.testing.assert_close(ours[name], theirs[name], rtol=0, atol=3e-3)  # a few small steps away


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_papers_schedule(name: str) -> None:
    """40 epochs at a rate of 2e-4 after 500 steps of warm-up, OT weights frozen for the last 10 (section 4)."""
    recipe = load_recipe(RECIPE / f"{name}.yaml", ["data.root=/corpora/TIMIT"])
    assert (recipe.train.epochs, recipe.train.steps) == (40, 0)
    assert (recipe.train.lr, recipe.train.warmup_steps) == (2e-4, 500)
    assert recipe.data["phones"] == 39
    assert recipe.encoder["source"] == "facebook/wav2vec2-large-lv60"
    for head in recipe.heads.values():
        if head["name"] == "ottc" and "freeze" not in name:
            assert head["detach_after"] == 30 / 40
    assert recipe.output == f"runs/timit/{name}"


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_presets(preset: str, name: str) -> None:
    recipe = load_recipe(RECIPE / f"{name}.yaml", [f"data={preset}", "data.root=/corpora"])
    assert recipe.encoder["source"] == "wav2vec2-bert-tiny"
    assert recipe.encoder["freeze_features"] is False
    assert recipe.train.steps > 0
    assert recipe.tokens["unit"] == "phones"
    if preset == "synthetic":
        assert recipe.data["name"] == "synth"
        assert "phones" not in recipe.data  # of timit's options none is left


def test_what_is_missing() -> None:
    with pytest.raises(
        RecipeError, match=r"ctc\.yaml: no value for data\.root\. Give it as data\.root=VALUE"
    ):
        load_recipe(RECIPE / "ctc.yaml")
    with pytest.raises(
        FileNotFoundError, match=r"otc\.yaml\. Did you mean 'ottc'\? There is: .*ctc, .* ottc, "
    ):
        load_recipe(RECIPE / "otc.yaml")
    with pytest.raises(RecipeError, match=r"No preset 'syntetic'"):
        load_recipe(RECIPE / "ctc.yaml", ["data=syntetic"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], r"(?s)run\.py EXPERIMENT \[key=value \.\.\.\].*Experiments and presets: .*ctc,.* ottc,"),
        (["-x"], "Experiments and presets: .*ctc"),
        (["ctc"], r"error: .*no value for data\.root"),
        (["cct"], r"error: No recipe .*Did you mean 'ctc'"),
        (["ctc", "train.lr"], "error: An override is key=value"),
    ],
)
def test_script(arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", *arguments])
    with pytest.raises(SystemExit, match=message) as left:
        runpy.run_path(str(RECIPE / "run.py"), run_name="__main__")
    assert isinstance(left.value.code, str)  # printed to standard error, with exit status 1


def test_script_runs_an_experiment(
    tmp_path: Path, timit_root: Path, monkeypatch: pytest.MonkeyPatch, pretrained: Path
) -> None:
    from accelerate.state import AcceleratorState

    overrides = [
        f"data.root={timit_root}",
        f"encoder.source={pretrained}",
        f"output={tmp_path / 'run'}",
        *SHORT,
    ]
    monkeypatch.setattr(sys, "argv", ["run.py", "ctc", *overrides, "train.steps=1", "splits.dev="])
    AcceleratorState._reset_state(reset_partial_state=True)
    runpy.run_path(str(RECIPE / "run.py"), run_name="__main__")
    assert (tmp_path / "run" / "result.json").is_file()
    assert [row["step"] for row in lines(tmp_path / "run" / "metrics.jsonl")] == [1]  # no dev, no evaluation
