"""Experiments on losses of two views: training, matching, probing, and every recipe, on tones in place of words."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from isotone_contrastive.embedder import Embedder, LogMelConv, build_embedder
from isotone_contrastive.losses import InfoNCE, SparseCLR
from isotone_contrastive.qare import QARe, build_loss

from isotone.model.encoder import SpeechEncoder
from isotone.training.loader import RecipeError
from tests.paths import DATA, RECIPES

RECIPE = RECIPES / "contrastive"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(RECIPE))
    from two_views import data
    from two_views.data import Pool, Recordings, divide
    from two_views.experiment import run, table
    from two_views.figures import sweep_figure
    from two_views.probe import linear_probe, matching_accuracy
    from two_views.settings import grid, load_experiment
    from two_views.tasks import two_voices
    from two_views.training import Schedule, train

EXPERIMENTS = sorted(path.stem for path in RECIPE.glob("*.yaml") if path.stem != "base")
TINY = {
    "model_type": "wav2vec2-bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 16, "conv_depthwise_kernel_size": 3, "feature_projection_input_dim": 160,
    "position_embeddings_type": None, "layerdrop": 0.0, "mask_time_prob": 0.0,
}  # fmt: skip


def tones(items: int, *, takes: int = 2, seed: int = 0) -> Recordings:
    """Make items of two consecutive tones; view 1 is an octave higher, and noisier."""
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


def test_training_learns_to_match_and_is_repeatable() -> None:
    parts = source()
    accuracies, losses = [], []
    for _ in range(2):
        embedder = conv()
        pools = {name: two_voices(part, embedder) for name, part in parts.items()}

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
    pool = two_voices(tones(8), embedder)
    scores = iter([0.1, 0.9, 0.2])
    seen: list[torch.Tensor] = []

    def evaluate() -> float:
        seen.append(embedder.projection.weight.detach().clone())
        return next(scores)

    train(embedder, SparseCLR(), pool, Schedule(steps=3, batch_size=4, evaluate_every=1), evaluate=evaluate)
    torch.testing.assert_close(embedder.projection.weight.detach(), seen[1])
    assert not torch.equal(seen[1], seen[2])


class Nothing(torch.nn.Module):
    """A loss that is no number."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a + b).sum() * torch.nan


def test_training_says_what_is_wrong() -> None:
    embedder = conv()
    pool = two_voices(tones(4), embedder)
    with pytest.raises(ValueError, match="at least 5 items"):
        train(embedder, SparseCLR(), pool, Schedule(batch_size=5))
    with pytest.raises(FloatingPointError, match="step 1"):
        train(embedder, Nothing(), pool, Schedule(batch_size=2))
    with pytest.raises(ValueError, match="Item 1"):
        Pool([0, 1], [[0], [1]], [[1], [1]])


def test_matching_accuracy() -> None:
    a = torch.eye(5)
    assert matching_accuracy(a, a) == 1.0
    assert matching_accuracy(a, a[[1, 0, 2, 3, 4]]) == 0.6
    # greedy nearest neighbours would give both rows to column 0
    one, other = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.4], [9.0]])
    assert matching_accuracy(one, other) == 1.0


def minimise(x: torch.Tensor, labels: torch.Tensor, decay: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Find weights and bias that minimise the mean cross-entropy plus ``decay / 2`` times the squared weights."""
    weight = x.new_zeros(int(labels.max()) + 1, x.shape[1], requires_grad=True)
    bias = x.new_zeros(len(weight), requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=1000, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        scores = x @ weight.mT + bias
        value = torch.nn.functional.cross_entropy(scores, labels) + decay / 2 * weight.square().sum()
        value.backward()
        return value

    optimizer.step(closure)
    return weight.detach(), bias.detach()


def test_the_probe_minimises_what_it_says() -> None:
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(4, 6, generator=generator)
    labels, test_labels = (torch.randint(4, (n,), generator=generator) for n in (300, 400))
    x, y = (centres[c] + 0.9 * torch.randn(len(c), 6, generator=generator) for c in (labels, test_labels))
    weight, bias = minimise((x - x.mean(0)) / x.std(0), labels, decay=0.1)
    expected = ((y - x.mean(0)) / x.std(0) @ weight.mT + bias).argmax(1) == test_labels
    found = linear_probe(x, labels.tolist(), y, test_labels.tolist(), decay=0.1)
    assert found == pytest.approx(float(expected.float().mean()), abs=0.003)
    # a class that train lacks
    assert linear_probe(x, labels.tolist(), y, [4] * 400) == 0.0


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


def test_labels_are_learned_where_a_system_has_them(tmp_path: Path, tone_words: None) -> None:
    """The supervised row knows the octave of the first tone; a net with random weights does worse."""
    options = [
        "data.name=words", "data.root=", "augment=[{name: gain}]", "seeds=[0]", "views=2", f"output={tmp_path}",
        "encoder={name: conv, width: 8, layers: 2}", "train.steps=60", "train.batch_size=24", "train.lr=0.01",
    ]  # fmt: skip
    loaded = load_experiment(RECIPE / "probing.yaml", options)
    known, random = (loaded.systems[name] for name in ("supervised", "random weights"))
    loaded.systems = {"supervised": replace(known, supervised="octave"), "random weights": random}
    rows = [json.loads(line) for line in (run(loaded) / "rows.jsonl").read_text().splitlines()]
    supervised, untrained = (row["scores"]["octave"] for row in rows)
    assert supervised > max(untrained, 0.7)


@pytest.mark.parametrize(
    "overrides, message",
    [
        (["systems.triplet.supervised=speaker"], "task probing alone"),
        (["task=guessing"], "guessing"),
        (["data.name=cats"], "cats"),
        (["train.step=3"], "step"),
        (["nonsense"], "key=value"),
        (["seeds=[]"], "one seed"),
    ],
)
def test_configurations_that_cannot_be(overrides: list[str], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        load_experiment(RECIPE / "matching.yaml", overrides)


def test_an_encoder_of_another_sample_rate(tmp_path: Path, tone_words: None) -> None:
    options = ["encoder={name: conv, sample_rate: 8000}", f"output={tmp_path}"]
    with pytest.raises(RecipeError, match="8000 Hz"):
        run(load_experiment(RECIPE / "matching.yaml", options))


def test_a_recipe_that_is_not_there() -> None:
    with pytest.raises(
        FileNotFoundError, match=r"mathcing\.yaml\. Did you mean 'matching'\? .*matching_numbers"
    ):
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
