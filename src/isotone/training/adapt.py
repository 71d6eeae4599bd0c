"""Adaptation of a model to recordings with transcripts, by its own alignments: self-training without labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from accelerate.state import AcceleratorState
from accelerate.utils import patch_environment
from safetensors.torch import load_file, save

from isotone.files import atomic_write
from isotone.model import Model
from isotone.training.config import ReadingConfig, Recipe, Term, Training
from isotone.training.data import Utterances
from isotone.training.loop import Trainer
from isotone.training.objective import Objective
from isotone.training.processes import make_accelerator

_BEST, _WEIGHTS = "best.json", "best.safetensors"


@dataclass(frozen=True)
class Settings:
    """Settings of an adaptation.

    Attributes:
        steps: Most optimiser steps.
        batch_size: Utterances per step.
        lr: Peak learning rate.
        evaluate_every: Steps between two measurements, and between checkpoints.
        patience: Measurements without a new best after which it ends.
        seed: Of everything random.
    """

    steps: int = 200
    batch_size: int = 8
    lr: float = 2e-4
    evaluate_every: int = 25
    patience: int = 3
    seed: int = 0


@dataclass(frozen=True)
class Adapted:
    """The measure before and after.

    Attributes:
        before: Measure of the model as it was.
        after: Measure of the best model found; equal to ``before`` where none is better.
        step: Step at which it was found; 0 where none is better.
    """

    before: float
    after: float
    step: int

    @property
    def better(self) -> bool:
        """True where training found a better model."""
        return self.step > 0


class _Enough(Exception):
    """The measure has not risen for some time."""


def adapt(
    model: Model,
    rows: Sequence[Mapping[str, Any]],
    measure: Callable[[Model], float],
    folder: Path,
    settings: Settings = Settings(),
) -> Adapted:
    """Train a model on rows, and keep the weights whose measure is the highest; in place.

    Args:
        model: The model, on the device to train on.
        rows: Utterances with the columns of :data:`isotone.corpus.COLUMNS`; phones with times are the targets where
            the model has phones.
        measure: Measures a model on recordings that are not among the rows; higher is better.
        folder: Checkpoints and metrics go there; the same call goes on where it was cut off.
        settings: Settings of the training.

    Raises:
        ValueError: the model has no head that can be adapted, or there is nothing to train on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    recipe = _recipe(model, folder, settings)
    data = Utterances(list(rows), model.tokenizer, model.encoder.sample_rate, frames=model.encoder.frames)
    best = _Best(folder, model, measure, settings)
    # a run of this process before may have had another device, which accelerate keeps
    AcceleratorState._reset_state(reset_partial_state=True)
    with patch_environment(ACCELERATE_TORCH_DEVICE=str(next(model.parameters()).device)):
        accelerator = make_accelerator(recipe, folder)
    objective = Objective(model, {name: asdict(term) for name, term in recipe.objective.items()})
    try:
        Trainer(objective, data, recipe, folder, best.look, accelerator).fit()
    except _Enough:
        pass
    finally:
        accelerator.end_training()
    best.restore()
    return Adapted(best.before, best.value, best.step)


class _Best:
    """The best measure and its weights, in files, so that a resumed adaptation knows them."""

    def __init__(
        self, folder: Path, model: Model, measure: Callable[[Model], float], settings: Settings
    ) -> None:
        self.folder, self.model, self.measure, self.settings = folder, model, measure, settings
        try:
            found = json.loads((folder / _BEST).read_text(encoding="utf-8"))
            self.before, self.value, self.step = found["before"], found["value"], found["step"]
        except (OSError, ValueError, KeyError):
            self.before = self.value = measure(model)
            self.step = 0
            self._write()

    def look(self, step: int, model: Model) -> dict[str, float]:
        """Measure the model in training; raise _Enough where it is time to stop."""
        value = self.measure(model)
        if value > self.value:
            self.value, self.step = value, step
            self._write()
        elif step - self.step >= self.settings.patience * self.settings.evaluate_every:
            raise _Enough
        return {"held_out": value}

    def restore(self) -> None:
        """Give the model its best weights."""
        self.model.load_state_dict(load_file(self.folder / _WEIGHTS))
        self.model.eval()

    def _write(self) -> None:
        state = {k: v.detach().cpu().contiguous().clone() for k, v in self.model.state_dict().items()}
        with atomic_write(self.folder / _WEIGHTS, "wb") as file:
            file.write(save(state))
        with atomic_write(self.folder / _BEST) as file:
            json.dump({"before": self.before, "value": self.value, "step": self.step}, file)


def _recipe(model: Model, folder: Path, settings: Settings) -> Recipe:
    """Make the recipe: CTC for heads of CTC, cross-entropy along the own best path for heads of OTTC."""
    aligner = model.decoding.aligner
    terms: dict[str, Term] = {}
    for name, spec in model.head_specs.items():
        if spec["name"] == "ctc":
            terms[name] = Term(name, {"name": "ctc"})
        elif spec["name"] == "ottc":
            loss = {"name": "ottc", "path_after": 0.0, "states": spec.get("states", 1)}
            if spec.get("track_prior"):
                loss["prior"] = float(aligner.get("prior", 0.0))
            terms[name] = Term(name, loss)
    if not terms:
        raise ValueError(
            f"None of the model's heads can be adapted ({', '.join(model.heads)}): ctc and ottc can."
        )
    apart = [f"heads.{name}.*" for name in terms if model.head_specs[name].get("reads") == "features"]
    train = Training(
        steps=settings.steps, batch_size=settings.batch_size, lr=settings.lr, warmup_steps=settings.steps // 10,
        evaluate_every=settings.evaluate_every, save_every=settings.evaluate_every, keep=1, clip_apart=apart,
        augment=[{"name": "noise", "probability": 0.5}, {"name": "band", "probability": 0.3}], trackers=["none"],
    )  # fmt: skip
    reading = ReadingConfig(**asdict(model.decoding))
    return Recipe(
        data={"name": "folder"}, encoder={}, heads=model.head_specs, objective=terms, reading=reading, train=train,
        seed=settings.seed, output=str(folder),
    )  # fmt: skip
