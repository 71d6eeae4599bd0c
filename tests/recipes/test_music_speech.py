"""The experiments on ordered search in audio: data against their definition, and every experiment for some steps."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from omegaconf import OmegaConf

from tests.paths import DATA, ROOT

RECIPE = ROOT / "recipes" / "music_speech"
TINY = ["size=tiny", "data.kind=music", "train.steps=2", "train.evaluate_every=1", "threads=1", "cache=null"]
EXPERIMENTS = sorted(path.stem for path in RECIPE.glob("*.yaml") if path.stem != "base")


@pytest.fixture(scope="module", autouse=True)
def _path() -> Iterator[None]:
    threads = torch.get_num_threads()
    sys.path.insert(0, str(RECIPE))
    yield
    sys.path.remove(str(RECIPE))
    torch.set_num_threads(threads)


def module(name: str) -> Any:
    return importlib.import_module(f"ordered_search.{name}")


def settings(experiment: str = "opas", *overrides: str) -> Any:
    return module("settings").load(experiment, [*TINY, *overrides])


@pytest.fixture(scope="module")
def prepared(_path: None) -> tuple[Any, dict[str, Any]]:
    return module("sets").prepare(settings().data)


def test_splits_share_no_recording_and_take_their_shares() -> None:
    sizes = [5, 9, 0, 3, 8, 2, 7, 6, 1, 9, 4]
    parts = module("sets").split(sizes, [0.6, 0.1, 0.3], 3)
    together = sorted(i for part in parts for i in part)
    assert together == [i for i, size in enumerate(sizes) if size]
    for part, share in zip(parts, (0.6, 0.1, 0.3)):
        assert sum(sizes[i] for i in part) == pytest.approx(share * sum(sizes), abs=max(sizes))
    assert sorted(module("sets").split([1, 1, 1], [0.9, 0.05, 0.05], 0)) == [[0], [1], [2]]
    with pytest.raises(ValueError, match="3 recordings or more"):
        module("sets").split([4, 0, 4], [0.6, 0.1, 0.3], 0)


def test_queries_are_sorted_choices_of_their_sequence(prepared: tuple[Any, dict[str, Any]]) -> None:
    config = settings()
    clean = settings("opas", "data.snr_db=null").data
    _, sets = module("sets").prepare(clean)
    data = sets["train"]
    assert data.queries.shape[1:] == (6, 1000)
    assert (data.chosen.diff(dim=1) > 0).all()
    assert (data.relevant.sum(1) == config.data.copies).all()
    for query, chosen, relevant in zip(data.queries, data.chosen, data.relevant):
        first = int(relevant.nonzero()[0])  # the sequence itself
        assert torch.equal(data.corpus[first][chosen], query)


def test_copies_have_the_noise_and_the_gaps_that_are_asked_for() -> None:
    data = settings("opas", "data.masks=2", "data.mask_s=0.4", "data.copies=16").data
    windows = torch.randn(20, 1000, generator=torch.Generator().manual_seed(0))
    data.snr_db = None
    copies = module("sets").damaged(windows, data.copies, data, np.random.default_rng(0))
    assert torch.equal(copies[0], windows)
    for copy in copies[1:]:
        same = copy == windows
        assert ((copy == 0) | same).all()
        assert 0 < (~same).sum() <= 2 * 400
    data.snr_db = 6.0
    noisy = module("sets").damaged(windows, data.copies, data, np.random.default_rng(0))
    ratio = 10 * torch.log10(windows.square().mean() / (noisy - copies).square().mean((1, 2)))
    torch.testing.assert_close(ratio, torch.full((16,), 6.0), atol=0.2, rtol=0)


def test_overlapping_sequences_are_neither_positive_nor_negative() -> None:
    data = settings("opas", "data.phases=2", "data.copies=2", "data.queries=1").data
    audio = np.random.default_rng(0).standard_normal(60_000).astype(np.float32)
    sets = module("sets")
    sequences = sets.cut([(0, audio), (1, audio)], data, 2, np.random.default_rng(0))
    assert sequences.start.tolist() == [0, 20_000, 40_000, 10_000, 30_000] * 2
    built = sets.search_set(sequences, sets.build_elements(data), data.copies, data, np.random.default_rng(0))
    counted = built.counted[0].view(10, 2)[:, 0]
    # the sequence itself, those of its phase, and all of the other recording; not the one that begins inside
    assert counted.tolist() == [True, True, True, False, True] + [True] * 5
    allowed = module("training").pairs(built, 4, 0)
    assert not (allowed & ~built.counted).any()
    assert (allowed & ~built.relevant).sum(1).tolist() == [4] * 10


def test_mel_elements_are_normalised_and_silence_stays_silent() -> None:
    elements = module("elements").Elements("mel", samples=4000, sample_rate=4000)
    windows = torch.randn(200, 4000, generator=torch.Generator().manual_seed(0)).cumsum(1)
    elements.fit(windows)
    values = elements(windows).view(200, 40, 10)
    torch.testing.assert_close(values.mean((0, 2)), torch.zeros(40), atol=1e-3, rtol=0)
    torch.testing.assert_close(values.std((0, 2)), torch.ones(40), atol=1e-2, rtol=0)
    torch.testing.assert_close(elements(windows * 7), elements(windows), atol=1e-3, rtol=0)  # loudness
    mixed = torch.stack([windows[:3], torch.zeros(3, 4000)])
    assert (elements(mixed)[1] == 0).all()
    torch.testing.assert_close(elements(mixed)[0], elements(windows[:3]))


@pytest.mark.parametrize("kind", ["speech", "music"])
def test_synthesis_is_what_the_seed_says(kind: str) -> None:
    if kind == "speech":
        pytest.importorskip("espeakng_loader")
    make = getattr(module("synthesis"), kind)
    first, again, other = ([audio for _, audio in make(2, 3.0, 4000, seed)] for seed in (0, 0, 1))
    for a, b, c in zip(first, again, other):
        assert a.dtype == np.float32
        assert a.shape == (12_000,)
        assert np.abs(a).max() <= 1
        np.testing.assert_array_equal(a, b)
        assert abs(np.corrcoef(a, c)[0, 1]) < 0.5
    assert abs(np.corrcoef(*first)[0, 1]) < 0.5


def test_tunes_have_the_pitches_of_their_notes() -> None:
    synthesis = module("synthesis")
    out, timbre = np.zeros(4000), np.array([1.0, 0, 0, 0, 0, 0, 0.01, 5.0])
    synthesis._add(out, timbre, synthesis._pitch(69, (0, 2, 4, 5, 7, 9, 11), 0), 0.0, 1.0, 1.0, 4000)
    assert np.abs(np.fft.rfft(out)).argmax() == 440  # Hz: a second of samples
    assert synthesis._pitch(69, (0, 2, 4, 5, 7, 9, 11), 7) == pytest.approx(880)
    assert synthesis._pitch(69, (0, 2, 4, 5, 7, 9, 11), -1) == pytest.approx(440 * 2 ** (-1 / 12))


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


def test_a_batch_holds_positives_and_what_may_be_learned_from(prepared: tuple[Any, dict[str, Any]]) -> None:
    training, data = module("training"), prepared[1]["train"]
    allowed = training.pairs(data, 8, 0)
    queries, items = training.draw(data, allowed, 3, 2, 10, None, torch.Generator().manual_seed(0))
    assert len(queries.unique()) == 3
    assert len(items.unique()) == len(items) <= 10
    assert (data.relevant[queries][:, items].sum(1) >= 2).all()


def test_a_batch_is_from_as_many_recordings_as_it_is_told(prepared: tuple[Any, dict[str, Any]]) -> None:
    training, data = module("training"), prepared[1]["train"]
    everything = torch.ones_like(data.relevant)
    assert len(data.item_recording.unique()) >= 3
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        queries, items = training.draw(data, everything, 6, 2, 8, 2, generator)
        here = data.query_recording[queries].unique()
        assert len(here) <= 2
        assert torch.isin(data.query_recording[queries], here).all()
        assert len(data.item_recording[items].unique()) <= 2
        assert (data.relevant[queries][:, items].sum(1) >= 2).all()


def test_prepared_data_are_kept_and_are_of_their_configuration(tmp_path: Path) -> None:
    load, data = (
        module("prepared").load_or_prepare,
        settings("opas", "data.elements=mel", "data.frames=4").data,
    )
    elements, sets = module("sets").prepare(data)
    load(data, tmp_path)
    (path,) = tmp_path.iterdir()
    before = path.stat().st_mtime_ns
    kept, found = load(data, tmp_path)
    assert path.stat().st_mtime_ns == before
    torch.testing.assert_close(kept.state_dict(), elements.state_dict())
    for name, part in sets.items():
        for key in ("chosen", "lengths", "relevant", "counted", "query_recording", "item_recording"):
            assert torch.equal(getattr(found[name], key), getattr(part, key))
        for key in ("queries", "corpus"):  # half precision
            torch.testing.assert_close(getattr(found[name], key), getattr(part, key), atol=2e-3, rtol=1e-3)
    data.snr_db = 20.0
    load(data, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


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


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "cross"])
def test_every_experiment_states_a_difference_and_builds(name: str) -> None:
    base, own = settings("opas"), settings(name)
    if name != "opas":
        assert any(base[key] != own[key] for key in ("data", "model", "pretrain", "train"))
    size = module("sets").build_elements(own.data).size
    ranker = module("rankers").build(own.model, own.data, size).eval()
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


def test_beta_two_stays_where_it_is_told_to(prepared: tuple[Any, dict[str, Any]]) -> None:
    elements, found = prepared
    for name, moves in (("opas", [True, True]), ("no_order", [True, False]), ("no_beta", [False, False])):
        config = settings(name)
        ranker = module("rankers").build(config.model, config.data, elements.size)
        before = ranker.model.log_beta.detach().clone()
        allowed = module("training").pairs(found["train"], 8, 0)
        config.train.margin = 5.0  # every pair is in the loss
        optimiser = torch.optim.Adam([ranker.model.log_beta], 0.1)
        module("training").step_loss(
            ranker, found["train"], allowed, config.train, torch.Generator().manual_seed(0)
        ).backward()
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
        "alignments.png", "distributions.png", "indexes.png", "time.png",
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
    # interrupted after its first step, it ends with the same numbers
    training = module("training")
    save = training.Trainer._save

    def interrupt(trainer: Any) -> None:
        save(trainer)
        raise KeyboardInterrupt

    training.Trainer._save = interrupt
    try:
        with pytest.raises(KeyboardInterrupt):
            run("opas", tmp_path / "resumed", "hashing.run=false")
    finally:
        training.Trainer._save = save
    with (tmp_path / "resumed" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "lo')
    resumed = run("opas", tmp_path / "resumed", "hashing.run=false")
    for key in ("MAP", "MRR", "ODC"):
        assert resumed["scores"]["OPAS"][key] == pytest.approx(own[key], abs=1e-9)
    assert len((tmp_path / "resumed" / "metrics.jsonl").read_text().splitlines()) == 2
    with pytest.raises(ValueError, match="other values of seed"):
        run("opas", tmp_path / "resumed", "seed=1")
    # the model of a run on its own data scores as it did there
    crossed = run("cross", tmp_path / "cross", f"model_from={folder}")
    assert crossed["scores"]["OPAS"]["MAP"] == pytest.approx(own["MAP"], abs=1e-9)
    with pytest.raises(ValueError, match=r"data\.windows=20"):
        run("cross", tmp_path / "other", f"model_from={folder}", "data.windows=10")
    with pytest.raises(FileNotFoundError, match="no finished run"):
        run("cross", tmp_path / "none", f"model_from={tmp_path / 'nowhere'}")


@pytest.mark.parametrize("name", ["colbert", "contrast", "direct", "pretrained", "variable"])
def test_other_experiments_run(name: str, tmp_path: Path) -> None:
    few = ["pretrain.steps=2"]
    more = {"contrast": few, "pretrained": few, "variable": ["train.order_weight=1"]}.get(name, [])
    report = run(name, tmp_path / name, "train.steps=1", "data.recordings=3", *more)
    (own, *_) = report["scores"].values()
    assert 0 < own["MAP"] <= 1
    assert (tmp_path / name / "ranker.safetensors").is_file()
    assert (tmp_path / name / "model").is_dir() == (name in ("contrast", "pretrained", "variable"))


def test_windows_that_are_contrasted_are_not_the_same(prepared: tuple[Any, dict[str, Any]]) -> None:
    data = prepared[1]["train"]
    generator = torch.Generator().manual_seed(0)
    for recordings in (1, None):
        queries, items = module("pretraining").different(data, 100, recordings, generator)
        same = torch.eye(len(queries), dtype=torch.bool)
        assert len(queries) > 1
        assert torch.equal(data.relevant[queries][:, items], same)  # one query a sequence
        assert data.counted[queries][:, items].all()  # and none that overlaps it
        assert recordings is None or len(data.query_recording[queries].unique()) == 1


@pytest.mark.parametrize("task", ["denoise", "contrast"])
def test_pretraining_gains(task: str, prepared: tuple[Any, dict[str, Any]]) -> None:
    elements, sets = prepared
    options = settings("contrast", f"pretrain.task={task}", "pretrain.lr=5e-3").pretrain
    torch.manual_seed(0)
    embedding = module("rankers").build(settings().model, settings().data, elements.size).embedding
    first, last = (
        module("pretraining").pretrain(embedding, sets["train"], OmegaConf.merge(options, {"steps": n}), 0)
        for n in (1, 60)
    )
    assert last < 0.95 * first


def test_another_contrast_brings_its_own_options() -> None:
    contrast = settings("contrast", "pretrain.contrast.pairwise.name=triplet").pretrain.contrast
    assert contrast == {"pairwise": {"name": "triplet"}, "qare": {"beta": 0.5}}
    with pytest.raises(ValueError, match=r"pretrain\.task denoise or contrast"):
        module("pretraining").pretrain(None, None, settings("opas", "pretrain.task=other").pretrain, 0)


def test_folders_of_audio(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(9):
        soundfile.write(tmp_path / f"{number}.wav", 0.1 * rng.standard_normal(16_000 * 7), 16_000)
    config = settings("opas", "data=speech", f"data.root={tmp_path}", "data.join_s=20", "data.phases=1")
    audio = module("sets").recordings(config.data)
    assert [name for name, _ in audio] == [f"{i}.wav+{i + 1}.wav+{i + 2}.wav" for i in (0, 3, 6)]
    assert all(len(samples) == pytest.approx(21_000, abs=3) for _, samples in audio)
    _, sets = module("sets").prepare(config.data)
    assert all(len(part.corpus) == config.data.copies for part in sets.values())
    with pytest.raises(FileNotFoundError, match="no audio files"):
        module("sets").recordings(settings("opas", "data=speech", f"data.root={tmp_path / 'no'}").data)
    with pytest.raises(ValueError, match=r"data\.root=FOLDER"):
        module("sets").recordings(settings("opas", "data=speech").data)


def test_real_music() -> None:
    if not (DATA / "music").is_dir():
        pytest.skip(f"no music in {DATA}")
    config = settings("opas", "data=music", f"data.root={DATA / 'music'}", "data.phases=1")
    _, sets = module("sets").prepare(config.data)
    assert all(len(part.corpus) >= config.data.copies for part in sets.values())
    # on samples, a vector of every window finds its noisy copies before anything is learned
    rows = {"MaxSim": {"scorer": {"name": "max-sim"}, "queries": 50}}
    assert module("evaluation").baselines(rows, sets["test"], 0)["MaxSim"]["MAP"] > 0.9


def test_settings() -> None:
    load = module("settings").load
    with pytest.raises(ValueError, match=r"No experiment 'opsa'.*'opas'"):
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
    assert module("settings").plain(load("lrl").model.embed) == {"name": "lrl"}
    assert load("sinkhorn5").model.relaxation.iterations == 5
    # an experiment's difference holds in every size
    assert load("opas", ["size=paper"]).train.margin == 0.3
    assert load("colbert", ["size=paper"]).train.margin == 1.0
    assert module("settings").plain(load("single_step_sum", ["size=paper"]).model.relaxation) == {
        "name": "single-step-sum"
    }
    assert load("opas", ["data=music", "data.root=/x"]).output == "runs/music_speech/music/opas"
