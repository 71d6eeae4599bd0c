"""Each law of model packs can fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from isotone.interfaces import ModelPack
from isotone.registries import packs
from isotone.testing import check_pack
from tests.packs import pack_class
from tests.tiny_models import save_character_model, save_phone_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("models") / "characters")


def size_of(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


@pytest.fixture
def good(model: Path) -> type[ModelPack]:
    made = pack_class(model)
    made.size_mb = size_of(model)
    return made


def test_a_pack_that_keeps_all_laws(good: type[ModelPack], register: Callable[..., None]) -> None:
    check_pack(good())
    register(packs, "german", good)
    check_pack(good(), text="ja und nein")


@pytest.mark.parametrize(
    "name, value, law",
    [
        ("name", "", "name is a text"),
        ("title", 3, "title is a text"),
        ("licence", " ", "licence is a text"),
        ("trained_on", None, "trained_on is a text"),
        ("languages", (), "languages are a tuple"),
        ("languages", "de", "languages are a tuple"),
        ("languages", ("de", "German"), "ISO 639"),
        ("size_mb", 5.0, "size_mb is the size"),
    ],
)
def test_attributes_are_checked(good: type[ModelPack], name: str, value: object, law: str) -> None:
    setattr(good, name, value)
    with pytest.raises(AssertionError, match=law):
        check_pack(good())


def test_the_entry_point_is_of_this_class(
    good: type[ModelPack], model: Path, register: Callable[..., None]
) -> None:
    register(packs, "german", pack_class(model))
    with pytest.raises(AssertionError, match="names this class"):
        check_pack(good())


def test_the_model_has_to_align_words(tmp_path: Path, good: type[ModelPack], model: Path) -> None:
    phones = save_phone_model(tmp_path / "phones")
    made = pack_class(phones)
    made.size_mb = size_of(phones)
    with pytest.raises(ValueError, match="no phones of this model"):
        check_pack(made())
    (tmp_path / "empty").mkdir()
    empty = pack_class(tmp_path / "empty")
    with pytest.raises(ValueError, match="holds no model"):
        check_pack(empty())
