"""Input as it comes in real life: every kind of audio works, and what cannot work is explained."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from isotone import audio, formats
from isotone import format as files
from isotone.alignment import Alignment, Segment, Tier
from isotone.corpus.timit import TimitCorpus
from isotone.model import Model
from tests.tiny_models import (
    error_of,
    isotone,
    lines_of,
    names_in,
    save_character_model,
    save_noise,
    save_phone_model,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("models") / "characters")


@pytest.fixture(scope="module")
def phone_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_phone_model(tmp_path_factory.mktemp("models") / "phones")


def only_error(out: Path) -> str:
    """What ``errors.jsonl`` says of the one bad file, after checking that no alignment was written."""
    (row,) = lines_of(out / "errors.jsonl")
    assert names_in(out) == ["errors.jsonl"]
    return row["error"]


# Audio


@pytest.mark.parametrize(
    ("name", "rate", "channels", "subtype"),
    [
        ("u.wav", 16_000, 2, "PCM_16"),
        ("u.wav", 8_000, 1, "PCM_16"),
        ("u.wav", 44_100, 2, "PCM_24"),
        ("u.flac", 48_000, 1, "PCM_24"),
        ("u.wav", 22_050, 1, "FLOAT"),
        ("u.mp3", 44_100, 2, None),
        ("u.ogg", 16_000, 1, "VORBIS"),
        ("u.ogg", 48_000, 1, "OPUS"),
        ("u.aiff", 16_000, 1, "PCM_16"),
    ],
)
def test_audio_of_every_kind_works(
    model: Path, tmp_path: Path, name: str, rate: int, channels: int, subtype: str | None
) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, (2 * rate, channels))
    soundfile.write(tmp_path / name, noise, rate, subtype=subtype)
    (tmp_path / "u.txt").write_text("any sound")
    for command in ("align", "transcribe"):
        isotone(command, tmp_path / name, "-m", model, "-f", "json", "-o", tmp_path / command)
        assert files.read(tmp_path / command / "u.json").duration == pytest.approx(2.0, abs=0.06)
    assert files.read(tmp_path / "align/u.json").tier("words").labels == ["any", "sound"]


def empty(path: Path) -> None:
    path.touch()


def no_samples(path: Path) -> None:
    soundfile.write(path, np.zeros(0), 16_000)


def not_numbers(path: Path) -> None:
    samples = np.full(16_000, 0.1, np.float32)
    samples[8_000:8_003] = np.nan, np.inf, -np.inf
    soundfile.write(path, samples, 16_000, subtype="FLOAT")


def no_audio(path: Path) -> None:
    path.write_text("RIFF is what I say")


def shorter_than_a_frame(path: Path) -> None:
    soundfile.write(path, np.zeros(100), 16_000)


@pytest.mark.parametrize("command", [("align",), ("transcribe",), ("score-check",), ("search", "index")])
def test_an_empty_argument_is_not_the_current_folder(
    model: Path, tmp_path: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell's variable that is not set: everything around would be aligned."""
    save_noise(tmp_path / "a.wav", text="so")
    monkeypatch.chdir(tmp_path)
    result = isotone(*command, "", "-m", model, code=2)
    assert "an empty argument" in result.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "a.wav"]


@pytest.mark.parametrize("command", ["align", "transcribe"])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (empty, "empty (0 bytes)"),
        (no_samples, "no samples"),
        (not_numbers, "3 samples are not finite numbers, the first at 0.5000 s"),
        (no_audio, "not audio that "),
        (shorter_than_a_frame, "0.006 s of audio is too short"),
        (Path.mkdir, "is a folder"),
    ],
)
def test_audio_that_cannot_be_used_is_explained(
    model: Path, tmp_path: Path, command: str, make: Callable[[Path], None], said: str
) -> None:
    bad, good = tmp_path / "bad.wav", save_noise(tmp_path / "good.wav", text="so")
    bad.with_suffix(".txt").write_text("so")
    make(bad)
    if bad.is_dir():
        save_noise(bad / "inside.wav", text="so")  # a folder is searched, whatever its name
        isotone(command, bad, good, "-m", model, "-o", tmp_path / "out")
        assert [Path(n).stem for n in names_in(tmp_path / "out") if not n.endswith(".jsonl")] == [
            "good",
            "inside",
        ]
        return
    result = isotone(command, bad, good, "-m", model, "-o", tmp_path / "out", code=1)
    assert said in result.stderr
    assert result.stderr.count(str(bad)) == 1, "the file is named once"
    (row,) = lines_of(tmp_path / "out/errors.jsonl")
    assert row["file"] == str(bad)
    assert said in row["error"]
    assert (tmp_path / "out/good.TextGrid").is_file()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_named_as_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "u.wav")
    with pytest.raises(audio.AudioError, match="is a pipe or a device"):
        audio.load(tmp_path / "u.wav")


def test_silence_is_aligned_with_a_warning(model: Path, tmp_path: Path) -> None:
    speech, silent = save_noise(tmp_path / "u.wav", text="so"), tmp_path / "silent.wav"
    soundfile.write(silent, np.zeros(16_000), 16_000)
    silent.with_suffix(".txt").write_text("so")
    isotone("align", speech, silent, "-m", model, "-o", tmp_path / "out")
    warnings = {row["file"]: row["warning"] for row in lines_of(tmp_path / "out/warnings.jsonl")}
    assert "its audio is silent" in warnings[str(silent)]
    assert "its audio is silent" not in warnings.get(str(speech), "")


def test_a_link_to_nothing_in_a_folder_is_an_error(model: Path, tmp_path: Path) -> None:
    save_noise(tmp_path / "in" / "good.wav", text="so")
    (tmp_path / "in" / "lost.wav").symlink_to(tmp_path / "gone.wav")
    isotone("align", tmp_path / "in", "-m", model, "-o", tmp_path / "out", code=1)
    (row,) = lines_of(tmp_path / "out/errors.jsonl")
    assert row["file"].endswith("lost.wav")
    assert "does not exist" in row["error"]
    assert (tmp_path / "out/good.TextGrid").is_file()


def test_a_file_that_is_not_there(model: Path, tmp_path: Path) -> None:
    good, gone = save_noise(tmp_path / "good.wav", text="so"), tmp_path / "gone.wav"
    assert f"No such file or folder: {gone}" in error_of("align", gone, "-m", model, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert "does not exist" in error_of("align", gone, good, "-m", model, "-o", tmp_path / "out", code=1)
    assert (tmp_path / "out/good.TextGrid").is_file()


def test_a_folder_without_audio(model: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    assert "No audio (" in error_of("transcribe", tmp_path, "-m", model, "-o", tmp_path / "out")


# Transcripts


def test_a_text_that_does_not_fit_the_audio(model: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "u.wav", 0.5, text="far too many words for half a second of audio")
    isotone("align", speech, "-m", model, "-o", tmp_path / "out", code=1)
    said = only_error(tmp_path / "out")
    assert said.startswith("u: ")
    assert "frames" in said
    assert "Row" not in said, "the file is named, not its place in a batch of one"
    assert "too long for the audio" in said


@pytest.mark.parametrize("text", ["日本語", "!? --", "\u200b"])
def test_a_text_without_anything_to_align(model: Path, tmp_path: Path, text: str) -> None:
    isotone("align", save_noise(tmp_path / "u.wav", text=text), "-m", model, "-o", tmp_path / "out", code=1)
    assert "nothing to align" in only_error(tmp_path / "out")


def test_a_text_with_some_unknown_characters(model: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "u.wav", 2.0, text="Grüße aus 東京 now")
    result = isotone("align", speech, "-m", model, "-f", "json", "-o", tmp_path / "out")
    assert (
        "aligned as unknown speech: words without a character of the model's vocabulary: '東京'"
        in result.stderr
    )
    words = files.read(tmp_path / "out/u.json").tier("words")
    assert words.labels == ["Grüße", "aus", "東京", "now"]
    assert [s.score is None for s in words] == [False, False, True, False]
    assert "".join(files.read(tmp_path / "out/u.json").tier("characters").labels) == "grusseausnow"


def test_two_transcripts_of_one_file_are_a_warning(model: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "u.wav", text="so [laughs]")
    speech.with_suffix(".lab").write_text("other")
    isotone("align", speech, "-m", model, "-f", "json", "-o", tmp_path / "out")
    (row,) = lines_of(tmp_path / "out/warnings.jsonl")
    assert "its transcript is u.txt, not u.lab beside it" in row["warning"]
    assert "left out as markup (--keep-markup reads it): '[laughs]'" in row["warning"]
    assert files.read(tmp_path / "out/u.json").tier("words").labels == ["so"]


def test_unknown_phones_are_named(phone_model: Path, tmp_path: Path) -> None:
    isotone(
        "align", save_noise(tmp_path / "u.wav", text="s iy t"), "-m", phone_model, "-o", tmp_path / "good"
    )
    assert files.read(tmp_path / "good/u.TextGrid").has("phones")
    speech = save_noise(tmp_path / "v.wav", text="see you")
    isotone("align", speech, "-m", phone_model, "-o", tmp_path / "out", code=1)
    said = only_error(tmp_path / "out")
    assert "['see', 'you'] are no phones of this model" in said
    assert "pronouncer" in said


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty: expected the transcript"),
        (b" \n\t\n", "is empty: expected the transcript"),
        (b"\xef\xbb\xbf", "is empty: expected the transcript"),
        ("one\ncafé".encode("latin-1"), "is not text that can be read: line 2: expected UTF-8"),
        ("hello".encode("utf-16-le"), "it has zero bytes: save it as UTF-8"),
        (
            b"WEBVTT\n\n00:00.000 --> 00:01.000\nhello\n",
            "is WebVTT subtitles; expected a transcript in plain text",
        ),
        (None, "no transcript: expected u.txt or .lab"),
    ],
)
def test_transcripts_that_cannot_be_read(
    model: Path, tmp_path: Path, content: bytes | None, said: str
) -> None:
    speech = save_noise(tmp_path / "u.wav")
    if content is not None:
        (tmp_path / "u.txt").write_bytes(content)
    isotone("align", speech, "-m", model, "-o", tmp_path / "out", code=1)
    assert said in only_error(tmp_path / "out")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_byte_order_marks_and_windows_line_ends_are_fine(model: Path, tmp_path: Path, encoding: str) -> None:
    speech = save_noise(tmp_path / "u.wav")
    (tmp_path / "u.txt").write_bytes("\ufeffone\r\ntwo\r\n".encode(encoding))
    isotone("align", speech, "-m", model, "-f", "json", "-o", tmp_path / "out")
    assert files.read(tmp_path / "out/u.json").tier("words").labels == ["one", "two"]


def test_places_of_the_text_that_make_no_sense(model: Path, tmp_path: Path) -> None:
    for name in "ab":
        save_noise(tmp_path / f"speech/{name}.wav", text="so")
    text, end = tmp_path / "speech/a.txt", ("-m", model, "-o", tmp_path / "out")
    both = error_of("align", tmp_path / "speech", "--text", text, *end)
    assert "--text is the transcript of one file; for 2 files use --text-dir" in both
    speech = tmp_path / "speech/a.wav"
    assert "No transcript" in error_of("align", speech, "--text", tmp_path / "gone.txt", *end)
    assert "No folder" in error_of("align", speech, "--text-dir", tmp_path / "gone", *end)
    assert "No folder" in error_of("align", speech, "--text-dir", text, *end)
    assert "give one" in error_of("align", speech, "--text", text, "--text-dir", tmp_path / "speech", *end)
    assert not (tmp_path / "out").exists()
    isotone("align", tmp_path / "speech/b.wav", "--text", text, *end)


# Names


def test_weird_names_stay_in_the_folder(model: Path, tmp_path: Path) -> None:
    names = [
        "-rf",
        "a\nb",
        "x\\..\\..\\evil",
        "[x]",
        "con trol\x07",
        "\U0001f600",
        "n" * 240,
        ".hidden",
    ]
    speech, out = tmp_path / "in/speech", tmp_path / "in/out"
    for name in names:
        save_noise(speech / f"{name}.wav", 0.6)
    before = set(tmp_path.rglob("*"))
    isotone("transcribe", speech, "-m", model, "-f", "textgrid", "-f", "json", "-o", out)
    written = set(tmp_path.rglob("*")) - before - {out}
    assert {p.parent for p in written} == {out}
    ids = [json.loads(p.read_text(encoding="utf-8"))["id"] for p in out.glob("*.json")]
    assert sorted(ids) == sorted(names[:-1]), "a name that begins with a dot is a hidden file's"
    assert len(list(out.glob("*.TextGrid"))) == len(ids)


def test_a_name_that_is_not_unicode_is_explained(model: Path, tmp_path: Path) -> None:
    save_noise(tmp_path / "speech/good.wav", 0.6)
    try:
        (tmp_path / "speech" / os.fsdecode(b"caf\xe9.wav")).touch()
    except OSError:
        pytest.skip("this file system takes no such name")
    said = error_of("transcribe", tmp_path / "speech", "-m", model, "-o", tmp_path / "out", code=1)
    assert "caf\\udce9.wav: its name is not Unicode; rename it." in said
    (row,) = lines_of(tmp_path / "out/errors.jsonl")
    assert row["file"].endswith("caf\\udce9.wav")
    assert (tmp_path / "out/good.TextGrid").is_file()


@pytest.mark.parametrize(
    "id", ["../../evil", "/etc/evil", "..", "", "a/../../b", "c:\\evil", "x\0y", "n" * 400]
)
@pytest.mark.parametrize("name", formats.names())
def test_an_id_from_a_corpus_never_leaves_the_folder(tmp_path: Path, id: str, name: str) -> None:
    tiers = tuple(Tier(n, (Segment("a", 0.0, 0.5),)) for n in ("words", "phones"))
    path = files.write(Alignment(id, 1.0, tiers), tmp_path / "in/out", name)
    assert path.resolve().parent == tmp_path / "in/out"
    assert {p for p in tmp_path.rglob("*") if p.is_file()} == {path}


# Folders, models, names of parts


def test_an_output_folder_that_cannot_be(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    speech = save_noise(tmp_path / "u.wav", text="so")
    for out in (tmp_path / "file", tmp_path / "file/below/out"):
        for command in ("align", "transcribe"):
            said = error_of(command, speech, "-m", tmp_path, "-o", out)
            assert f"{out} cannot be made: {tmp_path / 'file'} is a file" in said


def test_names_that_are_nearly_right(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong is said before anything is computed: no folder appears."""
    speech = save_noise(tmp_path / "u.wav", text="so")

    def said(*options: str | Path) -> str:
        return error_of("align", speech, "-o", tmp_path / "out", *options)

    assert "Did you mean 'textgrid'?" in said("-m", model, "-f", "textgird")
    assert "Did you mean 'segmental'?" in said("-m", model, "--aligner", "segmentl")
    assert "Did you mean 'ottc'?" in said("-m", model, "--times", "otcc")
    assert "Did you mean 'characters'?" in said("-m", model.with_name("character"))
    assert "No model or run folder jiont" in said("-m", "jiont"), (
        "the hub is not asked for what is no id of it"
    )
    assert "'quantum'" in said("-m", model, "--device", "quantum")
    assert not (tmp_path / "out").exists()

    def loaded(*_: object) -> None:
        raise AssertionError("a model was loaded")

    monkeypatch.setattr(Model, "load", loaded)
    for options in (("-f", "textgird"), ("--aligner", "segmentl"), ("--device", "quantum")):
        said("-m", model, *options)


def no_model(folder: Path) -> None:
    folder.mkdir()


def damaged_configuration(folder: Path) -> None:
    (folder / "isotone.json").write_text("{")


def no_heads(folder: Path) -> None:
    config = json.loads((folder / "isotone.json").read_text())
    del config["heads"]
    (folder / "isotone.json").write_text(json.dumps(config))


def unknown_reading(folder: Path) -> None:
    text = (folder / "isotone.json").read_text()
    (folder / "isotone.json").write_text(text.replace('"times":', '"tmes":'))


def later_version(folder: Path) -> None:
    config = json.loads((folder / "isotone.json").read_text())
    (folder / "isotone.json").write_text(json.dumps(config | {"format": 99}))


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def damaged_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def no_tokenizer(folder: Path) -> None:
    shutil.rmtree(folder / "tokenizer")


def no_encoder(folder: Path) -> None:
    shutil.rmtree(folder / "encoder")


def unknown_head(folder: Path) -> None:
    text = (folder / "isotone.json").read_text()
    (folder / "isotone.json").write_text(text.replace('"name": "ottc"', '"name": "otcc"'))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (no_model, "holds no model"),
        (damaged_configuration, "isotone.json is damaged"),
        (no_heads, "isotone.json is damaged: no 'heads'"),
        (unknown_reading, "isotone.json is damaged"),
        (later_version, "format 99"),
        (no_weights, "model.safetensors"),
        (damaged_weights, "model.safetensors"),
        (no_tokenizer, "tokenizer"),
        (no_encoder, "encoder"),
        (unknown_head, "Did you mean 'ottc'?"),
    ],
)
def test_a_model_folder_that_is_none(
    model: Path, tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    folder = tmp_path / "broken"
    if damage is not no_model:
        shutil.copytree(model, folder)
    damage(folder)
    found = error_of("transcribe", save_noise(tmp_path / "u.wav"), "-m", folder, "-o", tmp_path / "out")
    assert said in found
    assert not (tmp_path / "out").exists()


# A corpus with a damaged file


def timit_tree(root: Path, count: int = 4) -> Path:
    """Noise in TIMIT's layout, one speaker."""
    folder = root / "TRAIN/DR1/FCJF0"
    for i in range(count):
        save_noise(folder / f"SX{i}.WAV", 1.0, seed=i)
        (folder / f"SX{i}.PHN").write_text("0 4000 h#\n4000 8000 s\n8000 12000 iy\n12000 16000 h#\n")
        (folder / f"SX{i}.WRD").write_text("4000 12000 see\n")
        (folder / f"SX{i}.TXT").write_text("0 16000 See.\n")
    return root


def test_a_cut_label_file_harms_no_other(tmp_path: Path) -> None:
    folder = timit_tree(tmp_path / "timit") / "TRAIN/DR1/FCJF0"
    good = (folder / "SX0.PHN").read_bytes()
    (folder / "SX1.PHN").write_bytes(good[: good.index(b"8000 12000") + 4])  # in the middle of a line
    (folder / "SX2.PHN").write_bytes(b"")
    corpus = TimitCorpus(tmp_path / "timit")
    assert corpus.load("train")["id"][:] == ["fcjf0_sx0", "fcjf0_sx3"]
    skipped = dict(corpus.skipped)
    assert "SX1.PHN, line 3" in skipped["fcjf0_sx1"]
    assert "SX2.PHN" in skipped["fcjf0_sx2"]


def test_a_cut_reference_is_left_out_of_the_scores(tmp_path: Path) -> None:
    folder = timit_tree(tmp_path / "timit") / "TRAIN/DR1/FCJF0"
    shutil.copytree(folder, tmp_path / "hyp")
    good = (folder / "SX0.PHN").read_bytes()
    (folder / "SX1.PHN").write_bytes(good[: good.index(b"8000 12000") + 4])
    paths = (tmp_path / "hyp", tmp_path / "timit")
    result = isotone("evaluate", *paths, "--json", tmp_path / "s.json", code=1)
    assert "SX1" in result.stderr
    assert "line 3" in result.stderr
    found = json.loads((tmp_path / "s.json").read_text())["hyp"]
    assert found["utterances"] == 3
    assert [row["value"] for row in found["metrics"] if row["metric"] == "per"] == [0.0]
