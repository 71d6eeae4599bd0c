"""CTC models of transformers: with phones, with pieces, and with an adapter per language."""
# ruff: noqa: RUF001 - phonetic letters are meant

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoProcessor,
    AutoTokenizer,
    PreTrainedTokenizerFast,
    Wav2Vec2CTCTokenizer,
    Wav2Vec2ForCTC,
    Wav2Vec2PhonemeCTCTokenizer,
)

from isotone import audio
from isotone.model import Model, ModelError
from isotone.pipeline import Pipeline
from isotone.text.characters import CharacterTokenizer
from isotone.text.fast_pieces import FastPieceTokenizer
from isotone.text.tokenizer import PhoneTokenizer
from tests.tiny_models import error_of, isotone, save_adapters, save_noise, save_transformers_model

SAMPLES = torch.randn(1, 16_000, generator=torch.Generator().manual_seed(0)) * 0.1

#: Phones that the vocabulary of wav2vec2-lv-60-espeak-cv-ft has for English.
_ENGLISH = (
    "n s t ə l a i k d m ɛ ɾ e ɪ p o ɐ z ð f j v b ɹ ʊ iː r w ʌ u ɡ æ aɪ ʃ h ɔ ɑː ŋ ɚ eɪ uː oʊ ᵻ θ aʊ ɜː tʃ ɔː ɑːɹ dʒ "
    "əl ʒ ɔːɹ ɛɹ ɪɹ ʊɹ aɪɚ ɔɪ iə aɪə n̩ ʔ"
)
IPA = _ENGLISH.split()
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def ours(model: Model) -> Tensor:
    with torch.inference_mode():
        logits: Tensor = model(SAMPLES, torch.tensor([SAMPLES.shape[1]]))["ctc"].logits
    return logits


def theirs(model: Any) -> Tensor:
    values = (SAMPLES - SAMPLES.mean()) / (SAMPLES.var(correction=0) + 1e-7).sqrt()
    with torch.inference_mode():
        logits: Tensor = model.eval()(values).logits
    return logits


# One vocabulary and one adapter per language, as MMS has them.

VOCABULARIES = {
    "deu": ["<pad>", "<s>", "</s>", "<unk>", "|", "a", "ä", "b", "ß"],
    "eng": ["<pad>", "<s>", "</s>", "<unk>", "|", "a", "b", "c"],
    "urd-script_arabic": ["<pad>", "|", "ا"],
    "urd-script_latin": ["<pad>", "|", "a"],
}


@pytest.fixture(scope="module")
def mms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_adapters(tmp_path_factory.mktemp("mms") / "model", VOCABULARIES, ("deu", "eng"))


@pytest.mark.parametrize(
    ("requested", "language"), [("deu", "deu"), ("de", "deu"), ("eng", "eng"), ("", "eng")]
)
def test_the_adapter_of_a_language(requested: str, language: str, mms: Path) -> None:
    model = Model.load(mms, requested)
    expected = theirs(Wav2Vec2ForCTC.from_pretrained(mms, target_lang=language, ignore_mismatched_sizes=True))
    torch.testing.assert_close(ours(model), expected, rtol=1e-4, atol=1e-4)
    assert isinstance(model.tokenizer, CharacterTokenizer)
    assert model.tokenizer.labels == VOCABULARIES[language]
    assert model.tokenizer.language == language[:2]


def test_languages_differ_and_stay_what_they_are(mms: Path, tmp_path: Path) -> None:
    german, english = Model.load(mms, language="de"), Model.load(mms, language="en")
    assert ours(german).shape[2] == 9
    assert ours(english).shape[2] == 8
    assert not torch.allclose(ours(german)[..., :5], ours(english)[..., :5], atol=0.1)
    german.save(tmp_path / "german")
    again = Model.load(tmp_path / "german")
    assert torch.equal(ours(again), ours(german))
    assert again.tokenizer.labels == german.tokenizer.labels
    assert again.tokenizer.language == "de"
    tokens = again.tokenizer.encode("Bäß ab").tokens
    assert again.tokenizer.decode(tokens) == "bäß ab"
    assert list(tokens) == Wav2Vec2CTCTokenizer.from_pretrained(mms, target_lang="deu")("bäß ab").input_ids


def test_languages_that_are_not_there(mms: Path) -> None:
    def expect(message: str, language: str) -> None:
        with pytest.raises(ModelError, match=message):
            Model.load(mms, language)

    expect(r"no language 'dau'\. Near it are deu, .*of 4", "dau")
    expect("'ur' in several scripts: take one of urd-script_arabic, urd-script_latin", "ur")
    expect("adapter of 'urd-script_latin' is not on this machine, only that of deu, eng", "urd-script_latin")


def test_several_languages_and_none_chosen(mms: Path, tmp_path: Path) -> None:
    for path in mms.iterdir():
        (tmp_path / path.name).symlink_to(path)
    config = json.loads((mms / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"target_lang": None}))
    with pytest.raises(ModelError, match="it has 4 languages: say which"):
        Model.load(tmp_path)
    assert Model.load(tmp_path, "de").tokenizer.labels == VOCABULARIES["deu"]


# Phones of the International Phonetic Alphabet.


@pytest.fixture(scope="module")
def phonemic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("phonemic")
    labels = [*SPECIAL, *IPA]
    (root / "vocab.json").write_text(json.dumps({x: i for i, x in enumerate(labels)}), encoding="utf-8")
    tokenizer = Wav2Vec2PhonemeCTCTokenizer(str(root / "vocab.json"))
    return save_transformers_model(root / "model", labels, tokenizer, pad_token_id=1)


@pytest.fixture
def espeak() -> Iterator[None]:
    pytest.importorskip("espeakng_loader", reason="needs espeak-ng")
    return


# What phonemizer 3.4 with espeak-ng 1.52 gives the tokenizer of transformers for these sentences.
SAID = {
    "She had your dark suit in greasy wash water all year.": "ʃ iː h æ d j ʊɹ d ɑːɹ k s uː t ɪ n ɡ ɹ iː z i w ɑː ʃ w "
    "ɔː ɾ ɚ ɹ ɔː l j ɪɹ",
    "weren't you button bottle": "w ɜː n t j uː b ʌ ʔ n̩ b ɑː ɾ əl",
}


@pytest.mark.usefixtures("espeak")
def test_words_are_pronounced_as_for_training(phonemic: Path) -> None:
    model = Model.load(phonemic)
    assert isinstance(model.tokenizer, PhoneTokenizer)
    assert (model.tokenizer.unit, model.tokenizer.language, model.tokenizer.blank) == ("phones", "en", 1)
    plain = Wav2Vec2PhonemeCTCTokenizer.from_pretrained(phonemic, do_phonemize=False)
    for text, phones in SAID.items():
        transcript = model.tokenizer.encode(text)
        assert model.tokenizer.decode(transcript.tokens) == phones
        assert list(transcript.tokens) == plain(phones).input_ids
        assert [w.text for w in transcript.words] == text.split()
        assert transcript.unknown == ()
        assert sorted(set(transcript.token_words)) == list(range(len(transcript.words)))  # type: ignore[type-var]


@pytest.mark.usefixtures("espeak")
def test_a_model_of_phones_aligns_words_and_comes_back(phonemic: Path, tmp_path: Path) -> None:
    model = Model.load(phonemic)
    torch.testing.assert_close(
        ours(model), theirs(Wav2Vec2ForCTC.from_pretrained(phonemic)), rtol=1e-4, atol=1e-4
    )
    model.save(tmp_path / "own")
    samples = audio.load(save_noise(tmp_path / "noise.wav", 2.0), 16_000)
    for one in (model, Model.load(tmp_path / "own")):
        pipeline = Pipeline(one)
        found = pipeline.align("noise", samples, pipeline.encode("Water, dark suit")).alignment
        assert found.tier("words").labels == ["Water,", "dark", "suit"]
        assert found.tier("phones").labels == ["w", "ɔː", "ɾ", "ɚ", "d", "ɑːɹ", "k", "s", "uː", "t"]
        processor = AutoProcessor.from_pretrained(phonemic)
        text = processor.tokenizer.decode(theirs(Wav2Vec2ForCTC.from_pretrained(phonemic)).argmax(-1)[0])
        assert (
            pipeline.transcribe("noise", SAMPLES[0].numpy()).text
            == re.sub(r"<unk> ?", "<unk> ", text).strip()
        )


@pytest.mark.usefixtures("espeak")
def test_other_languages_have_other_voices(phonemic: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = Model.load(phonemic, language="deu")
    assert model.tokenizer.language == "de"
    text = model.tokenizer.decode(model.tokenizer.encode("Straße").tokens)
    assert text == "ʃ t ɾ ɑː s ə"
    model.tokenizer.encode("über")
    assert "no phone 'yː' of espeak-ng's de: 'i" in caplog.text  # what is not there is mapped, and said
    with pytest.raises(ModelError, match="espeak-ng has no voice 'abi'"):
        Model.load(phonemic, language="abi")


def test_without_espeak_words_are_refused(phonemic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Letters are never taken for phones: what cannot be pronounced is an error; recognition works."""

    def absent() -> None:
        from isotone.text.espeak_library import EspeakNotInstalled

        raise EspeakNotInstalled('words in phones need espeak-ng: pip install "isotone[synth]".')

    monkeypatch.setattr("isotone.text.ipa._library", absent)
    model = Model.load(phonemic)
    assert Pipeline(model).transcribe("noise", SAMPLES[0].numpy()).text
    with pytest.raises(ImportError, match="espeak-ng: pip install"):
        model.tokenizer.encode("water")


@pytest.mark.usefixtures("espeak")
def test_phones_in_the_files_of_a_letter_tokenizer(tmp_path: Path) -> None:
    """A plain Wav2Vec2CTCTokenizer whose labels are IPA: found out by them; its delimiter stands between words."""
    labels = ["<pad>", "<s>", "</s>", "<unk>", "|", *IPA]
    model = Model.load(save_transformers_model(tmp_path / "model", labels), "en")
    tokenizer = model.tokenizer
    assert isinstance(tokenizer, PhoneTokenizer)
    transcript = tokenizer.encode("dark suit")
    assert [labels[i] for i in transcript.tokens] == ["d", "ɑːɹ", "k", "|", "s", "uː", "t"]
    assert transcript.token_words == (0, 0, 0, None, 1, 1, 1)
    assert tokenizer.has_words
    assert [w for w, _, _ in tokenizer.words(transcript.tokens)] == ["dɑːɹk", "suːt"]
    model.save(tmp_path / "own")
    assert Model.load(tmp_path / "own").tokenizer.encode("dark suit") == transcript


def test_phones_of_a_language_that_nobody_names(tmp_path: Path) -> None:
    folder = save_transformers_model(tmp_path / "model", ["<pad>", "<s>", "</s>", "<unk>", *IPA])
    with pytest.raises(ModelError, match="labels are phones, and nothing says of which language"):
        Model.load(folder)


def test_phones_that_are_no_ipa_are_refused(tmp_path: Path) -> None:
    labels = [
        "<pad>",
        "<s>",
        "</s>",
        "<unk>",
        "|",
        *["AA", "AE", "AH", "B", "CH", "D", "EH", "SH", "IY", "NG", "HH"],
    ]
    with pytest.raises(ModelError, match=r"most labels have several letters, such as .*'AA', 'AE'"):
        Model.load(save_transformers_model(tmp_path / "model", labels))


def test_letters_of_many_languages_are_no_phones(tmp_path: Path) -> None:
    labels = ["<pad>", "<s>", "</s>", "<unk>", "|", *"abdeɛfgɣhiklmnŋoɔpstuvwyzɖƒ"]
    model = Model.load(save_transformers_model(tmp_path / "model", labels))
    assert isinstance(model.tokenizer, CharacterTokenizer)
    assert model.tokenizer.language == ""


# Pieces of words, by whatever tokenizer transformers has.

TEXTS = ["the cat sat on the mat", "a cat is a cat", "that mat is the mat of the cat", "on and on it sat"]


def trained(kind: str) -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    special = ["<unk>", "<s>", "</s>"]
    if kind == "unigram":
        core = Tokenizer(models.Unigram())
        core.pre_tokenizer, core.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer: Any = trainers.UnigramTrainer(
            vocab_size=40, special_tokens=special, unk_token="<unk>", show_progress=False
        )
    elif kind == "llama":
        core = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=False))
        core.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        core.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Strip(" ", 1, 0)])
        core.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
        trainer = trainers.BpeTrainer(vocab_size=40, special_tokens=special, show_progress=False)
    elif kind == "bytes":
        core = Tokenizer(models.BPE())
        core.pre_tokenizer, core.decoder = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=40, special_tokens=special, show_progress=False)
    else:
        core = Tokenizer(models.WordPiece(unk_token="<unk>"))
        core.pre_tokenizer, core.decoder = pre_tokenizers.Whitespace(), decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=40, special_tokens=special, show_progress=False)
    core.train_from_iterator(TEXTS, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )


@pytest.mark.parametrize("kind", ["unigram", "llama", "bytes", "words"])
def test_pieces(kind: str, tmp_path: Path) -> None:
    tokenizer = trained(kind)
    size = len(tokenizer)
    folder = save_transformers_model(
        tmp_path / "model", [str(i) for i in range(size)], tokenizer, pad_token_id=tokenizer.pad_token_id
    )
    model = Model.load(folder)
    assert isinstance(model.tokenizer, FastPieceTokenizer)
    assert len(model.tokenizer) == size
    assert model.tokenizer.blank == tokenizer.pad_token_id == size - 1
    torch.testing.assert_close(
        ours(model), theirs(Wav2Vec2ForCTC.from_pretrained(folder)), rtol=1e-4, atol=1e-4
    )
    model.save(tmp_path / "own")
    again = Model.load(tmp_path / "own")
    assert torch.equal(ours(again), ours(model))
    fast = AutoTokenizer.from_pretrained(folder)
    for mine in (model.tokenizer, again.tokenizer):
        assert mine.labels == fast.convert_ids_to_tokens(list(range(size)))
        for text in TEXTS:
            transcript = mine.encode(f"{text.capitalize()}!")
            assert list(transcript.tokens) == fast(text, add_special_tokens=False).input_ids
            assert mine.decode(transcript.tokens) == text
            assert [w for w, _, _ in mine.words(transcript.tokens)] == text.split()
            spans = {w: [i for i, owner in enumerate(transcript.token_words) if owner == w] for w in range(9)}
            for number, (_, first, end) in enumerate(mine.words(transcript.tokens)):
                assert spans[number] == list(range(first, end))
        strange = mine.encode("the xx cat")
        assert strange.unknown == ("x",)
        assert mine.decode(strange.tokens) == "the cat"


def test_pieces_align(tmp_path: Path) -> None:
    tokenizer = trained("unigram")
    folder = save_transformers_model(
        tmp_path / "model", [str(i) for i in range(len(tokenizer))], tokenizer,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    (folder / "README.md").write_text("---\nlanguage: en\n---\n")
    pipeline = Pipeline(Model.load(folder))
    assert pipeline.model.tokenizer.language == "en"
    samples = audio.load(save_noise(tmp_path / "noise.wav", 2.0), 16_000)
    found = pipeline.align("noise", samples, pipeline.encode("The cat sat.")).alignment
    assert found.tier("words").labels == ["The", "cat", "sat."]
    assert "".join(found.tier("pieces").labels) == "▁the▁cat▁sat"
    result = pipeline.transcribe("noise", samples)
    assert [s.label for s in result.alignment.tier("words")] == result.text.split()


def test_the_blank_is_the_models(tmp_path: Path) -> None:
    """One past the pieces, as in models that come from NeMo, it is a label of its own."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained("unigram").backend_tokenizer, unk_token="<unk>"
    )
    size = len(tokenizer)
    labels = [str(i) for i in range(size + 1)]
    folder = save_transformers_model(tmp_path / "model", labels, tokenizer, pad_token_id=size)
    model = Model.load(folder)
    assert model.tokenizer.blank == size == len(model.tokenizer) - 1
    assert ours(model).shape[2] == size + 1


def test_pieces_that_do_not_say_where_words_begin(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    core = Tokenizer(models.WordLevel({"<unk>": 0, "cat": 1, "mat": 2}, unk_token="<unk>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="<unk>", pad_token="<unk>")
    folder = save_transformers_model(tmp_path / "model", ["0", "1", "2"], tokenizer)
    with pytest.raises(ModelError, match=r"do not say where words begin.*'cat', 'mat'"):
        Model.load(folder)


def test_a_language_for_any_model(tmp_path: Path) -> None:
    """The requested language is kept, also in isotone's own models; an unknown code is an error."""
    folder = save_transformers_model(tmp_path / "model")
    assert Model.load(folder).tokenizer.language == ""
    assert Model.load(folder, "eng").tokenizer.language == "en"
    Model.load(folder, "de").save(tmp_path / "own")
    assert Model.load(tmp_path / "own").tokenizer.language == "de"
    assert Model.load(tmp_path / "own", "fr").tokenizer.language == "fr"
    with pytest.raises(ModelError, match="by its ISO 639 code, such as de or deu; got 'German'"):
        Model.load(tmp_path / "own", "German")
    with pytest.raises(ModelError, match="by its ISO 639 code"):
        Model.load(folder, "German")


def test_the_command_takes_the_language(mms: Path, tmp_path: Path) -> None:
    sound = save_noise(tmp_path / "a.wav", text="Bäß ab")
    command = ("align", sound, "--model", mms, "--no-check", "--no-edges")  # its weights are random
    isotone(*command, "--language", "de", "--out", tmp_path / "out")
    assert "Bäß" in (tmp_path / "out" / "a.TextGrid").read_text(encoding="utf-8")
    for path in (tmp_path / "out").glob("warnings.jsonl"):  # of how long a word of noise lasts
        assert "aligned" not in path.read_text(encoding="utf-8")
    message = error_of("align", sound, "--model", mms, "--language", "fr", "--out", tmp_path / "none")
    assert "has no language 'fr'" in message
