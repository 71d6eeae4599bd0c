"""The ledger: the states of files, after any kill and with several processes."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from isotone.batch import database
from isotone.batch import ledger as module
from isotone.batch.ledger import NAME, Entry, Ledger, LedgerError, State

ENTRY = Entry(
    "dr1/sa1",
    "c/dr1/sa1.wav",
    "/c/dr1/sa1.wav",
    "align",
    "audio",
    "key",
    warnings=("one", "zwei"),
    score=-0.5,
)


def states(ledger: Ledger, *names: str) -> list[State]:
    return [ledger.state(name) for name in names]


def test_files_of_earlier_inputs_are_old_until_they_are_written_again(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.write(ENTRY, {"a": b"1", "b": b"1", "c": b"1", "d": b"1"})
        (tmp_path / "c").write_bytes(b"by hand")
        (tmp_path / "d").unlink()
        later = replace(ENTRY, key="another")
        ledger.write(later, {"a": b"2"})
        ledger.write(later, {"a": b"2"})  # the same inputs again
        assert states(ledger, "a", "b", "c", "d") == [State.WRITTEN, State.OLD, State.CHANGED, State.ABSENT]
        (tmp_path / "d").symlink_to("a")
        assert ledger.state("d") is State.CHANGED
        ledger.write(replace(ENTRY, key="third"), {"a": b"3"})  # old files stay old
        assert ledger.state("b") is State.OLD
        ledger.write(replace(ENTRY, key="third"), {"b": b"3"})
        assert states(ledger, "a", "b") == [State.WRITTEN, State.WRITTEN]


def test_what_was_written_is_known_when_opened_again(tmp_path: Path) -> None:
    with Ledger(tmp_path / "new/out") as ledger:
        ledger.write(ENTRY, {"dr1/sa1.TextGrid": b"grid", "dr1/sa1.json": b"{}"})
        ledger.note(replace(ENTRY, id="b", error="no"))
    with Ledger(tmp_path / "new/out") as ledger:
        assert ledger.entry("dr1/sa1", "align") == ENTRY
        assert ledger.entry("dr1", "align") is None
        assert [e.id for e in ledger.entries()] == ["b", "dr1/sa1"]
        assert ledger.names(ENTRY) == ["dr1/sa1.TextGrid", "dr1/sa1.json"]
        assert ledger.owner("dr1/sa1.json") == ("dr1/sa1", "align")
        assert ledger.owner("sa1.json") is None
    assert (tmp_path / "new/out/dr1/sa1.TextGrid").read_bytes() == b"grid"
    assert sorted(p.name for p in (tmp_path / "new/out").iterdir()) == [NAME, "dr1"], "the ledger is one file"


def test_the_states_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "hand").write_bytes(b"made")
    with Ledger(tmp_path) as ledger:
        ledger.write(ENTRY, {"a": b"1", "b": b"1", "c": b"1"})
        (tmp_path / "b").write_bytes(b"edited")
        (tmp_path / "c").unlink()
        (tmp_path / "c").symlink_to(tmp_path / "a")
        assert states(ledger, "a", "b", "c", "gone", "hand") == [
            State.WRITTEN, State.CHANGED, State.CHANGED, State.ABSENT, State.FOREIGN,
        ]  # fmt: skip
        ledger.write(ENTRY, {"a": b"2"})
        assert ledger.state("a") is State.WRITTEN
        (tmp_path / "a").write_bytes(b"1")
        assert ledger.state("a") is State.OLD, "a process was killed before it replaced it"
        ledger.write(ENTRY, {"a": b"3"})
        (tmp_path / "a").write_bytes(b"1")
        assert ledger.state("a") is State.OLD, "what was there when the third was noted"


@pytest.mark.parametrize("name", ["foreign", "changed"])
def test_others_files_are_replaced_only_when_it_is_said(tmp_path: Path, name: str) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.write(ENTRY, {"changed": b"1"})
        (tmp_path / name).write_bytes(b"by hand")
        with pytest.raises(FileExistsError, match=f"{name} would be overwritten"):
            ledger.write(replace(ENTRY, key="new"), {"z": b"1", name: b"2"})
        assert (tmp_path / name).read_bytes() == b"by hand"
        assert not (tmp_path / "z").exists(), "all or nothing of a recording is begun"
        assert ledger.entry(ENTRY.id, "align") == ENTRY
        ledger.write(ENTRY, {name: b"2"}, overwrite=True)
        assert (tmp_path / name).read_bytes() == b"2"
        assert ledger.state(name) is State.WRITTEN


def test_a_file_that_appears_meanwhile_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., None] = module.put

    def late(path: Path, content: bytes, *, replace: bool) -> None:
        path.write_bytes(b"just now, by somebody")
        real(path, content, replace=replace)

    with Ledger(tmp_path) as ledger:
        monkeypatch.setattr(module, "put", late)
        with pytest.raises(FileExistsError, match="has just appeared"):
            ledger.write(ENTRY, {"a": b"1"})
        assert (tmp_path / "a").read_bytes() == b"just now, by somebody"
        assert ledger.state("a") is State.CHANGED
        assert not list(tmp_path.glob(".a*")), "nothing temporary is left"


def test_an_overwrite_that_is_killed_does_not_make_a_file_isotones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"by hand")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with Ledger(tmp_path) as ledger:
        monkeypatch.setattr(module, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            ledger.write(ENTRY, {"a": b"1"}, overwrite=True)
        monkeypatch.undo()
        assert ledger.state("a") is State.CHANGED
        with pytest.raises(FileExistsError):
            ledger.write(ENTRY, {"a": b"1"})


def test_lists_are_replaced_and_removed_and_others_are_not(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        for content in (b"1", b"2"):
            ledger.write_report("errors.jsonl", content)
            assert (tmp_path / "errors.jsonl").read_bytes() == content
        ledger.write_report("errors.jsonl", b"")
        assert not (tmp_path / "errors.jsonl").exists()
        for content in (b"3", b""):
            ledger.write_report("errors.jsonl", b"1", overwrite=True)
            (tmp_path / "errors.jsonl").write_bytes(b"sorted by a reader")
            ledger.write_report("errors.jsonl", content)
            assert (tmp_path / "errors.jsonl").read_bytes() == b"sorted by a reader"
        ledger.write_report("errors.jsonl", b"", overwrite=True)
        assert not (tmp_path / "errors.jsonl").exists()
        (tmp_path / "warnings.jsonl").write_bytes(b"mine")
        ledger.write_report("warnings.jsonl", b"")
        with pytest.raises(FileExistsError):
            ledger.write_report("warnings.jsonl", b"1")
        assert (tmp_path / "warnings.jsonl").read_bytes() == b"mine"


def test_dropping_removes_what_nobody_changed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    with Ledger(tmp_path) as ledger:
        ledger.write(ENTRY, {"x/y/a": b"1", "x/b": b"1", "kept/c": b"1"})
        (tmp_path / "x/b").write_bytes(b"edited")
        (tmp_path / "kept/hand").touch()
        assert ledger.drop(ENTRY) == ["x/b"]
        assert ledger.entries() == []
        assert ledger.state("x/b") is State.FOREIGN
    left = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.name != NAME)
    assert left == ["kept", "kept/hand", "x", "x/b"]


def test_digests_follow_the_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, counted = tmp_path / "a.wav", []
    path.write_bytes(b"1")
    real = database.digest_of
    monkeypatch.setattr(database, "digest_of", lambda p: counted.append(p) or real(p))
    with Ledger(tmp_path / "out") as ledger:
        one = dict(ledger.digests([path, tmp_path / "gone"]))
        assert one[tmp_path / "gone"] == ""
        assert dict(ledger.digests([path])) == {path: one[path]}
        assert counted.count(path) == 1, "the second time the file system says that it is the same"
        kept = path.stat()
        path.write_bytes(b"2")
        os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
        assert dict(ledger.digests([path]))[path] != one[path], "same size and same time of change"


def test_a_claim_is_one_processs(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from isotone.batch.ledger import Ledger; l = Ledger(pathlib.Path(sys.argv[1]));"
        "print(l.claim('a'), l.claim('b'), flush=True); sys.stdin.readline()"
    )
    with Ledger(tmp_path) as ledger:
        assert ledger.claim("a")
        assert ledger.claim("a"), "it is ours already"
        other = subprocess.Popen(
            [sys.executable, "-c", code, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "[] ['b']\n"
            assert not ledger.claim("b")
        finally:
            other.kill()
            other.communicate()
        assert ledger.claim("b"), "a killed process claims nothing"
        ledger.release("b")


KILLED = """
import os, pathlib, signal, sys
from isotone.batch.ledger import Entry, Ledger
def unlink(path, missing_ok=False):
    if path.exists():
        os.kill(os.getpid(), signal.SIGKILL)
with Ledger(pathlib.Path(sys.argv[1])) as ledger:
    ledger.claim("a", "b")
    pathlib.Path.unlink = unlink
    ledger.write(Entry("a", "a.wav", "/a.wav", "align"), {"a.json": b"whole"})
"""


def test_a_file_that_is_whole_loses_the_other_name_of_a_killed_process(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path])
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.glob(".a.json.*.tmp")
    assert left.samefile(tmp_path / "a.json")
    with Ledger(tmp_path) as ledger:
        assert not left.exists()
        assert ledger.state("a.json") is State.WRITTEN
        assert (tmp_path / "a.json").read_bytes() == b"whole"
        ledger.claim("a")
        left.write_bytes(b"half")
        with Ledger(tmp_path):
            assert left.exists(), "a process that lives may be writing it"


def test_what_is_no_ledger_is_said(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"something else entirely, of more than a few bytes" * 40)
    with pytest.raises(LedgerError, match=r"cannot be used: file is not a database\. Choose another folder"):
        Ledger(tmp_path)
    (tmp_path / NAME).unlink()
    Ledger(tmp_path).close()
    database = sqlite3.connect(tmp_path / NAME)
    database.execute("PRAGMA user_version = 7")
    database.close()
    with pytest.raises(LedgerError, match=r"another version of isotone \(ledger 7; this one reads up to 3\)"):
        Ledger(tmp_path)


def test_commands_have_entries_and_files_of_their_own(tmp_path: Path) -> None:
    other = replace(ENTRY, command="match", error="no match")
    with Ledger(tmp_path) as ledger:
        ledger.write(ENTRY, {"a": b"1", "b": b"1"})
        ledger.note(other)
        assert ledger.entry(ENTRY.id, "align") == ENTRY
        assert ledger.entry(ENTRY.id, "match") == other
        with pytest.raises(FileExistsError, match="a would be overwritten: isotone align wrote it"):
            ledger.write(other, {"c": b"2", "a": b"2"})
        assert (tmp_path / "a").read_bytes() == b"1"
        assert not (tmp_path / "c").exists()
        ledger.write(other, {"a": b"2"}, overwrite=True)
        assert (ledger.names(ENTRY), ledger.names(other)) == (["b"], ["a"])
        assert ledger.drop(ENTRY) == []
        assert (tmp_path / "a").read_bytes() == b"2", "the other command's file stays"
        (tmp_path / "a").unlink()
        ledger.write(ENTRY, {"a": b"3"})
        assert ledger.owner("a") == (ENTRY.id, "align"), "what is gone belongs to nobody"


def test_a_ledger_of_the_first_version_is_read(tmp_path: Path) -> None:
    tables = """
        CREATE TABLE entries(id TEXT PRIMARY KEY, entry TEXT);
        CREATE TABLE outputs(name TEXT PRIMARY KEY, id TEXT, digest TEXT, previous TEXT);
        CREATE TABLE digests(path TEXT PRIMARY KEY, stat TEXT, digest TEXT);
        CREATE TABLE claims(id TEXT PRIMARY KEY, host TEXT, pid INTEGER, born REAL);
        PRAGMA user_version = 1;
    """
    digest = hashlib.sha256(b"1").hexdigest()
    old = sqlite3.connect(tmp_path / NAME)
    old.executescript(tables)
    old.execute("INSERT INTO entries VALUES (?, ?)", (ENTRY.id, json.dumps(asdict(ENTRY))))
    for name, id in (("dr1/sa1.TextGrid", ENTRY.id), ("errors.jsonl", "")):
        old.execute("INSERT INTO outputs VALUES (?, ?, ?, NULL)", (name, id, digest))
    old.commit()
    old.close()
    (tmp_path / "dr1").mkdir()
    for name in ("dr1/sa1.TextGrid", "errors.jsonl"):
        (tmp_path / name).write_bytes(b"1")
    for _ in range(2):
        with Ledger(tmp_path) as ledger:
            assert ledger.entries() == [ENTRY]
            assert ledger.names(ENTRY) == ["dr1/sa1.TextGrid"]
            assert states(ledger, "dr1/sa1.TextGrid", "errors.jsonl") == [State.WRITTEN, State.WRITTEN]
            assert ledger.owner("errors.jsonl") == ("", "")


def test_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.claim("a")  # the file is made
        pages = ledger._db.execute("PRAGMA page_count").fetchone()[0]
        ledger._db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(
            LedgerError, match=r"database or disk is full\. Make room, and run the same command again"
        ):
            ledger.write(replace(ENTRY, text="x" * 100_000), {"a": b"1"})
        assert ledger.entries() == []
        ledger._db.execute(f"PRAGMA max_page_count = {pages + 100}")
        ledger.write(replace(ENTRY, text="x" * 100_000), {"a": b"1"})
        assert ledger.state("a") is State.WRITTEN
