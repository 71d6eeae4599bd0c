"""A training step: accumulation, precision, weights of terms, clipping, freezing, and values that are not finite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from isotone.interfaces import Loss
from isotone.model import Model
from isotone.registries import losses
from isotone.training import checkpoint
from isotone.training.loop import Trainer
from isotone.training.objective import Objective
from isotone.types import Emissions, Targets
from tests.registering import registered
from tests.training.parts import steps_of, trainer_of


def test_accumulated_batches_are_one_large_batch(tiny_recipes: Path, tmp_path: Path) -> None:
    """An epoch is one step either way: the same utterances, so the same loss, gradient and next loss."""
    rows = []
    for name, size, accumulate in (("large", 4, 1), ("small", 2, 2), ("single", 1, 4)):
        options = [f"train.batch_size={size}", f"train.accumulate={accumulate}", f"output={tmp_path / name}"]
        trainer = trainer_of(tiny_recipes / "joint.yaml", *options, "train.epochs=3", "train.steps=0")
        assert trainer.steps == 3
        trainer.fit()
        rows.append(steps_of(tmp_path / name))
    for row, other, third in zip(*rows):
        for name in ("loss", "ctc", "ottc", "grad_norm"):
            assert row[name] == pytest.approx(other[name], rel=2e-3)
            assert row[name] == pytest.approx(third[name], rel=2e-3)
    assert rows[0][0]["loss"] != pytest.approx(rows[0][2]["loss"], rel=2e-3)


@pytest.mark.parametrize(
    ("size", "accumulate", "epochs", "steps"),
    [(4, 1, 3, 3), (1, 1, 3, 12), (1, 3, 6, 8), (2, 3, 3, 2), (4, 8, 3, 1)],
)
def test_steps_of_so_many_epochs(
    size: int, accumulate: int, epochs: int, steps: int, tiny_recipes: Path, tmp_path: Path
) -> None:
    options = [f"train.batch_size={size}", f"train.accumulate={accumulate}", f"train.epochs={epochs}"]
    trainer = trainer_of(tiny_recipes / "ctc.yaml", *options, "train.steps=0", f"output={tmp_path / 'run'}")
    assert trainer.steps == steps


def types_of(trainer: Trainer) -> set[torch.dtype]:
    """Collect the types of the CTC head's outputs from now on."""
    types: set[torch.dtype] = set()
    trainer.raw.model.heads["ctc"].lm_head.register_forward_hook(lambda _m, _i, out: types.add(out.dtype))
    return types


def test_half_precision(tiny_recipes: Path, tmp_path: Path) -> None:
    results = {}
    for precision in ("no", "bf16"):
        trainer = trainer_of(
            tiny_recipes / "joint.yaml", f"train.precision={precision}", f"output={tmp_path / precision}"
        )
        types = types_of(trainer)
        trainer.fit()
        assert types == {torch.bfloat16 if precision == "bf16" else torch.float32}
        assert all(p.dtype == torch.float32 for p in trainer.raw.parameters())
        results[precision] = [row["loss"] for row in steps_of(tmp_path / precision)]
    assert results["bf16"] == pytest.approx(results["no"], rel=0.05)
    assert results["bf16"] != results["no"]


def test_a_term_counts_by_its_weight(tiny_recipes: Path, tmp_path: Path) -> None:
    trainer = trainer_of(
        tiny_recipes / "joint.yaml", "objective.ottc.weight=0.25", f"output={tmp_path / 'run'}"
    )
    trainer.fit()
    for row in steps_of(tmp_path / "run"):
        assert row["loss"] == pytest.approx(row["ctc"] + 0.25 * row["ottc"], rel=1e-5)


def test_terms_without_a_head_or_a_weight_are_refused(tiny_recipes: Path, tmp_path: Path) -> None:
    trainer = trainer_of(tiny_recipes / "joint.yaml", f"output={tmp_path / 'run'}")
    with pytest.raises(ValueError, match=r"term 'x' names a head 'otc'; the model has: ctc, ottc"):
        Objective(trainer.raw.model, {"x": {"head": "otc", "loss": {"name": "ctc"}, "weight": 1.0}})
    with pytest.raises(ValueError, match="a term whose weight is not 0"):
        Objective(trainer.raw.model, {"x": {"head": "ctc", "loss": {"name": "ctc"}, "weight": 0.0}})


def test_a_head_that_is_clipped_apart_is_nothing_to_the_others(tiny_recipes: Path, tmp_path: Path) -> None:
    """Bit for bit, with dropout, and however large its gradients are, if no parameter is shared."""

    def trained(name: str, recipe: str, *options: str) -> dict[str, Tensor]:
        steps = ["train.steps=4", "train.batch_size=2", f"output={tmp_path / name}"]
        trainer = trainer_of(tiny_recipes / recipe, *steps, *options)
        trainer.fit()
        state = trainer.raw.model.state_dict()
        return {n: v for n, v in state.items() if n.startswith(("encoder.", "heads.ctc."))}

    loud = "objective.ottc.weight=1000"
    alone, mixed = trained("alone", "ctc.yaml"), trained("mixed", "joint.yaml", loud)
    apart = trained("apart", "joint.yaml", loud, "train.clip_apart=['heads.ottc.*']")
    assert all(torch.equal(apart[name], value) for name, value in alone.items())
    assert not all(torch.equal(mixed[name], value) for name, value in alone.items())


def test_frozen_for_a_while(tiny_recipes: Path, tmp_path: Path) -> None:
    seen: list[dict[str, Tensor]] = []

    def evaluate(step: int, _: Model) -> dict[str, float]:
        seen.append({n: p.detach().clone() for n, p in trainer.raw.model.named_parameters()})
        return {}

    freeze = "train.freeze=[{parameters: ['heads.ottc.weights.*', 'encoder.*'], start: 0.5}]"
    options = ["train.steps=8", "train.evaluate_every=1", "train.weight_decay=0.5", freeze]
    trainer = trainer_of(
        tiny_recipes / "joint.yaml", *options, f"output={tmp_path / 'run'}", evaluate=evaluate
    )
    trainer.fit()
    assert len(seen) == 8
    for step in range(1, 8):
        moved = {n for n, p in seen[step].items() if not torch.equal(p, seen[step - 1][n])}
        rests = {n for n in seen[step] if n.startswith(("heads.ottc.weights.", "encoder."))}
        assert "heads.ctc.lm_head.weight" in moved
        if step >= 4:
            assert moved.isdisjoint(rests)
        else:
            assert {
                "heads.ottc.weights.3.weight",
                "encoder.model.feature_projection.projection.weight",
            } <= moved


def test_what_a_loss_is_told(tiny_recipes: Path, tmp_path: Path, register: Callable[..., None]) -> None:
    """A loss registered in code trains from a recipe, and gets the progress of the training."""
    told: list[float] = []

    class Wait(Loss):
        """Mean negative log-probability of the first token, once a part of the training is over."""

        def __init__(self, *, after: float = 0.5) -> None:
            super().__init__()
            self.after = after

        def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
            told.append(self.progress)
            first = emissions.log_probs().gather(
                2, targets.labels[:, None, :1].expand(-1, emissions.logits.shape[1], 1)
            )
            return -first[..., 0].mean(1) * (self.progress >= self.after)

    register(losses, "test-wait", Wait)
    trainer = trainer_of(
        tiny_recipes / "ctc.yaml", "objective.ctc.loss={name: test-wait, after: 0.25}", f"output={tmp_path / 'run'}",
        "train.steps=4",
    )  # fmt: skip
    trainer.fit()
    assert told == [0.0, 0.25, 0.5, 0.75]
    rows = steps_of(tmp_path / "run")
    assert [row["loss"] > 0 for row in rows] == [False, True, True, True]
    assert rows[3]["loss"] < rows[1]["loss"]


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_what_is_not_finite_is_named(
    where: str, tiny_recipes: Path, tmp_path: Path, register: Callable[..., None]
) -> None:
    """Before the weights are touched, and before a checkpoint can hold them."""

    class Breaks(Loss):
        def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
            value = -emissions.log_probs().mean((1, 2))
            if self.progress < 0.5:
                return value
            worst = targets.lengths == targets.lengths.max()
            zero = (value * 0).clamp(min=0)
            return value + torch.where(worst, torch.nan if where == "loss" else zero.sqrt(), 0.0)

    register(losses, f"test-breaks-{where}", Breaks)
    trainer = trainer_of(
        tiny_recipes / "ctc.yaml", f"objective.ctc.loss.name=test-breaks-{where}", f"output={tmp_path / 'run'}",
        "train.steps=6", "train.save_every=1",
    )  # fmt: skip
    tokens = {e.id: len(e.transcript.tokens) for e in map(trainer.data.__getitem__, range(4))}
    with pytest.raises(FloatingPointError, match=rf"Step 4: the {where} is nan for ") as caught:
        trainer.fit()
    named = {name for name in tokens if name in str(caught.value)}
    broken = {name for name, n in tokens.items() if n == max(tokens.values())}
    assert broken < tokens.keys()
    assert named == (broken if where == "loss" else tokens.keys())
    assert all(torch.isfinite(p).all() for p in trainer.raw.parameters())
    assert [p.name for p in checkpoint.find(tmp_path / "run" / "checkpoints")] == [
        "step-000002",
        "step-000003",
    ]


class Lump(Loss):
    """A loss that gives one number, or a column, where one value per utterance is due."""

    def __init__(self, *, shape: str) -> None:
        super().__init__()
        self.shape = shape

    def forward(self, emissions: Emissions, targets: Targets) -> Tensor:
        values = emissions.logits.mean((1, 2))
        return {"scalar": values.mean(), "column": values[:, None], "none": None}[self.shape]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("shape", "found"), [("scalar", r"tensor \(\)"), ("column", r"tensor \(4, 1\)"), ("none", "NoneType")]
)
def test_a_loss_of_another_shape_is_refused(
    shape: str, found: str, tiny_recipes: Path, tmp_path: Path
) -> None:
    """A column would become B x B values, and the loss B times as large."""
    term = f"objective.ctc.loss={{name: test-lump, shape: {shape}}}"
    with registered(losses, "test-lump", Lump):
        trainer = trainer_of(tiny_recipes / "ctc.yaml", term, f"output={tmp_path / 'run'}")
        with pytest.raises(ValueError, match=rf"term 'ctc' \(Lump\) gave a {found}; expected \(4,\)"):
            trainer.fit()


def test_a_head_without_emissions_is_named(tiny_recipes: Path, tmp_path: Path) -> None:
    trainer = trainer_of(tiny_recipes / "ctc.yaml", f"output={tmp_path / 'run'}")
    trainer.raw.model.heads["ctc"].forward = lambda frames: frames.values
    with pytest.raises(
        ValueError, match=r"head 'ctc' is broken: CTCHead gave a Tensor; expected .*Emissions"
    ):
        trainer.fit()
