"""Models by the name of a pack, and packs by the language of a text."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from isotone.interfaces import ModelPack
from isotone.model import Model, ModelError
from isotone.model.fetch import check_source, model_folder
from isotone.model.packs import listed, pack_for
from isotone.registries import packs
from tests.packs import pack_class
from tests.tiny_models import save_character_model, save_phone_model

Register = Callable[..., None]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("models") / "characters")


@pytest.fixture
def german(register: Register, model: Path) -> str:
    register(packs, "german", pack_class(model))
    return "german"


def test_a_model_loads_by_the_name_of_its_pack(german: str, model: Path) -> None:
    check_source(german)
    assert model_folder(german) == model
    loaded, expected = Model.load(german), Model.load(model)
    assert loaded.tokenizer.labels == expected.tokenizer.labels
    assert all(loaded.state_dict()[k].equal(v) for k, v in expected.state_dict().items())


def test_a_path_wins_only_if_it_holds_a_model(
    german: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(german).write_text("notes on German")
    assert model_folder(german) == model
    Path(german).unlink()
    Path(german, "audio").mkdir(parents=True)
    assert model_folder(german) == model
    save_phone_model(Path(german, "model"))  # now it is a run folder
    assert model_folder(german) == Path(german, "model")
    assert Model.load(german).tokenizer.unit == "phones"


def test_an_unknown_name_lists_the_packs_and_the_nearest(german: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"Did you mean 'german'\? .*german \(de\)"):
        check_source("gemran")
    with pytest.raises(FileNotFoundError, match="No model or run folder"):
        Model.load("/nowhere/german")


def test_a_pack_without_its_model_says_so(
    register: Register, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "emptied").mkdir()
    code = "from isotone.interfaces import ModelPack\nclass Emptied(ModelPack):\n    name = 'emptied'\n"
    code += (
        "    title, languages, licence, size_mb, trained_on = 'A model', ('de',), 'CC0-1.0', 1.0, 'noise'\n"
    )
    (tmp_path / "emptied" / "__init__.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    made = importlib.import_module("emptied").Emptied
    register(packs, "emptied", made)
    with pytest.raises(FileNotFoundError, match=r"'emptied' holds no model: .*emptied/model.*--model"):
        Model.load("emptied")
    (tmp_path / "emptied" / "model").mkdir()
    assert made().folder() == tmp_path / "emptied" / "model", "the folder beside its module"
    with pytest.raises(ModelError, match="holds no model"):
        Model.load("emptied")


@pytest.mark.parametrize("language", ["de", "deu", "ger", "de-AT"])
def test_the_pack_of_a_language(german: str, language: str) -> None:
    assert pack_for(language).name == german


@pytest.mark.parametrize("language", [None, "", "en", "en-GB", "eng"])
def test_isotones_own_pack_comes_before_others(register: Register, model: Path, language: str | None) -> None:
    register(packs, "another", pack_class(model, "en", "another"))
    assert pack_for(language).name == "english"


def test_no_pack_or_several_of_a_language_are_errors(register: Register, german: str, model: Path) -> None:
    with pytest.raises(LookupError, match=r"language 'hsb'.*german \(de\).*--model") as found:
        pack_for("hsb")
    assert listed() in str(found.value)
    register(packs, "german-large", pack_class(model, "de", "german-large"))
    with pytest.raises(LookupError, match=r"Several .*'de'.*german-large \(de\).*--model"):
        pack_for("de")
    with pytest.raises(ValueError, match="ISO 639"):
        pack_for("German!")


def test_a_broken_pack_harms_only_those_who_ask_for_it(register: Register, german: str) -> None:
    class Impostor:
        name = "impostor"

    register(packs, "impostor", Impostor)
    assert pack_for("de").name == german
    assert "impostor" not in listed()
    with pytest.raises(ImportError, match="ModelPack"):
        check_source("impostor")


def test_a_pack_without_its_facts_harms_only_those_who_ask_for_it(register: Register, german: str) -> None:
    class Bare(ModelPack):
        """A pack whose author forgot something."""

        name, title = "bare", "A model"

    class Failing(pack_class(Path("nowhere"))):  # type: ignore[misc]
        def __init__(self) -> None:
            raise RuntimeError("a library is missing")

    register(packs, "bare", Bare)
    register(packs, "failing", Failing)
    assert pack_for("de").name == german
    assert german in listed()
    assert not {"bare", "failing"} & set(listed().split())
    with pytest.raises(
        ImportError, match=r"'bare' .* lacks languages, licence, size_mb, trained_on: its class"
    ):
        check_source("bare")
    row = next(row for row in packs.describe() if row.name == "bare")
    assert "lacks languages, licence" in str(row.error)


def test_packs_are_found_without_torch() -> None:
    code = """
import sys
from isotone.model.fetch import check_source
from isotone.model.packs import listed, pack_for
assert pack_for("en").languages == ("en",)
try:
    check_source("nothing")
except FileNotFoundError:
    sys.exit("torch" in sys.modules or "transformers" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_registry_lists_the_facts_of_packs(german: str) -> None:
    row = next(row for row in packs.describe() if row.name == german)
    assert row.facts == {
        "title": "A small model", "languages": ("de",), "licence": "CC0-1.0", "size_mb": 0.1, "trained_on": "noise",
    }  # fmt: skip
    assert issubclass(packs.get("english"), ModelPack)  # type: ignore[arg-type]
