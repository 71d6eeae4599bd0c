"""Experiments on ordered search in audio: scores against their definition, and every experiment for some steps."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.recipes.music import RECIPE, module, prepared, settings

EXPERIMENTS = sorted(path.stem for path in RECIPE.glob("*.yaml") if path.stem != "base")
DIFFER = ("data", "model", "pretrain", "train", "evaluate", "hashing")


def test_quality_leaves_out_what_is_not_counted() -> None:
    relevant = torch.tensor([[True, False, False, True, False]])
    counted = torch.tensor([[True, True, False, True, True]])
    data = module("sets").SearchSet(
        torch.zeros(1, 2, 3), torch.zeros(1, 2), torch.zeros(5, 4, 3), torch.full((5,), 4), relevant, counted,
        torch.zeros(1), torch.zeros(5),
    )  # fmt: skip
    scores = torch.tensor([[3.0, 4.0, 9.0, 2.0, 1.0]])
    found = module("evaluation").quality(scores, data)
    assert module("evaluation").quality(scores.repeat(2, 1), data.of(torch.tensor([0, 0]))) == found
    assert found["MAP"] == pytest.approx((1 / 2 + 2 / 3) / 2)  # ranks 2 and 3 of four
    assert found["MRR"] == pytest.approx(1 / 2)


def test_precision_of_what_was_retrieved_against_the_definition() -> None:
    rng = np.random.default_rng(0)
    scores, relevant, found = rng.random((6, 9)), rng.random((6, 9)) < 0.5, rng.random((6, 9)) < 0.6
    relevant[:, 0] = True
    expected = []
    for q in range(6):
        ranked = [c for c in np.argsort(-scores[q]) if found[q, c]]
        hits = [
            sum(relevant[q, d] for d in ranked[: i + 1]) / (i + 1)
            for i, c in enumerate(ranked)
            if relevant[q, c]
        ]
        expected.append(sum(hits) / relevant[q].sum())
    value = module("hashing").retrieved_precision(scores, relevant, found)
    assert value == pytest.approx(np.mean(expected))
    # all found is average precision as it is
    from isotone.evaluation.ranking import average_precision

    value = module("hashing").retrieved_precision(scores, relevant, np.ones_like(found))
    assert value == pytest.approx(average_precision(scores, relevant).mean())


def test_a_batch_holds_positives_and_what_may_be_learned_from() -> None:
    data = prepared()[1]["train"]
    allowed = module("training").pairs(data, 8, 0)
    queries, items = module("batches").draw(data, allowed, 3, 2, 10, None, torch.Generator().manual_seed(0))
    assert len(queries.unique()) == 3
    assert len(items.unique()) == len(items) <= 10
    assert (data.relevant[queries][:, items].sum(1) >= 2).all()


def test_a_batch_is_from_as_many_recordings_as_it_is_told() -> None:
    data = prepared()[1]["train"]
    everything = torch.ones_like(data.relevant)
    assert len(data.item_recording.unique()) >= 3
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        queries, items = module("batches").draw(data, everything, 6, 2, 8, 2, generator)
        here = data.query_recording[queries].unique()
        assert len(here) <= 2
        assert torch.isin(data.query_recording[queries], here).all()
        assert len(data.item_recording[items].unique()) <= 2
        assert (data.relevant[queries][:, items].sum(1) >= 2).all()


def test_residual_embeddings_keep_inner_products_before_they_learn() -> None:
    from isotone_opas.embed import TransformerEmbed

    torch.manual_seed(0)
    windows = torch.randn(4, 9, 300)
    windows[:, 5] = windows[:, 2] + 0.5 * windows[:, 5]
    embed = TransformerEmbed(input_size=300, size=128, width=32, residual=True).eval()
    unit = torch.nn.functional.normalize(windows, dim=-1)
    found = embed(windows)
    torch.testing.assert_close(found @ found.mT, unit @ unit.mT, atol=0.25, rtol=0)
    moved = windows.flip(1)
    torch.testing.assert_close(embed(moved), found.flip(1))  # no context yet
    embed(windows)[..., 0].sum().backward()
    assert embed.out.weight.grad is not None
    assert float(embed.out.weight.grad.abs().max()) > 0


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if not name.endswith("cross")])
def test_every_experiment_states_a_difference_and_builds(name: str) -> None:
    base, own = settings("opas"), settings(name)
    if name != "opas":
        assert any(getattr(base, key) != getattr(own, key) for key in DIFFER)
    elements = module("sets").build_elements(own.data)
    size, ranker = elements.size, module("rankers").build(own.model, own.data, elements).eval()
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(2, 6, size, generator=generator)
    corpus = torch.randn(3, own.data.windows, size, generator=generator)
    lengths = torch.tensor([own.data.windows, 9, 7])
    with torch.no_grad():
        x, y = ranker.embed(queries, query=True), ranker.embed(corpus, lengths, query=False)
        scores = ranker.scores(x, y, lengths)
        corpus[1, 9:], corpus[2, 7:] = 5.0, -3.0  # beyond the lengths
        again = ranker.scores(x, ranker.embed(corpus, lengths, query=False), lengths)
    assert scores.shape == (2, 3)
    assert torch.isfinite(scores).all()
    torch.testing.assert_close(scores, again)


def test_beta_two_stays_where_it_is_told_to() -> None:
    elements, found = prepared()
    for name, moves in (("opas", [True, True]), ("no_order", [True, False]), ("no_beta", [False, False])):
        config = settings(name)
        ranker = module("rankers").build(config.model, config.data, elements)
        before = ranker.model.log_beta.detach().clone()
        allowed = module("training").pairs(found["train"], 8, 0)
        config.train.margin = 5.0  # every pair is in the loss
        optimiser = torch.optim.Adam([ranker.model.log_beta], 0.1)
        batch = module("batches").draw_batch(
            found["train"], allowed, config.train, 1.0, torch.Generator().manual_seed(0)
        )
        module("batches").StepLoss(ranker, config.train)(batch).backward()
        optimiser.step()
        assert (ranker.model.log_beta != before).tolist() == moves


def finished(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "scores.json").read_text())
    return report


def run(experiment: str, folder: Path, *overrides: str) -> dict[str, Any]:
    config = settings(experiment, f"output={folder}", *overrides)
    config.evaluate.baselines = {"DTW": {"scorer": {"name": "dtw"}, "queries": 2}}
    module("experiment").run(config, Path.cwd())
    return finished(folder)


def test_run_resume_and_cross(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    whole = run("opas", tmp_path / "whole")
    folder = tmp_path / "whole"
    assert {p.name for p in (folder / "figures").iterdir()} == {
        "alignments.png", "distances.png", "distributions.png", "indexes.png", "time.png",
    }  # fmt: skip
    assert [json.loads(x)["step"] for x in (folder / "metrics.jsonl").read_text().splitlines()] == [1, 2]
    own = whole["scores"]["OPAS"]
    assert 0 < own["MAP"] <= 1
    assert 0 <= own["ODC"] <= 100
    assert set(whole["hashing"]) == {"lsh-random", "lsh-trained", "faiss-flat", "faiss-hnsw"}
    for rows in whole["hashing"].values():
        retrieved, scores = zip(*sorted((row["retrieved"], row["MAP"]) for row in rows))
        assert 0 <= retrieved[0] <= retrieved[-1] <= 16
        assert max(scores) <= own["MAP"] + 1e-6 or retrieved[-1] < 16
    printed = module("tables").tables(whole)
    best = whole["hashing"]["lsh-trained"][0]
    assert f"| OPAS | {own['MAP']:.4f} |" in printed
    assert f"| lsh-trained | {best['retrieved']:.1f} | {best['share']:.3f} | {best['MAP']:.4f} |" in printed
    assert f"| cosine | {whole['set_vectors']['cosine']['MAP']:.4f} |" in printed
    assert f"| correlation with s_F | {whole['plan_distance']['correlation with s_F']:.2f} |" in printed
    # interrupted after its first step, it ends with the same numbers
    training = module("training")
    save = training.Trainer.save

    def interrupt(trainer: Any) -> None:
        save(trainer)
        raise KeyboardInterrupt

    training.Trainer.save = interrupt
    try:
        with pytest.raises(KeyboardInterrupt):
            run("opas", tmp_path / "resumed", "hashing.run=false")
    finally:
        training.Trainer.save = save
    with (tmp_path / "resumed" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "lo')
    resumed = run("opas", tmp_path / "resumed", "hashing.run=false")
    for key in ("MAP", "MRR", "ODC"):
        assert resumed["scores"]["OPAS"][key] == pytest.approx(own[key], abs=1e-9)
    assert len((tmp_path / "resumed" / "metrics.jsonl").read_text().splitlines()) == 2
    with pytest.raises(ValueError, match="other settings: seed is 0 there, 1 here"):
        run("opas", tmp_path / "resumed", "seed=1")
    # the model of a run on its own data scores as it did there
    crossed = run("cross", tmp_path / "cross", f"model_from={folder}")
    assert crossed["scores"]["OPAS"]["MAP"] == pytest.approx(own["MAP"], abs=1e-9)
    with pytest.raises(ValueError, match=r"data\.windows=20"):
        run("cross", tmp_path / "other", f"model_from={folder}", "data.windows=10")
    with pytest.raises(FileNotFoundError, match="no finished run"):
        run("cross", tmp_path / "none", f"model_from={tmp_path / 'nowhere'}")


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("evaluate.baselines.x={scorer: {name: fastdtw}, queries: 1}", ImportError),
        ("evaluate.baselines.x={scorer: {name: dwt}, queries: 1}", LookupError),
        ("hashing={run: true, indexes: [fais]}", LookupError),
    ],
)
def test_what_evaluation_lacks_is_seen_before_training(
    override: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastdtw", None)
    config = settings("exact", f"output={tmp_path / 'run'}", override)
    with pytest.raises(error, match=r"fastdtw|dwt|fais"):
        module("experiment").run(config, Path.cwd())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["colbert", "contrast", "direct", "pretrained", "variable"])
def test_other_experiments_run(name: str, tmp_path: Path) -> None:
    few = ["pretrain.steps=2"]
    more = {"contrast": few, "pretrained": few, "variable": ["train.order_weight=1"]}.get(name, [])
    report = run(name, tmp_path / name, "train.steps=1", "data.recordings=3", *more)
    (own, *_) = report["scores"].values()
    assert 0 < own["MAP"] <= 1
    assert (tmp_path / name / "ranker.safetensors").is_file()
    assert (tmp_path / name / "model").is_dir() == (name in ("contrast", "pretrained", "variable"))


def test_windows_that_are_contrasted_are_not_the_same() -> None:
    data = prepared()[1]["train"]
    generator = torch.Generator().manual_seed(0)
    for recordings in (1, None):
        queries, items = module("pretraining").different(data, 100, recordings, generator)
        same = torch.eye(len(queries), dtype=torch.bool)
        assert len(queries) > 1
        assert torch.equal(data.relevant[queries][:, items], same)  # one query per sequence
        assert data.counted[queries][:, items].all()  # and none that overlaps it
        assert recordings is None or len(data.query_recording[queries].unique()) == 1


@pytest.mark.parametrize("task", ["denoise", "contrast"])
def test_pretraining_gains(task: str) -> None:
    elements, sets = prepared()
    options = settings("contrast", f"pretrain.task={task}", "pretrain.lr=5e-3").pretrain
    torch.manual_seed(0)
    embedding = module("rankers").build(settings().model, settings().data, elements).embedding
    first, last = (
        module("pretraining").pretrain(embedding, sets["train"], replace(options, steps=n), 0)
        for n in (1, 60)
    )
    assert last < 0.95 * first


def test_another_contrast_brings_its_own_options() -> None:
    contrast = settings("contrast", "pretrain.contrast.pairwise.name=triplet").pretrain.contrast
    assert contrast == {"pairwise": {"name": "triplet"}, "qare": {"beta": 0.5}}
    with pytest.raises(ValueError, match=r"pretrain\.task denoise or contrast"):
        module("pretraining").pretrain(None, None, settings("opas", "pretrain.task=other").pretrain, 0)


def test_settings() -> None:
    load = module("settings").load_settings
    with pytest.raises(FileNotFoundError, match=r"opsa\.yaml\. Did you mean 'opas'"):
        load("opsa")
    with pytest.raises(ValueError, match="No preset 'sintetic'"):
        load("opas", ["data=sintetic"])
    with pytest.raises(ValueError, match="key=value"):
        load("opas", ["train.steps"])
    with pytest.raises(ValueError, match="model_from=VALUE"):
        load("cross")
    with pytest.raises(ValueError, match="stepz"):
        load("opas", ["train.stepz=3"])
    # a part of another name brings its own options
    assert load("lrl").model.embed == {"name": "lrl"}
    assert load("sinkhorn5").model.relaxation["iterations"] == 5
    # an experiment's difference holds in every size
    assert load("opas", ["size=paper"]).train.margin == 0.3
    assert load("colbert", ["size=paper"]).train.margin == 1.0
    assert load("single_step_sum", ["size=paper"]).model.relaxation == {"name": "single-step-sum"}
    assert load("opas", ["data=music", "data.root=/x"]).output == "runs/music_speech/music/opas"


def test_the_readme_names_every_experiment() -> None:
    text = (RECIPE / "README.md").read_text()
    assert [name for name in EXPERIMENTS if f"`{name}`" not in text] == []
    named = {
        name for row in text.splitlines() if row.startswith("|") for name in re.findall(r"`([a-z]\w+)`", row)
    }
    files = {name for name in named if re.search(rf"^\|[^|]*\|[^|]*\| `{name}`", text, re.MULTILINE)}
    assert len(files) > 20
    assert files <= set(EXPERIMENTS)
