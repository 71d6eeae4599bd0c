"""Training on several processes: the settings that DeepSpeed and FSDP get, and those they refuse."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from isotone.training.processes import configure_deepspeed, configure_fsdp
from tests.training.parts import Train


@pytest.mark.parametrize(
    ("stage", "settings", "precision", "config", "message"),
    [
        (3, {}, "no", {}, "Stage 3 of DeepSpeed spreads the weights"),
        (2, {"freeze": [{"parameters": ["encoder.*"]}]}, "no", {}, "train.freeze takes gradients away"),
        (2, {"clip_apart": ["heads.ottc.*"]}, "no", {}, "DeepSpeed clips all gradients together"),
        (2, {}, "fp16", {}, "train.precision=bf16 or no"),
        (1, {}, "bf16", {"bf16": {"enabled": True}}, "its own configuration has neither"),
    ],
)
def test_what_deepspeed_does_not_do_here(
    stage: int, settings: dict[str, object], precision: str, config: dict[str, object], message: str
) -> None:
    plugin = SimpleNamespace(zero_stage=stage, deepspeed_config=config)
    chosen = SimpleNamespace(**{"freeze": [], "clip_apart": [], **settings})
    with pytest.raises(ValueError, match=message):
        configure_deepspeed(plugin, chosen, precision)


def test_what_deepspeed_is_told() -> None:
    config = {"bf16": {"enabled": "auto"}, "gradient_clipping": "auto"}
    chosen = SimpleNamespace(freeze=[], clip_apart=[], batch_size=0, accumulate=2, clip=0.5)
    configure_deepspeed(SimpleNamespace(zero_stage=2, deepspeed_config=config), chosen, "bf16")
    assert config["torch_autocast"] == {"enabled": True, "dtype": "bfloat16"}
    assert config["train_micro_batch_size_per_gpu"] == 1
    assert (config["gradient_accumulation_steps"], config["gradient_clipping"]) == (2, 0.5)


def test_fsdp_is_the_second_and_keeps_float32() -> None:
    with pytest.raises(ValueError, match="fsdp_version: 2"):
        configure_fsdp(SimpleNamespace(fsdp_version=1))
    plugin = SimpleNamespace(fsdp_version=2, mixed_precision_policy="bf16")
    configure_fsdp(plugin)
    assert plugin.mixed_precision_policy is None


def test_processes_that_do_not_know_of_each_other(
    tiny_recipes: Path, train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would all write to one folder."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(
        ValueError, match="one of 2 processes, and accelerate trains them as if each were alone"
    ):
        train(tiny_recipes / "ctc.yaml", f"output={tmp_path / 'run'}")
    assert not (tmp_path / "run" / "checkpoints").exists()
