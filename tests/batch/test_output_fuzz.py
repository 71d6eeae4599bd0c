"""Random folders, names, clashes, links, edits, kills and reruns: files of others never change."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from isotone.batch import OutputConflict, Target, database, ledger
from isotone.batch.inputs import find_recordings
from isotone.batch.ledger import Ledger, State
from isotone.batch.plan import Planner
from tests.batch.parts import Echo, echo, say, tree

NAMES = st.sampled_from(["a", "A", "b", "ß", "e\u0301", "é", "a.b", "errors", "-x", "..b", "x y", "a:b", "_"])
FOLDERS = st.lists(st.sampled_from(["s1", "s2", "S1", "link", "d:1"]), max_size=2).map(tuple)
SUFFIXES = st.sampled_from([".wav", ".flac"])
FORMATS = st.sampled_from([("textgrid",), ("textgrid", "json"), ("json", "audacity")])
TEXTS = st.sampled_from(["one", "two", "three", "bad"])


class Folders(RuleBasedStateMachine):
    """An input folder and an output folder, and somebody who works in both."""

    @initialize(
        inside=st.booleans(),
        recordings=st.lists(st.tuples(FOLDERS, NAMES, SUFFIXES, TEXTS), min_size=1, max_size=5),
    )
    def begin(self, inside: bool, recordings: list[tuple[tuple[str, ...], str, str, str]]) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="isotone-fuzz-")).resolve()
        self.audio = self.root / "in"
        self.out = self.audio if inside else self.root / "out"
        for folder in (self.audio / "s1", self.out / "s1"):
            folder.mkdir(parents=True, exist_ok=True)
        self.hand: dict[str, bytes] = {}  # what somebody wrote, below the root
        for folders, name, suffix, text in recordings:
            self.record(folders, name, suffix, text, 1)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)

    def _key(self, path: Path) -> str:
        """The file's own path below the root, by whatever link it was found."""
        return (path.parent.resolve() / path.name).relative_to(self.root).as_posix()

    def _mine(self, path: Path, content: bytes) -> None:
        if os.path.lexists(path) and not path.is_file():
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError:  # a link to nothing
            return
        path.write_bytes(content)
        self.hand[self._key(path)] = content

    @rule(folders=FOLDERS, name=NAMES, suffix=SUFFIXES, text=TEXTS | st.none(), samples=st.integers(1, 3))
    def record(
        self, folders: tuple[str, ...], name: str, suffix: str, text: str | None, samples: int
    ) -> None:
        path = self.audio.joinpath(*folders, name + suffix)
        if any(part.is_symlink() for part in (path, *path.parents)):
            return
        say(path, None, 100 * samples)
        self.hand[self._key(path)] = path.read_bytes()
        if text is not None:
            self._mine(path.with_suffix(".txt"), text.encode())

    @rule(data=st.data())
    def remove_recording(self, data: st.DataObject) -> None:
        found = sorted(
            p for p in self.audio.rglob("*") if p.suffix in (".wav", ".flac") and not p.is_symlink()
        )
        if found:
            path = data.draw(st.sampled_from(found))
            path.unlink()
            self.hand.pop(self._key(path), None)

    @rule(folders=FOLDERS, name=NAMES, suffix=st.sampled_from([".TextGrid", ".json", ".txt"]), text=TEXTS)
    def write_by_hand(self, folders: tuple[str, ...], name: str, suffix: str, text: str) -> None:
        self._mine(self.out.joinpath(*folders, name + suffix), f"by hand: {text}".encode())

    @rule(data=st.data(), suffix=st.sampled_from([".TextGrid", ".json"]), text=TEXTS)
    def write_where_isotone_will(self, data: st.DataObject, suffix: str, text: str) -> None:
        found = sorted(p for p in self.audio.rglob("*") if p.suffix in (".wav", ".flac"))
        if found:
            path = data.draw(st.sampled_from(found)).relative_to(self.audio)
            path = data.draw(st.sampled_from([path, Path(path.name)]))  # or as if s1 alone were given
            self._mine((self.out / path).with_suffix(suffix), f"by hand: {text}".encode())

    @rule(data=st.data(), text=TEXTS)
    def correct(self, data: st.DataObject, text: str) -> None:
        written = sorted(n for n in tree(self.out) if n.endswith((".TextGrid", ".json")))
        if written:
            self._mine(self.out / data.draw(st.sampled_from(written)), f"corrected: {text}".encode())

    @rule(data=st.data())
    def remove_output(self, data: st.DataObject) -> None:
        written = sorted(n for n in tree(self.out) if n.endswith((".TextGrid", ".json")))
        if written:
            path = self.out / data.draw(st.sampled_from(written))
            path.unlink()
            self.hand.pop(self._key(path), None)

    @rule(where=st.sampled_from(["in", "out"]), to=st.sampled_from(["s1", "s2", "."]))
    def link(self, where: str, to: str) -> None:
        path = (self.audio if where == "in" else self.out) / "link"
        if not os.path.lexists(path):
            path.symlink_to(to, target_is_directory=True)

    @rule(redo=st.booleans(), prune=st.booleans(), below=st.booleans(), formats=FORMATS)
    def run(self, redo: bool, prune: bool, below: bool, formats: tuple[str, ...]) -> None:
        self._run(0, redo, prune, below, formats)

    @rule(formats=FORMATS)
    def run_again(self, formats: tuple[str, ...]) -> None:
        self._run(0, False, False, False, formats)

    @rule(kill=st.integers(1, 120), redo=st.booleans(), prune=st.booleans(), formats=FORMATS)
    def run_after_a_kill(self, kill: int, redo: bool, prune: bool, formats: tuple[str, ...]) -> None:
        self._run(kill, redo, prune, False, formats)

    def _run(self, kill: int, redo: bool, prune: bool, below: bool, formats: tuple[str, ...]) -> None:
        audio = self.audio / "s1" if below else self.audio
        before = tree(self.root)
        try:
            find_recordings([audio])
        except FileNotFoundError:
            return
        if kill:
            self._killed(kill, audio, redo, prune, formats)
        texts = self._texts(audio)
        try:
            outcome = echo(audio, self.out, redo=redo, prune=prune, formats=formats)
        except OutputConflict:
            assert kill or tree(self.root) == before, "refused, and yet something was done"
            return
        assert self._texts(audio) == texts
        self._all_is_there(audio, formats, {e["file"] for e in outcome.errors}, texts)
        after = tree(self.root)
        again = echo(audio, self.out, formats=formats)
        # a link to nothing has what it leads to after the first run
        assert again.there == outcome.done
        assert all(error in outcome.errors for error in again.errors)
        assert again.errors != outcome.errors or tree(self.root) == after

    def _texts(self, audio: Path) -> dict[Path, str]:
        """The texts that a run will find, also after it: what it writes beside a recording is not read."""
        found = {}
        work = Echo().open(("textgrid",))
        with Ledger(self.out) as book:
            planner = Planner(book, Target(self.out), work)
            for recording in find_recordings([audio]):
                with suppress(FileNotFoundError):
                    text = work.inputs(recording.path, planner.own).files["text"]
                    found[recording.path] = text.read_text()
        return found

    def _killed(self, kill: int, audio: Path, redo: bool, prune: bool, formats: tuple[str, ...]) -> None:
        """The same run in a child that dies at its n-th step, between any two calls of the ledger."""
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return
        try:
            left = [kill]

            def step(*_: object) -> None:
                left[0] -= 1
                if not left[0]:
                    os._exit(9)

            sys.setprofile(lambda frame, event, _: step() if _of_ledger(frame, event) else None)
            echo(audio, self.out, redo=redo, prune=prune, formats=formats)
        finally:
            os._exit(0)

    def _all_is_there(
        self, audio: Path, formats: tuple[str, ...], failed: set[str], texts: dict[Path, str]
    ) -> None:
        """After a whole run every recording that did not fail has files of its own, of its present text."""
        owners: dict[Path, str] = {}
        with Ledger(self.out) as book:
            for recording in find_recordings([audio]):
                if str(recording.path) in failed:
                    continue
                entry = book.entry(recording.id, "align")
                assert entry is not None
                names = book.names(entry)
                assert len(names) >= len(formats), (recording, names)
                for name in names:
                    target = (self.out / name).resolve()
                    assert owners.setdefault(target, recording.id) == recording.id, (
                        "two inputs share an output"
                    )
                    if book.state(name) is State.WRITTEN and name.endswith((".TextGrid", ".json")):
                        text = texts[recording.path]
                        kind = {".TextGrid": "textgrid", ".json": "json"}[Path(name).suffix]
                        assert kind not in formats or f'"{text}"' in (self.out / name).read_text()

    @invariant()
    def nothing_of_others_has_changed(self) -> None:
        for name, content in getattr(self, "hand", {}).items():
            assert (self.root / name).read_bytes() == content, name

    @invariant()
    def nothing_is_half_written(self) -> None:
        for name, content in tree(self.root).items() if hasattr(self, "root") else ():
            if name.endswith(".TextGrid") and b"by hand" not in content and b"corrected" not in content:
                assert content.startswith(b'File type = "ooTextFile"'), name


def _of_ledger(frame: object, event: str) -> bool:
    """Return whether a call or a return belongs to the ledger's module or to writing files."""
    code = frame.f_code  # type: ignore[attr-defined]
    return event in ("call", "return") and (
        code.co_filename in (ledger.__file__, database.__file__)
        or (code.co_name in ("put", "_link") and "files.py" in code.co_filename)
    )


def _settings(examples: int, **more: Any) -> settings:
    checks = list(HealthCheck)
    return settings(
        max_examples=examples, stateful_step_count=16, deadline=None, suppress_health_check=checks, **more
    )


@pytest.mark.parametrize("examples", [20, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills need a process that can be forked")
def test_whatever_happens_nothing_of_others_changes_and_everything_is_there(examples: int) -> None:
    run_state_machine_as_test(Folders, settings=_settings(examples))


@pytest.fixture
def careless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that takes everything for isotone's, so that somebody's file is lost."""
    real = Ledger.state

    def state(self: Ledger, name: str) -> State:
        return State.OLD if (found := real(self, name)) is State.FOREIGN else found

    monkeypatch.setattr(Ledger, "state", state)


@pytest.mark.usefixtures("careless")
def test_a_lost_file_is_noticed() -> None:
    machine = Folders()
    try:
        machine.begin(False, [((), "a", ".wav", "one")])
        machine._mine(machine.out / "a.TextGrid", b"by hand")
        machine.nothing_of_others_has_changed()
        machine._run(0, False, False, False, ("textgrid",))
        with pytest.raises(AssertionError, match=r"a\.TextGrid"):
            machine.nothing_of_others_has_changed()
    finally:
        machine.teardown()


@pytest.mark.slow  # some hundreds of steps
@pytest.mark.usefixtures("careless")
def test_random_steps_lose_a_file_too() -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(
            Folders,
            settings=_settings(200, database=None, phases=[Phase.generate], report_multiple_bugs=False),
        )
