"""A folder that is both input and output: what a command wrote there is none of its transcripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isotone.batch import OutputConflict
from isotone.batch.ledger import Ledger, State
from tests.batch.parts import Echo, echo, say, tree
from tests.tiny_models import isotone, save_noise


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Recordings whose transcripts are JSON."""
    for name in "abc":
        say(tmp_path / f"{name}.wav", None)
        (tmp_path / f"{name}.json").write_text(f"by hand: {name}")
    return tmp_path


def test_a_second_run_has_nothing_to_do(folder: Path) -> None:
    echo(folder, folder)
    before = tree(folder)
    outcome = echo(folder, folder)
    assert (outcome.done, outcome.there, outcome.errors) == (3, 3, [])
    assert tree(folder) == before


def test_doing_it_again_reads_the_same_transcripts(folder: Path) -> None:
    echo(folder, folder)
    before = tree(folder)
    work = Echo()
    assert echo(folder, folder, work=work, redo=True).there == 0
    assert sorted(work.done) == ["a", "b", "c"]
    assert tree(folder) == before
    (folder / "a.json").write_text("by hand: another")
    outcome = echo(folder, folder)
    assert (outcome.done, outcome.there) == (3, 2)
    assert "by hand: another" in (folder / "a.TextGrid").read_text()


def test_a_run_that_is_killed_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    echo(folder, folder)
    whole = tree(folder)
    real = Ledger._put_recorded

    def killed(self: Ledger, contents: dict[str, bytes], overwrite: bool) -> None:
        if "b.TextGrid" in contents:
            raise KeyboardInterrupt
        real(self, contents, overwrite)

    for name in "ab":
        (folder / f"{name}.json").write_text(f"by hand: {name} again")
    (folder / "c.TextGrid").unlink()
    monkeypatch.setattr(Ledger, "_put_recorded", killed)
    with pytest.raises(KeyboardInterrupt):
        echo(folder, folder)
    monkeypatch.undo()
    with Ledger(folder) as ledger:
        assert ledger.state("b.TextGrid") is State.OLD, "it was recorded and not written"
    assert echo(folder, folder).errors == []
    texts = {n: (folder / f"{n}.TextGrid").read_text() for n in "abc"}
    assert "by hand: a again" in texts["a"]
    assert "by hand: b again" in texts["b"]
    assert texts["c"].encode() == whole["c.TextGrid"]
    assert echo(folder, folder).there == 3


def test_what_is_corrected_by_hand_is_the_users(folder: Path) -> None:
    echo(folder, folder)
    (folder / "a.TextGrid").write_text("corrected in Praat")
    before = tree(folder)
    for more in ({}, {"redo": True}, {"overwrite": True}):
        with pytest.raises(OutputConflict, match=r"a\.TextGrid: it is an input") as refused:
            echo(folder, folder, **more)
        assert "b.TextGrid" not in str(refused.value)
        assert tree(folder) == before


def test_labels_of_audacity_are_not_plain_text(folder: Path) -> None:
    for _ in range(2):
        outcome = echo(folder, folder, formats=("audacity",))
        assert (outcome.done, outcome.errors) == (3, [])
    assert outcome.there == 3


class Transcribe(Echo):
    command = "transcribe"


def test_what_another_command_wrote_is_a_transcript(folder: Path) -> None:
    echo(folder, folder, work=Transcribe(), formats=("audacity",))
    labels = (folder / "a.txt").read_text()
    for there in (0, 3):
        outcome = echo(folder, folder)
        assert (outcome.done, outcome.there) == (3, there)
    assert outcome.texts[str(folder / "a.wav")] == labels
    with pytest.raises(OutputConflict, match=r"a\.txt: it is an input"):
        echo(folder, folder, formats=("audacity",), overwrite=True)


def test_without_its_transcript_a_recording_fails(folder: Path) -> None:
    echo(folder, folder)
    before = tree(folder)
    (folder / "a.json").unlink()
    (error,) = echo(folder, folder).errors
    assert "isotone wrote a.TextGrid: it is no transcript unless you correct it" in error["error"]
    assert tree(folder)["a.TextGrid"] == before["a.TextGrid"]


def test_alignments_beside_transcripts_of_whisper(model: Path, tmp_path: Path) -> None:
    save_noise(tmp_path / "in/talk.wav", 4.0)
    said = [
        {"start": 0.2, "end": 1.8, "text": " She had it."},
        {"start": 2.1, "end": 3.8, "text": " Ask me."},
    ]
    (tmp_path / "in/talk.json").write_text(json.dumps({"segments": said}))
    command = "align", tmp_path / "in", "-m", model, "-o", tmp_path / "in"
    isotone(*command)
    assert "(1 of them there before)" in isotone(*command).stdout
    # a pattern names the results as well
    assert (tmp_path / "in/warnings.jsonl").is_file()
    named = sorted(p for p in (tmp_path / "in").iterdir() if not p.name.startswith("."))
    assert "(1 of them there before)" in isotone("align", *named, *command[2:]).stdout
    grid = (tmp_path / "in/talk.TextGrid").read_bytes()
    assert "there before" not in isotone(*command, "--redo", "--jobs", "2").stdout
    assert (tmp_path / "in/talk.TextGrid").read_bytes() == grid
    (tmp_path / "in/talk.TextGrid").write_text("corrected in Praat")
    assert "talk.TextGrid" in isotone("align", *named, *command[2:], code=2).stderr
    assert (tmp_path / "in/talk.TextGrid").read_text() == "corrected in Praat"
