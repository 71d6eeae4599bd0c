"""Recipes: YAML with a typed schema, one file an experiment that states only its difference."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, cast

from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from isotone.registry import nearest
from isotone.training.experiments import near, shared


class RecipeError(ValueError):
    """A recipe or an override cannot be used; the message says which key and what to do."""


@dataclass
class Term:
    """One part of the objective.

    Attributes:
        head: Name of the head whose emissions it judges.
        loss: The loss: ``name`` and its options.
        weight: Factor in the sum; 0 leaves it out.
    """

    head: str = MISSING
    loss: dict[str, Any] = MISSING
    weight: float = 1.0


@dataclass
class Freeze:
    """Parameters that are not trained for a part of the time.

    Attributes:
        parameters: Patterns (shell style) of parameter names: ``heads.ottc.weight*``.
        start, end: Share of the training, 0 to 1; the paper's "last 10 of 40 epochs" is ``start: 0.75``.
    """

    parameters: list[str] = MISSING
    start: float = 0.0
    end: float = 1.0


@dataclass
class Group:
    """Parameters with a learning rate or weight decay of their own; the first group that matches counts."""

    parameters: list[str] = MISSING
    lr_scale: float = 1.0
    weight_decay: float | None = None


@dataclass
class Splits:
    """Names of the corpus's splits. An empty ``dev`` or ``test`` leaves that evaluation out.

    Attributes:
        more: Further test splits; their results go to ``tests/NAME`` in the run folder.
    """

    train: str = "train"
    dev: str | None = "dev"
    test: str | None = "test"
    more: list[str] = field(default_factory=list)


@dataclass
class Training:
    """How the parameters move.

    Attributes:
        epochs: Passes over the data, where ``steps`` is not given. 0: no training; the model of ``init`` is evaluated
            as it is, on other splits or with another decoder, and the training data need not be there.
        steps: Optimiser steps; takes precedence over ``epochs`` above 0.
        batch_size: Utterances a step and process, before ``accumulate``. Losses of several views (``consistency``) make
            the model see each of them so often: as much work and memory as so many times the batch.
        batch_seconds: Most audio in a batch, padding counted; longer batches are split. 0: no limit.
        max_seconds: Longer utterances are left out of training, and counted. 0: no limit.
        accumulate: Batches whose gradients are added up before a step.
        augment: Changes of the recordings, drawn anew every epoch: names of :mod:`isotone.training.augment` and
            options, as in ``[{name: speed, factor: [0.9, 1.1]}]``, in their order. Default: none.
        lr, warmup_steps, warmup_share: Peak learning rate; linear warm-up by steps or by share, then linear decay to 0.
        weight_decay, clip: AdamW's decay (matrices only) and the largest gradient norm.
        clip_apart: Patterns of parameters whose gradients are clipped by a norm of their own, such as ``heads.ottc.*``
            of a head on the input features: large gradients of it then do not hold up the encoder.
        precision: ``no``, ``fp16`` or ``bf16``.
        average: Decay of a moving average of the weights, such as 0.999, which is what is evaluated and kept. 0: none.
        groups, freeze: See :class:`Group` and :class:`Freeze`.
        evaluate_every, save_every: Steps between evaluations on dev, and between checkpoints. 0: once an epoch.
        evaluate_limit: Utterances of dev that are evaluated while training. 0: all.
        keep: Checkpoints kept. 0: all.
        watch: Utterances of dev whose alignments are recorded at every evaluation, for the figures.
        workers: Processes that load audio.
        trackers: ``tensorboard``, ``wandb``, ``mlflow`` or ``none``, through accelerate.
    """

    epochs: int = 40
    steps: int = 0
    batch_size: int = 16
    batch_seconds: float = 0.0
    max_seconds: float = 0.0
    accumulate: int = 1
    augment: list[dict[str, Any]] = field(default_factory=list)
    lr: float = 2e-4
    warmup_steps: int = 0
    warmup_share: float = 0.0
    weight_decay: float = 0.01
    clip: float = 1.0
    clip_apart: list[str] = field(default_factory=list)
    precision: str = "no"
    average: float = 0.0
    groups: list[Group] = field(default_factory=list)
    freeze: list[Freeze] = field(default_factory=list)
    evaluate_every: int = 0
    evaluate_limit: int = 0
    save_every: int = 0
    keep: int = 2
    watch: int = 1
    workers: int = 0
    trackers: list[str] = field(default_factory=lambda: ["tensorboard"])


@dataclass
class ReadingConfig:
    """Which head gives the text and which the times; see :class:`isotone.model.DecodingConfig`."""

    text: str = MISSING
    decoder: dict[str, Any] = MISSING
    times: str = ""
    aligner: dict[str, Any] = MISSING
    guide: str = ""
    guide_aligner: dict[str, Any] = field(default_factory=dict)
    rescore: float = 0.0
    hypotheses: int = 32


@dataclass
class Realign:
    """Fixed alignments of the training split by the model in training, for the losses that need them.

    Attributes:
        after: Shares of training, 0 to 1, at which the split is aligned anew. Before the first there are the teacher's
            alignments, or none.
        head: Head that is aligned, here and by a ``teacher``. Empty: the one that times are read from.
        aligner: What aligns it: ``name`` and options. Empty: the aligner of ``reading``.
    """

    after: list[float] = field(default_factory=list)
    head: str = ""
    aligner: dict[str, Any] = field(default_factory=dict)


@dataclass
class Recipe:
    """A whole experiment.

    Attributes:
        data: The corpus: ``name`` and its options (``root`` ...).
        splits: The corpus's splits.
        tokens: The unit the model writes (``unit``: phones, characters or pieces) and its options, see
            :func:`isotone.text.tokenizer.build_tokenizer`.
        encoder: ``name`` and options of the encoder.
        heads: Heads by name, each with ``name`` (of the head class) and options.
        objective: Terms by name.
        reading: Which head gives the text and which the times.
        train: How the parameters move.
        teacher: A finished run or model whose alignments are the fixed ones that some losses need.
        realign: When the model in training gives such alignments itself.
        init: A finished run or model whose weights training starts from, wherever names and shapes agree.
        card: What the model card says that the run cannot know: ``license``, ``data_license``, ``language``,
            ``description``.
        seed: Of everything random.
        output: Run folder.
    """

    data: dict[str, Any] = MISSING
    splits: Splits = field(default_factory=Splits)
    tokens: dict[str, Any] = field(default_factory=lambda: {"unit": "phones"})
    encoder: dict[str, Any] = MISSING
    heads: dict[str, Any] = MISSING
    objective: dict[str, Term] = MISSING
    reading: ReadingConfig = field(default_factory=ReadingConfig)
    train: Training = field(default_factory=Training)
    teacher: str = ""
    realign: Realign = field(default_factory=Realign)
    init: str = ""
    card: dict[str, str] = field(default_factory=dict)
    seed: int = 0
    output: str = MISSING


def load_recipe(path: Path | str, overrides: Sequence[str] = ()) -> DictConfig:
    """Read an experiment: ``base.yaml`` of its folder, the experiment, presets, then dot-list overrides.

    An experiment that does not depend on the corpus lies in the folder ``models`` beside its recipe's, for every recipe
    to use; a file of the same name in the recipe's folder comes after it, with what is different there. An experiment
    (or a preset) with ``extends: NAME`` states its difference from another.

    ``data=NAME`` merges the preset ``NAME.yaml`` of the recipe's folder after the experiment and before the other
    overrides. Wherever a later one gives a part another ``name`` (of a plugin), it replaces the whole part, so that no
    option of the old one is left. The result is checked against :class:`Recipe`; the values of ``init``, ``teacher``
    and ``output`` may use other keys by interpolation.

    Args:
        path: The experiment's YAML, in its recipe's folder even where it lies in ``models``.
        overrides: ``key=value`` pairs with dotted keys.

    Raises:
        FileNotFoundError: no such file; the message lists the folder's experiments, or the recipes there are.
        RecipeError: unknown or missing keys, values of the wrong type.
    """
    path = Path(path)
    base = path.with_name("base.yaml")
    layers = _experiment(base) if base.is_file() and base != path else []
    layers += _experiment(path)
    plain = []
    for item in overrides:
        key, separator, value = item.partition("=")
        if not separator:
            raise RecipeError(f"An override is key=value; got {item!r}.")
        if key == "data" and (path.parent / f"{value}.yaml").is_file():
            layers += _experiment(path.parent / f"{value}.yaml")
        elif key == "data":
            raise RecipeError(f"No preset {value!r}: {path.parent / (value + '.yaml')} is not there.")
        else:
            plain.append(_checked(item))
    schema = OmegaConf.structured(Recipe)
    try:
        merged: Any = OmegaConf.create({"output": f"runs/{path.parent.resolve().name}/{path.stem}"})
        for layer in layers:
            merged = _merge(merged, _read(layer))
        merged.pop("extends", None)
        merged = _merge(merged, OmegaConf.from_dotlist(plain))
        recipe = OmegaConf.merge(schema, merged)
        missing = sorted(OmegaConf.missing_keys(recipe))
    except OmegaConfBaseException as error:
        raise RecipeError(f"{path}: {_explain(error)}") from error
    if missing:
        raise RecipeError(f"{path}: no value for {', '.join(missing)}. Give it as {missing[0]}=VALUE.")
    return cast(DictConfig, recipe)


def differences(path: Path, recipe: DictConfig) -> list[str]:
    """What a recipe says otherwise than a run's ``config.yaml``, but for where its output goes.

    Settings that the file does not have, as of a run from before there were such, have their defaults.

    Returns:
        Lines such as ``train.steps is 600 there, 1000 here``, sorted; nothing where both are alike.
    """
    before: Any = OmegaConf.load(path)
    with contextlib.suppress(OmegaConfBaseException):  # it has settings that there are no longer
        before = OmegaConf.merge(OmegaConf.structured(Recipe), before)
    there, here = (dict(_leaves(OmegaConf.to_container(r, resolve=True))) for r in (before, recipe))
    return [
        f"{key} is {there.get(key, 'nothing')} there, {here.get(key, 'nothing')} here"
        for key in sorted({*there, *here} - {"output"})
        if there.get(key) != here.get(key)
    ]


def _leaves(values: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys and values; a list is a value."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _experiment(path: Path, seen: tuple[str, ...] = ()) -> list[Path]:
    """The files of an experiment in their order: what it extends, the shared file, the recipe's own."""
    if path.stem in seen:
        raise RecipeError(f"{path}: {' extends '.join((*seen, path.stem))}, which has no end.")
    files = [p for p in (shared(path.parent) / path.name, path) if p.is_file()]
    if not files or not path.parent.is_dir():
        raise FileNotFoundError(f"No recipe {path}.{near(path)}")
    bases = [str(base) for file in files if (base := _read(file).get("extends"))]
    before = _experiment(path.with_name(f"{bases[-1]}.yaml"), (*seen, path.stem)) if bases else []
    return [*before, *files]


def _checked(override: str) -> str:
    try:
        OmegaConf.from_dotlist([override])
    except YAMLError as error:
        raise RecipeError(f"The value of {override!r} is not YAML: {' '.join(str(error).split())}") from error
    return override


def _read(path: Path) -> DictConfig:
    try:
        layer = OmegaConf.load(path)
    except YAMLError as error:
        raise RecipeError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(layer, DictConfig):
        raise RecipeError(f"{path}: expected keys and values; got {OmegaConf.to_container(layer)}.")
    return layer


def _merge(base: Any, change: Any) -> Any:
    """Merge; a part whose ``name`` (the plugin) changes is replaced whole, so that no option of another is left."""
    for key in list(change):
        if OmegaConf.is_missing(change, key) or OmegaConf.is_interpolation(change, key):
            base[key] = change._get_node(key)
            continue
        new = change[key]
        plain = (
            key in base and not OmegaConf.is_missing(base, key) and not OmegaConf.is_interpolation(base, key)
        )
        old = base[key] if plain else None
        if isinstance(old, DictConfig) and isinstance(new, DictConfig):
            replaced = "name" in new and "name" in old and new["name"] != old["name"]
            base[key] = new if replaced else _merge(old, new)
        else:
            base[key] = new
    return base


def _explain(error: OmegaConfBaseException) -> str:
    message = str(error).split("\n")[0]
    key = getattr(error, "full_key", None)
    schema = getattr(error, "object_type", None)
    if key and "not in" in message:
        known = [f.name for f in fields(schema)] if is_dataclass(schema) else []
        return f"unknown key {key!r}.{nearest(str(key).rpartition('.')[2], known)}"
    return f"{key}: {message}" if key else message
