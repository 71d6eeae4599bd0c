"""Placement of given texts: phones have a least duration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from isotone.interfaces import Aligner
from isotone.model import DecodingConfig, Model
from isotone.model.encoder import SpeechEncoder
from isotone.pipeline import Pipeline
from isotone.pipeline.placing import PHONE_S
from isotone.registry import BrokenPlugin
from isotone.types import Emissions, Targets
from tests.pipeline.parts import emissions_of, give, phone_model
from tests.tiny_models import ENCODER

HURRIED = "..sssssiaaaasss.."  # the model hears one frame of the second phone


def frames_of(pipeline: Pipeline, sounds: str) -> list[int]:
    emissions = emissions_of(sounds)
    give(pipeline, emissions)
    samples = np.zeros(len(sounds) * 320, np.float32)
    result = pipeline.align("u", samples, pipeline.encode("sias"))
    return [round(s.duration / 0.02) for s in result.alignment.tier("phones")]


def model_that_reads(aligner: dict) -> Model:
    torch.manual_seed(0)
    reading = DecodingConfig("ctc", {"name": "ctc-greedy"}, "", aligner)
    return Model(SpeechEncoder(ENCODER), {"ctc": {"name": "ctc"}}, phone_model().tokenizer, reading)


def test_phones_of_a_given_text_last_as_long_as_phones_do() -> None:
    """Only by the model's own aligner; one named by the caller, or without support for it, is used as it is."""
    own = Pipeline(model_that_reads({"name": "segmental"}))
    assert min(frames_of(own, HURRIED)) == round(PHONE_S / 0.02) == 2
    asked_for = Pipeline(model_that_reads({"name": "segmental"}), aligner="segmental")
    assert frames_of(asked_for, HURRIED) == [5, 1, 4, 3]
    assert frames_of(Pipeline(model_that_reads({"name": "ctc"})), "_s_i_a_s_") == [1, 1, 1, 1]


def test_a_text_that_is_too_fast_for_that_is_aligned_all_the_same() -> None:
    own = Pipeline(model_that_reads({"name": "segmental"}))
    assert frames_of(own, ".sias.") == [1, 1, 1, 1]


class Idle(Aligner):
    """An aligner that forgets what it returns."""

    def __call__(self, emissions: Emissions, targets: Targets) -> Any:
        return None


def test_an_aligner_that_gives_no_coupling_is_named() -> None:
    pipeline = Pipeline(model_that_reads({"name": "ctc"}))
    pipeline.placer = replace(pipeline.placer, aligner=Idle())
    with pytest.raises(BrokenPlugin, match="Idle gave a NoneType; expected isotone"):
        frames_of(pipeline, "_s_i_a_s_")
