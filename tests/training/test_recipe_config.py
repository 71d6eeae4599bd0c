"""Recipes of speech: order of the layers, and errors of recipes that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotone.training.config import RecipeError, load_recipe
from isotone.training.experiments import experiments
from isotone.training.run import main

BASE = """
data:
  name: timit
  root: ???
  phones: 39
tokens: {unit: phones, silence: sil}
encoder: {name: transformers, source: big, config: {layerdrop: 0.0, mask_time_prob: 0.065}}
train: {epochs: 40, lr: 2.0e-4, batch_size: 8}
"""
CTC = """
heads: {ctc: {name: ctc, dropout: 0.2}}
objective: {ctc: {head: ctc, loss: {name: ctc, normalize: frames}}}
reading: {text: ctc, decoder: {name: ctc-greedy, blanks: split}, aligner: {name: ctc}}
train: {batch_size: 16, lr: 1.0e-3}
"""
TOY = """
data: {name: synth, hours: 1.0}
encoder: {source: small, config: {mask_time_prob: 0.0}}
train: {lr: 3.0e-3, steps: 100}
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    folder = tmp_path / "toys"
    folder.mkdir()
    for name, text in (("base", BASE), ("ctc", CTC), ("toy", TOY)):
        (folder / f"{name}.yaml").write_text(text)
    return folder / "ctc.yaml"


def test_later_ones_win(recipe: Path) -> None:
    one = load_recipe(recipe, ["data.root=/x"])
    assert (one.train.epochs, one.train.lr, one.train.batch_size) == (
        40,
        1e-3,
        16,
    )  # base, then the experiment
    assert one.data == {"name": "timit", "root": "/x", "phones": 39}
    two = load_recipe(recipe, ["train.lr=5e-3", "data=toy", "encoder.config.layerdrop=0.1"])
    assert (two.train.lr, two.train.steps, two.train.batch_size) == (
        5e-3,
        100,
        16,
    )  # preset, then the override
    assert two.encoder == {
        "name": "transformers",
        "source": "small",
        "config": {"layerdrop": 0.1, "mask_time_prob": 0.0},
    }
    assert one.output == "runs/toys/ctc"
    assert load_recipe(recipe, ["data.root=/x", "output=here"]).output == "here"
    assert (one.train.weight_decay, one.seed, one.teacher) == (0.01, 0, "")  # the schema's defaults


def test_another_plugin_leaves_no_option_behind(recipe: Path) -> None:
    assert load_recipe(recipe, ["data=toy"]).data == {"name": "synth", "hours": 1.0}
    one = load_recipe(recipe, ["data=toy", "objective.ctc.loss.name=ottc", "reading.decoder.name=segmental"])
    assert one.objective["ctc"].loss == {"name": "ottc"}
    assert one.reading.decoder == {"name": "segmental"}
    assert one.heads["ctc"] == {"name": "ctc", "dropout": 0.2}
    two = load_recipe(recipe, ["data=toy", "data.root=/x", "data.name=folder"])  # in any order
    assert two.data == {"name": "folder", "root": "/x"}
    three = load_recipe(recipe, ["data.root=/x", "reading.decoder.name=ctc-greedy"])
    assert three.reading.decoder == {"name": "ctc-greedy", "blanks": "split"}


def test_other_keys_can_be_used(recipe: Path) -> None:
    recipe.write_text(CTC + "teacher: ${output}/../teacher-${seed}\n")
    assert load_recipe(recipe, ["data.root=/x", "seed=3", "output=o"]).teacher == "o/../teacher-3"
    assert load_recipe(recipe, ["data.root=/x", "teacher=other"]).teacher == "other"
    assert load_recipe(recipe, ["data.root=/x", "seed=3", "output=/runs/${seed}"]).output == "/runs/3"


def test_a_recipe_without_base(recipe: Path) -> None:
    (recipe.parent / "base.yaml").unlink()
    assert load_recipe(recipe, ["data=toy", "encoder.name=transformers"]).train.epochs == 40


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ([], r"no value for data\.root\. Give it as data\.root=VALUE"),
        (["train.stepz=4"], r"unknown key 'train\.stepz'\. Did you mean 'steps'\?"),
        (["trian.steps=4"], r"unknown key 'trian'\. Did you mean 'train'\?"),
        (["objective.ctc.wieght=2"], r"unknown key 'objective\.ctc\.wieght'\. Did you mean 'weight'\?"),
        (["train.freeze=[{parameters: [a], strat: 0.5}]"], r"unknown key 'strat'\. Did you mean 'start'\?"),
        (["train.steps=many"], r"train\.steps: Value 'many' of type 'str' could not be converted to Integer"),
        (["train=4"], "Training"),
        (["reading.decoder=3"], r"reading\.decoder"),
        (["teacher=${nothing}"], "Interpolation key 'nothing' not found"),
        (["train.steps"], r"An override is key=value; got 'train\.steps'"),
        (["train.steps=[1"], r"The value of 'train\.steps=\[1' is not YAML"),
        (["data=tpy"], r"No preset 'tpy': .*tpy\.yaml is not there"),
        (["data={name: x}"], r"data names a preset.* Options are given one by one: data\.name=VALUE"),
        (["train.steps=-3"], r"ctc\.yaml: train\.steps expects 0 or more; got -3"),
        (["train.batch_size=0"], r"train\.batch_size expects 1 or more; got 0"),
        (["train.accumulate=0"], r"train\.accumulate expects 1 or more; got 0"),
        (["train.lr=-1"], r"train\.lr expects 0 or more; got -1\.0"),
        (["train.lr=.nan"], r"train\.lr expects 0 or more; got nan"),
        (["train.clip=0"], r"train\.clip expects a norm above 0, and \.inf for no clipping; got 0\.0"),
        (["train.warmup_share=3"], r"train\.warmup_share expects 0 to 1; got 3\.0"),
        (["train.freeze=[{parameters: [a], start: 0.9, end: 0.1}]"], r"freeze\[0\] .* got 0\.9 and 0\.1"),
        (["seed=-1"], "seed expects 0 to 4294967295; got -1"),
    ],
)
def test_errors_of_wrong_overrides(recipe: Path, overrides: list[str], message: str) -> None:
    given = overrides if not overrides or overrides[0].startswith("data") else ["data.root=/x", *overrides]
    with pytest.raises(RecipeError, match=message):
        load_recipe(recipe, given)


def test_errors_of_wrong_files(recipe: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"cct\.yaml\. Did you mean 'ctc'\? There is: ctc, toy"):
        load_recipe(recipe.with_name("cct.yaml"))
    recipe.write_text("heads: [\n")
    with pytest.raises(RecipeError, match=r"ctc\.yaml is not YAML: .*line 2"):
        load_recipe(recipe, ["data.root=/x"])
    recipe.write_bytes(b"seed: \xff\n")
    with pytest.raises(RecipeError, match=r"ctc\.yaml is not UTF-8: .*save the file as UTF-8"):
        load_recipe(recipe, ["data.root=/x"])
    recipe.write_text("- heads\n")
    with pytest.raises(RecipeError, match=r"ctc\.yaml: expected keys and values; got \['heads'\]"):
        load_recipe(recipe, ["data.root=/x"])
    recipe.write_text("heads: {ctc: {name: ctc}}\n")
    with pytest.raises(
        RecipeError,
        match=r"no value for objective, reading\.aligner, reading\.decoder, reading\.text\. Give it",
    ):
        load_recipe(recipe, ["data.root=/x"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("toys/cct.yaml", r"No recipe .*toys/cct\.yaml\. Did you mean 'ctc'\? There is: ctc, toy, wide\."),
        ("toys/ctc", r"No recipe .*toys/ctc\. Did you mean 'ctc'\? There is: ctc, toy, wide\."),
        ("toys", r"No recipe .*toys\. There is: ctc, toy, wide\."),
        # not the error of a recipe without a corpus, though there is a wide.yaml that all recipes share
        (
            "tosy/wide.yaml",
            r"No recipe .*wide\.yaml\. Did you mean 'toys'\? Recipes in /.*: boats, more/cars, toys\.",
        ),
        ("ctc.yaml", r"No recipe .*ctc\.yaml\. Recipes in /.*: boats, more/cars, toys\."),
        ("a/b/ctc.yaml", r"No recipe .*a/b/ctc\.yaml\. Recipes in /.*: boats, more/cars, toys\."),
        ("boats/sloops/ctc.yaml", r"No recipe .*sloops/ctc\.yaml\. Recipes in /.*boats: none\."),
    ],
)
def test_a_path_that_is_not_there_lists_what_is(
    recipe: Path, given: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message lists the folder's experiments, or the recipes below the nearest existing folder."""
    root = recipe.parents[1]
    for name in ("models/wide.yaml", "boats/base.yaml", "more/cars/base.yaml"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("{}\n")
    for place in (root / given, Path(given)):
        monkeypatch.chdir(root)
        with pytest.raises(FileNotFoundError, match=message):
            load_recipe(place, ["data.root=/x"])


def test_shared_experiments_are_found_from_within_a_recipe(
    recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (recipe.parents[1] / "models").mkdir()
    (recipe.parents[1] / "models" / "wide.yaml").write_text("extends: ctc\ntrain: {lr: 1.0e-4}\n")
    monkeypatch.chdir(recipe.parent)
    found = load_recipe("wide.yaml", ["data.root=/x"])
    assert (found.train.lr, found.output) == (1e-4, "runs/toys/wide")
    assert experiments(Path()) == ["ctc", "toy", "wide"]


def test_experiments_that_recipes_share(recipe: Path) -> None:
    models = recipe.parent.parent / "models"
    models.mkdir()
    (models / "wide.yaml").write_text("extends: ctc\nheads: {ctc: {dropout: 0.5}}\ntrain: {lr: 1.0e-4}\n")
    found = load_recipe(recipe.with_name("wide.yaml"), ["data.root=/x"])
    assert found.heads == {"ctc": {"name": "ctc", "dropout": 0.5}}
    assert (found.train.lr, found.train.batch_size, found.train.epochs) == (
        1e-4,
        16,
        40,
    )  # ctc's and base's below
    assert found.output == "runs/toys/wide"
    assert not hasattr(found, "extends")
    recipe.with_name("wide.yaml").write_text("train: {lr: 7.0e-4}\n")  # the recipe's own file comes after it
    here = load_recipe(recipe.with_name("wide.yaml"), ["data.root=/x"])
    assert (here.train.lr, here.heads["ctc"]["dropout"]) == (7e-4, 0.5)
    assert experiments(recipe.parent) == ["ctc", "toy", "wide"]

    (models / "small.yaml").write_text("encoder: {source: tiny}\ntrain: {steps: 7}\n")
    recipe.with_name("toy.yaml").write_text("extends: small\ndata: {name: synth}\ntrain: {lr: 1.0}\n")
    small = load_recipe(recipe, ["data=toy"])
    assert (small.encoder["source"], small.train.steps, small.train.lr) == ("tiny", 7, 1.0)

    (models / "wide.yaml").write_text("extends: wider\n")
    (models / "wider.yaml").write_text("extends: wide\n")
    with pytest.raises(RecipeError, match="wide extends wider extends wide, which has no end"):
        load_recipe(recipe.with_name("wide.yaml"), ["data.root=/x"])
    (models / "wider.yaml").write_text("extends: cct\n")
    with pytest.raises(FileNotFoundError, match="Did you mean 'ctc'"):
        load_recipe(recipe.with_name("wider.yaml"), ["data.root=/x"])


def test_a_recipes_own_command_explains_what_is_not_there(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [f"data.root={tmp_path}/none", f"output={tmp_path}/run", "encoder.source=wav2vec2-bert-tiny"]
    monkeypatch.setattr("sys.argv", ["run.py", "ctc", *arguments])
    with pytest.raises(SystemExit, match=r"^error: TIMIT: no folder .*none"):
        main(str(recipe.parent / "run.py"), "usage")


def test_help_is_no_error(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["run.py", "--help"])
    with pytest.raises(SystemExit) as done:
        main(str(recipe.parent / "run.py"), "How to use it.")
    assert done.value.code == 0
    assert capsys.readouterr().out.startswith("How to use it.\nExperiments and presets: ")
    monkeypatch.setattr("sys.argv", ["run.py"])
    with pytest.raises(SystemExit, match=r"How to use it\."):
        main(str(recipe.parent / "run.py"), "How to use it.")
