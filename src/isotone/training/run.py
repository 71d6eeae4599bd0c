"""A recipe from configuration to run folder: train, evaluate, export."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from isotone.corpus.manifest import load_splits
from isotone.files import atomic_folder, atomic_write, safe_name
from isotone.model import DecodingConfig, Model
from isotone.model.hub import write_card
from isotone.pipeline import Pipeline
from isotone.registries import encoders
from isotone.text import tokenizer as tokenizers
from isotone.text.pronounce import load_pronouncer
from isotone.text.tokenizer import Tokenizer, build_tokenizer
from isotone.training import checkpoint
from isotone.training.assess import assess, snapshot
from isotone.training.augment import Chain
from isotone.training.claim import check_free, claim
from isotone.training.config import Recipe, RecipeError, load_recipe
from isotone.training.data import Utterances
from isotone.training.experiments import experiment_arguments, experiments
from isotone.training.loop import Trainer
from isotone.training.objective import Objective
from isotone.training.processes import make_accelerator
from isotone.training.ranges import wrong_number
from isotone.training.teacher import Realignment, teacher_paths
from isotone.training.threshold import measure

log = logging.getLogger(__name__)


def main(script: str, usage: str) -> None:
    """Run the command of a recipe's ``run.py``: an experiment's name, then ``key=value`` overrides.

    Args:
        script: The script's ``__file__``; its folder is the recipe's.
        usage: Shown where no experiment is given.
    """
    folder = Path(script).parent
    known = ", ".join(experiments(folder))
    name, overrides = experiment_arguments(f"{usage}\nExperiments and presets: {known}")
    try:
        run(load_recipe(folder / f"{name}.yaml", overrides))
    except (FileNotFoundError, RecipeError) as error:
        raise SystemExit(f"error: {error}") from None


def run(recipe: Recipe) -> Path:
    """Run a recipe, or continue one that was interrupted.

    The run folder holds ``config.yaml``, ``corpus.json`` (amount of data), ``manifests``, ``tokenizer``,
    ``metrics.jsonl``, ``logs`` (trackers), ``checkpoints``, ``snapshots``, ``model`` (with a model card),
    ``skipped.jsonl``, and of the test split ``alignments``, ``forced``, ``predictions.jsonl`` and ``result.json``; of
    further test splits these are in ``tests/NAME``.

    Args:
        recipe: From :func:`isotone.training.config.load_recipe`.

    Returns:
        The run folder.

    Raises:
        FileExistsError: the folder holds files that no run wrote and that this one would replace.
        RecipeError: the folder holds a run with other settings, or a number is out of its range.
    """
    if wrong := wrong_number(recipe):  # of a recipe that was changed after it was read
        raise RecipeError(wrong)
    folder = Path(recipe.output)
    check_free(folder, recipe)
    folder.mkdir(parents=True, exist_ok=True)
    accelerator = make_accelerator(recipe, folder)
    try:
        _run(recipe, folder, accelerator)
    finally:
        accelerator.end_training()  # also ends the processes' group: no process may wait for others after it
    return folder


def _run(recipe: Recipe, folder: Path, accelerator: Accelerator) -> None:
    trains = recipe.train.epochs > 0
    if not (trains or recipe.init):
        raise RecipeError("train.epochs=0 evaluates a model as it is: name it with init=RUN, or train.")
    if accelerator.is_main_process:
        claim(folder, recipe)
    with accelerator.main_process_first():  # one process prepares the corpus, then the others find it ready
        splits, damaged = _load_splits(recipe, folder, trains)
    torch.manual_seed(recipe.seed)
    start = Model.load(recipe.init) if recipe.init else None
    # the weights of a start belong to the labels they were trained with
    tokenizer = start.tokenizer if start else _tokenizer(recipe, splits["train"], folder, accelerator)
    model = Model(
        encoders.create(recipe.encoder),
        recipe.heads,
        tokenizer,
        DecodingConfig(**asdict(recipe.reading)),
    )
    if start:
        _copy_weights(start, model)
    Pipeline(model)  # a decoder or an aligner that cannot be built is an error now, not after an epoch
    rate, frames = model.encoder.sample_rate, model.encoder.frames
    longest = {"train": recipe.train.max_seconds}
    data = {n: Utterances(rows, tokenizer, rate, longest.get(n, 0.0), frames) for n, rows in splits.items()}
    if accelerator.is_main_process:
        _report_skipped(folder, [*damaged, *(row for part in data.values() for row in part.skipped)])
    done: Model | None = model
    if trains:
        done = _fit(recipe, model, data["train"], data.get("dev"), folder, accelerator)
    if accelerator.is_main_process and done is not None:
        done.to(accelerator.device).eval()
        if data.get("dev"):
            done.check = measure(done, data["dev"], str(recipe.splits.dev))
        elif start and start.decoding == done.decoding:  # evaluated as it is
            done.check = start.check
        done.save(folder / "model")
        for name, target in {"test": folder, **_further_tests(recipe, folder)}.items():
            if data.get(name):
                assess(done, data[name], target, seed=recipe.seed)
        _write_skipped(folder, [*damaged, *(row for part in data.values() for row in part.skipped)])
        write_card(folder)
    accelerator.wait_for_everyone()


def _fit(
    recipe: Recipe,
    model: Model,
    train: Utterances,
    dev: Utterances | None,
    folder: Path,
    accelerator: Accelerator,
) -> Model | None:
    objective = Objective(model, {name: asdict(term) for name, term in recipe.objective.items()})
    if (recipe.teacher or recipe.realign.after) and not Chain(recipe.train.augment).keeps_length:
        raise RecipeError(
            "train.augment makes recordings longer or shorter (speed), and the alignments of a teacher, or of realign, "
            "are of the recordings as they are: leave one of the two out."
        )
    if recipe.teacher:
        cache = folder / "teacher_paths.npz"
        with accelerator.main_process_first():
            # a run that left no checkpoint may have had another teacher, aligner or data
            if accelerator.is_main_process and not checkpoint.find(folder / "checkpoints"):
                cache.unlink(missing_ok=True)
            train.paths = teacher_paths(
                recipe.teacher, train, cache, accelerator.device, recipe.realign.head, recipe.realign.aligner
            )

    def evaluate(step: int, model: Model) -> dict[str, float]:
        assert dev is not None
        return snapshot(model, dev, folder / "snapshots", step, recipe.train)

    return Trainer(
        objective, train, recipe, folder, evaluate if dev else None, accelerator,
        _rounds(recipe, model, train, folder, accelerator),
    ).fit()  # fmt: skip


def _rounds(
    recipe: Recipe, model: Model, train: Utterances, folder: Path, accelerator: Accelerator
) -> Realignment | None:
    """Return the rounds of realignment, where the recipe has any."""
    if not recipe.realign.after:
        return None
    rounds = Realignment(
        model, train, recipe.realign.after, folder, recipe.realign.head, recipe.realign.aligner
    )
    if accelerator.is_main_process and not checkpoint.find(folder / "checkpoints"):
        rounds.forget()
    return rounds


def _load_splits(recipe: Recipe, folder: Path, trains: bool) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Load the corpus's splits (only those for tests if nothing is trained), and (id, reason) of what it left out."""
    required = ("train", "dev", "test") if trains else ("test",)
    named = {n: getattr(recipe.splits, n) for n in required} | {s: s for s in recipe.splits.more}
    found = load_splits(recipe.data, named, folder)
    return {name: split.rows for name, split in found.items()}, [x for s in found.values() for x in s.skipped]


def _further_tests(recipe: Recipe, folder: Path) -> dict[str, Path]:
    """Return the folders of the further test splits' results."""
    return {split: folder / "tests" / safe_name(split) for split in recipe.splits.more}


def _tokenizer(recipe: Recipe, rows: Any, folder: Path, accelerator: Accelerator) -> Tokenizer:
    """Build the tokenizer from the training split; a continued run has it in its folder already."""
    saved = folder / "tokenizer"
    with accelerator.main_process_first():
        if accelerator.is_main_process and not (saved.is_dir() and checkpoint.find(folder / "checkpoints")):
            settings = dict(recipe.tokens)
            spec = settings.pop("pronouncer", None)  # a kind such as espeak, or a pronouncer's configuration
            spec = {"kind": spec} if isinstance(spec, str) else spec
            pronouncer = load_pronouncer(spec, Path()) if spec else None
            built = build_tokenizer(rows=rows, pronouncer=pronouncer, **settings)
            with atomic_folder(saved) as target:
                built.save(target)
        return tokenizers.load(saved)


def _copy_weights(start: Model, model: Model) -> None:
    """Copy every weight whose name and shape agree; log those that stay fresh."""
    theirs, ours = start.state_dict(), model.state_dict()
    fit = {k: v for k, v in theirs.items() if k in ours and ours[k].shape == v.shape}
    if not fit:
        raise RecipeError("init: no weight of that model fits this recipe's.")
    model.load_state_dict(fit, strict=False)
    fresh = sorted(set(ours) - set(fit))
    if fresh:
        log.warning(
            "%d weights were copied, %d are fresh: %s ...", len(fit), len(fresh), ", ".join(fresh[:3])
        )


def _report_skipped(folder: Path, rows: list[tuple[str, str]]) -> None:
    _write_skipped(folder, rows)
    if rows:
        log.warning("%d utterances are left out; %s says why.", len(rows), folder / "skipped.jsonl")


def _write_skipped(folder: Path, rows: list[tuple[str, str]]) -> None:
    """Write the list of utterances that were left out, also of those that were found while they were read."""
    with atomic_write(folder / "skipped.jsonl") as file:
        for id, reason in rows:
            file.write(json.dumps({"id": id, "reason": reason}, ensure_ascii=False) + "\n")
