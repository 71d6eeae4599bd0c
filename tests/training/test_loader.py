"""The loader of settings, on a schema of its own: layers, open parts, presets, and files of earlier runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from omegaconf import MISSING

from isotone.training.loader import Presets, RecipeError, differences, flatten, load, load_saved, to_yaml


@dataclass
class Cake:
    """A part with a name that is no plugin's."""

    name: str = MISSING
    eggs: int = 3
    flour: dict[str, Any] = field(default_factory=dict)


@dataclass
class Kitchen:
    """The schema."""

    cake: Cake = field(default_factory=Cake)
    ovens: dict[str, Cake] = field(default_factory=dict)
    heat_c: float = MISSING
    guest: str | None = None
    output: str = MISSING


BASE = "heat_c: 180\ncake: {name: sponge, eggs: 4, flour: {name: wheat, grams: 200}}\n"


@pytest.fixture
def kitchen(tmp_path: Path) -> Path:
    folder = tmp_path / "kitchen"
    (folder / "presets").mkdir(parents=True)
    (folder / "base.yaml").write_text(BASE)
    (folder / "easter.yaml").write_text("heat_c: 170\n")
    (folder / "presets" / "large.yaml").write_text("cake: {eggs: 8}\nheat_c: 200\n")
    return folder / "easter.yaml"


def test_settings_are_of_the_schemas_own_type(kitchen: Path) -> None:
    found = load(Kitchen, kitchen, ["ovens.left={name: pie}"])
    assert isinstance(found, Kitchen)
    assert isinstance(found.cake, Cake)
    assert found.ovens == {"left": Cake("pie")}
    assert type(found.cake.flour) is dict
    assert (found.heat_c, type(found.heat_c), found.output) == (170.0, float, "runs/kitchen/easter")


def test_another_name_replaces_a_part_only_where_the_schema_leaves_it_open(kitchen: Path) -> None:
    found = load(Kitchen, kitchen, ["cake.name=roll", "cake.flour.name=rye"])
    assert found.cake == Cake("roll", 4, {"name": "rye"})


@pytest.mark.parametrize(("before", "heat"), [(True, 170.0), (False, 200.0)])
def test_presets_come_before_or_after_the_experiment(kitchen: Path, before: bool, heat: float) -> None:
    presets = Presets(keys=("size",), folder="presets", before=before)
    found = load(Kitchen, kitchen, ["size=large"], presets=presets)
    assert (found.cake.eggs, found.heat_c) == (8, heat)
    with pytest.raises(
        RecipeError, match=r"No preset 'lagre': .*lagre\.yaml is not there\. Did you mean 'large'"
    ):
        load(Kitchen, kitchen, ["size=lagre"], presets=presets)
    with pytest.raises(RecipeError, match="unknown key 'size'"):
        load(Kitchen, kitchen, ["size=large"])


def test_an_experiment_may_ask_for_what_the_schema_has_a_default_for(kitchen: Path) -> None:
    kitchen.write_text("guest: ???\n")
    with pytest.raises(RecipeError, match=r"no value for guest\. Give it as guest=VALUE"):
        load(Kitchen, kitchen)
    assert load(Kitchen, kitchen, ["guest=Ann"]).guest == "Ann"


def test_what_is_written_is_read_back(kitchen: Path, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    settings = load(Kitchen, kitchen, ["guest=Ann", "output=a"])
    path.write_text(to_yaml(settings))
    assert load_saved(Kitchen, path) == settings
    assert differences(path, load(Kitchen, kitchen, ["guest=Ann", "output=b"])) == []
    changed = load(Kitchen, kitchen, ["cake.eggs=5", "output=a"])
    assert differences(path, changed) == ["cake.eggs is 4 there, 5 here", "guest is Ann there, None here"]
    assert differences(path, changed, ignored=("cake", "guest")) == []


def test_files_of_runs_from_before_and_after_are_read(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "heat_c: 150\ncake: {name: bun, sugar: 1, flour: {anything: 2}}\nwater: {litres: 1}\noutput: x\n"
    )
    assert load_saved(Kitchen, path) == Kitchen(Cake("bun", 3, {"anything": 2}), {}, 150.0, None, "x")


def test_flatten() -> None:
    assert dict(flatten({"a": {"b": {"c": 1}, "d": {}}, "e": [{"f": 2}]})) == {
        "a.b.c": 1,
        "a.d": {},
        "e": [{"f": 2}],
    }
