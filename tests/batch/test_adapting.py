"""Adaptation to a folder of recordings: what it learns from, what it writes, and what it leaves alone."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch
from accelerate.state import AcceleratorState

from isotone.alignment import Alignment, AlignmentError, Segment, Tier
from isotone.batch import Options
from isotone.batch import adapting as subject
from isotone.batch.adapting import adapt_files
from isotone.model import Model
from isotone.model.check import Check, Presence
from isotone.pipeline.presence import Evidence
from isotone.text.tokenizer import PhoneTokenizer
from isotone.training import adapt as training
from isotone.training.adapt import Adapted, Settings
from tests.scripts import Script
from tests.tiny_models import PHONES, error_of, isotone, names_in, save_character_model, save_noise

FEW = Settings(steps=4, batch_size=4, lr=1e-2, evaluate_every=2)


@pytest.fixture(autouse=True)
def _own_state() -> None:
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("models") / "characters")


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    for number, text in enumerate(
        ["so it is", "and so on", "go and see", "well it was", "as you were", "or not to"]
    ):
        save_noise(tmp_path / f"speech/{number}.wav", text=text, seed=number)
    return tmp_path / "speech"


def falling(monkeypatch: pytest.MonkeyPatch, values: list[float]) -> None:
    """Give the losses of a run instead of measuring."""
    left = iter(values)
    monkeypatch.setattr(training._Measure, "__call__", lambda self: next(left))


def test_a_better_model_is_written(
    speech: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    falling(monkeypatch, [0.3, 0.1, 0.2])
    (speech / "0.txt").write_text("")
    save_noise(speech / "6.wav", text="one more", seed=9)
    found = adapt_files([speech], Options(str(model)), tmp_path / "mine", settings=FEW)
    assert found.adapted == Adapted(0.3, 0.1, 2)
    assert (found.trained, found.held_out) == (3, 3)
    assert [row["file"] for row in found.errors] == [str(speech / "0.wav")]
    before, after = Model.load(model), Model.load(tmp_path / "mine")
    changed = [k for k, v in after.state_dict().items() if not torch.equal(v, before.state_dict()[k])]
    assert {name.split(".")[0] for name in changed} == {"encoder", "heads"}
    assert any(name.startswith("heads.ctc") for name in changed)
    assert not any(name.startswith("heads.ottc") for name in changed), "it reads the input features: it stays"
    assert after.decoding == before.decoding
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine", "speech"], "nothing else is left"


def test_a_model_of_narrow_heads_alone_learns_all_the_same(
    speech: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    falling(monkeypatch, [0.3, 0.1, 0.2])
    before = Model.load(model)
    narrow = {"ottc": before.head_specs["ottc"]}
    reading = replace(before.decoding, text="ottc", decoder={"name": "segmental"})
    Model(before.encoder, narrow, before.tokenizer, reading).save(tmp_path / "narrow")
    adapt_files([speech], Options(str(tmp_path / "narrow")), tmp_path / "mine", settings=FEW)
    was, now = Model.load(tmp_path / "narrow").state_dict(), Model.load(tmp_path / "mine").state_dict()
    changed = {name for name in was if not torch.equal(was[name], now[name])}
    assert changed
    assert all(name.startswith("heads.ottc") for name in changed)


def test_weights_are_those_of_the_best_step(
    speech: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is best at its second step writes what a run of two steps with the same schedule has there."""
    seen: list[dict[str, torch.Tensor]] = []

    def measure(self: training._Measure) -> float:
        seen.append({k: v.clone() for k, v in self.objective.model.state_dict().items()})
        return [0.3, 0.1, 0.2][len(seen) - 1]

    monkeypatch.setattr(training._Measure, "__call__", measure)
    adapt_files([speech], Options(str(model)), tmp_path / "mine", settings=FEW)
    written = Model.load(tmp_path / "mine").state_dict()
    assert all(torch.equal(value, seen[1][name]) for name, value in written.items())
    assert any(not torch.equal(value, seen[2][name]) for name, value in written.items())


def test_no_better_model_is_not_written(
    speech: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    falling(monkeypatch, [0.3, 0.3, 0.4])
    out = tmp_path / "mine"
    command = ("adapt", speech, "-m", model, "-o", out, "--steps", "4", "--batch-size", "4")
    message = error_of(*command, code=3)
    assert "nothing is written" in message
    assert sorted(p.name for p in tmp_path.iterdir()) == ["speech"]


def test_it_ends_where_the_loss_stops_falling(
    speech: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    falling(monkeypatch, [0.2, 0.1, 0.2, 0.1])  # a fifth measurement would be an error
    settings = Settings(steps=100, batch_size=4, lr=1e-3, evaluate_every=1, patience=2)
    assert adapt_files([speech], Options(str(model)), tmp_path / "mine", settings=settings).adapted.step == 1


def test_the_command_reports_bad_files(
    speech: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    falling(monkeypatch, [0.2, 0.1])
    save_noise(speech / "bad.wav", text="")
    done = isotone("adapt", speech, "-m", model, "-o", tmp_path / "mine", "--steps", "2", code=1)
    assert "bad.wav" in done.stderr
    assert "0.2000 before, 0.1000 after" in done.stdout
    assert "model.safetensors" in names_in(tmp_path / "mine")


def test_folders_of_others_are_not_touched(speech: Path, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    assert "not empty" in error_of("adapt", speech, "-m", model, "-o", out)
    (tmp_path / "other.run").mkdir()
    (tmp_path / "other.run/notes.txt").write_text("mine")
    assert "another run" in error_of("adapt", speech, "-m", model, "-o", tmp_path / "other")
    assert (tmp_path / "other.run/notes.txt").read_text() == (out / "notes.txt").read_text() == "mine"


def test_too_few_recordings_are_an_error(tmp_path: Path, model: Path) -> None:
    save_noise(tmp_path / "speech/a.wav", text="so it is")
    save_noise(tmp_path / "speech/b.wav", text="")
    message = error_of("adapt", tmp_path / "speech", "-m", model, "-o", tmp_path / "mine")
    assert "1 recordings can be aligned" in message
    assert "b.wav" in message
    assert not (tmp_path / "mine").exists()
    assert not (tmp_path / "mine.run").exists()


def test_targets_are_the_aligned_phones_with_silence_in_gaps_and_closures() -> None:
    spans = [("s", 0.2, 0.3), ("tcl", 0.4, 0.5), ("t", 0.5, 0.6), ("iy", 0.6, 0.8)]
    tier = Tier("phones", tuple(Segment(*span) for span in spans)).filled(1.0)
    found = subject._spoken(tier, PhoneTokenizer(PHONES, None, "sil"))
    assert [(s.label, s.start, s.end) for s in found] == [
        ("sil", 0.0, 0.2), ("s", 0.2, 0.3), ("sil", 0.3, 0.5), ("t", 0.5, 0.6), ("iy", 0.6, 0.8), ("sil", 0.8, 1.0),
    ]  # fmt: skip
    bare = subject._spoken(tier, PhoneTokenizer(PHONES, None))
    assert [s.label for s in bare] == ["s", "t", "iy"]


def test_recordings_with_unwritten_speech_neither_train_nor_measure(
    speech: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    falling(monkeypatch, [0.2, 0.1])
    for number in (6, 7):
        save_noise(speech / f"{number}.wav", text="one more 你好", seed=number)
    settings = Settings(steps=1, batch_size=2)
    options = Options(str(model), edges=False)
    found = adapt_files([speech], options, tmp_path / "mine", settings=settings)
    assert (found.trained, found.held_out, found.unwritten, found.errors) == (3, 3, 2, [])
    text = (speech / "0.txt").read_text()
    (speech / "0.txt").write_text(f"{text} 你好")
    with pytest.raises(ValueError, match="8 recordings can be aligned, 5 of them with a pronunciation"):
        adapt_files([speech], options, tmp_path / "other", settings=settings)


def test_words_that_were_found_are_found_by_the_adapted_model(
    speech: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    falling(monkeypatch, [0.2, 0.1])
    presence = Presence(("ottc",), (0.0, 1.0), (0.0, 1.0), 0.1, 0.9, "dev", 10, 0.0, 1.0)
    judging = Model.load(model)
    judging.check = Check(0.2, "dev", 10, 0.0, 0.9, presence=presence)
    judging.save(tmp_path / "judging")
    odds = iter([5.0, -4.0])  # of a word, by the model before and after

    def evidence(pipeline: subject.Pipeline, recordings: list[object]) -> list[Evidence | None]:
        assert len(recordings) == 6
        found = np.array([[next(odds)]])
        return [Evidence([0], found, np.array([[-9.0], [-9.0]]), [0, 1]), *[None] * 5]

    monkeypatch.setattr(subject, "_evidence", evidence)
    adapt_files([speech], Options(str(tmp_path / "judging")), tmp_path / "mine", settings=Settings(steps=1))
    check = Model.load(tmp_path / "mine").check
    assert check is not None
    assert check.presence is not None
    assert 0 < check.presence.least < 0.02
    assert replace(check, presence=presence) == judging.check


def test_a_recording_that_cannot_be_judged_has_no_evidence(speech: Path) -> None:
    class Judging:
        model = SimpleNamespace(encoder=SimpleNamespace(sample_rate=16_000), heads=())
        placer = SimpleNamespace(heads=())
        presence = Presence(("ottc",), (0.0, 1.0), (0.0, 1.0), 0.1, 0.9, "dev", 10, 0.0, 1.0)

        def encode(self, text: str) -> str:
            return text

        def align(self, id: str, samples: np.ndarray, text: str) -> SimpleNamespace:
            if id == "0":
                raise AlignmentError("too short")
            return SimpleNamespace(evidence=text)

    ones = [subject._Recording(id, speech / f"{id}.wav", id, Alignment(id, 1.5, ())) for id in ("0", "1")]
    assert subject._evidence(Judging(), ones) == [None, "1"]  # type: ignore[arg-type, comparison-overlap]


def test_no_more_than_so_many_recordings_measure(
    speech: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the measurement of a large corpus would take longer than the training."""
    falling(monkeypatch, [0.2, 0.1])
    monkeypatch.setattr(subject, "LEAST", 1)
    monkeypatch.setattr(subject, "HELD_OUT", 0.5)
    monkeypatch.setattr(subject, "MOST", 2)
    found = adapt_files([speech], Options(str(model)), tmp_path / "mine", settings=Settings(steps=1))
    assert (found.trained, found.held_out) == (4, 2)


def test_the_loss_is_ctc_of_the_recordings_that_are_held_out(
    speech: Path, model: Path, tmp_path: Path
) -> None:
    """Against torch's own CTC loss, on the recordings whose digests come first."""
    found = adapt_files([speech], Options(str(model)), tmp_path / "mine", settings=FEW)
    assert found.adapted.better
    held_out = sorted((str(number) for number in range(6)), key=subject._draw)[:3]
    assert found.adapted.before == pytest.approx(ctc_loss(model, speech, held_out), rel=1e-5)
    assert found.adapted.after == pytest.approx(ctc_loss(tmp_path / "mine", speech, held_out), rel=1e-5)


def ctc_loss(model: Path, speech: Path, ids: list[str]) -> float:
    """The mean CTC loss of recordings in nats per letter."""
    loaded, losses = Model.load(model).eval(), []
    for id in ids:
        samples = torch.from_numpy(soundfile.read(speech / f"{id}.wav", dtype="float32")[0])[None]
        tokens = loaded.tokenizer.encode((speech / f"{id}.txt").read_text()).tokens
        with torch.no_grad():
            logits = loaded(samples, torch.tensor([samples.shape[1]]), {"ctc"})["ctc"].logits
        log_probs = logits.log_softmax(-1).transpose(0, 1)
        sizes = torch.tensor([len(log_probs)]), torch.tensor([len(tokens)])
        losses.append(
            torch.nn.functional.ctc_loss(log_probs, torch.tensor([tokens]), *sizes, reduction="sum")
            / len(tokens)
        )
    return float(torch.stack(losses).mean())


def test_align_adapts_once(
    speech: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("align", speech, "-m", model, "-o", tmp_path / "out", "--adapt", "--no-check", "--no-edges")
    falling(monkeypatch, [0.2, *(0.1 for _ in range(8))])
    first = isotone(*command)
    assert "0.2000 before, 0.1000 after; the model of step 25" in first.stderr
    assert [name for name in names_in(tmp_path / "out") if not name.startswith(".")] == [
        f"{number}.TextGrid" for number in range(6)
    ]
    again = isotone(*command)
    assert "6 of them there before" in again.stdout, "trained once, aligned once"
    falling(monkeypatch, [0.1, *(0.2 for _ in range(8))])
    (speech / "0.txt").write_text("so it was")
    third = isotone(*command)
    assert "the model stays as it was" in third.stderr
    assert "6 of 6 files written" in third.stdout, "by another model"


CODE = """
import os, signal, sys
from pathlib import Path
from isotone.batch import Options, adapting
from isotone.training import adapt
values = iter(eval(sys.argv[4]))
def measure(self):
    value = next(values)
    if value is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return value
adapt._Measure.__call__ = measure
settings = adapt.Settings(steps=6, batch_size=4, lr=1e-2, evaluate_every=2)
print(adapting.adapt_files([Path(sys.argv[1])], Options(sys.argv[2]), Path(sys.argv[3]), settings=settings).adapted)
"""


def test_a_killed_run_goes_on(speech: Path, model: Path, tmp_path: Path) -> None:
    """The second call measures neither the start nor the finished part again, and comes to the same weights."""

    def go(out: str, values: list[float | None], code: int = 0) -> str:
        script = Script(CODE, speech, model, tmp_path / out, repr(values))
        assert script.wait() == code, script.stderr
        return script.stdout

    whole = go("whole", [0.3, 0.2, 0.1, 0.25])
    go("cut", [0.3, 0.2, None], code=-signal.SIGKILL)
    assert go("cut", [0.1, 0.25]) == whole
    first, second = (Model.load(tmp_path / name).state_dict() for name in ("whole", "cut"))
    assert all(torch.equal(value, second[name]) for name, value in first.items())


def test_transcripts_that_are_given_count_and_not_those_beside(
    speech: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    falling(monkeypatch, [0.3, *(0.1 for _ in range(8))])
    rows = [{"audio_filepath": f"{n}.wav", "text": "as it is"} for n in range(6)]
    manifest = tmp_path / "all.jsonl"
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    heard: list[str] = []
    align = subject._align
    monkeypatch.setattr(subject, "_align", lambda *given: heard.append(given[3]) or align(*given))
    options, out = Options(str(model)), tmp_path / "out"
    chosen, found = subject.adapted_for([speech], options, out, manifest)
    assert found.better
    assert Path(chosen.model).is_dir()
    assert heard == ["as it is"] * 6
    subject.adapted_for([speech], options, out, manifest)
    assert len(heard) == 6, "the same again"
    manifest.write_text(manifest.read_text().replace("as it is", "it was"))
    falling(monkeypatch, [0.3, *(0.1 for _ in range(8))])
    subject.adapted_for([speech], options, out, manifest)
    assert heard[6:] == ["it was"] * 6


def test_a_book_is_no_text_to_adapt_to(speech: Path, model: Path, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("as it is")
    command = (
        "align",
        speech,
        "-m",
        model,
        "-o",
        tmp_path / "out",
        "--adapt",
        "--book",
        tmp_path / "book.txt",
    )
    assert "--adapt learns from a transcript of each recording" in error_of(*command)
