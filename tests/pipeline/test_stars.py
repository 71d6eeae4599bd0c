"""Stars: in texts, between the words of a text, and in alignments by every aligner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone import format as files
from isotone.pipeline import Pipeline, stars
from isotone.pipeline.stars import STAR, STAR_NUMBER
from isotone.pipeline.texts import TextToAlign
from isotone.text.normalize import TextError
from isotone.text.options import TextOptions
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer
from isotone.types import Emissions
from tests.pipeline.parts import HOP_S, SPELT, emissions_of, give, phone_model, shown, watch
from tests.tiny_models import LETTERS, PHONES, isotone, save_character_model, save_noise

CHARACTERS = CharacterTokenizer(["<pad>", "<unk>", "|", *LETTERS])


# In texts


def test_a_text_without_stars_is_the_tokenizers() -> None:
    for text in ("so * it", "so*", "*so* it"):
        assert (stars.encode(CHARACTERS, text) == CHARACTERS.encode(text)) == (text != "so * it")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so * it", "s o * i t"),
        ("* so <star> <star> it *", "* s o * i t *"),
        ("so it, * then", "s o | i t * t h e n"),
        ("so * - * it", "s o * i t"),
    ],
)
def test_stars_in_texts(text: str, expected: str) -> None:
    transcript = stars.encode(CHARACTERS, text)
    assert shown(transcript, CHARACTERS.labels) == expected
    for token, owner in zip(transcript.tokens, transcript.token_words):
        if token == STAR_NUMBER:
            assert owner is not None
            assert transcript.words[owner].text == STAR
    for word in transcript.words:
        assert text[word.start : word.end] == (
            word.text if word.text != STAR else text[word.start : word.end]
        )
        assert word.text != STAR or text[word.start : word.end].startswith((STAR, "<star>"))


def test_silences_beside_a_star_are_left_out() -> None:
    assert shown(stars.encode(SPELT, "sit * at"), PHONES) == "sil s iy t * aa t sil"
    assert shown(stars.encode(PhoneTokenizer(PHONES, None, "sil"), "sil s * t"), PHONES) == "sil s * t"


@pytest.mark.parametrize("text", ["*", "* <star>", " * , * "])
def test_stars_alone_cannot_be_aligned(text: str) -> None:
    with pytest.raises(TextError, match="stars in it, and no words"):
        stars.encode(CHARACTERS, text)


@settings(max_examples=40, deadline=None)
@given(
    words=st.lists(
        st.one_of(st.text(LETTERS[:-1], min_size=1, max_size=4), st.just(STAR)), min_size=1, max_size=6
    ),
    silences=st.booleans(),
)
def test_extra_speech_goes_around_every_word(words: list[str], silences: bool) -> None:
    if all(word == STAR for word in words):
        return
    given_ = stars.encode(CHARACTERS, " ".join(words))
    found, optional = stars.with_extra_speech(TextToAlign(given_, [False] * len(given_.tokens)))
    kept = [(t, w) for t, w, o in zip(found.tokens, found.token_words, optional) if not o]
    assert kept == list(zip(given_.tokens, given_.token_words)), "what was asked for stays"
    # every word lies between two stars, its own or put in, and no two stars touch
    spoken = [w for t, w in zip(found.tokens, found.token_words) if w is not None]
    runs = [w for i, w in enumerate(spoken) if i == 0 or spoken[i - 1] != w]
    starred = [found.words[w].text == STAR for w in runs]
    assert starred == [i % 2 == 0 for i in range(len(starred))]
    assert starred[-1]


def test_extra_speech_has_pauses_on_both_sides() -> None:
    pipeline = Pipeline(phone_model(), aligner="segmental", extra_speech=True)
    spy = watch(pipeline)
    pipeline.align("u", np.zeros(16_000, np.float32), stars.encode(SPELT, "sit * at"))
    (targets,) = spy.seen
    assert targets.optional is not None
    names = [[*PHONES, "*"][token] for token in targets.labels[0].tolist()]
    tokens = " ".join(f"({n})" if o else n for n, o in zip(names, targets.optional[0].tolist()))
    assert tokens == "(sil) (*) (sil) s iy t (sil) * (sil) aa t (sil) (*) (sil)"


# In alignments


def aligned(pipeline: Pipeline, emissions: Emissions, text: str) -> list[tuple[str, int, int]]:
    """Words with their frames, as the pipeline makes them of these emissions."""
    give(pipeline, emissions)
    result = pipeline.align("u", np.zeros(int(emissions.lengths[0]) * 320, np.float32), pipeline.encode(text))
    assert STAR not in result.alignment.tier("phones").labels
    for segment in result.alignment.tier("words"):
        starred = segment.label == STAR or not segment.label.isascii()
        assert (segment.score is None) == starred
        assert (segment.confidence is None) == starred
    return [(s.label, round(s.start / HOP_S), round(s.end / HOP_S)) for s in result.alignment.tier("words")]


@pytest.mark.parametrize(
    "aligner", ["ctc", "ctc-torchaudio", "segmental", {"name": "segmental", "subframe": True}]
)
def test_a_star_takes_what_the_text_does_not_have(aligner: str | dict) -> None:
    pipeline = Pipeline(phone_model(), aligner=aligner)
    peaky = isinstance(aligner, str) and aligner.startswith("ctc")
    if peaky:  # spikes with blanks between: what lies between words is nobody's
        path = ".__s__i__t__tt_a_s_i__a__t__."
        words = aligned(pipeline, emissions_of(path), "sit * at")
        assert [w for w, *_ in words] == ["sit", "*", "at"]
        (_, first, end), (_, star, star_end), (_, second, last) = words
        assert (first, end, second, last) == (3, 10, 22, 26)
        assert 10 <= star <= 12
        assert 20 <= star_end <= 22
        return
    words = aligned(pipeline, emissions_of("..sssiiittt.iiiaasss..aaattt..."), "sit * at")
    assert words == [("sit", 2, 11), ("*", 12, 20), ("at", 22, 28)]


@pytest.mark.parametrize("aligner", ["ctc", "segmental"])
def test_words_without_labels_have_their_time(aligner: str) -> None:
    """Consecutive stars share their time in proportion to the lengths of their words."""
    pipeline = Pipeline(phone_model(), aligner=aligner)
    path = (
        "..sssiiittt.iiaassiiaass.aaattt..." if aligner == "segmental" else "__s__i__t__iiaassiiaass__a__t__"
    )
    for text, words in (
        ("sit 你好 at", ["sit", "你好", "at"]),
        ("sit 你 好吗 at", ["sit", "你", "好吗", "at"]),
    ):
        found = aligned(pipeline, emissions_of(path), text)
        assert [w for w, *_ in found] == words
        assert found[1][1] <= 13
        assert found[-2][2] >= 21
        assert "你" in pipeline.encode(text).notes[0]
    (_, start, middle), (_, again, end) = found[1:3]
    assert middle == again
    assert 2 * (middle - start) == pytest.approx(end - middle, abs=1.5)


def test_stars_in_a_row_share_their_time() -> None:
    transcript = replace(SPELT.encode("at"), tokens=(-1, 1, -1, 2, -1), token_words=(0, None, 1, 2, 3))
    words = tuple(replace(SPELT.encode("at").words[0], text=text) for text in ("你", "好吗", "at", "世"))
    transcript = replace(transcript, words=words)
    times = [(0.0, 1.0), (1.0, 1.0), (1.0, 9.0), (9.0, 10.0), (10.0, 11.0)]
    assert stars.shared_out(transcript, times) == [(0.0, 3.0), (1.0, 1.0), (3.0, 9.0), *times[3:]]
    times[1:3] = [(1.0, 2.0), (2.0, 9.0)]
    assert stars.shared_out(transcript, times) == times, "a pause between them is where one ends"


def test_extra_speech_is_not_looked_for_beside_words_without_labels() -> None:
    given_ = stars.encode(SPELT, "sit 你 at")
    found, _ = stars.with_extra_speech(TextToAlign(given_, [False] * len(given_.tokens)))
    assert shown(found, PHONES) == "sil * s iy t * aa t sil *"


def test_a_text_is_read_as_the_pipeline_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.dict").write_text("zoo S IY1\n")
    model = phone_model()
    plain = Pipeline(model)
    told = Pipeline(
        model, text=TextOptions(language="hsb", dictionaries=(tmp_path / "x.dict",), keep_markup=True)
    )
    for pipeline, text, expected in (
        (plain, "zoo at", "* aa t sil"), (told, "zoo at", "sil s iy aa t sil"),
        (plain, "[laughs] at", "sil aa t sil"), (told, "[laughs] at", "* aa t sil"),
    ):  # fmt: skip
        assert shown(pipeline.encode(text), PHONES) == expected
    assert "numbers that are not spelled out in hsb: '2'" in told.encode("2 at").notes[0]
    assert (model.tokenizer.language, model.tokenizer.pronouncer) == ("en", SPELT.pronouncer)


def test_a_star_at_the_ends() -> None:
    pipeline = Pipeline(phone_model(), aligner="segmental")
    assert aligned(pipeline, emissions_of("tttaa..sssiiittt.iiisss"), "* sit <star>") == [
        ("*", 0, 5), ("sit", 7, 16), ("*", 17, 23),
    ]  # fmt: skip


@pytest.mark.parametrize("aligner", ["ctc", "segmental"])
def test_extra_speech_is_found_where_it_is_and_nowhere_else(aligner: str) -> None:
    pipeline = Pipeline(phone_model(), aligner=aligner, extra_speech=True)
    frames = "..sssiiittt..aaattt.." if aligner == "segmental" else "._s_i_t_._a_t__."
    assert [w for w, *_ in aligned(pipeline, emissions_of(frames), "sit at")] == ["sit", "at"]
    for extra, expected in (
        ("..sssiiittt..tttaassiii..aaattt...", ["sit", "*", "at"]),
        ("iiittaa..sssiiittt..aaattt...", ["*", "sit", "at"]),
        ("..sssiiittt..aaattt..iiisssiii..", ["sit", "at", "*"]),
    ):
        spikes = "".join(c if i % 3 == 0 or c == "." else "_" for i, c in enumerate(extra))
        found = aligned(pipeline, emissions_of(extra if aligner == "segmental" else spikes), "sit at")
        assert [w for w, *_ in found] == expected
    without = Pipeline(phone_model(), aligner=aligner)
    assert [w for w, *_ in aligned(without, emissions_of(frames), "sit at")] == ["sit", "at"]


def test_a_dearer_star_takes_less() -> None:
    """A badly recognised word keeps its frames unless a star costs less."""
    frames = emissions_of("..sssiiittt..tttaasss..", sure=4.0)
    found = {}
    for cost in (0.5, 6.0):
        pipeline = Pipeline(phone_model(), aligner="segmental", extra_speech=True, star_cost=cost)
        found[cost] = [w for w, *_ in aligned(pipeline, frames, "sit at sit")]
    assert STAR in found[0.5]
    assert found[6.0] == ["sit", "at", "sit"]


def test_the_score_of_a_star() -> None:
    emissions = replace(
        emissions_of("s_a"), logits=torch.randn(1, 3, 6), log_prior=torch.log_softmax(torch.randn(6), 0)
    )
    for cost in (0.0, 2.0):
        found = stars.with_star(emissions, cost)
        speech = 1 - emissions.log_probs().exp()[..., 0]
        torch.testing.assert_close(found.logits[..., 6], emissions.logits.amax(-1) - cost * speech)
        assert torch.equal(found.logits[..., :6], emissions.logits)
        assert found.log_prior is not None
        assert found.log_prior.shape == (7,)
        assert found.without_prior(0.5).logits.shape == (1, 3, 7)


def test_options_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="TorchaudioViterbi cannot"):
        Pipeline(phone_model(), aligner="ctc-torchaudio", extra_speech=True)
    with pytest.raises(ValueError, match="star_cost of 0 nats"):
        Pipeline(phone_model(), star_cost=-1.0)


def test_stars_on_the_command_line(tmp_path: Path) -> None:
    model = save_character_model(tmp_path / "model")
    save_noise(tmp_path / "u.wav", 2.0, text="so * it is")
    isotone("align", tmp_path / "u.wav", "-m", model, "-f", "json", "-f", "textgrid", "-o", tmp_path / "out")
    found = files.read(tmp_path / "out/u.json")
    assert found.tier("words").labels == ["so", "*", "it", "is"]
    assert "".join(found.tier("characters").labels) == "soitis"
    (tmp_path / "u.txt").write_text("so it is")
    options = ("--extra-speech", "--star-cost", "0", "-f", "json", "-o", tmp_path / "extra")
    isotone("align", tmp_path / "u.wav", "-m", model, *options)
    words = files.read(tmp_path / "extra/u.json").tier("words").labels
    assert [w for w in words if w != STAR] == ["so", "it", "is"]
    assert STAR in words  # of noise nothing is the text
