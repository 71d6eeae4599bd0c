"""Files that were edited by hand: they are kept, the rest is done, and they never count as done by later options."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotone.batch import OutputConflict, Target
from isotone.batch.outcome import Outcome
from tests.batch.parts import echo, say, tree
from tests.tiny_models import error_of, isotone, save_noise

EDITED = "corrected in Praat"


def corpus(folder: Path) -> tuple[Path, Path]:
    """Align three recordings, and correct the first."""
    for name in "abc":
        say(folder / f"in/{name}.wav", name)
    echo(folder / "in", folder / "out")
    (folder / "out/a.TextGrid").write_text(EDITED)
    return folder / "in", folder / "out"


def counts(outcome: Outcome) -> tuple[int, int, int]:
    return outcome.done, outcome.there, outcome.left


def test_the_rest_is_done_and_again_is_the_same(tmp_path: Path) -> None:
    speech, out = corpus(tmp_path)
    with pytest.raises(OutputConflict, match=r"or say --keep-edited .*, or say --overwrite\.\n.*a\.TextGrid"):
        echo(speech, out, key="another")
    first = echo(speech, out, key="another", keep_edited=True)
    assert (counts(first), first.kept, first.edited) == ((2, 0, 1), ["a.TextGrid"], ["a.TextGrid"])
    assert sorted(Path(file).stem for file in first.files) == ["b", "c"]
    before = tree(out)
    again = echo(speech, out, key="another", keep_edited=True)
    assert (counts(again), again.edited) == ((2, 2, 1), ["a.TextGrid"])
    assert tree(out) == before
    assert (out / "a.TextGrid").read_text() == EDITED
    # these options never made it, and those before did
    with pytest.raises(OutputConflict):
        echo(speech, out, key="another")
    back = echo(speech, out)
    assert (counts(back), back.kept, back.edited) == ((3, 1, 0), ["a.TextGrid"], [])


def test_what_is_removed_is_made_anew(tmp_path: Path) -> None:
    speech, out = corpus(tmp_path)
    echo(speech, out, key="another", keep_edited=True)
    (out / "a.TextGrid").unlink()
    assert counts(echo(speech, out, key="another", keep_edited=True)) == (3, 2, 0)


@pytest.mark.parametrize("undone", [False, True])
def test_other_files_of_the_recording_are_written(tmp_path: Path, undone: bool) -> None:
    speech, out = corpus(tmp_path)
    original = echo(speech, tmp_path / "copy")
    assert original.done == 3
    both = ("textgrid", "json")
    for there in (0, 3):
        outcome = echo(speech, out, key="another", formats=both, keep_edited=True)
        assert (counts(outcome), outcome.edited) == (
            (3, there, 0) if not there else (2, 2, 1),
            ["a.TextGrid"],
        )
    assert (out / "a.json").is_file()
    # the JSON is of the new options, and the TextGrid is not
    assert echo(speech, out, key="another", formats=("json",)).there == 3
    if undone:  # what isotone wrote before is isotone's, and out of date
        (out / "a.TextGrid").write_bytes((tmp_path / "copy/a.TextGrid").read_bytes())
        assert counts(echo(speech, out, key="another", formats=both)) == (3, 2, 0)
    else:
        with pytest.raises(OutputConflict, match=r"a\.TextGrid: changed since"):
            echo(speech, out, key="another", formats=both)


def test_a_format_that_was_not_asked_for_is_not_taken_for_done(tmp_path: Path) -> None:
    speech, out = corpus(tmp_path)
    echo(speech, out, key="another", formats=("json",))
    with pytest.raises(OutputConflict, match=r"a\.TextGrid: changed since"):
        echo(speech, out, key="another", formats=("json", "textgrid"))


def test_another_format_of_the_same_ending_is_not_taken_for_done(tmp_path: Path) -> None:
    speech, out = corpus(tmp_path)
    echo(speech, out, formats=("json",))
    (out / "a.json").write_text(EDITED)
    (out / "a.TextGrid").unlink()
    formats = ("whisperx", "textgrid")
    assert echo(speech, out, formats=formats, keep_edited=True).edited == ["a.json"]
    assert (out / "a.TextGrid").is_file()
    assert counts(echo(speech, out, formats=formats, keep_edited=True)) == (2, 2, 1)


def test_pruning_knows_them(tmp_path: Path) -> None:
    speech, out = corpus(tmp_path)
    for _ in range(2):
        outcome = echo(speech, out, key="another", keep_edited=True, prune=True)
        assert (counts(outcome)[2], outcome.stale, outcome.pruned) == (1, 0, 0)


def test_redoing_all_but_them(tmp_path: Path) -> None:
    speech, out = corpus(tmp_path)
    for _ in range(2):
        assert counts(echo(speech, out, redo=True, keep_edited=True)) == (2, 0, 1)
    assert (out / "a.TextGrid").read_text() == EDITED
    assert echo(speech, out).there == 3, "they are corrections of these options"


def test_a_corrected_file_that_is_the_transcript_is_kept(tmp_path: Path) -> None:
    """A file beside its recording becomes an input when it is corrected: without the option there is no way on."""
    say(tmp_path / "a.wav", "a")
    echo(tmp_path, tmp_path)
    text = tmp_path / "a.txt"
    (tmp_path / "a.TextGrid").write_text(EDITED)
    text.unlink()
    with pytest.raises(
        OutputConflict, match=r"say --keep-edited .* and do the rest\.\n.*an input, and changed"
    ):
        echo(tmp_path, tmp_path)
    assert counts(echo(tmp_path, tmp_path, keep_edited=True)) == (0, 0, 1)


def test_files_of_others_are_refused_all_the_same(tmp_path: Path) -> None:
    speech, out = corpus(tmp_path)
    (out / "d.TextGrid").write_text("mine")
    say(speech / "d.wav", "d")
    with pytest.raises(OutputConflict, match=r"1 file .*\n.*d\.TextGrid: not written by isotone"):
        echo(speech, out, key="another", keep_edited=True)
    with pytest.raises(ValueError, match="say one of them"):
        Target(out, overwrite=True, keep_edited=True)


def test_the_command_names_them(model: Path, tmp_path: Path) -> None:
    for name in "ab":
        save_noise(tmp_path / f"in/{name}.wav", text="go on")
    command = ("align", tmp_path / "in", "-m", model, "-o", tmp_path / "out", "--no-check")
    isotone(*command)
    (tmp_path / "out/a.TextGrid").write_text(EDITED)
    other = (*command, "--no-edges")
    assert "say --keep-edited to keep what was changed and do the rest" in error_of(*other)
    done = isotone(*other, "--keep-edited")
    assert "1 of 2 files written" in done.stdout
    assert "are made anew): 1:\n  a.TextGrid\n" in done.stderr
    assert "say one of them" in error_of(*other, "--keep-edited", "--overwrite")
