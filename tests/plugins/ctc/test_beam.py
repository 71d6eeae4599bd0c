"""The decoder ctc-beam: without a language model beside greedy decoding, with one against enumeration of all paths."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from isotone_ctc.align import CTCViterbi
from isotone_ctc.beam import BeamCTC
from isotone_ctc.decode import GreedyCTC
from isotone_ctc.language_model import MissingLibrary

from isotone import decoders
from isotone.alignment import AlignmentError
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.registry import OptionError
from isotone.testing import check_decoder, sample_batch
from isotone.text.ngram import NGram, estimate
from isotone.text.pieces import train_pieces
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer, Tokenizer
from isotone.types import Emissions, Grid
from tests.tiny_models import LETTERS, save_phone_model

PHONES = PhoneTokenizer(["<pad>", "a", "b", "c"])
CHARACTERS = CharacterTokenizer(["<pad>", "<unk>", "|", *LETTERS])
SENTENCES = [["a", "b"], ["a", "b", "c"], ["c", "c", "a"], ["b"]]


def emissions_of(logits: torch.Tensor, lengths: Sequence[int] | None = None) -> Emissions:
    sizes = torch.tensor(lengths or [logits.shape[1]] * len(logits))
    return Emissions(logits, sizes, Grid(0.02))


def spelt(text: str, frames: int = 2, sure: float = 12.0) -> Emissions:
    """Make emissions of a text's characters, each with some frames and a blank after it."""
    path = [x for c in text.replace(" ", "|") for x in [CHARACTERS.labels.index(c)] * frames + [0]]
    return emissions_of(sure * torch.nn.functional.one_hot(torch.tensor([path]), len(CHARACTERS)).float())


# Without a language model


def test_it_obeys_the_laws_of_decoders() -> None:
    check_decoder(BeamCTC())
    check_decoder(BeamCTC(beam=1, blanks="split"))


def test_times_are_those_of_the_viterbi_path() -> None:
    emissions, _ = sample_batch()
    targets, coupling = BeamCTC(blanks="split")(emissions)
    expected = CTCViterbi(blanks="split")(emissions, targets)
    assert torch.equal(coupling.dense(), expected.dense())
    assert torch.equal(coupling.score, expected.score)


def test_its_sequence_is_at_least_as_likely_as_the_greedy_one() -> None:
    rng = torch.Generator().manual_seed(0)
    emissions = emissions_of(2 * torch.randn(32, 12, 5, generator=rng))
    greedy, found = GreedyCTC()(emissions)[0], BeamCTC(beam=64)(emissions)[0]
    log_probs = emissions.log_probs().transpose(0, 1)
    losses = [
        torch.nn.functional.ctc_loss(log_probs, t.labels, emissions.lengths, t.lengths, reduction="none")
        for t in (greedy, found)
    ]
    assert bool((losses[1] <= losses[0] + 1e-4).all())
    assert bool((losses[1] < losses[0] - 0.1).any())


def test_nbest_lists_come_best_first_and_begin_with_the_result() -> None:
    emissions = emissions_of(torch.randn(2, 9, 4, generator=torch.Generator().manual_seed(1)), [9, 5])
    found = BeamCTC(beam=8).nbest(emissions, 5)
    assert [len(row) for row in found] == [5, 5]
    for row, best in zip(found, BeamCTC(beam=8)(emissions)[0].tolist()):
        assert list(row[0].labels) == best
        assert [h.score for h in row] == sorted((h.score for h in row), reverse=True)
        assert len({h.labels for h in row}) == 5
    assert len(BeamCTC(beam=3).nbest(emissions, 5)[0]) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "beam >= 1"),
        ({"prune": -1.0}, "prune >= 0"),
        ({"alpha": -0.5, "model": "lm.arpa"}, "alpha >= 0"),
        ({"unit": "letters", "model": "lm.arpa"}, "'tokens' or 'words'; got 'letters'"),
        ({"unit": "words"}, "give its file as model"),
        ({"words": "words.txt"}, "give its file as model"),
    ],
)
def test_options_outside_their_range_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BeamCTC(**options)


# With a language model


@pytest.fixture
def flashlight() -> None:
    pytest.importorskip("flashlight.lib.text.decoder.kenlm", reason="flashlight-text is not installed")


def decoder_with(tokenizer: Tokenizer, model: Path, **options: object) -> BeamCTC:
    decoder = BeamCTC(model=model, **options)  # type: ignore[arg-type]
    decoder.use_tokenizer(tokenizer)
    return decoder


def model_of(folder: Path, sentences: Sequence[Sequence[str]], order: int = 2) -> tuple[Path, NGram]:
    found = estimate(sentences, order)
    found.write(folder / "lm.arpa")
    return folder / "lm.arpa", found


def natural_log_prob(model: NGram, sentence: Sequence[str]) -> float:
    words = ["<s>", *sentence, "</s>"]
    return math.log(10) * sum(model.log10_prob(words[i], words[:i]) for i in range(1, len(words)))


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.5), (0.7, 0.0), (0.7, 1.3), (2.0, -0.8)])
@pytest.mark.parametrize("frames", [1, 3, 5])
def test_tokens_have_the_score_of_the_formula(
    flashlight: None, tmp_path: Path, frames: int, alpha: float, beta: float
) -> None:
    path, model = model_of(tmp_path, SENTENCES)
    emissions = emissions_of(torch.randn(1, frames, 4, generator=torch.Generator().manual_seed(frames)))
    log_probs = emissions.log_probs()[0].double().numpy()
    expected: dict[tuple[int, ...], float] = {}
    for states in itertools.product(range(4), repeat=frames):
        labels = tuple(v for v, _ in itertools.groupby(states) if v != 0)
        score = sum(log_probs[t, v] for t, v in enumerate(states))
        expected[labels] = np.logaddexp(expected.get(labels, -np.inf), score)
    for labels in expected:
        text = [PHONES.labels[v] for v in labels]
        expected[labels] += alpha * natural_log_prob(model, text) + beta * len(labels)
    decoder = decoder_with(PHONES, path, alpha=alpha, beta=beta, beam=5000, prune=1e4)
    found = {h.labels: h.score for h in decoder.nbest(emissions, 5000)[0]}
    assert found == pytest.approx(expected, abs=1e-3)
    assert decoder(emissions)[0].tolist() == [list(max(expected, key=lambda y: expected[y]))]


def test_words_of_the_model_win_over_others_that_sound_alike(flashlight: None, tmp_path: Path) -> None:
    path, _ = model_of(tmp_path, [["the", "cat"], ["the", "cat", "sat"], ["a", "dog", "sat"], ["cap", "sat"]])
    emissions = spelt("the caz sat", sure=6.0)
    wrong = emissions.logits[0].argmax(-1) == CHARACTERS.labels.index("z")
    for letter, score in (("p", 5.0), ("t", 4.9)):  # after "the" the model has heard "cat", and not "cap"
        emissions.logits[0, wrong, CHARACTERS.labels.index(letter)] = score
    texts = {
        alpha: CHARACTERS.decode(decoder_with(CHARACTERS, path, alpha=alpha)(emissions)[0].tolist()[0])
        for alpha in (0.0, 1.0)
    }
    assert texts == {0.0: "the cap sat", 1.0: "the cat sat"}


def test_words_have_the_score_of_the_formula(flashlight: None, tmp_path: Path) -> None:
    path, model = model_of(tmp_path, [["the", "cat"], ["the", "cat", "sat"], ["sat"]])
    emissions = spelt("the cat sat", sure=40.0)
    (best,) = decoder_with(CHARACTERS, path, alpha=0.8, beta=1.5).nbest(emissions, 1)[0]
    assert CHARACTERS.decode(best.labels) == "the cat sat"
    expected = 0.8 * natural_log_prob(model, ["the", "cat", "sat"]) + 1.5 * 3
    assert best.score == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("text", ["the cat", "the cat ", " the cat"])
def test_the_last_word_needs_no_delimiter_after_it(flashlight: None, tmp_path: Path, text: str) -> None:
    path, _ = model_of(tmp_path, [["the", "cat"], ["cats"]])
    found, coupling = decoder_with(CHARACTERS, path)(spelt(text))
    assert found.tolist() == [[CHARACTERS.labels.index(c) for c in text.replace(" ", "|")]]
    assert bool((coupling.hard().dense().sum(1) > 0).all())


def test_a_model_of_words_is_refused_where_one_of_tokens_is_needed(flashlight: None, tmp_path: Path) -> None:
    path, _ = model_of(tmp_path, [["the", "cat", "sat"], ["a", "dog"]])
    with pytest.raises(ValueError, match="of its 5 words 1 are labels"):
        decoder_with(PHONES, path)


def test_characters_can_have_a_model_of_tokens(flashlight: None, tmp_path: Path) -> None:
    path, _ = model_of(tmp_path, [list("the|cat"), list("cats")], 3)
    found, _ = decoder_with(CHARACTERS, path, unit="tokens")(spelt("the dog"))  # any word can be said
    assert CHARACTERS.decode(found.tolist()[0]) == "the dog"


def test_pieces_have_a_model_of_tokens(flashlight: None, tmp_path: Path) -> None:
    tokenizer = train_pieces(["the cat sat", "a cat sat on the mat"], 20)
    sentence = [tokenizer.labels[t] for t in tokenizer.encode("the cat sat").tokens]
    path, _ = model_of(tmp_path, [sentence])
    numbers = [tokenizer.labels.index(label) for label in sentence]
    states = torch.tensor([[x for n in numbers for x in (n, n, 0)]])
    emissions = emissions_of(9.0 * torch.nn.functional.one_hot(states, len(tokenizer)).float())
    assert decoder_with(tokenizer, path)(emissions)[0].tolist() == [numbers]
    with pytest.raises(ValueError, match=r"pieces has none\. Take a model of tokens"):
        decoder_with(tokenizer, path, unit="words")


def test_only_listed_words_are_recognised(flashlight: None, tmp_path: Path) -> None:
    path, _ = model_of(tmp_path, [["the", "cat"], ["the", "cap"], ["naïve"]])
    (tmp_path / "words.txt").write_text("the\ncap cap naïve\n", encoding="utf-8")
    found, _ = decoder_with(CHARACTERS, path, words=tmp_path / "words.txt")(spelt("the cat", sure=3.0))
    assert CHARACTERS.decode(found.tolist()[0]) == "the cap"
    (tmp_path / "words.txt").write_text("北京 !!!\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"None of the 2 words of .*words\.txt can be spelt"):
        decoder_with(CHARACTERS, path, words=tmp_path / "words.txt")


def test_padding_and_other_rows_are_nothing_to_a_row(flashlight: None, tmp_path: Path) -> None:
    path, _ = model_of(tmp_path, SENTENCES)
    logits = 2 * torch.randn(3, 9, 4, generator=torch.Generator().manual_seed(0))
    logits[1, 4:] = logits[2] = torch.nan
    decoder = decoder_with(PHONES, path, beta=1.0)
    together, coupling = decoder(emissions_of(logits, [9, 4, 0]))
    alone = [decoder(emissions_of(logits[b : b + 1, :n]))[0].tolist()[0] for b, n in ((0, 9), (1, 4))]
    assert together.tolist() == [*alone, []]
    assert coupling.target_lengths.tolist() == together.lengths.tolist()
    with pytest.raises(AlignmentError, match=r"Row 1: .*NaN"):
        decoder(emissions_of(logits, [9, 5, 0]))


def test_labels_of_probability_zero_are_allowed(flashlight: None, tmp_path: Path) -> None:
    path, _ = model_of(tmp_path, SENTENCES)
    logits = torch.tensor([[[-torch.inf, 1.0, 0.0, -torch.inf], [1.0, -torch.inf, -torch.inf, -torch.inf]]])
    (best, *_) = decoder_with(PHONES, path).nbest(emissions_of(logits), 4)[0]
    assert best.labels == (1,)
    assert math.isfinite(best.score)


def test_a_decoder_that_cannot_work_says_why(flashlight: None, tmp_path: Path) -> None:
    path, _ = model_of(tmp_path, SENTENCES)
    emissions, _ = sample_batch()
    with pytest.raises(ValueError, match="use_tokenizer"):
        BeamCTC(model=path)(emissions)
    with pytest.raises(ValueError, match="has 4 labels; the emissions have"):
        decoder_with(PHONES, path)(emissions)
    with pytest.raises(FileNotFoundError, match="isotone lm TEXT"):
        decoder_with(PHONES, tmp_path / "none.arpa")
    (tmp_path / "bad.arpa").write_text("hello\n")
    with pytest.raises(ValueError, match="no language model that KenLM reads"):
        decoder_with(PHONES, tmp_path / "bad.arpa")
    with pytest.raises(ValueError, match="give the words in a file"):
        decoder_with(CHARACTERS, tmp_path / "bad.arpa")


def test_without_the_library_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = model_of(tmp_path, SENTENCES)
    monkeypatch.setitem(sys.modules, "flashlight.lib.text.decoder", None)
    with pytest.raises(MissingLibrary, match=r'pip install "isotone\[lm\]"'):
        decoder_with(PHONES, path)


# By configuration


@pytest.mark.skipif("ctc-beam" not in decoders.names(), reason="the entry point of ctc-beam is not installed")
def test_a_model_reads_with_it(tmp_path: Path) -> None:
    model = Model.load(save_phone_model(tmp_path / "phones"))
    audio = np.random.default_rng(0).normal(0, 0.1, 16_000).astype(np.float32)
    model.decoding = replace(model.decoding, decoder={"name": "ctc-beam", "beam": 8}, times="")
    model.save(tmp_path / "beam")
    result = Pipeline(Model.load(tmp_path / "beam")).transcribe("x", audio)
    phones = [phone for phone in result.text.split() if phone != "sil"]
    assert phones == result.alignment.tier("phones").labels
    assert all(s.confidence is not None for s in result.alignment.tier("phones"))
    with pytest.raises(OptionError, match="It takes: beam"):
        decoders.create({"name": "ctc-beam", "bean": 8})


@pytest.mark.skipif("ctc-beam" not in decoders.names(), reason="the entry point of ctc-beam is not installed")
def test_a_pipeline_tells_it_the_labels(flashlight: None, tmp_path: Path) -> None:
    path, _ = model_of(tmp_path, [["sil", "aa", "t", "sil"]])
    model = Model.load(save_phone_model(tmp_path / "phones"))
    options = {"name": "ctc-beam", "model": str(path), "alpha": 4.0, "beta": 9.0}
    model.decoding = replace(model.decoding, decoder=options)
    audio = np.random.default_rng(0).normal(0, 0.1, 16_000).astype(np.float32)
    recognised = Pipeline(model).transcribe("x", audio).text.split()
    assert recognised[:3] == ["sil", "aa", "t"]
