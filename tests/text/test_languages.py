"""Codes of languages, and the language that a model's files name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isotone.text.languages import among, iso_code, spoken_language

MMS = ["abi", "azj-script_cyrillic", "azj-script_latin", "cmn-script_simplified", "deu", "eng", "swh", "zlm"]


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("en", "en"), ("EN-us", "en"), ("eng", "en"), ("deu", "de"), ("fr-fr", "fr"), ("cmn", "zh"),
        ("cmn-script_simplified", "zh"), ("swh", "sw"), ("nob", "nb"), ("hsb", "hsb"),
        ("ger", "de"), ("chi", "zh"), ("abi", "abi"), ("pt_BR", "pt"),
        ("", ""), ("multilingual", ""), ("mul", ""), ("xx", ""), ("English", ""), (None, ""), (7, ""),
    ],
)  # fmt: skip
def test_codes(tag: object, code: str) -> None:
    assert iso_code(tag) == code


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("deu", "deu"), ("de", "deu"), ("DE", "deu"), ("de-AT", "deu"), ("en", "eng"), ("zh", "cmn-script_simplified"),
        ("cmn", "cmn-script_simplified"), ("sw", "swh"), ("ms", "zlm"), ("azj-script_latin", "azj-script_latin"),
        ("abi", "abi"),
    ],
)  # fmt: skip
def test_one_of_the_languages_of_a_model(asked: str, name: str) -> None:
    assert among(asked, MMS) == name


def test_languages_that_a_model_does_not_have() -> None:
    with pytest.raises(ValueError, match=r"no language 'dea'\. Near it are deu, .*of 8 \(ISO 639-3\)"):
        among("dea", MMS)
    with pytest.raises(
        ValueError, match="'az' in several scripts: take one of azj-script_cyrillic, azj-script_latin"
    ):
        among("az", MMS)
    with pytest.raises(ValueError, match="no language 'fr'"):
        among("fr", MMS)


def model_of(folder: Path, card: str = "", **files: dict[str, object]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    if card:
        (folder / "README.md").write_text(card, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("card", "code"),
    [
        ("---\nlanguage: en\nlicense: mit\n---\n# A model\n", "en"),
        ("---\r\nlanguage:\r\n- de\r\n---\r\n", "de"),
        ("---\nlanguage: [de, en]\n---\n", ""),  # the language could be either
        ("---\nlanguage: multilingual\n---\n", ""),
        ("---\nlanguage: no\n---\n", "no"),  # YAML reads the code of Norwegian as False
        ("---\nlicense: mit\n---\n", ""),
        ("---\nlanguage: [\n---\n", ""),
        ("# language: en\n", ""),
        ("", ""),
    ],
)
def test_the_language_that_a_card_says(card: str, code: str, tmp_path: Path) -> None:
    assert spoken_language(model_of(tmp_path / "model", card)) == code


def test_what_says_the_language_first(tmp_path: Path) -> None:
    card = "---\nlanguage: en\n---\n"
    assert spoken_language(model_of(tmp_path / "a", card, tokenizer_config={"target_lang": "deu"})) == "de"
    assert (
        spoken_language(model_of(tmp_path / "b", card, tokenizer_config={"phonemizer_lang": "fr-fr"})) == "fr"
    )
    assert spoken_language(model_of(tmp_path / "c", card, config={"language": "nl"})) == "nl"
    assert spoken_language(model_of(tmp_path / "d", card, tokenizer_config={"target_lang": None})) == "en"
    assert spoken_language(tmp_path / "a", "spa") == "es"
    assert spoken_language(tmp_path / "nowhere") == ""
