"""Output folders: names of files, repeated commands, and files of others that are never replaced."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from isotone.batch import Options, OutputConflict
from isotone.batch.writers import writers_for
from isotone.format.audacity import AudacityFormat
from isotone.registries import formats
from tests.batch.parts import Echo, echo, say, tree
from tests.scripts import Script
from tests.tiny_models import error_of, isotone, lines_of, names_in, save_noise

# Nothing of anybody else's is replaced


def test_hand_made_files_are_never_replaced_unless_it_is_said(model: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "c3"
    for name in ("sa1", "sa2", "sx3"):
        save_noise(corpus / f"{name}.wav", text="go on")
    for name in ("sa1", "sx3"):
        (corpus / f"{name}.TextGrid").write_text("made by hand")
    before = tree(corpus)
    message = isotone("align", corpus, "-m", model, "-o", corpus, code=2).stderr
    assert (
        "2 files would be overwritten; nothing was done. Choose another --out, or say --overwrite." in message
    )
    for name in ("sa1", "sx3"):
        assert f"{corpus / name}.TextGrid: not written by isotone" in message
    assert tree(corpus) == before
    isotone("align", corpus, "-m", model, "-o", corpus, "--overwrite")
    assert {n: b for n, b in tree(corpus).items() if n in before and not n.endswith(".TextGrid")} == {
        n: b for n, b in before.items() if not n.endswith(".TextGrid")
    }
    assert b"made by hand" not in tree(corpus).values()
    assert "3 of them there before" in isotone("align", corpus, "-m", model, "-o", corpus).stdout


def test_hand_labels_of_timits_kind_are_not_replaced(model: Path, tmp_path: Path) -> None:
    save_noise(tmp_path / "b2/sa1.wav", text="go on")
    (tmp_path / "b2/sa1.wrd").write_text("0 100 go\n")
    message = error_of("align", tmp_path / "b2", "-m", model, "-o", tmp_path / "b2", "-f", "timit")
    assert message.startswith("1 file would be overwritten")
    assert (tmp_path / "b2/sa1.wrd").read_text() == "0 100 go\n"


def test_lists_of_others_are_not_replaced(tmp_path: Path) -> None:
    say(tmp_path / "in/a.wav", "a")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/warnings.jsonl").write_text("mine")
    with pytest.raises(OutputConflict, match="warnings"):
        echo(tmp_path / "in", tmp_path / "out")
    assert tree(tmp_path / "out") == {"warnings.jsonl": b"mine"}


def test_corrections_by_hand_are_kept(tmp_path: Path) -> None:
    for name in "ab":
        say(tmp_path / f"in/{name}.wav", name)
    out = tmp_path / "out"
    echo(tmp_path / "in", out)
    (out / "a.TextGrid").write_text("corrected in Praat")
    outcome = echo(tmp_path / "in", out)
    assert (outcome.done, outcome.there, outcome.kept) == (2, 2, ["a.TextGrid"])
    # a format more is written beside it
    outcome = echo(tmp_path / "in", out, formats=("textgrid", "json"))
    assert (outcome.there, outcome.kept) == (0, ["a.TextGrid"])
    assert (out / "a.json").is_file()
    # what is to replace it is refused: doing it again, or another text
    with pytest.raises(OutputConflict, match=r"a\.TextGrid: changed since isotone wrote it"):
        echo(tmp_path / "in", out, redo=True)
    say(tmp_path / "in/a.wav", "another")
    with pytest.raises(OutputConflict, match="1 file would be overwritten"):
        echo(tmp_path / "in", out)
    assert (out / "a.TextGrid").read_text() == "corrected in Praat"
    echo(tmp_path / "in", out, overwrite=True)
    assert "another" in (out / "a.TextGrid").read_text()


def test_a_format_of_the_same_ending_is_written_again(tmp_path: Path) -> None:
    say(tmp_path / "in/a.wav", "one")
    out = tmp_path / "out"
    written = {}
    for name, there in (("json", 0), ("whisperx", 0), ("whisperx", 1), ("json", 0)):
        assert echo(tmp_path / "in", out, formats=(name, "csv")).there == there
        content = (out / "a.json").read_bytes()
        assert written.setdefault(name, content) == content
    assert written["json"] != written["whisperx"]
    (out / "a.json").write_text("corrected")
    with pytest.raises(OutputConflict, match=r"a\.json: changed since"):
        echo(tmp_path / "in", out, formats=("whisperx",))


def test_lists_that_were_edited_are_kept(tmp_path: Path) -> None:
    say(tmp_path / "in/a.wav", "bad")
    out = tmp_path / "out"
    assert len(echo(tmp_path / "in", out).errors) == 1
    edited = (out / "errors.jsonl").read_text() + "looked at\n"
    (out / "errors.jsonl").write_text(edited)
    for text in ("bad", "good"):
        say(tmp_path / "in/a.wav", text)
        assert echo(tmp_path / "in", out).kept == ["errors.jsonl"]
        assert (out / "errors.jsonl").read_text() == edited
    (out / "errors.jsonl").unlink()
    assert echo(tmp_path / "in", out).kept == []
    assert not (out / "errors.jsonl").exists()


def test_another_speakers_files_of_the_same_names_are_not_replaced(tmp_path: Path) -> None:
    for speaker in ("speaker1", "speaker2"):
        for name in ("sa1", "sa2", f"own-{speaker}"):
            say(tmp_path / f"{speaker}/{name}.wav", f"{speaker} {name}", samples=500 + len(tree(tmp_path)))
    out = tmp_path / "o"
    echo(tmp_path / "speaker1", out)
    before = tree(out)
    with pytest.raises(OutputConflict) as refused:
        echo(tmp_path / "speaker2", out)
    for name in ("sa1", "sa2"):
        assert f"{out / name}.TextGrid: it belongs to {tmp_path / 'speaker1' / name}.wav" in str(
            refused.value
        )
    assert tree(out) == before
    # both at once: of the names that they share none is written
    outcome = echo([tmp_path / "speaker1", tmp_path / "speaker2"], tmp_path / "o2")
    assert (outcome.done, len(outcome.errors)) == (2, 4)
    assert "give the folder that holds both" in outcome.errors[0]["error"]
    assert sorted(n for n in tree(tmp_path / "o2") if n != "errors.jsonl") == [
        "own-speaker1.TextGrid", "own-speaker2.TextGrid",
    ]  # fmt: skip


def test_a_corpus_that_has_moved_is_the_same(tmp_path: Path) -> None:
    for name in ("s1/a", "s2/b"):
        say(tmp_path / f"corpus/{name}.wav", name)
    echo(tmp_path / "corpus", tmp_path / "o")
    (tmp_path / "corpus").rename(tmp_path / "moved")
    outcome = echo(tmp_path / "moved", tmp_path / "o", prune=True)
    assert (outcome.there, outcome.pruned) == (2, 0)


def test_what_align_wrote_is_not_replaced_by_transcribe(model: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "a.wav", text="go on")
    isotone("align", speech, "-m", model, "-o", tmp_path / "o")
    message = isotone("transcribe", speech, "-m", model, "-o", tmp_path / "o", code=2).stderr
    assert "a.TextGrid: it was written by isotone align" in message


# Names


def test_the_output_mirrors_the_input(tmp_path: Path) -> None:
    corpus, out = tmp_path / "TIMIT", tmp_path / "out"
    for name in ("dr1/mcpm0/sa1", "dr1/mcpm0/si1063", "dr2/faks0/sa1", "x"):
        say(corpus / f"{name}.wav", name)
    echo(corpus, out, formats=("textgrid", "json"))
    names = [
        f"{n}.{s}"
        for n in ("dr1/mcpm0/sa1", "dr1/mcpm0/si1063", "dr2/faks0/sa1", "x")
        for s in ("TextGrid", "json")
    ]
    before = tree(out)
    assert sorted(before) == sorted(names)
    # recordings more change nothing of the others
    for name in ("dr3/sa1", "a/si1063", "x0"):
        say(corpus / f"{name}.wav", name)
    echo(corpus, out, formats=("textgrid", "json"))
    after = tree(out)
    assert {n: after[n] for n in before} == before
    assert len(after) == len(before) + 6


def test_two_files_of_one_name_are_an_error_that_names_both(tmp_path: Path) -> None:
    for name in ("s/sa1.flac", "s/sa1.wav", "s/sb.wav", "s/SB.wav", "s/c.wav"):
        say(tmp_path / "in" / name, "a")
    outcome = echo(tmp_path / "in", tmp_path / "out")
    errors = {Path(e["file"]).name: e["error"] for e in outcome.errors}
    assert sorted(errors) == ["SB.wav", "sa1.flac", "sa1.wav", "sb.wav"]
    assert f"{tmp_path}/in/s/sa1.wav: rename one" in errors["sa1.flac"]
    assert f"{tmp_path}/in/s/sa1.flac: rename one" in errors["sa1.wav"]
    assert sorted(tree(tmp_path / "out")) == ["errors.jsonl", "s/c.TextGrid"]
    # mended: nothing is left of the errors
    (tmp_path / "in/s/sa1.flac").unlink()
    (tmp_path / "in/s/SB.wav").unlink()
    assert not echo(tmp_path / "in", tmp_path / "out").errors
    assert sorted(tree(tmp_path / "out")) == ["s/c.TextGrid", "s/sa1.TextGrid", "s/sb.TextGrid"]


def test_two_folders_that_are_one_in_the_output_are_not_mixed(tmp_path: Path) -> None:
    for speaker in "ab":
        say(tmp_path / f"in/{speaker}/sa1.wav", speaker)
    (tmp_path / "out/a").mkdir(parents=True)
    (tmp_path / "out/b").symlink_to(tmp_path / "out/a")
    outcome = echo(tmp_path / "in", tmp_path / "out")
    assert [Path(e["file"]).parent.name for e in outcome.errors] == ["a", "b"]


def test_formats_of_one_suffix_are_refused(
    model: Path, tmp_path: Path, register: Callable[..., None]
) -> None:
    register(formats, "labels", AudacityFormat)
    speech = save_noise(tmp_path / "a.wav", text="go on")
    isotone("align", speech, "-m", model, "-f", "json", "-f", "json", "-o", tmp_path / "o", "--no-check")
    assert "a.json" in names_in(tmp_path / "o")
    # two tiers of one kind of file
    with pytest.raises(ValueError, match=r"'audacity' and 'labels' both write \.txt files"):
        writers_for(["audacity", "labels"], ["words"])


# What is done again


def test_finished_files_are_skipped_and_changed_ones_are_not(tmp_path: Path) -> None:
    for name in "abcd":
        say(tmp_path / f"in/{name}.wav", name)
    out, work = tmp_path / "out", Echo()

    def again(**options: object) -> list[str]:
        work.done.clear()
        outcome = echo(tmp_path / "in", out, work=work, **options)
        assert (outcome.done, outcome.there) == (4, 4 - len(work.done))
        return list(work.done)

    assert again() == list("abcd")
    assert again() == []
    say(tmp_path / "in/a.wav", "a new text")
    say(tmp_path / "in/b.wav", "b", samples=800)
    (out / "c.TextGrid").unlink()
    assert again() == list("abc")
    assert b"a new text" in tree(out)["a.TextGrid"]
    assert again(redo=True) == list("abcd")
    assert again(key="another model") == list("abcd")
    assert again(key="another model", formats=("textgrid", "json")) == list("abcd")
    assert again(key="another model", formats=("json",)) == []


def test_files_in_formats_that_a_run_did_not_write_are_not_taken_for_those_of_a_later_text(
    tmp_path: Path,
) -> None:
    path = say(tmp_path / "in/a.wav", "one")
    both = ("textgrid", "json")
    echo(path, tmp_path / "out", formats=both)
    path.with_suffix(".txt").write_text("two")
    echo(path, tmp_path / "out", formats=("textgrid",))
    echo(path, tmp_path / "out", formats=both)
    assert '"two"' in (tmp_path / "out/a.json").read_text()
    assert echo(path, tmp_path / "out", formats=both).there == 1


def test_a_list_of_errors_is_not_named_as_the_transcript_of_a_recording_called_errors(tmp_path: Path) -> None:
    say(tmp_path / "errors.wav", None)
    runs = [echo(tmp_path, tmp_path).errors for _ in range(2)]
    assert runs[0] == runs[1]


def test_options_count_and_the_device_does_not(tmp_path: Path) -> None:
    assert Options("m", window_s=3.0).values() != Options("m").values()
    assert Options("m", aligner={"name": "ctc"}).values() != Options("m", aligner="ctc").values()
    assert Options("m", device="cuda").values() == Options("m").values()
    lm = tmp_path / "lm.arpa"
    found = []
    for content in ("one", "two", "one"):
        lm.write_text(content)
        found.append(Options("m", decoder={"name": "ctc-beam", "model": str(lm)}).values()["decoder"])
    assert found[0] == found[2] != found[1], "files count by their content"


def test_warnings_and_texts_of_finished_files_are_listed_again(model: Path, tmp_path: Path) -> None:
    for name in "ab":
        save_noise(tmp_path / f"in/{name}.wav", 0.5, text="go on")
    command = ("align", tmp_path / "in", "-m", model, "-o", tmp_path / "out", "--no-edges")
    isotone(*command, "--no-check")
    assert names_in(tmp_path / "out") == ["a.TextGrid", "b.TextGrid"]
    # a threshold needs nothing to be done again
    result = isotone(*command, "--min-score", "0")
    assert "(2 of them there before)" in result.stdout
    assert [Path(r["file"]).name for r in lines_of(tmp_path / "out/warnings.jsonl")] == ["a.wav", "b.wav"]
    assert isotone(*command, "--min-score", "0", "--strict", code=2).stdout == result.stdout
    isotone(*command, "--no-check")
    assert names_in(tmp_path / "out") == ["a.TextGrid", "b.TextGrid"]
    command = ("transcribe", tmp_path / "in", "-m", model, "-o", tmp_path / "texts")
    first, again = isotone(*command).stdout.splitlines(), isotone(*command).stdout.splitlines()
    assert first[:2] == again[:2]
    assert len(lines_of(tmp_path / "texts/transcripts.jsonl")) == 2


def test_a_failed_file_is_tried_again_and_its_old_output_stays(tmp_path: Path) -> None:
    say(tmp_path / "in/a.wav", "good")
    echo(tmp_path / "in", tmp_path / "out")
    say(tmp_path / "in/a.wav", "bad")
    for _ in range(2):
        outcome = echo(tmp_path / "in", tmp_path / "out")
        assert [e["error"] for e in outcome.errors] == ["a bad text"]
    assert b"good" in tree(tmp_path / "out")["a.TextGrid"]
    say(tmp_path / "in/a.wav", "better")
    assert not echo(tmp_path / "in", tmp_path / "out").errors
    assert sorted(tree(tmp_path / "out")) == ["a.TextGrid"]


# What is no longer there


def test_pruning_removes_files_of_recordings_that_are_gone(tmp_path: Path) -> None:
    for name in ("s1/a", "s1/b", "s2/a", "c"):
        say(tmp_path / f"in/{name}.wav", name)
    say(tmp_path / "else/z.wav", "z")
    out = tmp_path / "out"
    echo(tmp_path / "in", out)
    echo(tmp_path / "else", out)
    for name in ("s1/a", "s1/b", "s2/a"):
        (tmp_path / f"in/{name}.wav").unlink()
    (out / "s1/b.TextGrid").write_text("corrected")
    (out / "s2/notes").write_text("mine")
    assert echo(tmp_path / "in", out).stale == 3
    outcome = echo(tmp_path / "in", out, prune=True)
    assert (outcome.stale, outcome.pruned) == (0, 3)
    assert sorted(tree(out)) == ["c.TextGrid", "s1/b.TextGrid", "s2/notes", "z.TextGrid"]


# A run that is cut off


def test_ctrl_c_says_how_to_go_on(model: Path, tmp_path: Path) -> None:
    for i in range(3):
        save_noise(tmp_path / f"in/u{i}.wav", text="go on", seed=i)
    code = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
from isotone import cli
from isotone.batch import ledger
put = ledger.put
def late(path, *arguments, **options):
    put(path, *arguments, **options)
    if path.name == "u1.TextGrid":
        os.kill(os.getpid(), signal.SIGINT)
ledger.put = late
cli.app(sys.argv[1:])
"""
    command = ("align", str(tmp_path / "in"), "-m", str(model), "-o", str(tmp_path / "out"))
    done = Script(code, *command)
    assert done.wait() == 130, done.stderr
    assert "interrupted; what is finished is in" in done.stderr
    assert "Traceback" not in done.stderr
    # files are written on a thread: the third may be there before the signal arrives
    assert re.search(r"\([23] of them there before\)", isotone(*command).stdout)


def test_two_runs_at_once_share_the_work(tmp_path: Path) -> None:
    for i in range(12):
        say(tmp_path / f"in/u{i:02}.wav", f"text {i}")
    code = (
        "import sys, pathlib; from tests.batch.parts import Echo, echo\n"
        "work = Echo(); outcome = echo(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), work=work)\n"
        "print(outcome.done, *work.done)"
    )
    children = [Script(code, tmp_path / "in", tmp_path / "out") for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0], [child.stderr for child in children]
    outputs = [child.stdout.split() for child in children]
    assert [s[0] for s in outputs] == ["12", "12"], "each says that everything is there"
    both = [id for s in outputs for id in s[1:]]
    assert sorted(both) == [f"u{i:02}" for i in range(12)], "nothing was done twice"
    assert len(tree(tmp_path / "out")) == 12
