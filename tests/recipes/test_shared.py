"""Recipes of corpora: every shared experiment fits each of them, and none repeats another."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from isotone.registries import aligners
from isotone.training.config import load_recipe
from isotone.training.experiments import experiments
from tests.paths import RECIPES

CORPORA = ("timit", "librispeech", "ami")
PAPER = (
    "ctc", "ottc", "ottc_segmental", "ottc_fixed_alpha", "ottc_freeze_5", "ottc_freeze_15", "ottc_oracle_beta",
    "single_path", "softdtw",
)  # fmt: skip


@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("name", [*PAPER, "joint"])
def test_the_papers_experiments(corpus: str, name: str) -> None:
    assert name in experiments(RECIPES / corpus)
    recipe = load_recipe(RECIPES / corpus / f"{name}.yaml", ["data.root=/corpora"])
    assert recipe.data["name"] == corpus
    assert recipe.output == f"runs/{corpus}/{name}"
    assert recipe.train.epochs == 40
    rate = {"timit": (2e-4, 500, 0.0), "librispeech": (2e-4, 500, 0.0), "ami": (1.25e-3, 0, 0.1)}[corpus]
    assert (recipe.train.lr, recipe.train.warmup_steps, recipe.train.warmup_share) == rate
    assert recipe.tokens["unit"] == {"timit": "phones", "librispeech": "characters", "ami": "pieces"}[corpus]
    if name.startswith("ottc_freeze"):
        assert recipe.heads["ottc"]["detach_after"] == 1 - int(name.rpartition("_")[2]) / 40
    if name in ("ottc_oracle_beta", "single_path"):
        assert recipe.teacher == f"runs/{corpus}/{name}/../ctc"


@pytest.mark.parametrize("corpus", CORPORA)
def test_ottc_is_read_as_the_paper_reads_it(corpus: str) -> None:
    """Greedily, given texts by the transport with the training's label weights; ours reads the same run otherwise."""
    ottc, ours = (
        asdict(load_recipe(RECIPES / corpus / f"{name}.yaml", ["data.root=/corpora", "output=run"]))
        for name in ("ottc", "ottc_segmental")
    )
    beta = ottc["objective"]["ottc"]["loss"]["beta"]
    assert ottc["reading"]["decoder"] == {"name": "ottc-greedy"}
    assert (ottc["reading"]["text"], ottc["reading"]["times"]) == ("ottc", "")
    aligner = aligners.create(ottc["reading"]["aligner"])
    assert (type(aligner).__name__, aligner.beta) == ("Transport", beta)
    assert ottc["train"]["watch_aligner"] == ottc["reading"]["aligner"]
    reading = ours.pop("reading")
    assert reading["decoder"] == {"name": "segmental", "change_penalty": 2.0}
    assert reading["aligner"] == {"name": "segmental", "subframe": True}
    assert ours == {key: value for key, value in ottc.items() if key != "reading"}


@pytest.mark.parametrize("corpus", CORPORA)
def test_small_presets(corpus: str) -> None:
    recipe = load_recipe(RECIPES / corpus / "joint.yaml", ["data=synthetic"])
    assert recipe.encoder["source"] == "wav2vec2-bert-tiny"
    assert recipe.train.lr == 1e-3
    assert (recipe.train.warmup_steps, recipe.train.warmup_share) == (100, 0.0)


@pytest.mark.parametrize("name", [*PAPER, "joint", "local", "timing"])
def test_the_real_sample_of_librispeech(name: str) -> None:
    """Little memory and few speakers: the same experiments, on parts of one official part."""
    recipe = load_recipe(RECIPES / "librispeech" / f"{name}.yaml", ["data=sample", "data.root=/corpora"])
    assert recipe.data == {"name": "librispeech", "root": "/corpora", "test_speakers": [2412, 2803, 2902]}
    assert (recipe.splits.train, recipe.splits.test, recipe.splits.more) == ("train", "test", [])
    assert recipe.tokens["unit"] == "characters"
    assert recipe.encoder["source"] == "wav2vec2-bert-tiny"
    assert (recipe.train.steps, recipe.train.batch_size, recipe.train.max_seconds) == (1000, 8, 16.0)


def test_no_two_recipes_share_six_lines() -> None:
    places: dict[tuple[str, ...], str] = {}
    for path in sorted(p for p in RECIPES.rglob("*") if p.suffix in (".py", ".yaml")):
        recipe = path.relative_to(RECIPES).parts[0]
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        for six in zip(*(lines[i:] for i in range(6))):
            assert places.setdefault(six, recipe) == recipe, f"{path} and {places[six]} share {six}"
