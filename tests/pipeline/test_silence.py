"""Silence between the words of a text may be skipped by the aligner, and is in no tier."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from isotone.pipeline import Pipeline
from isotone.pipeline.placing import PHONE_S
from isotone.text.normalize import Word
from isotone.text.tokenizer import Transcript
from tests.pipeline.parts import check_times, model_of_phones, noise, watch
from tests.tiny_models import PHONES


def transcript(phones: Sequence[str], owners: Sequence[int | None]) -> Transcript:
    numbers = sorted({o for o in owners if o is not None})
    words = tuple(Word(f"w{i}", f"w{i}", 3 * i, 3 * i + 2) for i in numbers)
    return Transcript(words, tuple(PHONES.index(p) for p in phones), tuple(owners))


def given_tokens(pipeline: Pipeline, given_: Transcript) -> str:
    """Return the tokens that the aligner gets; (sil) may be left out."""
    placer, recogniser = pipeline.placer, pipeline.recogniser
    spy = watch(pipeline)
    try:
        pipeline.align("u", noise(1.0), given_)
    finally:
        pipeline.placer, pipeline.recogniser = placer, recogniser
    targets, *_ = spy.seen  # then with stars at the ends
    marks = [False] * targets.labels.shape[1] if targets.optional is None else targets.optional[0].tolist()
    rows = zip(targets.tolist()[0], marks)
    return " ".join(f"({PHONES[t]})" if optional else PHONES[t] for t, optional in rows)


@pytest.mark.parametrize(
    ("phones_", "owners", "expected"),
    [
        ("s iy t aa", [0, 0, 1, 1], "(sil) s iy (sil) t aa (sil)"),
        # pronounced texts and corpora have silences already: around words they may be skipped
        ("sil s iy sil t aa sil", [None, 0, 0, None, 1, 1, None], "(sil) s iy (sil) t aa (sil)"),
        # the closure of a stop is part of its word, and takes the pause beside it
        ("s sil t iy aa", [0, 0, 0, 0, 1], "(sil) s sil t iy (sil) aa (sil)"),
        ("s iy sil t aa", [0, 0, 1, 1, 1], "(sil) s iy sil t aa (sil)"),
        ("sil s iy sil aa", [None, 0, 0, 0, 1], "(sil) s iy sil aa (sil)"),
        ("sil sil t aa", [None, 0, 0, 0], "sil t aa (sil)"),
        ("t sil", [0, 0], "(sil) t sil"),
        # a phone of no word
        ("s t iy", [0, None, 1], "(sil) s (sil) t (sil) iy (sil)"),
        # no words: the phones are what was asked for
        ("sil s iy t aa", [None] * 5, "sil s iy t aa"),
    ],
)
def test_silences_that_may_be_skipped(
    phones_: str, owners: list[int | None], expected: str, phones: Pipeline
) -> None:
    assert given_tokens(phones, transcript(phones_.split(), owners)) == expected


def test_without_a_silence_label_nothing_is_put_in() -> None:
    assert given_tokens(Pipeline(model_of_phones(None)), transcript(["s", "iy", "t"], [0, 0, 1])) == "s iy t"


def test_silence_is_in_no_tier(phones: Pipeline) -> None:
    given_ = transcript(["s", "sil", "t", "iy", "aa", "s"], [0, 0, 0, 0, 1, 1])
    model = model_of_phones()
    with torch.no_grad():  # silence scores best everywhere, so that none is skipped
        model.heads["ctc"].lm_head.bias[PHONES.index("sil")] = 10.0
    for pipeline in (phones, Pipeline(model)):
        result = pipeline.align("u", noise(1.0), given_)
        check_times(result.alignment, 1.0)
        assert result.alignment.tier("words").labels == ["w0", "w1"]
        assert result.alignment.tier("phones").labels == ["s", "t", "iy", "aa", "s"]
        assert result.text == "w0 w1"
        spans = result.alignment.tier("phones").segments
        word = result.alignment.tier("words").segments[0]
        assert (word.start, word.end) == (spans[0].start, spans[2].end)
    total = sum(s.duration for s in result.alignment.tier("phones"))
    assert total == pytest.approx(5 * PHONE_S, abs=1e-6)  # all the other frames are silence
