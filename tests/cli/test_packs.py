"""Commands that find their model by the name of a pack, or by a language."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from isotone.batch.ledger import Ledger
from isotone.format.json import JSONFormat
from isotone.model import Model
from isotone.model.check import Check, Margins
from isotone.pipeline.margins import FEATURES, LEVELS
from isotone.registries import packs
from tests.packs import pack_class
from tests.tiny_models import error_of, isotone, names_in, save_character_model, save_noise

PLAIN = ("--no-check", "--no-edges")
SAID = "Model: german (A small model; CC0-1.0)"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("models") / "characters")


@pytest.fixture(autouse=True)
def german(register: Callable[..., None], model: Path) -> None:
    register(packs, "german", pack_class(model))


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    return save_noise(tmp_path / "u.wav", text="guten tag")


def test_without_a_model_the_pack_of_the_language_is_used_and_named(speech: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = isotone("align", speech, "--language", "de", "-o", out, *PLAIN)
    assert [line for line in done.stderr.splitlines() if line.startswith("Model")] == [
        f"{SAID}. --model names another."
    ]
    assert names_in(out) == ["u.TextGrid"]
    named = isotone("align", speech, "-m", "german", "--language", "de", "-o", out, *PLAIN)
    assert "1 of them there before" in named.stdout, "the same model by either name"
    assert "Model:" not in named.stderr


def test_the_ledger_knows_the_content_of_the_model(speech: Path, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    isotone("align", speech, "-m", "german", "-o", out, *PLAIN)
    with Ledger(out) as ledger:
        (pack,) = ledger.entries()
    isotone("align", speech, "-m", model, "-o", out, *PLAIN)
    with Ledger(out) as ledger:
        assert [entry.key for entry in ledger.entries()] == [pack.key]


def test_transcribe_and_score_check_find_packs(speech: Path, tmp_path: Path) -> None:
    assert SAID in isotone("transcribe", speech, "--language", "de", "-o", tmp_path / "out").stderr
    save_noise(tmp_path / "more/a.wav", text="guten tag", seed=1)
    save_noise(tmp_path / "more/b.wav", text="auf wiedersehen", seed=2)
    found = isotone("score-check", tmp_path / "more", "--language", "de")
    assert SAID in found.stderr
    assert "AUC" in found.stdout
    assert "AUC" in isotone("score-check", tmp_path / "more", "-m", "german").stdout


def test_match_finds_packs(speech: Path, tmp_path: Path) -> None:
    other = save_noise(tmp_path / "v.wav", seed=1)
    isotone("match", speech, other, "--features", "phones", "-m", "german", "-o", tmp_path / "out")
    assert "v.map.csv" in names_in(tmp_path / "out")


def test_a_language_without_a_pack_is_an_error(speech: Path, tmp_path: Path) -> None:
    message = error_of("align", speech, "--language", "hsb", "-o", tmp_path / "out")
    for part in ("'hsb'", "--model", "german (de)", "english (en)"):
        assert part in message
    assert not (tmp_path / "out").exists()
    assert "Did you mean 'german'" in error_of("align", speech, "-m", "gemran", "-o", tmp_path / "out")


def test_plugins_lists_packs_with_languages_licence_and_size() -> None:
    (row,) = [
        row
        for row in json.loads(isotone("plugins", "--kind", "pack", "--json").stdout)
        if row["name"] == "german"
    ]
    assert row["facts"]["languages"] == ["de"]
    table = " ".join(isotone("plugins", "--kind", "pack").stdout.replace("│", " ").split())
    for part in ("german", "de;", "CC0-1.0;", "0.1 MB"):
        assert part in table


def test_margins_are_told_where_the_model_knows_them(speech: Path, model: Path, tmp_path: Path) -> None:
    assert "does not know how sure its boundaries are" in error_of(
        "align", speech, "-m", "german", "--margins", *PLAIN
    )
    knows = Model.load(model)
    errors = tuple(level - 0.5 for level in LEVELS)
    knows.check = Check(
        0.1, "", 0, 0.0, 0.0, margins=Margins((-4.0, *(0.0,) * len(FEATURES)), errors, "noise", 9)
    )
    knows.decoding.refine = 10.0
    knows.save(tmp_path / "model")
    options = (
        "-m",
        tmp_path / "model",
        "-o",
        tmp_path / "out",
        "--format",
        "textgrid",
        "--format",
        "json",
        *PLAIN,
    )
    isotone("align", speech, *options)
    assert "margin" not in (tmp_path / "out/u.json").read_text()
    isotone("align", speech, *options, "--margins")
    alignment = JSONFormat().loads((tmp_path / "out/u.json").read_text(), "u")
    for tier in alignment.tiers:
        assert all(segment.start_margin and segment.end_margin for segment in tier)
    grid = (tmp_path / "out/u.TextGrid").read_text()
    assert [grid.count(f'"{tier.name} margins"') for tier in alignment.tiers] == [1, 1]
    where = error_of(
        "align", speech, "-m", tmp_path / "model", "-o", tmp_path / "out", "--margins", "--aligner", "ctc"
    )
    assert "leave out --aligner and --times" in where
