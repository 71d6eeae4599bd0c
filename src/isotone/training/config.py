"""The schema of speech recipes: every setting of a run, with its default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from isotone.model.decoding import DecodingConfig
from isotone.training.experiments import MODELS
from isotone.training.loader import Presets, RecipeError, load
from isotone.training.ranges import wrong_number

__all__ = [
    "Freeze", "Group", "ReadingConfig", "Realign", "Recipe", "RecipeError", "Splits", "Term", "Training", "load_recipe",
]  # fmt: skip


@dataclass
class Term:
    """One part of the objective.

    Attributes:
        head: Name of the head whose emissions the loss reads.
        loss: The loss: ``name`` and its options.
        weight: Factor in the sum; 0 leaves it out.
    """

    head: str = MISSING
    loss: dict[str, Any] = MISSING
    weight: float = 1.0


@dataclass
class Freeze:
    """Parameters that are frozen for a part of the training.

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
    """Settings of the optimisation.

    Attributes:
        epochs: Passes over the data, where ``steps`` is not given. 0: no training; the model of ``init`` is evaluated
            as it is, on other splits or with another decoder, without the training data.
        steps: Optimiser steps; takes precedence over ``epochs`` above 0.
        batch_size: Utterances per step and process, before ``accumulate``. A loss of several views (``consistency``)
            repeats the batch once per view, and multiplies work and memory accordingly.
        batch_seconds: Most audio of a process in a step, padding counted; longer batches are split, down to one
            utterance per process. 0: no limit.
        max_seconds: Longer utterances are left out of training, and counted. 0: no limit.
        accumulate: Batches whose gradients are summed before a step.
        augment: Changes of the recordings, drawn anew every epoch: names of :mod:`isotone.training.augment` and
            options, as in ``[{name: speed, factor: [0.9, 1.1]}]``, in their order. Default: none.
        lr, warmup_steps, warmup_share: Peak learning rate; linear warm-up by steps or by share, then linear decay to 0.
        weight_decay, clip: AdamW's decay (matrices only) and the largest gradient norm (``.inf``: no clipping).
        clip_apart: Patterns of parameters whose gradients are clipped by a norm of their own, such as ``heads.ottc.*``
            of a head on the input features: its large gradients then do not shrink the encoder's.
        precision: ``no``, ``fp16`` or ``bf16``.
        average: Decay of a moving average of the weights, such as 0.999; the average is evaluated and kept. 0: none.
        groups, freeze: See :class:`Group` and :class:`Freeze`.
        evaluate_every, save_every: Steps between evaluations on dev, and between checkpoints. 0: once per epoch.
        evaluate_limit: Utterances of dev that are evaluated while training. 0: all.
        keep: Checkpoints kept. 0: all.
        watch: Utterances of dev whose alignments are recorded at every evaluation, for the figures.
        watch_aligner: Their aligner, ``name`` and options. Empty: the one of ``reading``.
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
    watch_aligner: dict[str, Any] = field(default_factory=dict)
    workers: int = 0
    trackers: list[str] = field(default_factory=lambda: ["tensorboard"])


@dataclass
class ReadingConfig(DecodingConfig):
    """Section ``reading``: heads, decoder and aligner of text and times. These three must be given."""

    text: str = MISSING
    decoder: dict[str, Any] = MISSING
    aligner: dict[str, Any] = MISSING


@dataclass
class Realign:
    """Fixed alignments of the training split by the model in training, for the losses that need them.

    Attributes:
        after: Shares of training, 0 to 1, at which the split is aligned anew. Before the first the teacher's
            alignments are used, or none.
        head: Head that is aligned, here and by a ``teacher``. Empty: the one that times are read from.
        aligner: ``name`` and options of the aligner. Empty: the aligner of ``reading``.
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
        tokens: The unit of the output (``unit``: phones, characters or pieces) and its options, see
            :func:`isotone.text.tokenizer.build_tokenizer`.
        encoder: ``name`` and options of the encoder.
        heads: Heads by name, each with ``name`` (of the head class) and options.
        objective: Terms by name.
        reading: Heads, decoder and aligner that give text and times.
        train: Settings of the optimisation.
        teacher: A finished run or model whose alignments are the fixed ones that some losses need.
        realign: Alignments of the same kind by the model in training.
        init: A finished run or model whose weights training starts from, wherever names and shapes agree.
        card: Facts for the model card that the run cannot know: ``license``, ``data_license``, ``language``,
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


def load_recipe(path: Path | str, overrides: Sequence[str] = ()) -> Recipe:
    """Read a speech recipe; see :func:`isotone.training.loader.load`.

    An experiment that does not depend on the corpus lies in the folder ``models`` beside its recipe's, for every recipe
    to use. ``data=NAME`` merges the preset ``NAME.yaml`` of the recipe's folder after the experiment.

    Args:
        path: The experiment's YAML, in its recipe's folder even where it lies in ``models``.
        overrides: ``key=value`` pairs with dotted keys.

    Raises:
        FileNotFoundError: no such file; the message lists the folder's experiments, or the recipes there are.
        RecipeError: unknown or missing keys, values of the wrong type, numbers out of their range.
    """
    recipe = load(Recipe, path, overrides, presets=Presets(keys=("data",)), shared=MODELS)
    if wrong := wrong_number(recipe):
        raise RecipeError(f"{path}: {wrong}")
    return recipe
