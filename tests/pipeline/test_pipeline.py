"""Audio and a model to alignments: small random models, and input that cannot be aligned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import AlignmentError
from isotone.interfaces import Decoder
from isotone.kernels.paths import coupling_from_paths
from isotone.pipeline import Pipeline
from isotone.pipeline.result import Result
from isotone.text.abbreviations import ABBREVIATIONS
from isotone.text.tokenizer import CharacterTokenizer
from isotone.types import Coupling, Emissions, Targets
from tests.pipeline.parts import CHARACTERS, check_times, model_of_characters, model_of_phones, noise, watch
from tests.tiny_models import LETTERS

#: Words that are said as they are written.
WORDS = st.text(LETTERS[:-1], min_size=1, max_size=6).filter(lambda word: word not in ABBREVIATIONS)


def letters_in(result: Result, word: int) -> str:
    segment = result.alignment.tier("words").segments[word]
    return "".join(
        s.label
        for s in result.alignment.tier("characters")
        if segment.start <= s.start and s.end <= segment.end
    )


@settings(max_examples=15, deadline=None)
@given(
    words=st.lists(WORDS, min_size=1, max_size=4),
    seconds=st.floats(0.7, 2.0),
    seed=st.integers(0, 99),
)
def test_alignment_of_any_text(words: list[str], seconds: float, seed: int, characters: Pipeline) -> None:
    samples = noise(seconds, seed)
    result = characters.align("u", samples, characters.model.tokenizer.encode(" ".join(words)))
    check_times(result.alignment, len(samples) / 16_000)
    assert result.alignment.tier("words").labels == words
    assert "".join(result.alignment.tier("characters").labels) == "".join(words)
    assert [letters_in(result, i) for i in range(len(words))] == words
    assert result.text == " ".join(words)
    assert result.frames == characters.model.encoder.frames(len(samples))


def test_times_and_scores_are_the_aligners(characters: Pipeline) -> None:
    samples = noise(1.0)
    transcript = characters.model.tokenizer.encode("so it is")
    result = characters.align("u", samples, transcript)
    with torch.inference_mode():
        head = characters.model(torch.from_numpy(samples)[None], torch.tensor([16_000]))["ottc"]
    coupling = characters.aligner(head, Targets.from_lists([list(transcript.tokens)]))
    frames = coupling.target[0].tolist()
    log_probs = head.log_probs()[0]
    expected = []
    for number, token in enumerate(transcript.tokens):
        own = [int(s) for s, t in zip(coupling.source[0], frames) if t == number]
        if own and CHARACTERS[token] != "|":
            score = sum(float(log_probs[f, token]) for f in own) / len(own)
            expected.append(
                (CHARACTERS[token], head.grid.seconds(own[0]), head.grid.seconds(own[-1] + 1), score)
            )
    tier = result.alignment.tier("characters")
    assert [s.label for s in tier] == [row[0] for row in expected]
    np.testing.assert_allclose(
        [(s.start, s.end, s.score) for s in tier], [row[1:] for row in expected], rtol=1e-5, atol=1e-5
    )
    # each token's label against the best label of its frames; delimiters count, and the path takes every frame
    ratios = [
        np.mean(
            [float(log_probs[f, token] - log_probs[f].max()) for f, t in enumerate(frames) if t == number]
        )
        for number, token in enumerate(transcript.tokens)
    ]
    assert len(frames) == head.lengths[0]
    assert result.score == result.alignment.score
    assert result.score == pytest.approx(np.mean(ratios), rel=1e-4)


def test_batch_is_one_at_a_time(characters: Pipeline) -> None:
    audio = [noise(s, i) for i, s in enumerate((0.9, 1.6, 1.2))]
    texts = [characters.model.tokenizer.encode(t) for t in ("one", "two three", "a b c")]
    ids = ["x", "y", "z"]
    for together, alone in (
        (characters.transcribe_batch(ids, audio), [characters.transcribe(i, a) for i, a in zip(ids, audio)]),
        (
            characters.align_batch(ids, audio, texts),
            [characters.align(i, a, t) for i, a, t in zip(ids, audio, texts)],
        ),
    ):
        for a, b in zip(together, alone):
            assert a.alignment.id == b.alignment.id
            assert (a.text, a.frames, a.quiet) == (b.text, b.frames, b.quiet)
            assert a.score == pytest.approx(b.score, rel=1e-3)
            for ours, theirs in zip(a.alignment.tiers, b.alignment.tiers):
                assert ours.labels == theirs.labels
                assert [(s.start, s.end) for s in ours] == [(s.start, s.end) for s in theirs]


def test_recognition(characters: Pipeline) -> None:
    samples = noise(1.5)
    result = characters.transcribe("u", samples)
    check_times(result.alignment, 1.5)
    assert result.alignment.tier("words").labels == result.text.split()
    assert len(result.text) > 5
    assert "".join(result.alignment.tier("characters").labels) == result.text.replace(" ", "")


def test_recognised_text_is_of_one_head_and_times_of_the_other(characters: Pipeline) -> None:
    samples = noise(1.5)
    result = characters.transcribe("u", samples)
    with torch.inference_mode():
        heads = characters.model(torch.from_numpy(samples)[None], torch.tensor([24_000]))
    targets, own = characters.decoder(heads["ctc"])
    aligned = characters.aligner(heads["ottc"], targets)
    assert characters.model.tokenizer.decode(targets.tolist()[0]) == result.text
    assert not torch.equal(aligned.spans(), own.spans())
    first = result.alignment.tier("characters").segments[0]
    assert first.start == pytest.approx(heads["ottc"].grid.seconds(float(aligned.spans()[0, 0, 0])))


def test_recognised_pauses_need_no_frames() -> None:
    model = model_of_characters()
    model.tokenizer = CharacterTokenizer(CHARACTERS, pauses=True)
    pipeline = Pipeline(model)
    spy = watch(pipeline)
    spy.skips_optional = True
    pipeline.transcribe_batch(["a", "b"], [noise(1.0, 1), noise(1.2, 2)])
    targets, *_ = spy.seen  # then with stars at the ends
    assert targets.optional is not None
    silence = CHARACTERS.index("|")
    assert torch.equal(targets.optional, targets.labels == silence)
    for row in targets.tolist():  # around every word there may be one, in the emissions or not
        spelt = "".join(CHARACTERS[t] for t in row)
        assert spelt == "|" + "|".join(spelt.strip("|").split("|")) + "|"
        assert "||" not in spelt
    spy.skips_optional = False
    pipeline.transcribe("a", noise(1.0, 1))
    assert spy.seen[-1].optional is None


def test_empty_hypotheses(characters: Pipeline) -> None:
    """An empty hypothesis has empty tiers, and does not change the others of the batch."""
    audio = [noise(1.0, 1), noise(1.2, 2)]
    both = characters.transcribe_batch(["a", "b"], audio)

    class FirstIsEmpty(Decoder):
        def __call__(self, emissions: Emissions) -> tuple[Targets, Coupling]:
            rows = [[], *characters.decoder(emissions)[0].tolist()[1:]]
            targets = Targets.from_lists(rows)
            paths = torch.full(emissions.logits.shape[:2], -1)
            paths[1, 0] = 0
            return targets, coupling_from_paths(paths, emissions.lengths, targets.lengths)

    pipeline = Pipeline(characters.model)
    pipeline.recogniser = replace(pipeline.recogniser, decoder=FirstIsEmpty())
    empty, other = pipeline.transcribe_batch(["a", "b"], audio)
    assert empty.text == ""
    assert empty.score < 0  # the model's best labels are not blanks
    assert [(t.name, len(t)) for t in empty.alignment.tiers] == [("words", 0), ("characters", 0)]
    assert other.alignment == both[1].alignment
    assert other.alignment.tier("words").segments


def test_a_model_that_gives_blanks_alone_recognises_nothing() -> None:
    quiet, audio = model_of_characters(), [noise(1.0, 1), noise(1.2, 2)]
    with torch.no_grad():
        quiet.heads["ctc"].lm_head.bias[0] = 1e6
    for result in Pipeline(quiet).transcribe_batch(["a", "b"], audio):
        assert [(t.name, len(t)) for t in result.alignment.tiers] == [("words", 0), ("characters", 0)]
        assert (result.quiet, result.score) == (((0, result.frames),), 0.0)


def test_a_model_of_phones_that_gives_blanks_alone_has_no_tier_of_words() -> None:
    quiet = model_of_phones()
    with torch.no_grad():
        quiet.heads["ctc"].lm_head.bias[0] = 1e6
    alignment = Pipeline(quiet).transcribe("a", noise(1.0, 1)).alignment
    assert [(t.name, len(t)) for t in alignment.tiers] == [("phones", 0)]


def test_what_cannot_be_aligned(characters: Pipeline) -> None:
    text = characters.model.tokenizer.encode
    with pytest.raises(AlignmentError, match=r"blip: 0\.020 s of audio is too short"):
        characters.transcribe("blip", noise(0.02))
    with pytest.raises(AlignmentError, match="blip"):
        characters.align_batch(["fine", "blip"], [noise(1.0), noise(0.02)], [text("a"), text("a")])
    with pytest.raises(AlignmentError, match=r"wordy: .*20 frames, got 11"):
        characters.align("wordy", noise(0.25), text("abcdefghijklmnopqrst"))
    with pytest.raises(AlignmentError, match=r"wordy: .*20 frames, got 11"):
        characters.align_batch(
            ["fine", "wordy", "too"],
            [noise(1.0), noise(0.25), noise(1.0)],
            [text("a b"), text("abcdefghijklmnopqrst"), text("c")],
        )


def test_device_is_where_the_model_runs() -> None:
    pipeline = Pipeline(model_of_characters(), device="cpu")
    assert not pipeline.model.training
    with pytest.raises(RuntimeError, match="nosuchdevice"):
        Pipeline(model_of_characters(), device="nosuchdevice")
