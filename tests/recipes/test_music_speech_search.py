"""Models that the recipe writes, in `isotone search`; other embeddings, processes, images, and the paper's size."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch
from accelerate.utils import DistributedType
from isotone_opas.model import OPAS
from isotone_opas.searcher import OPASSearcher
from safetensors.torch import load_file

from isotone.search import open_searcher
from isotone.testing import check_searcher
from tests.recipes.music import RECIPE, TINY, module, settings
from tests.scripts import Script, ranks
from tests.tiny_models import error_of, isotone

ENCODER = {
    "model_type": "wav2vec2", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 16, "conv_dim": [8] * 7, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
}  # fmt: skip
# A script's own folder comes first, as where it is started from a shell.
RUN = """
import os, runpy, sys
sys.argv.pop(0)
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
MEL = ["data.elements=mel", "data.sample_rate=4000", "data.bands=20", "data.frames=4", "model.embed.width=16"]


def trained(experiment: str, folder: Path, *overrides: str) -> Path:
    config = settings(experiment, f"output={folder}", "evaluate.odc_queries=0", *overrides)
    config.evaluate.baselines, config.hashing.run = {}, False
    module("experiment").run(config, Path.cwd())
    return folder


def songs(folder: Path, rate: int = 16_000) -> Path:
    """Write three tunes of 30 s at another rate than the models'."""
    folder.mkdir()
    for name, audio in module("synthesis").music(3, 30.0, rate, 5):
        soundfile.write(folder / f"{name}.wav", audio, rate)
    return folder


def test_a_model_of_the_recipe_finds_a_clip_from_the_command_line(tmp_path: Path) -> None:
    run = trained("exact", tmp_path / "run", *MEL, "train.steps=1")
    elements = OPAS.load(run / "model").elements
    assert elements is not None
    assert float(elements.mean.abs().min()) > 0  # fitted on the training audio
    folder = songs(tmp_path / "songs")
    audio, rate = soundfile.read(folder / "tune0001.wav", dtype="float32")
    noise = np.random.default_rng(0).standard_normal(4 * rate).astype(np.float32)
    part = audio[7 * rate : 11 * rate]
    soundfile.write(tmp_path / "clip.wav", part + 0.2 * part.std() * noise, rate)
    for model, index in ((run, "faiss-flat"), (run / "model", "centroids")):
        if index != "centroids":
            pytest.importorskip("faiss")
        out = tmp_path / index
        isotone("search", "index", folder, "--out", out, "--model", model, "--index", index)
        about = json.loads((out / "index.json").read_text())["model"]
        assert (about["sample_rate"], about["window_s"]) == (4000, 1.0)
        isotone("search", "query", out, tmp_path / "clip.wav", "--out", tmp_path / f"{index}.found")
        best = json.loads((tmp_path / f"{index}.found" / "results.json").read_text())["matches"][0]
        assert (best["id"], best["start_s"], best["end_s"]) == ("tune0001", 7.0, 11.0)
    said = error_of(
        "search", "index", folder, "--out", tmp_path / "i", "--model", run, "--sample-rate", "16000"
    )
    assert "4000 Hz, not at 16000 Hz" in said


def test_statistics_travel_in_the_model(tmp_path: Path) -> None:
    run = trained("exact", tmp_path / "run", *MEL, "train.steps=1")
    elements, _ = module("sets").prepare(settings("exact", *MEL).data)
    searcher = open_searcher(run)
    check_searcher(searcher)
    assert isinstance(searcher, OPASSearcher)
    windows = torch.randn(2, 5, 4000, generator=torch.Generator().manual_seed(0))
    expected = searcher.model.embed(elements(windows))
    torch.testing.assert_close(searcher.vectors(windows), expected, atol=1e-5, rtol=0)
    model = OPAS.load(run / "model")
    with torch.no_grad():
        model.elements.mean += 1.0  # type: ignore[union-attr, operator]
    other = OPASSearcher(model, fingerprint="x").vectors(windows)
    assert float((other - expected.detach()).abs().max()) > 1e-3


def test_models_that_do_not_search_audio_are_named(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    clip = songs(tmp_path / "songs") / "tune0000.wav"
    images = trained("exact", tmp_path / "images", "data=digits", "data.copies=2", "data.queries=1", "train.steps=1",
                     "data.shares={train: 0.02, dev: 0.01, test: 0.97}", "data.train_copies=2")  # fmt: skip
    said = error_of("search", "index", clip, "--out", tmp_path / "i", "--model", images)
    assert "no audio (images ...)" in said
    colbert = trained("colbert", tmp_path / "colbert", "train.steps=1")
    said = error_of("search", "index", clip, "--out", tmp_path / "i", "--model", colbert)
    assert "only OPAS models are" in said
    assert not (tmp_path / "i").exists()


def test_an_encoder_of_speech_embeds_windows(tmp_path: Path) -> None:
    encoder = json.dumps({"name": "transformers", "source": ENCODER}).replace('"', "")
    given = ["data.sample_rate=16000", f"model.embed.encoder={encoder}", "train.steps=1", "train.batch=2"]
    run = trained(
        "encoder", tmp_path / "run", *given, "train.batch_items=3", "data.copies=2", "data.queries=1"
    )
    assert (run / "model" / "encoder" / "config.json").is_file()
    check_searcher(open_searcher(run))
    with pytest.raises(ValueError, match=r"data\.elements=raw data\.sample_rate=16000 \(got raw at 1000\)"):
        trained("encoder", tmp_path / "slow", "data.sample_rate=1000", f"model.embed.encoder={encoder}")


def test_images_are_turned_in_order() -> None:
    pytest.importorskip("sklearn")
    images = module("images")
    pictures, shown = images.digits()
    assert pictures.shape == (1797, 8, 8)
    assert shown.unique().tolist() == list(range(10))
    rng = np.random.default_rng(0)
    found = images.turned(pictures[0], 3, 4, rng)
    assert found.shape == (3, 4, 64)
    assert not torch.equal(found[0], found[1])  # steps are random

    class Quarter:
        def random(self, shape: tuple[int, int]) -> np.ndarray:
            return np.arange(shape[1])[None] / 3  # steps of 90 degrees, at 4 frames

    quarters = images.turned(pictures[0], 1, 4, Quarter())[0]  # 0, 90, 180 and 270 degrees
    turns = torch.stack([torch.rot90(pictures[0], k) for k in range(4)]).flatten(1)
    torch.testing.assert_close(quarters, turns, atol=1e-5, rtol=0)


def test_sets_of_images() -> None:
    pytest.importorskip("sklearn")
    data = settings("opas", "data=digits", "data.copies=3", "data.queries=2", "data.snr_db=null").data
    _, sets = module("sets").prepare(data)
    assert sum(len(part.corpus) for part in sets.values()) > 3 * 1700
    test = sets["test"]
    assert (test.relevant.sum(1) == 3).all()
    assert test.counted.all()
    for query, chosen, relevant in list(zip(test.queries, test.chosen, test.relevant))[:50]:
        assert torch.equal(test.corpus[int(relevant.nonzero()[0])][chosen], query)


@pytest.mark.parametrize("experiment", ["ordered", "exact"])
def test_two_processes_make_the_steps_of_one(experiment: str, tmp_path: Path) -> None:
    """Without dropout, whose masks are drawn by every process."""
    own = [*TINY, "train.steps=4", "train.evaluate_every=2", "model.embed.dropout=0", "train.margin=0.5",
           "train.embed_lr=1e-2", "evaluate.odc_queries=0",
           "train.order_weight=1", "train.batch=3", "model.embed.residual=false"]  # fmt: skip
    trained(experiment, tmp_path / "one", *own[len(TINY) :])
    command = [RECIPE / "run.py", experiment, *own, f"output={tmp_path / 'two'}"]
    both = [Script(RUN, *command, variables=rank) for rank in ranks(2)]
    assert [script.wait() for script in both] == [0, 0], [script.stderr for script in both]
    assert [script.stdout.count("| OPAS |") for script in both] == [1, 0]  # the main process alone reports
    one, two = (load_file(tmp_path / name / "ranker.safetensors") for name in ("one", "two"))
    config = settings(experiment, *own)
    torch.manual_seed(0)
    start = module("rankers").build(config.model, config.data, _elements()).state_dict()
    learned = [name for name in one if not torch.equal(one[name], start[name])]
    assert len(learned) > 10
    moved, apart = (
        float(torch.cat([(a[name] - b[name]).flatten() for name in learned]).norm())
        for a, b in ((one, start), (one, two))
    )
    # Adam amplifies the rounding of small gradients
    assert apart < 0.01 * moved
    rows = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("one", "two")]
    losses = [[json.loads(line)["loss"] for line in lines] for lines in rows]
    assert losses[0][0] == pytest.approx(losses[1][0], abs=1e-5)
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def _elements() -> object:
    return module("sets").build_elements(settings().data)


def test_a_batch_too_small_for_the_processes_is_refused() -> None:
    batches, data = module("batches"), module("sets").prepare(settings().data)[1]["train"]
    options = settings("opas", "train.batch=1").train
    batch = batches.draw_batch(data, torch.ones_like(data.relevant), options, 1.0, torch.Generator())
    with pytest.raises(ValueError, match=r"1 queries for 2 processes: raise train\.batch"):
        batch.part(0, 2)


@pytest.mark.full_size
def test_the_papers_size_starts(tmp_path: Path) -> None:
    """Appendix H: a transformer as wide as a second has samples; two steps, of few queries and items."""
    few = ["data.recordings=3", "data.recording_s=42", "data.copies=2", "data.train_copies=2", "data.queries=2",
           "train.batch=2", "train.positives=1", "train.batch_items=3", "train.steps=2", "train.evaluate_every=2",
           "evaluate.odc_queries=0", "hashing.run=false", "data.kind=music", "threads=1",
           "evaluate.distances=4", "cache=null", f"output={tmp_path / 'run'}"]  # fmt: skip
    config = module("settings").load_settings("opas", ["size=paper", *few])
    config.evaluate.baselines = {}
    module("experiment").run(config, Path.cwd())
    model = OPAS.load(tmp_path / "run" / "model")
    layer = model.embed.transformer.layers[0]  # type: ignore[union-attr, union-attr, index]
    assert len(model.embed.transformer.layers) == 2  # type: ignore[union-attr, arg-type]
    assert layer.self_attn.embed_dim == 4000
    assert layer.self_attn.num_heads == 4
    assert layer.linear1.out_features == 512
    assert model.embed.size == 128
    assert model.embed.skip is None  # type: ignore[union-attr]
    assert isinstance(model.embed.project, torch.nn.Identity)  # type: ignore[union-attr]
    assert model.config["relaxation"]["temperature"] == 1.0
    assert model.config["growth"] == 1.2
    steps = [json.loads(row)["step"] for row in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert steps == [2]
    single = module("settings").load_settings("single_step_exp").model.relaxation
    assert single == {"name": "single-step-exp", "temperature": 1.0}


def test_processes_that_spread_the_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = module("experiment")
    spread = SimpleNamespace(distributed_type=DistributedType.FSDP, num_processes=1)
    monkeypatch.setattr(experiment, "Accelerator", lambda **_: spread)
    with pytest.raises(ValueError, match="data parallelism"):
        experiment.run(settings(), Path.cwd())
