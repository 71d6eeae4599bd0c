"""The threshold of doubtful transcripts, measured where a model is saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from isotone.model import Model
from isotone.model.check import STATISTIC
from isotone.training import threshold
from isotone.training.data import Utterances
from isotone.training.threshold import measure


@pytest.fixture(scope="module")
def run(tiny_recipes: Path, train: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tiny_recipes / "ctc.yaml", f"output={tmp_path_factory.mktemp('runs') / 'ctc'}")


def split_of(run: Path, model: Model) -> Utterances:
    from datasets import load_from_disk

    (folder,) = (run / "manifests").glob("timit-train-*")
    return Utterances(load_from_disk(str(folder / "rows")), model.tokenizer, model.encoder.sample_rate)


def test_a_split_of_few_utterances_gives_none(run: Path) -> None:
    """The miniature's dev split has two."""
    model = Model.load(run)
    assert model.check is None
    assert measure(model, split_of(run, model), "train") is None


def test_it_is_a_quantile_of_the_wrong_and_says_what_it_does(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model.load(run)
    monkeypatch.setattr(threshold, "LEAST", 4)
    state = torch.get_rng_state()
    data = split_of(run, model)
    check = measure(model, data, "train")
    assert check is not None
    assert (check.split, check.statistic) == ("train", STATISTIC)
    assert 4 <= check.files <= len(data) == 12
    assert np.isfinite(check.threshold)
    assert 1 - 2 / check.files <= check.wrong_flagged < 1
    assert 0 <= check.right_flagged <= 1
    assert measure(model, data, "train") == check
    assert torch.equal(state, torch.get_rng_state())
    assert not model.training


def test_a_run_stores_it_in_its_model(
    tiny_recipes: Path, train: Callable[..., Path], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changes nothing else that a run writes; evaluated as it is, a model keeps its own."""
    monkeypatch.setattr(threshold, "LEAST", 2)
    again = train(tiny_recipes / "ctc.yaml", f"output={tmp_path / 'run'}")
    check = Model.load(again).check
    assert check is not None
    assert check.split == "dev"
    for name in ("model/model.safetensors", "predictions.jsonl", "result.json"):
        assert (again / name).read_bytes() == (run / name).read_bytes()
    evaluated = train(
        tiny_recipes / "ctc.yaml", f"output={tmp_path / 'as-it-is'}", f"init={again}", "train.epochs=0"
    )
    assert Model.load(evaluated).check == check
