"""Embedding, training, matching and probing, on tones that stand for words; and the recipes' configurations."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from isotone_contrastive import data, experiment
from isotone_contrastive.data import Pool, Recordings, divide
from isotone_contrastive.embedder import Embedder, LogMelConv, WaveBody, build_embedder, pad, save_encoder
from isotone_contrastive.experiment import grid, load_experiment, run, table
from isotone_contrastive.figures import sweep_figure
from isotone_contrastive.losses import InfoNCE, SparseCLR
from isotone_contrastive.qare import QARe, build_loss
from isotone_contrastive.training import Schedule, linear_probe, matching_accuracy, train

from isotone.model.encoder import SpeechEncoder
from isotone.training.config import RecipeError
from tests.paths import DATA, RECIPES

RECIPE = RECIPES / "contrastive"
EXPERIMENTS = sorted(path.stem for path in RECIPE.glob("*.yaml") if path.stem != "base")
TINY = {
    "model_type": "wav2vec2-bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 16, "conv_depthwise_kernel_size": 3, "feature_projection_input_dim": 160,
    "position_embeddings_type": None, "layerdrop": 0.0, "mask_time_prob": 0.0,
}  # fmt: skip


def tones(items: int, *, takes: int = 2, seed: int = 0) -> Recordings:
    """Every item is two tones one after the other; view 1 is an octave higher, and noisier."""
    rng = np.random.default_rng(seed)
    pitches = 200 * 2 ** np.random.default_rng(99).uniform(0, 3, (items, 2))
    recordings = Recordings()
    for item in range(items):
        for view in (0, 1):
            for _ in range(takes):
                time = np.arange(int(rng.integers(2400, 3200))) / 16_000
                parts = [np.sin(2 * np.pi * (1 + view) * hz * time) for hz in pitches[item]]
                wave = 0.3 * np.concatenate(parts) + rng.normal(0, 0.003 * (1 + view), 2 * len(time))
                recordings.add(
                    wave.astype(np.float32), item, view, octave=int(np.log2(pitches[item, 0] / 200))
                )
    return recordings


def source(**_: object) -> dict[str, Recordings]:
    return {"train": tones(24), "dev": tones(8, seed=1), "test": tones(12, seed=2)}


@pytest.fixture
def tone_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(data.SOURCES, "words", source)


def conv(seed: int = 0, **options: int) -> Embedder:
    torch.manual_seed(seed)
    return Embedder(LogMelConv(width=24, **options), size=16)


@pytest.mark.parametrize("kind", ["conv", "wave"])
def test_a_vector_does_not_depend_on_the_batch(kind: str) -> None:
    torch.manual_seed(0)
    embedder = conv() if kind == "conv" else Embedder(WaveBody(SpeechEncoder(TINY)), size=16, hidden=8)
    inputs = embedder.body.inputs(tones(3).samples)
    together = embedder.embed(inputs)
    torch.testing.assert_close(together.norm(dim=1), torch.ones(12))
    for i in (0, 5, 11):
        torch.testing.assert_close(embedder.embed([inputs[i]])[0], together[i], rtol=1e-4, atol=1e-5)
    values, lengths = pad(inputs)
    mask = torch.arange(values.shape[1]) < lengths[:, None]
    noisy = torch.where(mask[..., None], values, 7.0)  # padding is never read
    if kind == "wave":
        torch.testing.assert_close(embedder.eval()(noisy, lengths), together, rtol=1e-4, atol=1e-5)
    assert embedder.embed(inputs, features=True).shape == (12, 4 * embedder.body.size)


def test_very_short_recordings_have_a_vector() -> None:
    embedder = conv()
    found = embedder.embed(embedder.body.inputs([np.zeros(10, np.float32), np.ones(500, np.float32)]))
    assert torch.isfinite(found).all()


def test_training_learns_to_match_and_is_repeatable() -> None:
    parts = source()
    accuracies, losses = [], []
    for _ in range(2):
        embedder = conv()
        pools = {name: experiment._two_voices(part, embedder) for name, part in parts.items()}

        def accuracy(embedder: Embedder = embedder, pool: Pool = pools["train"]) -> float:
            a, b = (embedder.embed([pool.inputs[i[0]] for i in side]) for side in (pool.first, pool.second))
            return matching_accuracy(a, b)

        before = accuracy()
        loss = QARe(InfoNCE(temperature=0.1), beta=0.5)
        losses.append(train(embedder, loss, pools["train"], Schedule(steps=40, batch_size=16, lr=5e-3)))
        accuracies.append(accuracy())
    assert accuracies[0] >= before + 0.3
    assert np.mean(losses[0][-5:]) < 0.6 * np.mean(losses[0][:5])
    assert losses[0] == losses[1]


def test_the_best_weights_on_dev_are_kept() -> None:
    embedder = conv()
    pool = experiment._two_voices(tones(8), embedder)
    scores = iter([0.1, 0.9, 0.2])
    seen: list[torch.Tensor] = []

    def evaluate() -> float:
        seen.append(embedder.projection.weight.detach().clone())
        return next(scores)

    train(embedder, SparseCLR(), pool, Schedule(steps=3, batch_size=4, evaluate_every=1), evaluate=evaluate)
    torch.testing.assert_close(embedder.projection.weight.detach(), seen[1])
    assert not torch.equal(seen[1], seen[2])


def test_training_says_what_is_wrong() -> None:
    embedder = conv()
    pool = experiment._two_voices(tones(4), embedder)
    with pytest.raises(ValueError, match="at least 5 items"):
        train(embedder, SparseCLR(), pool, Schedule(batch_size=5))
    with pytest.raises(FloatingPointError, match="step 1"):
        train(embedder, lambda a, b: (a + b).sum() * torch.nan, pool, Schedule(batch_size=2))
    with pytest.raises(ValueError, match="Item 1"):
        Pool([0, 1], [[0], [1]], [[1], [1]])


def test_matching_accuracy() -> None:
    a = torch.eye(5)
    assert matching_accuracy(a, a) == 1.0
    assert matching_accuracy(a, a[[1, 0, 2, 3, 4]]) == 0.6
    # greedy nearest neighbours would give both rows to column 0
    one, other = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.4], [9.0]])
    assert matching_accuracy(one, other) == 1.0


def test_the_probe_agrees_with_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4, 6))
    labels, test_labels = rng.integers(0, 4, 300), rng.integers(0, 4, 400)
    x = centres[labels] + 0.9 * rng.normal(size=(300, 6))
    y = centres[test_labels] + 0.9 * rng.normal(size=(400, 6))
    scale = x.std(0, ddof=1)
    peer = linear_model.LogisticRegression(C=1 / (1e-3 * 300), tol=1e-8, max_iter=1000).fit(
        (x - x.mean(0)) / scale, labels
    )
    expected = peer.score((y - x.mean(0)) / scale, test_labels)
    found = linear_probe(torch.tensor(x), labels.tolist(), torch.tensor(y), test_labels.tolist())
    assert found == pytest.approx(expected, abs=0.006)
    assert (
        linear_probe(torch.tensor(x), labels.tolist(), torch.tensor(y), [4] * 400) == 0.0
    )  # a class train lacks


def test_pools_draw_two_different_recordings() -> None:
    pool = Pool(list(range(6)), [[0, 1, 2], [3]], [[0, 1, 2], [4, 5]])
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = pool.draw([0, 1], rng)
        assert a[0] != b[0]
        assert {a[0], b[0]} <= {0, 1, 2}
        assert a[1] == 3
        assert b[1] in (4, 5)


def test_divide() -> None:
    parts = divide(100, (0.5, 0.2, 0.3), np.random.default_rng(0))
    assert [len(part) for part in parts.values()] == [50, 20, 30]
    assert sorted(itertools.chain(*parts.values())) == list(range(100))
    for shares in ((0.5, 0.5), (0.5, 0.2, 0.2), (0.98, 0.01, 0.01)):
        with pytest.raises(ValueError, match="shares"):
            divide(100, shares, np.random.default_rng(0))


def test_synthetic_words() -> None:
    pytest.importorskip("espeakng_loader", reason="espeak-ng is not installed")
    splits = data.synthetic_words(words=14, takes=2, voices=3)
    sizes = {split: len(set(part.item)) for split, part in splits.items()}
    assert sizes == {"train": 10, "dev": 2, "test": 2}
    assert len(set().union(*(part.item for part in splits.values()))) == 14
    part = splits["train"]
    assert len(part.samples) == 40
    assert all(len(part.of(item, view)) == 2 for item in set(part.item) for view in (0, 1))
    women, men = ({s for s, v in zip(part.labels["speaker"], part.view) if v == view} for view in (0, 1))
    assert women <= {0, 1, 2}
    assert men <= {3, 4, 5}
    assert all(0.1 < len(x) / 16_000 < 2 and 0.01 < np.abs(x).max() <= 1 for x in part.samples)
    again = data.synthetic_words(words=14, takes=2, voices=3)
    assert all(np.array_equal(x, y) for x, y in zip(part.samples, again["train"].samples))
    with pytest.raises(ValueError, match="words"):
        data.synthetic_words(words=10**6)


def test_spoken_digits() -> None:
    root = DATA / "fsdd"
    if not (root / "recordings").is_dir():
        pytest.skip(f"no Free Spoken Digit Dataset in {root}; set ISOTONE_TEST_DATA")
    splits = data.digits(root=root)
    assert {split: len(part.samples) for split, part in splits.items()} == {"train": 2250, "test": 250}
    assert set(splits["test"].labels["digit"]) == set(range(10))
    numbers = data.numbers(root=root, items=20, takes=1)
    part = numbers["train"]
    assert len(part.samples) == 28
    assert {s for s, v in zip(part.labels["speaker"], part.view) if v == 0} <= {0, 1}
    assert {s for s, v in zip(part.labels["speaker"], part.view) if v == 1} <= {2, 3, 4}


def test_no_digits(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"data\.root"):
        data.digits(root=tmp_path)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_recipe_loads_and_its_losses_build(name: str) -> None:
    loaded = load_experiment(RECIPE / f"{name}.yaml", ["data.root=somewhere"])
    a, b = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(0))
    systems = grid(loaded)
    assert systems
    for system in systems.values():
        assert torch.isfinite(build_loss(system.pairwise, system.qare)(a, b))
    assert (
        build_embedder(loaded.encoder, size=loaded.size, hidden=loaded.hidden, parts=loaded.parts).body.size
        > 0
    )


@pytest.mark.parametrize("name", ["matching", "pretrain", "beta"])
def test_a_recipe_runs_and_goes_on(
    name: str, tmp_path: Path, tone_words: None, capsys: pytest.CaptureFixture
) -> None:
    options = [
        "data.name=words", "data.root=", "train.steps=2", "train.batch_size=6", "seeds=[0]", "views=2", "save=true",
        f"output={tmp_path / name}",
    ]  # fmt: skip
    if name == "pretrain":
        options.append("encoder.source=" + json.dumps(TINY))
    else:
        options.append("encoder={name: conv, width: 8, layers: 2}")
    loaded = load_experiment(RECIPE / f"{name}.yaml", options)
    folder = run(loaded)
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert [row["system"] for row in rows] == list(grid(loaded))
    assert all(0 <= score <= 1 for row in rows for score in row["scores"].values())
    assert (folder / "table.md").read_text() in capsys.readouterr().out
    stamp = (folder / "rows.jsonl").stat().st_mtime_ns
    run(loaded)  # all is there
    assert (folder / "rows.jsonl").stat().st_mtime_ns == stamp
    if name == "matching":
        run(load_experiment(RECIPE / "matching.yaml", [*options, "seeds=[0,1]"]))
        more = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
        assert more[: len(rows)] == rows
        assert len(more) == 2 * len(rows)
    if name == "beta":
        assert (folder / "beta.png").read_bytes().startswith(b"\x89PNG")
    if name == "pretrain":
        saved = folder / "encoders" / "SimCLR_+_QARe_0"
        encoder = SpeechEncoder(str(saved))
        fresh = SpeechEncoder(TINY)
        assert encoder.size("last") == fresh.size("last")
        assert (saved / "model.safetensors").is_file()
    with pytest.raises(RecipeError, match="another configuration"):
        run(load_experiment(RECIPE / f"{name}.yaml", [*options, "train.lr=1.0"]))


def test_saved_weights_are_those_of_the_encoder(tmp_path: Path) -> None:
    torch.manual_seed(3)
    embedder = Embedder(WaveBody(SpeechEncoder(TINY)), size=4)
    save_encoder(embedder, tmp_path)
    wave, length = torch.randn(1, 4000), torch.tensor([4000])
    loaded = SpeechEncoder(str(tmp_path)).eval()
    expected = embedder.body.eval().encoder(wave, length).hidden[-1].values
    torch.testing.assert_close(loaded(wave, length).hidden[-1].values, expected)


@pytest.mark.parametrize(
    "overrides, said",
    [
        (["task=guessing"], "guessing"),
        (["data.name=cats"], "cats"),
        (["train.step=3"], "step"),
        (["nonsense"], "key=value"),
        (["seeds=[]"], "one seed"),
    ],
)
def test_configurations_that_cannot_be(overrides: list[str], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        load_experiment(RECIPE / "matching.yaml", overrides)


def test_an_encoder_of_another_sample_rate(tmp_path: Path, tone_words: None) -> None:
    options = ["encoder={name: conv, sample_rate: 8000}", f"output={tmp_path}"]
    with pytest.raises(RecipeError, match="8000 Hz"):
        run(load_experiment(RECIPE / "matching.yaml", options))


def test_a_recipe_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError, match=r"'mathcing'\. Did you mean 'matching'\? .*matching_numbers"):
        load_experiment(RECIPE / "mathcing.yaml")
    with pytest.raises(RecipeError, match=r"data\.root"):
        load_experiment(RECIPE / "probing.yaml")


def test_the_table_and_the_figure() -> None:
    rows = [
        {"system": name, "seed": seed, "beta": beta, "scores": {"digit": score}, "zero_gradient_share": 0.5}
        for name, beta, scores in (("a", 0.0, (0.5, 0.7)), ("b", 1.0, (0.25, 0.25)))
        for seed, score in enumerate(scores)
    ]
    lines = table(rows).splitlines()
    assert lines[0] == "| system | digit % | negatives without gradient % | seeds |"
    assert lines[2:] == ["| a | 60.0 ± 14.1 | 50.0 ± 0.0 | 2 |", "| b | 25.0 ± 0.0 | 50.0 ± 0.0 | 2 |"]
    (axes,) = sweep_figure(rows).axes
    np.testing.assert_allclose(axes.lines[0].get_xydata(), [[0, 60], [1, 25]])
    with pytest.raises(ValueError, match="one row"):
        sweep_figure([])
