"""Choosing among hypotheses: every one of them by brute force, and through the pipeline."""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import combinations, groupby, pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from isotone_ctc.beam import BeamCTC
from isotone_ottc.align import SegmentalViterbi
from isotone_ottc.transport import Transport
from torch import Tensor

from isotone.model import Model, ModelError
from isotone.pipeline import Pipeline, rescoring
from isotone.pipeline.rescoring import choose, path_scores, rescored, stretches
from isotone.pipeline.windows import Windows
from isotone.types import Emissions, Grid, Targets
from tests.pipeline.parts import model_of_characters, noise

FRAMES, LABELS = 5, 3  # label 0 is the blank


def emissions(seed: int, frames: int = FRAMES) -> Emissions:
    rng = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(1, frames, LABELS, generator=rng, dtype=torch.float64)
    return Emissions(logits, torch.tensor([frames]), Grid(0.02))


def all_paths(log_probs: Tensor) -> dict[tuple[int, ...], float]:
    """The probability of every label sequence: summed over all paths that CTC reads as it."""
    found: dict[tuple[int, ...], float] = {}
    for path in product(range(LABELS), repeat=len(log_probs)):
        labels = tuple(label for label, _ in groupby(path) if label)
        probability = float(log_probs[torch.arange(len(path)), torch.tensor(path)].sum().exp())
        found[labels] = found.get(labels, 0.0) + probability
    return found


def best_path(log_probs: Tensor, labels: tuple[int, ...]) -> float:
    """The likeliest way to give every label frames of its own, in order; a blank may stand between equal neighbours."""
    best = -np.inf
    between = [((), (0,)) if before == label else ((),) for before, label in pairwise(labels)]
    for blanks in product(*between):
        tokens = [labels[0]]
        for blank, label in zip(blanks, labels[1:]):
            tokens += [*blank, label]
        for cuts in combinations(range(1, len(log_probs)), len(tokens) - 1):
            ends = zip((0, *cuts), (*cuts, len(log_probs)))
            best = max(best, sum(float(log_probs[a:b, t].sum()) for t, (a, b) in zip(tokens, ends)))
    return best


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("weight", [0.1, 0.3, 3.0])
def test_the_best_of_all_label_sequences(seed: int, weight: float) -> None:
    text, timing = emissions(seed), emissions(seed + 100)
    hypotheses = BeamCTC(beam=1000, prune=float("inf")).nbest(text, 1000)[0]
    own = timing.log_probs()[0]

    def score(rows: list[tuple[int, ...]]) -> np.ndarray:
        scores = path_scores(SegmentalViterbi(), timing, Targets.from_lists([list(r) for r in rows]))
        np.testing.assert_allclose(scores, [best_path(own, tuple(r)) for r in rows], rtol=1e-10)
        return scores

    chosen = choose(hypotheses, score, weight)
    totals = {
        labels: np.log(p) + weight * best_path(own, labels)
        for labels, p in all_paths(text.log_probs()[0]).items()
        if labels
    }
    if hypotheses[0].labels:
        assert chosen == max(totals, key=lambda labels: totals[labels])
    else:
        assert chosen == ()


def test_what_is_nothing_and_what_has_no_place() -> None:
    def never(rows: object) -> np.ndarray:
        raise AssertionError(rows)

    assert choose([((), -1.0), ((1,), -2.0)], never, 9.0) == ()  # nothing was heard
    assert choose([((2,), -1.0), ((), -2.0)], never, 9.0) == (2,)
    assert choose([((1,), -1.0), ((2,), -2.0)], lambda rows: np.full(2, -np.inf), 1.0) == (1,)
    assert choose([((1,), -1.0), ((2,), -2.0)], lambda rows: np.array([-np.inf, -90.0]), 1.0) == (2,)


def test_rows_that_are_too_long_and_batches_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    timing, aligner = emissions(0, frames=3), SegmentalViterbi()
    targets = Targets.from_lists([[1, 2], [1, 2, 1, 2], [2], [1, 1]])
    scores = path_scores(aligner, timing, targets)
    own = timing.log_probs()[0]
    assert scores[1] == -np.inf
    np.testing.assert_allclose(
        scores[[0, 2, 3]], [best_path(own, row) for row in ((1, 2), (2,), (1, 1))], rtol=1e-10
    )
    monkeypatch.setattr(rescoring, "_AT_ONCE", 1)
    np.testing.assert_array_equal(path_scores(aligner, timing, targets), scores)


def test_an_aligner_that_does_not_score() -> None:
    def aligner(emissions: Emissions, targets: Targets) -> object:
        return replace(SegmentalViterbi()(emissions, targets), score=None)

    with pytest.raises(ValueError, match="needs an aligner that scores its paths"):
        path_scores(aligner, emissions(0), Targets.from_lists([[1]]))  # type: ignore[arg-type]
    weights = replace(emissions(0), weight_logits=torch.zeros(1, FRAMES, dtype=torch.float64))
    assert np.isfinite(path_scores(Transport(), weights, Targets.from_lists([[1, 2], [1]]))).all()


@given(silent=st.lists(st.booleans(), max_size=60), most=st.integers(2, 20))
def test_stretches_are_cut_within_their_longest_pauses(silent: list[bool], most: int) -> None:
    best = torch.tensor([[int(not s) for s in silent]], dtype=torch.long)
    sample = Emissions(torch.nn.functional.one_hot(best, 2).float(), torch.tensor([len(silent)]), Grid(0.5))
    found = stretches(sample, most / 2)
    assert [t for part in found for t in range(part.start, part.stop)] == list(range(len(silent)))
    for part in found:
        assert part.stop - part.start <= most
        if part.stop == len(silent):
            continue
        low, high = part.start + most // 2, part.start + most
        runs = [list(run) for s, run in groupby(range(low, high), lambda t: silent[t]) if s]
        if runs:
            longest = max(runs, key=len)
            assert part.stop in (longest[len(longest) // 2], longest[(len(longest) - 1) // 2])
        else:
            assert part.stop == high


def test_a_long_recording_is_chosen_stretch_by_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two heads on different grids; rows of different lengths."""
    text = replace(emissions(0, 40), lengths=torch.tensor([40]), grid=Grid(0.02, 0.01))
    timing = replace(emissions(1, 80), grid=Grid(0.01), weight_logits=torch.zeros(1, 80))
    texts = replace(text, logits=torch.cat([text.logits] * 2), lengths=torch.tensor([40, 9]))
    timings = replace(
        timing, logits=torch.cat([timing.logits] * 2), lengths=torch.tensor([80, 18]),
        weight_logits=torch.zeros(2, 80),
    )  # fmt: skip
    monkeypatch.setattr(rescoring, "STRETCH_S", 0.3)
    decoder = BeamCTC()

    def score(stretch: Emissions, rows: list[tuple[int, ...]]) -> np.ndarray:
        return path_scores(SegmentalViterbi(), stretch, Targets.from_lists([list(r) for r in rows]))

    def alone(part: slice, row: int) -> list[int]:
        own = replace(text, logits=text.logits[:, part], lengths=torch.tensor([part.stop - part.start]))
        # frame t of the text ends where frame 2 t + 1 of the other head begins
        first = 2 * part.start + 1 if part.start else 0
        last = 2 * part.stop + 1 if part.stop < texts.lengths[row] else int(timings.lengths[row])
        stretch = Emissions(
            timing.logits[:, first:last], torch.tensor([last - first]), timing.grid,
            weight_logits=torch.zeros(1, last - first),
        )  # fmt: skip
        return list(choose(decoder.nbest(own, 16)[0], lambda rows: score(stretch, rows), 2.0))  # type: ignore[arg-type]

    found = rescored(texts, timings, lambda stretch: decoder.nbest(stretch, 16), score, 2.0)  # type: ignore[arg-type]
    parts = stretches(text, 0.3)
    assert len(parts) > 2
    assert found == [[label for part in parts for label in alone(part, 0)], alone(slice(0, 9), 1)]
    monkeypatch.setattr(rescoring, "STRETCH_S", 0.9)
    assert rescored(text, timing, lambda stretch: decoder.nbest(stretch, 16), score, 2.0) == [
        alone(slice(0, 40), 0)
    ]  # type: ignore[arg-type]


def model(rescore: float = 0.5, **reading: object) -> Model:
    made = model_of_characters()
    made.decoding = replace(
        made.decoding, **{"decoder": {"name": "ctc-beam"}, "rescore": rescore, "hypotheses": 8, **reading}
    )
    return made


def test_the_pipeline_writes_what_both_heads_agree_on() -> None:
    samples = [noise(1.0), noise(0.7, 1)]
    alone, both = Pipeline(model(0.0)), Pipeline(model(20.0))
    tokenizer = both.model.tokenizer
    texts = []
    for audio, result in zip(samples, both.transcribe_batch(["a", "b"], samples)):
        with torch.inference_mode():
            heads = both.model(torch.from_numpy(audio)[None], torch.tensor([len(audio)]))
        totals = {
            tuple(labels): score
            + 20.0 * float(SegmentalViterbi()(heads["ottc"], Targets.from_lists([list(labels)])).score)  # type: ignore[arg-type]
            for labels, score in BeamCTC().nbest(heads["ctc"], 8)[0]
        }
        assert len(totals) == 8
        best = max(totals, key=lambda labels: totals[labels])
        assert result.text == tokenizer.decode(best)
        given = both.align("a", audio, tokenizer.encode(result.text))
        assert result.alignment.tier("words").labels == given.alignment.tier("words").labels
        texts.append(result.text)
    assert texts != [r.text for r in alone.transcribe_batch(["a", "b"], samples)]
    # whoever aligns it, and wherever: the text is the same
    other = Pipeline(model(20.0), aligner="ctc", times="ctc")
    assert [r.text for r in other.transcribe_batch(["a", "b"], samples)] == texts
    # a decoder of one's own that gives one hypothesis is let be
    greedy = Pipeline(model(20.0), decoder="ctc-greedy")
    assert (
        greedy.transcribe("a", samples[0]).text
        == Pipeline(model_of_characters()).transcribe("a", samples[0]).text
    )


def test_audio_in_windows_is_rescored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rescoring, "STRETCH_S", 0.5)
    windows, samples = Windows(1.0, 0.5), noise(4.0)
    both, alone = (Pipeline(model(w), windows=windows) for w in (20.0, 0.0))
    assert windows.cut(4.0)
    emissions = both.emitter(["a"], [samples], both.recogniser.heads)
    (result,) = both.recogniser(["a"], [4.0], emissions)
    assert both.transcribe("a", samples).text == result.text
    assert both.transcribe("a", samples).text != alone.transcribe("a", samples).text


def test_a_text_without_times_is_the_decoders(caplog: pytest.LogCaptureFixture) -> None:
    """With an aligner that can align nothing, text and times are the decoder's."""
    pipeline = Pipeline(model(20.0, aligner={"name": "segmental", "min_frames": 400}))
    with caplog.at_level(logging.WARNING):
        result = pipeline.transcribe("a", noise(1.0))
    assert "The times are the decoder's own" in caplog.text
    plain = Pipeline(model_of_characters(times=""), decoder="ctc-beam").transcribe("a", noise(1.0))
    assert (result.text, result.alignment) == (plain.text, plain.alignment)


def test_readings_that_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"GreedyCTC gives one: take ctc-beam, or reading\.rescore=0"):
        Pipeline(model(decoder={"name": "ctc-greedy"}))
    made = model_of_characters()
    parts = (made.encoder, made.head_specs, made.tokenizer)
    for options, message in (
        ({"rescore": -0.1}, "got -0.1"),
        ({"hypotheses": 0}, r"reading\.hypotheses or more; got 0"),
        ({"rescore": 0.1, "times": ""}, r"reading\.times names none"),
    ):
        with pytest.raises(ModelError, match=message):
            Model(*parts, replace(made.decoding, **options))  # type: ignore[arg-type]
