"""Two heads whose scores are mixed for the times."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.model import Model, ModelError
from isotone.pipeline import Pipeline
from isotone.pipeline.windows import Windows
from isotone.types import Emissions, Grid
from isotone.types import emissions as types_of_emissions
from tests.pipeline.parts import HEADS, model_of_characters, noise, starts


def emissions(seed: int, lengths: list[int], grid: Grid, labels: int = 4, prior: bool = True) -> Emissions:
    rng = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(len(lengths), max(lengths), labels, generator=rng)
    return Emissions(
        logits, torch.tensor(lengths), grid, 0, None, torch.randn(labels, generator=rng) if prior else None
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(0, 1), st.sampled_from([0.01, 0.02, 0.04]), st.floats(0, 0.03))
def test_every_frame_takes_the_scores_at_its_middle(
    seed: int, share: float, hop: float, offset: float
) -> None:
    own, other = emissions(seed, [8, 5], Grid(0.02)), emissions(seed + 1, [6, 3], Grid(hop, offset))
    mixed = own.mixed(other, share)
    for row in range(2):
        for t in range(8):
            middle = (t + 0.5) * 0.02
            at = next((i for i in range(6) if offset + i * hop <= middle < offset + (i + 1) * hop), None)
            if at is None:  # before its first frame, or after its last
                at = 0 if middle < offset else int(other.lengths[row]) - 1
            at = min(at, int(other.lengths[row]) - 1)
            expected = (1 - share) * own.logits[row, t].log_softmax(0) + share * other.logits[
                row, at
            ].log_softmax(0)
            if abs((middle - offset) / hop - round((middle - offset) / hop)) > 1e-6:
                torch.testing.assert_close(mixed.logits[row, t], expected)
    priors = [e.log_prior for e in (own, other, mixed)]
    torch.testing.assert_close(priors[2], (1 - share) * priors[0] + share * priors[1])
    assert (mixed.grid, mixed.lengths.tolist()) == (own.grid, [8, 5])


def test_heads_without_priors_and_with_other_labels() -> None:
    own, other = emissions(0, [4], Grid(0.02)), emissions(1, [4], Grid(0.02), prior=False)
    torch.testing.assert_close(own.mixed(other, 0.25).log_prior, 0.75 * own.log_prior)
    assert other.mixed(own, 0.25).log_prior is None
    with pytest.raises(ValueError, match="have the same labels; got 4 and 5"):
        own.mixed(emissions(1, [4], Grid(0.02), labels=5), 0.5)


def mixing(share: float) -> Model:
    """As :func:`model_of_characters`, whose timing head is mixed with the CTC head."""
    model = model_of_characters()
    decoding = replace(model.decoding, beside="ctc", share=share)
    mixed = Model(model.encoder, HEADS, model.tokenizer, decoding)
    mixed.load_state_dict(model.state_dict())
    return mixed


def test_long_emissions_are_mixed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = emissions(2, [11, 7], Grid(0.01)), emissions(2, [6, 4], Grid(0.02))
    whole = own.mixed(other, 0.4).logits
    monkeypatch.setattr(types_of_emissions, "_AT_ONCE", 4)
    assert torch.equal(own.mixed(other, 0.4).logits, whole)


def test_a_pipeline_mixes_where_the_times_are_read() -> None:
    audio, heads = noise(2.0, 1), {"ctc", "ottc"}
    with torch.inference_mode():
        plain = model_of_characters().eval()(torch.from_numpy(audio)[None], torch.tensor([len(audio)]), heads)
    pipeline = Pipeline(mixing(0.4))
    found = pipeline.emitter(["a"], [audio], {"ottc"})
    assert set(found) == {"ottc"}
    torch.testing.assert_close(found["ottc"].logits, plain["ottc"].mixed(plain["ctc"], 0.4).logits)
    assert set(pipeline.emitter(["a"], [audio], heads)) == heads
    long = Pipeline(mixing(0.4), windows=Windows(0.5, 0.5)).emitter(["a"], [audio], {"ottc"})
    assert long["ottc"].logits.shape == found["ottc"].logits.shape
    for free in (Pipeline(mixing(0.4), guided=False), Pipeline(mixing(0.4), times="ctc")):
        assert free.emitter.mixture is None


def test_the_share_moves_times() -> None:
    audio = noise(2.0, 1)
    texts = [Pipeline(mixing(share)) for share in (0.0, 1.0)]
    without, alone = (starts(p.align("a", audio, p.encode("so it is then"))) for p in texts)
    own = Pipeline(model_of_characters())
    assert without == starts(own.align("a", audio, own.encode("so it is then"))) != alone


@pytest.mark.parametrize(
    "settings", [{"beside": "ottc"}, {"beside": "ctc", "share": 1.5}, {"beside": "ctc", "times": ""}]
)
def test_a_head_is_mixed_with_another(settings: dict) -> None:
    decoding = replace(model_of_characters().decoding, **settings)
    with pytest.raises(ModelError, match=re.escape("reading.beside names a head to mix with another one")):
        decoding.check_heads(["ctc", "ottc"])
    with pytest.raises(ModelError, match="read from a head 'nobody'"):
        replace(decoding, beside="nobody").check_heads(["ctc", "ottc"])
