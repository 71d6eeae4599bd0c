"""A guide: another head's alignment restricts the tokens of the timing head."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from isotone_ctc.align import CTCViterbi

from isotone.model import Model, ModelError
from isotone.pipeline import Pipeline
from isotone.pipeline.placing import on_grid
from isotone.pipeline.windows import Windows
from isotone.text.tokenizer import Transcript
from isotone.types import Emissions, FramePath, Grid, Targets
from tests.pipeline.parts import HEADS, model_of_characters, noise, starts


def guided_model(guide: str = "ctc") -> Model:
    """As :func:`model_of_characters`, with a guide."""
    model = model_of_characters()
    if guide:
        reading = replace(model.decoding, guide=guide, guide_aligner={"name": "ctc"})
        model = Model(model.encoder, HEADS, model.tokenizer, reading)
        model.load_state_dict(model_of_characters().state_dict())
    return model


def test_a_guide_keeps_tokens_where_the_other_head_hears_them() -> None:
    """One utterance or several, whole or in windows, of a text that is given or recognised."""
    model, audio = guided_model(), [noise(2.0, 1), noise(1.0, 2)]
    texts = [model.tokenizer.encode(text) for text in ("so it is then", "no")]
    plain, guided = Pipeline(model, guided=False), Pipeline(model)
    assert (plain.guide, guided.guide) == ("", "ctc")
    assert Pipeline(model, aligner="ctc").guide == "", "an aligner that is not guided"
    assert Pipeline(model, times="ctc").guide == "", "the guide itself"
    free, held = (p.align_batch(["a", "b"], audio, texts) for p in (plain, guided))
    assert [starts(r) for r in free] != [starts(r) for r in held]
    alone = [guided.align(*one) for one in zip("ab", audio, texts)]
    assert [starts(r) for r in held] == [starts(r) for r in alone]
    windows = Pipeline(model, windows=Windows(1.0, 0.5)).align("a", audio[0], texts[0])
    assert windows.text == held[0].text
    assert starts(guided.transcribe("a", audio[0])) != starts(plain.transcribe("a", audio[0]))

    targets = Targets.from_lists([list(texts[0].tokens)])
    with torch.inference_mode():
        emissions = model(torch.from_numpy(audio[0])[None], torch.tensor([len(audio[0])]))
    path = CTCViterbi()(emissions["ctc"], targets)
    given_guide = guided.placer.guided(["a"], emissions, targets, 0.0).guide
    assert given_guide is not None
    frames = given_guide.carried[0].nonzero()[:, 0]
    assert frames.tolist() == path.source[0, path.mass[0] > 0].tolist()
    assert given_guide.tokens[0, frames].tolist() == path.target[0, path.mass[0] > 0].tolist()


def test_a_guide_on_other_frames() -> None:
    """Frames half as long and one later: each takes the guide's token at its middle."""
    source = Emissions(torch.zeros(2, 4, 3), torch.tensor([4, 2]), Grid(0.02, 0.01))
    timing = Emissions(torch.zeros(2, 9, 3), torch.tensor([9, 5]), Grid(0.01))
    tokens = torch.tensor([[0, -1, 1, 2], [0, 1, -1, -1]])
    assert on_grid(FramePath(tokens), source, timing).tokens.tolist() == [
        [0, 0, 0, -1, -1, 1, 1, 2, 2],
        [0, 0, 0, 1, 1, -2, -2, -2, -2],
    ]


def test_a_text_that_the_guide_cannot_place() -> None:
    """A text with too many letters has no guide; the others of the batch have theirs."""
    model = guided_model()
    audio = [noise(0.3, 1), noise(1.0, 2)]
    frames = model.encoder.frames(len(audio[0]))
    text = model.tokenizer.encode("ab" * (frames // 2))  # as many letters as frames
    tight = Transcript(text.words, text.tokens[:frames], text.token_words[:frames])
    doubled = Transcript(tight.words, (tight.tokens[0], *tight.tokens[:-1]), tight.token_words)
    other = model.tokenizer.encode("so it is")
    pipeline = Pipeline(model)
    emissions = pipeline.emitter(["a", "b"], audio, {"ctc", "ottc"})
    targets = Targets.from_lists([list(doubled.tokens), list(other.tokens)])
    guide = pipeline.placer.guided(["a", "b"], emissions, targets, 0.0).guide
    assert guide is not None
    assert not guide.carried[0].any()
    assert guide.carried[1].any()


def test_a_guide_that_is_not_there() -> None:
    with pytest.raises(ModelError, match="'cct'"):
        guided_model("cct")
    model = model_of_characters()
    with pytest.raises(ModelError, match="needs an aligner"):
        Model(model.encoder, HEADS, model.tokenizer, replace(model.decoding, guide="ctc"))
