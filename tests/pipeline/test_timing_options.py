"""The head and the aligner of the times: the model's own, or those that the caller names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from isotone.model import DecodingConfig, Model
from isotone.model.encoder import SpeechEncoder
from isotone.pipeline import Pipeline
from isotone.pipeline.scores import token_scores
from isotone.text.tokenizer import CharacterTokenizer
from isotone.types import Targets
from tests.pipeline.parts import CHARACTERS, HEADS, model_of_characters, noise, starts
from tests.tiny_models import ENCODER


def timed_by_the_decoder() -> Model:
    return model_of_characters(times="", aligner="ctc")


def times_of(pipeline: Pipeline) -> list[tuple[float, float]]:
    tier = pipeline.transcribe("u", noise(1.0)).alignment.tier("characters")
    return [(s.start, s.end) for s in tier]


def test_a_decoders_own_times_and_others() -> None:
    """Without a timing head the times are the decoder's, unless the caller names an aligner or a head."""
    model = timed_by_the_decoder()
    own = times_of(Pipeline(model))
    assert times_of(Pipeline(model, aligner="segmental")) != own
    assert times_of(Pipeline(model, times="ottc")) != own
    assert (
        times_of(Pipeline(model, times="ctc")) == own
    )  # the best CTC path of the greedy text is the greedy path


def test_times_are_the_decoders_where_the_aligner_fails(caplog: pytest.LogCaptureFixture) -> None:
    model = timed_by_the_decoder()
    demanding = {"name": "segmental", "min_frames": 9}  # more frames than there are
    assert times_of(Pipeline(model, times="ottc", aligner=demanding)) == times_of(Pipeline(model))
    assert "u: its tokens" in caplog.text


def test_scores_are_of_the_timing_head() -> None:
    model, samples = timed_by_the_decoder().eval(), noise(1.0)
    text = model.tokenizer.encode("so it is")
    with torch.inference_mode():
        ottc = model(torch.from_numpy(samples)[None], torch.tensor([16_000]))["ottc"]
    targets = Targets.from_lists([list(text.tokens)])
    pipeline = Pipeline(model, times="ottc", aligner="segmental")
    scores = [s.score for s in pipeline.align("u", samples, text).alignment.tier("characters")]
    kept = [i for i, t in enumerate(text.tokens) if CHARACTERS[t] != "|"]
    expected = token_scores(ottc.log_probs(), targets, pipeline.aligner(ottc, targets))[0, kept]
    np.testing.assert_allclose(scores, expected.tolist(), rtol=1e-4)


def test_unknown_heads_and_aligners_are_named() -> None:
    model = timed_by_the_decoder()
    with pytest.raises(LookupError, match=r"no head 'otcc'.*: ctc, ottc"):
        Pipeline(model, times="otcc")
    with pytest.raises(LookupError, match="No aligner named 'segmentl'"):
        Pipeline(model, aligner="segmentl")


@pytest.mark.parametrize("guide", ["", "ctc"])
def test_another_head_for_the_times_has_an_aligner_that_fits_it(guide: str) -> None:
    """The model's own aligner may need what only its own timing head has, such as label priors."""
    torch.manual_seed(0)
    heads = {**HEADS, "ottc": {**HEADS["ottc"], "track_prior": True}}
    reading = DecodingConfig(
        "ctc", {"name": "ctc-greedy"}, "ottc", {"name": "segmental", "prior": 0.5}, guide,
        {"name": "ctc", "blanks": "split"} if guide else {},
    )  # fmt: skip
    model = Model(SpeechEncoder(ENCODER), heads, CharacterTokenizer(CHARACTERS), reading)
    samples, text = noise(1.0), model.tokenizer.encode("so it is")

    def placed(**options: Any) -> list[float]:
        pipeline = Pipeline(model, **options)
        assert pipeline.transcribe("u", samples).alignment.duration == 1.0
        return starts(pipeline.align("u", samples, text))

    own = model.decoding.guide_aligner if guide else {"name": "ctc"}
    assert placed(times="ctc") == placed(times="ctc", aligner=own)
    assert placed(times="ottc") == placed()
    assert placed(times="ctc", aligner={"name": "segmental"}) != placed(
        times="ctc"
    )  # an aligner named by the caller is used
    with pytest.raises(ValueError, match=r"keeps its labels. priors, .* or set prior to 0"):
        placed(times="ctc", aligner=model.decoding.aligner)


def test_an_aligner_is_asked_for_with_options() -> None:
    model = model_of_characters()
    assert Pipeline(model, aligner={"name": "ctc", "blanks": "split"}).aligner.blanks == "split"  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"aligner 'ctc' has no option 'blank'\. Did you mean 'blanks'"):
        Pipeline(model, aligner={"name": "ctc", "blank": "split"})
    with pytest.raises(TypeError, match="aligner in a configuration needs a 'name'"):
        Pipeline(model, aligner={"blanks": "split"})
    with pytest.raises(LookupError, match="No aligner named 'ctcc'"):
        Pipeline(model, aligner={"name": "ctcc"})
    with pytest.raises(ValueError, match="blanks"):
        Pipeline(model, aligner={"name": "ctc", "blanks": "keep"})
