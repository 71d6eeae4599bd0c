"""isotone-light with the English pack: the times of isotone, without torch; and its command."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import soundfile

from benchmarks.light import TOLERANCE_S, difference
from isotone import audio
from isotone import format as formats
from isotone.alignment import Alignment, AlignmentError, Segment, Tier
from isotone.model import Model
from isotone.model.onnx import export_onnx
from isotone.pipeline import Pipeline
from isotone.quick.one import align_one
from tests.light.conftest import ABSENT, Run
from tests.paths import DATA
from tests.tiny_models import save_character_model, save_noise, save_transformers_model

pytestmark = pytest.mark.slow

Light = Callable[[str], ModuleType]
TIMIT = DATA / "timit_sample"
needs_timit = pytest.mark.skipif(not TIMIT.is_dir(), reason="no sample data (ISOTONE_TEST_DATA)")


def noise(seconds: float, seed: int = 0, level: float = 0.1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, level, round(16_000 * seconds)).astype(np.float32)


def spoken(count: int, first: int = 0) -> tuple[np.ndarray, str]:
    """Sentences of TIMIT, one after the other, and their text."""
    paths = sorted(TIMIT.glob("dr*/s[ix]*.wav"))[first : first + count]
    texts = [path.with_suffix(".txt").read_text().split(maxsplit=2)[2].strip() for path in paths]
    return np.concatenate([audio.load(path, 16_000) for path in paths]), " ".join(texts)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.load("english")


def same(light: Light, model: Model, samples: np.ndarray, text: Any, **options: Any) -> Any:
    """Align by both, and compare times, scores, agreement and warnings; return isotone's result."""
    expected = align_one(Pipeline(model, **options), "english", samples, text, 16_000)
    found = align_one_of(light)(light("calls").pipeline(**options), "english", samples, text, 16_000)
    seconds, labels = difference(found.alignment, expected.alignment)
    assert labels
    assert seconds <= TOLERANCE_S
    assert found.alignment.score == pytest.approx(expected.alignment.score, abs=1e-3)
    assert found.agreement == pytest.approx(expected.agreement, abs=1e-3)
    assert found.warnings == expected.warnings
    for tier, other in zip(found.alignment.tiers, expected.alignment.tiers):
        for one, two in zip(tier, other):
            assert one.score == pytest.approx(two.score, abs=2e-3)
            assert one.confidence == pytest.approx(two.confidence, abs=2e-3)
    return expected


def align_one_of(light: Light) -> Callable[..., Any]:
    return light("core.quick.one").align_one


def test_noise_has_the_times_of_isotone(light: Light, model: Model) -> None:
    for seed, text in enumerate(("She washed the dog.", "Dr. Smith paid $1,984 in May 1984.", "a b c d")):
        same(light, model, noise(2.5, seed), text)


@needs_timit
def test_speech_has_the_times_of_isotone(light: Light, model: Model) -> None:
    for number in range(0, 60, 6):
        same(light, model, *spoken(1, number))


@needs_timit
def test_long_audio_is_encoded_in_windows_as_by_isotone(light: Light, model: Model) -> None:
    samples, text = spoken(14)
    assert len(samples) > 31 * 16_000
    same(light, model, samples, text)


@needs_timit
def test_edges_are_found_as_by_isotone(light: Light, model: Model) -> None:
    samples, text = spoken(2)
    others, _ = spoken(4, 20)
    whole = np.concatenate([others, samples, others[::-1]])
    expected = same(light, model, whole, text)
    assert any("hold something else" in warning for warning in expected.warnings)


@needs_timit
def test_options_are_those_of_isotone(light: Light, model: Model) -> None:
    samples, text = spoken(2, 5)
    words = text.split()
    same(light, model, samples, " ".join(words[:3] + words[6:]), extra_speech=True)
    same(light, model, samples, text, closures=True)
    expected = same(light, model, samples, text, margins=True).alignment
    found = align_one_of(light)(light("calls").pipeline(margins=True), "", samples, text, 16_000).alignment
    for tier, other in zip(found.tiers, expected.tiers):
        for one, two in zip(tier, other, strict=True):
            for side in ("start_margin", "end_margin"):
                a, b = getattr(one, side), getattr(two, side)
                assert (a.before, a.after, a.near) == pytest.approx((b.before, b.after, b.near), abs=1e-3)
    same(light, model, samples, text, guided=False, edges=False)
    same(light, model, samples, f"* {' '.join(words[3:])}")
    windows = light("core.pipeline.windows").Windows(2.0, 1.0)
    from isotone.pipeline.windows import Windows

    expected = Pipeline(model, windows=Windows(2.0, 1.0))
    found = align_one_of(light)(light("calls").pipeline(windows=windows), "", samples, text, 16_000)
    assert (
        difference(found.alignment, align_one(expected, "", samples, text, 16_000).alignment)[0]
        <= TOLERANCE_S
    )


@needs_timit
def test_passages_are_aligned_as_by_isotone(light: Light, model: Model, tmp_path: Path) -> None:
    samples, text = spoken(2)
    words = text.split()
    half = len(words) // 2
    middle = len(samples) / 32_000
    cues = [(0.0, middle, words[:half]), (middle, 2 * middle, words[half:])]
    rows = [
        f"{n}\n00:00:{a:06.3f} --> 00:00:{b:06.3f}\n{' '.join(w)}\n" for n, (a, b, w) in enumerate(cues, 1)
    ]
    (tmp_path / "t.srt").write_text("\n".join(rows).replace(".", ",", 0))
    same(light, model, samples, tmp_path / "t.srt")


def test_dictionaries_and_rules_are_read(light: Light, tmp_path: Path) -> None:
    dictionary, rules = tmp_path / "d.dict", tmp_path / "r.tsv"
    dictionary.write_text("blorf B L AO1 R F\n")
    rules.write_text("SQL\tsequel\n")
    aligned = light("calls").align(
        noise(3.0), "blorf SQL", rate=16_000, dictionaries=[dictionary], rules=[rules]
    )
    assert "".join(phone.label for phone in aligned.phones if phone.label)  # they have phones
    assert [word.origin.reading for word in aligned.words if word.origin] == ["blorf", "sequel"]


def test_errors_are_those_of_isotone(light: Light) -> None:
    align = light("calls").align
    with pytest.raises(light("core.alignment").AlignmentError, match="too short for a single frame"):
        align(noise(0.01), "a", rate=16_000)
    with pytest.raises(light("core.alignment").AlignmentError, match="too long for the audio"):
        align(noise(0.2), "She had your dark suit in greasy wash water all year.", rate=16_000)
    with pytest.raises(TypeError, match="sample rate"):
        align(noise(1.0), "a")
    assert issubclass(light("core.alignment").AlignmentError, AlignmentError.__base__)


def test_a_folder_that_is_no_export_is_named(light: Light, built: Path, tmp_path: Path) -> None:
    load = light("core.model.onnx_model").OnnxModel
    error = light("core.model.decoding").ModelError
    with pytest.raises(FileNotFoundError, match="no folder"):
        load(tmp_path / "none")
    with pytest.raises(error, match=r"isotone export MODEL --onnx"):
        load(tmp_path)
    folder = shutil.copytree(built / "isotone_light" / "english", tmp_path / "copy")
    (folder / "model.onnx").write_bytes((folder / "model.onnx").read_bytes()[:1000])
    with pytest.raises(error, match="cannot be read"):
        load(folder)
    (folder / "onnx.json").write_text('{"format": 1}')
    with pytest.raises(error, match="format 1, and not 'onnx 2'"):
        load(folder)
    (folder / "onnx.json").write_text('{"format": "onnx 2"}')
    with pytest.raises(error, match="damaged"):
        load(folder)
    (folder / "onnx.json").write_text("{")
    with pytest.raises(error, match="damaged"):
        load(folder)


@pytest.mark.parametrize("make", [save_character_model, save_transformers_model])
def test_models_of_letters_align_without_torch(
    make: Callable[[Path], Path], without_torch: Run, built: Path, tmp_path: Path
) -> None:
    model = Model.load(make(tmp_path / "model"))
    export_onnx(model, tmp_path / "export")
    soundfile.write(tmp_path / "a.wav", noise(2.0), 16_000)
    (tmp_path / "a.txt").write_text("hello there")
    arguments = (
        tmp_path / "a.wav",
        tmp_path / "a.txt",
        "--model",
        tmp_path / "export",
        "-o",
        tmp_path / "out",
    )
    command(without_torch, built, *arguments, "--format", "json")
    found = formats.read(tmp_path / "out" / "a.json")
    assert [word.label for word in found.tier("words") if word.label] == ["hello", "there"]
    expected = align_one(Pipeline(model), "", tmp_path / "a.wav", "hello there")
    assert difference(found, expected.alignment)[0] <= TOLERANCE_S


# The command, in a process that cannot import torch.


def command(run: Run, tree: Path, *arguments: str | Path, code: int = 0) -> Any:
    return run(tree, "-m", "isotone_light", *arguments, code=code)


def test_it_aligns_without_torch(without_torch: Run, built: Path, tmp_path: Path) -> None:
    code = f"""
import sys, numpy as np, isotone_light
noise = np.random.default_rng(0).normal(0, 0.1, 40_000).astype(np.float32)
aligned = isotone_light.align(noise, "She washed the dog.", rate=16_000)
aligned.save({str(tmp_path / "a.TextGrid")!r})
print(*[word.label for word in aligned.words if word.label])
print(sorted({{name.split(".")[0] for name in sys.modules if sys.modules[name]}} & set({ABSENT!r})))
"""
    said = without_torch(built, "-c", code).stdout.splitlines()
    assert said[-2:] == ["She washed the dog.", "[]"]
    assert "washed" in (tmp_path / "a.TextGrid").read_text()


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    """A folder of recordings: two good ones, one without a transcript, and one that is no audio."""
    folder = tmp_path / "speech"
    save_noise(folder / "anna" / "a.wav", 2.0, text="she washed the dog")
    save_noise(folder / "b.wav", 2.0, rate=44_100, text="the dog")
    save_noise(folder / "c.wav", 1.0)
    (folder / "d.wav").write_bytes(b"no audio")
    (folder / "d.txt").write_text("the dog")
    return folder


def files(out: Path) -> Sequence[str]:
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())


def tiers_of(path: Path) -> dict[str, Any]:
    return {tier["name"]: tier["segments"] for tier in json.loads(path.read_text())["tiers"]}


def test_one_bad_file_does_not_stop_the_others(
    without_torch: Run, built: Path, speech: Path, tmp_path: Path
) -> None:
    before = {path: path.read_bytes() for path in speech.rglob("*") if path.is_file()}
    out = tmp_path / "out"
    options = (speech, "-o", out, "--format", "textgrid", "--format", "json")
    done = command(without_torch, built, *options, code=1)
    assert files(out) == ["anna/a.TextGrid", "anna/a.json", "b.TextGrid", "b.json"]
    assert [word["label"] for word in tiers_of(out / "b.json")["words"] if word["label"]] == ["the", "dog"]
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 2
    assert "error: c: no transcript" in errors[0]
    assert "error: d: " in errors[1]
    assert "Traceback" not in done.stderr
    assert "2 of 4 files aligned" in done.stdout
    # what is there is not replaced, unless that is said
    (out / "b.json").write_text("mine")
    done = command(without_torch, built, *options, code=2)
    assert "4 files would be replaced" in done.stderr
    assert (out / "b.json").read_text() == "mine"
    (out / "anna" / "a.json").unlink()
    done = command(without_torch, built, *options, "--resume", "--overwrite", "--quiet", code=1)
    assert done.stdout == ""
    assert (out / "b.json").read_text() == "mine"
    assert files(out) == ["anna/a.TextGrid", "anna/a.json", "b.TextGrid", "b.json"]
    assert {path: path.read_bytes() for path in speech.rglob("*") if path.is_file()} == before


def test_wrong_arguments_are_named(without_torch: Run, built: Path, speech: Path, tmp_path: Path) -> None:
    for arguments, message in {
        (): "Nothing to align",
        (tmp_path / "none.wav",): "No such file or folder",
        (speech, "-o", speech / "b.wav"): "is a file",
        (speech, "--model", tmp_path / "none"): "no folder",
        (speech, "--dictionary", tmp_path / "none.dict"): "none.dict",
        (speech / "b.txt",): "No recording",
    }.items():
        done = command(without_torch, built, *arguments, code=2)
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert "invalid choice: 'doc'" in command(without_torch, built, speech, "--format", "doc", code=2).stderr


def test_a_recording_and_its_transcript(
    without_torch: Run, built: Path, speech: Path, tmp_path: Path
) -> None:
    shutil.copy(speech / "b.txt", tmp_path / "words.txt")
    done = command(
        without_torch,
        built,
        speech / "c.wav",
        tmp_path / "words.txt",
        "-o",
        tmp_path / "o",
        "--format",
        "ctm",
    )
    assert "1 of 1 files aligned" in done.stdout
    assert files(tmp_path / "o") == ["c.ctm"]


def test_a_transcript_is_never_replaced(without_torch: Run, built: Path, tmp_path: Path) -> None:
    save_noise(tmp_path / "a.wav", 2.0)
    text = "1\n00:00:00,500 --> 00:00:01,500\n<i>the dog</i>\n"
    (tmp_path / "a.srt").write_text(text)
    for more in ((), ("--overwrite",)):
        done = command(
            without_torch, built, tmp_path / "a.wav", "-o", tmp_path, "--format", "srt", *more, code=2
        )
        assert "a.srt is an input, and would be replaced: choose another --out" in done.stderr
    assert (tmp_path / "a.srt").read_text() == text
    command(without_torch, built, tmp_path / "a.wav", "-o", tmp_path / "out", "--format", "srt")
    assert "<i>the dog</i>" in (tmp_path / "out" / "a.srt").read_text()


def test_the_outcome_for_scripts(without_torch: Run, built: Path, speech: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = json.loads(
        command(without_torch, built, speech, "-o", out, "--format", "ctm", "--json", code=1).stdout
    )
    assert (found["out"], found["files"]) == (str(out), {"anna/a": ["anna/a.ctm"], "b": ["b.ctm"]})
    assert [row["file"] for row in found["errors"]] == ["c", "d"]
    assert all(set(row) == {"file", "warning"} for row in found["warnings"])


def test_names_from_data_stay_in_the_folder(without_torch: Run, built: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    soundfile.write(folder / "a:b?.wav", noise(1.5), 16_000)
    (folder / "a:b?.txt").write_text("the dog")
    command(without_torch, built, folder, "-o", tmp_path / "out")
    (name,) = files(tmp_path / "out")
    assert name.startswith("a_b_-")


def test_the_version_is_isotones(without_torch: Run, bare: Path) -> None:
    import isotone

    assert command(without_torch, bare, "--version").stdout.split() == ["isotone-light", isotone.__version__]
    assert sys.version_info >= (3, 11)


def test_tiers_of_a_textgrid_are_chosen(
    without_torch: Run, built: Path, speech: Path, tmp_path: Path
) -> None:
    """As in isotone, they come before plain text of the same name; a file without such a tier is an error."""
    tiers = (Tier("orth", (Segment("the dog", 0.2, 1.8),)), Tier("marks", (Segment("loud", 0.2, 1.8),)))
    formats.write(Alignment("b", 2.0, tiers), speech, "textgrid")
    options = ("-o", tmp_path / "out", "--format", "json", "--tier")
    command(without_torch, built, speech / "b.wav", *options, "orth")
    assert [w["label"] for w in tiers_of(tmp_path / "out/b.json")["words"] if w["label"]] == ["the", "dog"]
    done = command(without_torch, built, speech / "b.wav", *options, "ann", "--overwrite", code=1)
    assert "expected a tier of intervals 'ann' (--tier); got 'orth', 'marks'" in done.stderr
