"""The command line: help, output and exit code of each command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
import typer

from isotone import format as files
from isotone.audio import load
from isotone.cli import app
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.registries import ALL
from tests.tiny_models import (
    error_of,
    isotone,
    lines_of,
    names_in,
    save_character_model,
    save_noise,
    save_phone_model,
    save_transformers_model,
)

# To random weights all text is doubtful, and noise begins with something else.
PLAIN = ("--no-check", "--no-edges")

COMMANDS = [
    "align", "transcribe", "train", "evaluate", "report", "results", "synth", "export", "plugins", "score-check",
    "search", "lm", "match", "adapt", "doctor", "page", "stream",
]  # fmt: skip


@pytest.fixture(scope="module")
def characters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("models") / "characters")


@pytest.fixture(scope="module")
def phones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_phone_model(tmp_path_factory.mktemp("models") / "phones")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_transformers_model(tmp_path_factory.mktemp("models") / "wav2vec2")


# Help and wrong usage


def test_without_arguments_there_is_help() -> None:
    output = isotone(code=2).output
    assert all(command in output for command in COMMANDS)


def test_every_command_and_option_is_explained() -> None:
    group = typer.main.get_command(app)
    assert sorted(group.commands) == sorted(COMMANDS)  # type: ignore[attr-defined]
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        assert command.help, name
        assert not [p.name for p in command.params if not p.help], name
        output = isotone(name, "--help").output
        assert f"isotone {name}" in output or name in ("synth", "plugins"), "an example"


@pytest.mark.parametrize("name", ["align", "transcribe", "train", "evaluate", "report", "synth"])
def test_a_command_without_arguments_says_what_is_missing(name: str) -> None:
    result = isotone(name, code=2)
    assert "Missing argument" in result.stderr
    assert "Traceback" not in result.output


def test_listing_help_imports_no_torch() -> None:
    code = "import sys, isotone.cli; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# align and transcribe


def test_align_writes_what_was_said_when(characters: Path, tmp_path: Path) -> None:
    for i in range(2):
        save_noise(tmp_path / f"speech/u{i}.wav", text="Hello there, it's 2 o'clock.", seed=i)
    out = tmp_path / "out"
    formats = ("-f", "textgrid", "-f", "json", "-f", "ctm")
    result = isotone("align", tmp_path / "speech", "-m", characters, *formats, "-o", out, *PLAIN)
    assert result.stdout == f"2 of 2 files written to {out}\n"
    written = [n for n in names_in(out) if n != "warnings.jsonl"]
    assert written == sorted(f"u{i}{s}" for i in range(2) for s in (".TextGrid", ".ctm", ".json"))
    whole = files.read(out / "u0.json")
    assert whole.duration == 1.5
    assert whole.tier("words").labels == ["Hello", "there,", "it's", "2", "o'clock."]
    assert "".join(whole.tier("characters").labels) == "hellothereit'stwoo'clock"
    assert all(s.score is not None and s.score <= 0 for s in whole.tier("characters"))
    for word, (first, last) in zip(whole.tier("words"), [(0, 5), (5, 10), (10, 14), (14, 17), (17, 24)]):
        inside = whole.tier("characters").segments[first:last]
        assert (word.start, word.end) == (inside[0].start, inside[-1].end)
    ctm = files.read(out / "u0.ctm").tier("words")
    assert [s.start for s in ctm] == pytest.approx([s.start for s in whole.tier("words")], abs=6e-4)
    assert (
        files.read(out / "u0.TextGrid").tier("words").filled(1.5).labels
        == whole.tier("words").filled(1.5).labels
    )


def test_times_come_from_the_head_and_the_aligner_that_are_named(characters: Path, tmp_path: Path) -> None:
    audio = save_noise(tmp_path / "u.wav", text="so it is")

    def times(name: str, *options: str) -> list[tuple[str, float, float]]:
        isotone("align", audio, "-m", characters, "-f", "json", "-o", tmp_path / name, *options)
        return [(s.label, s.start, s.end) for s in files.read(tmp_path / name / "u.json").tier("characters")]

    own = times("own")
    assert own == times("named", "--times", "ottc", "--aligner", "segmental")
    ctc = times("ctc", "--times", "ctc", "--aligner", "ctc")
    assert ctc == times("torchaudio", "--times", "ctc", "--aligner", "ctc-torchaudio")
    assert own != ctc


@pytest.mark.parametrize("command", ["align", "transcribe"])
def test_a_model_is_guided_unless_told_otherwise(characters: Path, tmp_path: Path, command: str) -> None:
    guided = save_character_model(tmp_path / "guided", guide="ctc")
    audio = save_noise(tmp_path / "u.wav", text="so it is then, and there")

    def times(name: str, model: Path, *options: str) -> list[float]:
        isotone(command, audio, "-m", model, "-f", "json", "-o", tmp_path / name, *options)
        return [s.start for s in files.read(tmp_path / name / "u.json").tier("characters")]

    plain = times("plain", characters)
    assert times("free", guided, "--no-guide") == plain  # the same weights
    if command == "align":
        assert times("guided", guided) != plain
    else:  # little is recognised in noise
        assert len(times("guided", guided)) == len(plain)


def test_a_model_of_transformers_transcribes_as_its_processor_does(theirs: Path, tmp_path: Path) -> None:
    from transformers import Wav2Vec2ForCTC, Wav2Vec2Processor

    audio = [save_noise(tmp_path / f"u{i}.wav", 2.0, seed=i) for i in range(3)]
    isotone("transcribe", *audio, "-m", theirs, "-f", "json", "-o", tmp_path / "out")
    model, processor = (
        Wav2Vec2ForCTC.from_pretrained(theirs).eval(),
        Wav2Vec2Processor.from_pretrained(theirs),
    )
    texts = []
    for path in audio:
        samples = soundfile.read(path, dtype="float32")[0]
        values = processor(samples, sampling_rate=16_000, return_tensors="pt").input_values
        with torch.inference_mode():
            best = model(values).logits.argmax(-1)
        texts.append(processor.batch_decode(best)[0])
        found = files.read(tmp_path / "out" / f"{path.stem}.json")
        assert found.tier("words").labels == texts[-1].split()
        assert found.duration == 2.0
    assert any(len(text.split()) > 1 for text in texts), "the model says something"


def test_a_model_of_transformers_aligns_as_torchaudio_does(theirs: Path, tmp_path: Path) -> None:
    from torchaudio.functional import forced_align, merge_tokens
    from transformers import Wav2Vec2ForCTC, Wav2Vec2Processor

    audio = save_noise(tmp_path / "u.wav", 2.0, text="a good deed")
    isotone("align", audio, "-m", theirs, "-f", "json", "-o", tmp_path / "out", *PLAIN)
    model, processor = (
        Wav2Vec2ForCTC.from_pretrained(theirs).eval(),
        Wav2Vec2Processor.from_pretrained(theirs),
    )
    samples = soundfile.read(audio, dtype="float32")[0]
    values = processor(samples, sampling_rate=16_000, return_tensors="pt").input_values
    with torch.inference_mode():
        log_probs = model(values).logits.log_softmax(-1)
    labels = torch.tensor([processor.tokenizer("A GOOD DEED").input_ids], dtype=torch.int32)
    path, scores = forced_align(log_probs, labels, blank=0)
    spans = [s for s in merge_tokens(path[0], scores[0]) if s.token != 4]  # 4: the word delimiter
    tier = files.read(tmp_path / "out/u.json").tier("characters")
    assert tier.labels == list("AGOODDEED")
    # a frame of wav2vec2 is 20 ms, in the middle of the 25 ms that it sees
    np.testing.assert_allclose([s.start for s in tier], [0.02 * s.start + 0.0025 for s in spans], atol=1e-6)
    np.testing.assert_allclose([s.end for s in tier], [0.02 * s.end + 0.0025 for s in spans], atol=1e-6)
    np.testing.assert_allclose([s.score for s in tier], [s.score for s in spans], atol=1e-4)


def test_formats_of_one_tier_take_the_tier_there_is(phones: Path, tmp_path: Path) -> None:
    audio, formats = save_noise(tmp_path / "u.wav"), ("ctm", "srt", "audacity", "timit")
    isotone("transcribe", audio, "-m", phones, *(a for f in formats for a in ("-f", f)), "-o", tmp_path / "o")
    assert sorted(Path(n).suffix for n in names_in(tmp_path / "o")) == [
        ".ctm",
        ".jsonl",
        ".phn",
        ".srt",
        ".txt",
    ]
    labels = [line.split()[4] for line in (tmp_path / "o/u.ctm").read_text().splitlines()]
    assert labels
    assert labels == [
        x for line in (tmp_path / "o/u.phn").read_text().splitlines() if (x := line.split()[2]) != "h#"
    ]


def test_what_was_left_out_is_said(characters: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "u.wav", text="日 va")
    result = isotone("align", speech, "-m", characters, "-o", tmp_path / "o")
    assert "'日'" in result.stderr
    (row,) = lines_of(tmp_path / "o/warnings.jsonl")
    assert row["file"] == str(speech)
    save_noise(speech, 0.5, text="va")
    assert isotone("align", speech, "-m", characters, "-o", tmp_path / "o", *PLAIN).stderr == ""
    assert not (tmp_path / "o/warnings.jsonl").exists()


def test_folders_named_like_markup_are_named_right(characters: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "[red]/u.wav", text="a")
    out = tmp_path / "[bold]x[/]"
    assert f"written to {out}\n" in isotone("align", speech, "-m", characters, "-o", out).stdout
    bad = error_of("align", tmp_path / "[red]", "-m", tmp_path / "[blue]nothing")
    assert f"{tmp_path / '[blue]nothing'}" in bad


# plugins, synth, train


def test_plugins_lists_everything() -> None:
    rows = json.loads(isotone("plugins", "--check", "--json").stdout)
    expected = {(registry.kind, name) for registry in ALL for name in registry.names()}
    assert {(row["kind"], row["name"]) for row in rows} == expected
    assert [row["name"] for row in rows if row["error"]] == []
    assert all(row["summary"] and row["distribution"] and row["version"] for row in rows)
    table = isotone("plugins").stdout
    assert all(name in table for name in ("ctc-torchaudio", "ottc", "textgrid", "isotone"))


def test_plugins_of_one_kind() -> None:
    rows = json.loads(isotone("plugins", "--json", "--kind", "format").stdout)
    assert {row["kind"] for row in rows} == {"format"}
    message = error_of("plugins", "--kind", "fromat")
    assert "Did you mean 'format'?" in message


def test_synth_makes_a_corpus(tmp_path: Path) -> None:
    pytest.importorskip("espeakng_loader", reason="espeak-ng is an extra")
    command = ("synth", tmp_path / "c", "--hours", "0.001", "--test-hours", "0.002")
    assert isotone(*command).stdout == f"Corpus: {tmp_path / 'c'}\n"
    from isotone import corpora

    rows = corpora.build("timit", tmp_path / "c").load("train")
    assert 3.6 <= sum(row["end"] for row in rows) < 12
    assert all(row["phones"]["label"] for row in rows)
    before = (tmp_path / "c/manifest.json").stat().st_mtime_ns
    isotone(*command)
    assert (tmp_path / "c/manifest.json").stat().st_mtime_ns == before, "made again"
    assert "overwrite" in error_of(*command, "--seed", "1")
    isotone(*command, "--seed", "1", "--overwrite")
    assert (tmp_path / "c/manifest.json").stat().st_mtime_ns != before


def test_synth_explains_wrong_arguments(tmp_path: Path) -> None:
    assert "timit" in error_of("synth", tmp_path / "c", "--layout", "libri")
    assert "0.0" in error_of("synth", tmp_path / "c", "--hours", "0")
    assert list(tmp_path.iterdir()) == []


def test_train_explains_a_wrong_recipe(tmp_path: Path) -> None:
    (tmp_path / "joint.yaml").write_text("data: {name: timit}\n")
    assert "Did you mean 'joint'?" in error_of("train", tmp_path / "jiont.yaml")
    assert "no value for" in error_of("train", tmp_path / "joint.yaml")
    assert "'train.stesp'" in error_of("train", tmp_path / "joint.yaml", "train.stesp=3")
    assert "key=value" in error_of("train", tmp_path / "joint.yaml", "fast")


def test_tracebacks_are_for_those_who_ask(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        isotone("--verbose", "train", tmp_path / "nothing.yaml")
    assert "nothing.yaml" in error_of("train", tmp_path / "nothing.yaml")


def test_another_decoder(phones: Path, tmp_path: Path) -> None:
    audio = save_noise(tmp_path / "a.wav")
    given: dict[str, Any] = {
        "ctc-beam": "ctc-beam",
        "{name: ctc-beam, beam: 1}": {"name": "ctc-beam", "beam": 1},
    }
    for option, decoder in given.items():
        output = isotone(
            "transcribe", audio, "-m", phones, "-o", tmp_path / "out", "--decoder", option
        ).stdout
        expected = Pipeline(Model.load(phones), decoder=decoder).transcribe("a", load(audio, 16_000)).text
        assert f"{audio}: {expected}\n" in output
    for wrong, message in (
        ("{name: ctc-beam, bem: 1}", "has no option 'bem'. Did you mean 'beam'"),
        ("ctc-bem", "No decoder named 'ctc-bem'. Did you mean 'ctc-beam'"),
        ("{name", "is no YAML mapping"),
    ):
        error = error_of("transcribe", audio, "-m", phones, "-o", tmp_path / "out", "--decoder", wrong)
        assert message in error


def test_an_option_of_a_wrong_type_is_named(phones: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "u.wav")
    message = error_of(
        "transcribe", speech, "-m", phones, "--decoder", "{name: ctc-beam, beam: many}", "-o", tmp_path
    )
    assert (
        "The decoder 'ctc-beam' expects beam to be a whole number; got 'many'. It takes: beam, prune"
        in message
    )


def test_transcribe_prints_and_writes_the_text(phones: Path, tmp_path: Path) -> None:
    audio = save_noise(tmp_path / "u.wav")
    result = isotone("transcribe", audio, "-m", phones, "-o", tmp_path / "o")
    row = json.loads((tmp_path / "o/transcripts.jsonl").read_text())
    assert row["file"] == str(audio)
    assert f"{audio}: {row['text']}" in result.stdout


# Texts


def test_a_word_that_cannot_be_spelled_keeps_its_place(characters: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "u.wav", 3.0, text="Café [laughs] naïve 你好 21 <b>go</b>")
    command = ("align", speech, "-m", characters, "-f", "json", "-o", tmp_path / "o")
    isotone(*command, "--language", "hsb")
    words = files.read(tmp_path / "o/u.json").tier("words").labels
    assert words == ["Café", "naïve", "你好", "21", "<b>go</b>"] or words == [
        "Café",
        "naïve",
        "你好",
        "21",
        "go",
    ]
    (row,) = lines_of(tmp_path / "o/warnings.jsonl")
    for part in ("你好", "'21'", "[laughs]"):
        assert part in row["warning"], row
    isotone(*command)  # another language: it is done again, and English numbers are read
    (row,) = lines_of(tmp_path / "o/warnings.jsonl")
    assert "21" not in row["warning"]
    isotone(*command, "--keep-markup")
    assert "[laughs]" in files.read(tmp_path / "o/u.json").tier("words").labels


def test_dictionaries_give_pronunciations(phones: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "u.wav", 2.0, text="seat teas")
    (tmp_path / "own.dict").write_text("seat s iy t\nteas t iy s\n")
    command = ("align", speech, "-m", phones, "-f", "json", "-o", tmp_path / "o")
    isotone(*command, code=1)
    isotone(*command, "--dictionary", tmp_path / "own.dict")
    whole = files.read(tmp_path / "o/u.json")
    assert whole.tier("words").labels == ["seat", "teas"]
    assert whole.tier("phones").labels == ["s", "iy", "t", "t", "iy", "s"]
    (tmp_path / "own.dict").write_text("seat s aa t\nteas t aa s\n")
    isotone(*command, "--dictionary", tmp_path / "own.dict")
    assert files.read(tmp_path / "o/u.json").tier("phones").labels == ["s", "aa", "t", "t", "aa", "s"], (
        "it has changed"
    )
    assert "No pronunciation dictionary" in error_of(*command, "--dictionary", tmp_path / "gone.dict")
    assert "ISO code" in error_of(*command, "--language", "German!")
