"""Audio and a model to alignments: small random models, hand computations, and what cannot be aligned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_ctc.align import CTCViterbi

from isotone.alignment import Alignment, AlignmentError
from isotone.interfaces import Decoder
from isotone.kernels.paths import coupling_from_paths
from isotone.model import DecodingConfig, Model, ModelError
from isotone.model.encoder import SpeechEncoder
from isotone.pipeline import Pipeline
from isotone.pipeline.placing import PHONE_S, on_grid
from isotone.pipeline.result import Result, blank_frames
from isotone.pipeline.scores import token_scores
from isotone.pipeline.windows import Windows
from isotone.text.normalize import Word
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer, Transcript
from isotone.types import Coupling, Emissions, FramePath, Grid, Targets
from tests.pipeline.parts import watch
from tests.tiny_models import ENCODER, LETTERS, PHONES

HEADS = {
    "ctc": {"name": "ctc"},
    "ottc": {"name": "ottc", "reads": "features", "layers": 1, "width": 8},
}
CHARACTERS = ["<pad>", "<unk>", "|", *LETTERS]


def model_of_characters(times: str = "ottc", aligner: str = "segmental") -> Model:
    torch.manual_seed(0)
    reading = DecodingConfig("ctc", {"name": "ctc-greedy"}, times, {"name": aligner})
    model = Model(SpeechEncoder(ENCODER), HEADS, CharacterTokenizer(CHARACTERS), reading)
    with torch.no_grad():
        model.heads["ctc"].lm_head.weight.mul_(20)  # so that it says many labels
    return model


def model_of_phones(silence: str | None = "sil") -> Model:
    torch.manual_seed(0)
    reading = DecodingConfig("ctc", {"name": "ctc-greedy"}, "", {"name": "segmental"})
    return Model(
        SpeechEncoder(ENCODER), {"ctc": {"name": "ctc"}}, PhoneTokenizer(PHONES, None, silence), reading
    )


def noise(seconds: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.1, round(seconds * 16_000)).astype(np.float32)


@pytest.fixture(scope="module")
def characters() -> Pipeline:
    return Pipeline(model_of_characters())


@pytest.fixture(scope="module")
def phones() -> Pipeline:
    return Pipeline(model_of_phones())


def check_times(alignment: Alignment, seconds: float) -> None:
    """In order, inside the audio, not empty; every word covers the tokens that lie in it."""
    assert alignment.duration == seconds
    for tier in alignment.tiers:
        times = [t for s in tier for t in (s.start, s.end)]
        assert times == sorted(times)
        assert all(0 <= t <= seconds for t in times)
        assert all(s.end > s.start for s in tier)
        assert all(s.score is not None and s.score <= 0 for s in tier)
        assert all(s.confidence is not None and 0 <= s.confidence <= 1 for s in tier)


def letters_in(result: Result, word: int) -> str:
    segment = result.alignment.tier("words").segments[word]
    return "".join(
        s.label
        for s in result.alignment.tier("characters")
        if segment.start <= s.start and s.end <= segment.end
    )


@settings(max_examples=15, deadline=None)
@given(
    words=st.lists(st.text(LETTERS[:-1], min_size=1, max_size=6), min_size=1, max_size=4),
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
            assert (a.text, a.frames, a.blank_frames) == (b.text, b.frames, b.blank_frames)
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
    # text from one head, times from the other
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
    for row in targets.tolist():  # around every word there may be one, whether it was heard or not
        spelt = "".join(CHARACTERS[t] for t in row)
        assert spelt == "|" + "|".join(spelt.strip("|").split("|")) + "|"
        assert "||" not in spelt
    spy.skips_optional = False
    pipeline.transcribe("a", noise(1.0, 1))
    assert spy.seen[-1].optional is not None
    assert not spy.seen[-1].optional.any()


def test_a_decoders_own_times_and_others(caplog: pytest.LogCaptureFixture) -> None:
    """Without a head for times the decoder's count, unless an aligner or a head is asked for."""
    model, samples = model_of_characters(times="", aligner="ctc"), noise(1.0)

    def times_of(pipeline: Pipeline) -> list[tuple[float, float]]:
        return [(s.start, s.end) for s in pipeline.transcribe("u", samples).alignment.tier("characters")]

    own = times_of(Pipeline(model))
    assert times_of(Pipeline(model, aligner="segmental")) != own
    assert times_of(Pipeline(model, times="ottc")) != own
    assert (
        times_of(Pipeline(model, times="ctc")) == own
    )  # the best CTC path of the greedy text is the greedy path
    greedy = {"name": "segmental", "min_frames": 9}  # more than there are: the decoder's own times are kept
    assert times_of(Pipeline(model, times="ottc", aligner=greedy)) == own
    assert "u: its tokens" in caplog.text
    text = model.tokenizer.encode("so it is")
    with torch.inference_mode():
        ottc = model(torch.from_numpy(samples)[None], torch.tensor([16_000]))["ottc"]
    targets = Targets.from_lists([list(text.tokens)])
    pipeline = Pipeline(model, times="ottc", aligner="segmental")
    scores = [s.score for s in pipeline.align("u", samples, text).alignment.tier("characters")]
    kept = [i for i, t in enumerate(text.tokens) if CHARACTERS[t] != "|"]
    expected = token_scores(ottc.log_probs(), targets, pipeline.aligner(ottc, targets))[0, kept]
    np.testing.assert_allclose(scores, expected.tolist(), rtol=1e-4)  # scores of the head the times are of
    with pytest.raises(LookupError, match=r"no head 'otcc'.*: ctc, ottc"):
        Pipeline(model, times="otcc")
    with pytest.raises(LookupError, match="No aligner named 'segmentl'"):
        Pipeline(model, aligner="segmentl")


@pytest.mark.parametrize("guide", ["", "ctc"])
def test_another_head_for_the_times_has_an_aligner_that_fits_it(guide: str) -> None:
    """The model's own aligner asks for what only its own timing head has, such as label priors."""
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
    )  # what is asked for counts
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


def guided_model(guide: str = "ctc") -> Model:
    """As :func:`model_of_characters`, with a guide."""
    model = model_of_characters()
    if guide:
        reading = replace(model.decoding, guide=guide, guide_aligner={"name": "ctc"})
        model = Model(model.encoder, HEADS, model.tokenizer, reading)
        model.load_state_dict(model_of_characters().state_dict())
    return model


def starts(result: Result) -> list[float]:
    return [s.start for s in result.alignment.tier("characters")]


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
    """Half as long and later by one: every frame takes what is heard at its middle."""
    heard = Emissions(torch.zeros(2, 4, 3), torch.tensor([4, 2]), Grid(0.02, 0.01))
    timing = Emissions(torch.zeros(2, 9, 3), torch.tensor([9, 5]), Grid(0.01))
    tokens = torch.tensor([[0, -1, 1, 2], [0, 1, -1, -1]])
    assert on_grid(FramePath(tokens), heard, timing).tokens.tolist() == [
        [0, 0, 0, -1, -1, 1, 1, 2, 2],
        [0, 0, 0, 1, 1, -2, -2, -2, -2],
    ]


def test_a_text_that_the_guide_cannot_place() -> None:
    """Too many letters for the frames: nothing is known of it, and of the others what there is."""
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


def test_empty_hypotheses(characters: Pipeline) -> None:
    """Nothing recognised is an answer: empty tiers, and the others of the batch as they were."""
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
    assert empty.score < 0  # the model would rather have said something
    assert [(t.name, len(t)) for t in empty.alignment.tiers] == [("words", 0), ("characters", 0)]
    assert other.alignment == both[1].alignment
    assert other.alignment.tier("words").segments

    quiet = model_of_characters()
    with torch.no_grad():
        quiet.heads["ctc"].lm_head.bias[0] = 1e6
    for result in Pipeline(quiet).transcribe_batch(["a", "b"], audio):
        assert [(t.name, len(t)) for t in result.alignment.tiers] == [("words", 0), ("characters", 0)]
        assert (result.blank_frames, result.score) == (result.frames, 0.0)
    quiet = model_of_phones()
    with torch.no_grad():
        quiet.heads["ctc"].lm_head.bias[0] = 1e6
    alignment = Pipeline(quiet).transcribe("a", audio[0]).alignment
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


# Silence between words.


def transcript(phones: Sequence[str], owners: Sequence[int | None]) -> Transcript:
    numbers = sorted({o for o in owners if o is not None})
    words = tuple(Word(f"w{i}", f"w{i}", 3 * i, 3 * i + 2) for i in numbers)
    return Transcript(words, tuple(PHONES.index(p) for p in phones), tuple(owners))


def asked(pipeline: Pipeline, given_: Transcript) -> str:
    """What an aligner is asked to align; (sil) may be left out."""
    placer, recogniser = pipeline.placer, pipeline.recogniser
    spy = watch(pipeline)
    try:
        pipeline.align("u", noise(1.0), given_)
    finally:
        pipeline.placer, pipeline.recogniser = placer, recogniser
    targets, *_ = spy.seen  # then with stars at the ends
    assert targets.optional is not None
    rows = zip(targets.tolist()[0], targets.optional[0].tolist())
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
    assert asked(phones, transcript(phones_.split(), owners)) == expected


def test_without_a_silence_label_nothing_is_put_in() -> None:
    assert asked(Pipeline(model_of_phones(None)), transcript(["s", "iy", "t"], [0, 0, 1])) == "s iy t"


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


# Hand computations.


def test_token_scores() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(2, 6, 4, generator=rng)
    emissions = Emissions(logits, torch.tensor([6, 4]), Grid(0.02))
    targets = Targets.from_lists([[1, 3, 2], [2, 2]])
    source = torch.tensor([[0, 1, 1, 2, 4], [0, 1, 3, 3, 3]])
    target = torch.tensor([[0, 0, 1, 1, 1], [0, 0, 1, 1, 1]])
    mass = torch.tensor([[0.2, 0.1, 0.3, 0.25, 0.15], [1.0, 1.0, 1.0, 0.0, 0.0]])
    coupling = Coupling(source, target, mass, emissions.lengths, targets.lengths)
    scores = token_scores(emissions.log_probs(), targets, coupling)
    exact = np.exp(logits.double().numpy())
    log_probs = np.log(exact / exact.sum(-1, keepdims=True))
    for row, labels in enumerate(targets.tolist()):
        for number, label in enumerate(labels):
            pairs = [(m, s) for s, t, m in zip(source[row], target[row], mass[row].tolist()) if t == number]
            total = sum(m for m, _ in pairs)
            expected = sum(m * log_probs[row, s, label] for m, s in pairs) / total if total else 0.0
            assert float(scores[row, number]) == pytest.approx(expected, rel=1e-5, abs=1e-7)
    assert (scores <= 0).all()
    assert scores[0, 2] == 0  # nothing is coupled to it


def test_blank_frames() -> None:
    best = torch.tensor([[0, 1, 2, 2, 0, 0], [2, 0, 1, 0, 0, 0]])
    logits = torch.nn.functional.one_hot(best, 4).float()
    emissions = Emissions(logits, torch.tensor([5, 3]), Grid(0.02), blank=0)
    assert blank_frames(emissions).tolist() == [2, 1]
    assert blank_frames(emissions, 2).tolist() == [4, 2]
    assert blank_frames(Emissions(logits, torch.tensor([5, 3]), Grid(0.02), blank=1)).tolist() == [1, 1]
    assert CharacterTokenizer(CHARACTERS).delimiter_number == 2
    assert CharacterTokenizer(["<pad>", "a"]).delimiter_number is None
    assert PhoneTokenizer(PHONES).delimiter_number is None


def test_blank_and_delimiter_frames_of_a_result(characters: Pipeline) -> None:
    samples = noise(1.5)
    with torch.inference_mode():
        logits = characters.model(torch.from_numpy(samples)[None], torch.tensor([24_000]))[
            characters.times
        ].logits
    best = logits[0].argmax(-1)
    result = characters.transcribe("u", samples)
    assert result.blank_frames == int(((best == 0) | (best == 2)).sum())
    assert result.frames == len(best)


def test_device_is_where_the_model_runs() -> None:
    pipeline = Pipeline(model_of_characters(), device="cpu")
    assert not pipeline.model.training
    with pytest.raises(RuntimeError, match="nosuchdevice"):
        Pipeline(model_of_characters(), device="nosuchdevice")
