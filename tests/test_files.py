import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.files import atomic_folder, atomic_write, check_target, json_with, safe_name


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_file_is_written_with_its_folders_and_line_ends(tmp_path):
    path = tmp_path / "a" / "b" / "file.txt"
    with atomic_write(path) as file:
        file.write("ŋ\r\n\n")
    assert path.read_bytes() == "ŋ\r\n\n".encode()
    with atomic_write(str(path), mode="wb") as file:
        file.write(b"\x00")
    assert path.read_bytes() == b"\x00"
    assert names(path.parent) == ["file.txt"]


def test_nothing_is_at_the_target_before_the_block_ends(tmp_path):
    path = tmp_path / "file.txt"
    with atomic_write(path) as file:
        file.write("half")
        file.flush()
        assert not path.exists()
    assert path.exists()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_no_temporary(tmp_path, error):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write():
        with atomic_write(path) as file:
            file.write("half")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file.txt"]


def test_a_mode_that_does_not_write_the_whole_file_is_refused(tmp_path):
    for mode in ("a", "r", "w+"):
        with pytest.raises(ValueError, match="mode 'w' or 'wb'"), atomic_write(tmp_path / "f", mode):
            pass
    assert names(tmp_path) == []


def test_a_file_gets_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    with atomic_write(tmp_path / "file.txt"):
        pass
    assert stat.S_IMODE((tmp_path / "file.txt").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "plain").stat().st_mode
    )


def killed(script, folder):
    code = subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(folder)], timeout=60).returncode
    assert code == -signal.SIGKILL


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_process_leaves_no_half_file(tmp_path):
    (tmp_path / "old.txt").write_text("old")
    script = """
        import os, signal, sys
        from isotone.files import atomic_write
        with atomic_write(sys.argv[1] + "/old.txt") as old, atomic_write(sys.argv[1] + "/new.txt") as new:
            for file in (old, new):
                file.write("half" * 100_000)
                file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    killed(script, tmp_path)
    assert (tmp_path / "old.txt").read_text() == "old"
    assert not (tmp_path / "new.txt").exists()
    left = set(names(tmp_path)) - {"old.txt"}
    assert len(left) == 2
    assert all(n.startswith(".") and n.endswith(".tmp") for n in left)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_process_leaves_the_old_folder(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_text("old")
    script = """
        import os, signal, sys
        from isotone.files import atomic_folder
        with atomic_folder(sys.argv[1] + "/model") as folder:
            (folder / "weights").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    killed(script, tmp_path)
    assert names(tmp_path / "model") == ["weights"]
    assert (tmp_path / "model" / "weights").read_text() == "old"


def test_a_folder_appears_whole_and_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "runs" / "model"
    for content in ("one", "two"):
        with atomic_folder(path) as folder:
            assert folder.parent == path.parent
            (folder / "kind").write_text(content)
            assert not path.exists() or (path / "kind").read_text() != content
        assert names(path) == ["kind"]
        assert (path / "kind").read_text() == content
    assert names(path.parent) == ["model"]


def test_files_of_a_folder_can_be_read_by_others(tmp_path):
    before = os.umask(0o027)
    try:
        with atomic_folder(tmp_path / "model") as folder:
            (folder / "deep").mkdir()
            for path in (folder / "weights", folder / "deep" / "script"):
                path.write_text("")
                path.chmod(0o600)
            (folder / "deep" / "script").chmod(0o700)
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / "model" / p).stat().st_mode) for p in ("weights", "deep/script")]
    assert modes == [0o640, 0o700]


@pytest.mark.skipif(
    not Path("/proc/self/status").is_file(), reason="the umask cannot be read here without setting it"
)
def test_files_of_other_threads_keep_their_modes(tmp_path, monkeypatch):
    def set_it(mask):
        raise AssertionError("other threads would see it")

    before = os.umask(0o077)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", set_it)
            with atomic_write(tmp_path / "a") as file:
                file.write("")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_a_failure_leaves_the_old_folder_and_no_temporary(tmp_path):
    path = tmp_path / "model"
    path.mkdir()
    (path / "old").write_text("old")

    def write():
        with atomic_folder(path) as folder:
            (folder / "new").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write()
    assert names(path) == ["old"]
    assert names(tmp_path) == ["model"]


def test_a_folder_with_something_of_its_own_is_not_replaced(tmp_path):
    path = tmp_path / "model"

    def write():
        with atomic_folder(path) as folder:
            (folder / "weights").write_text("new")

    write()
    (path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"other files \(notes\.txt\), which would be lost"):
        write()
    assert (path / "notes.txt").read_text() == "mine"


def test_a_file_of_other_content_is_no_target(tmp_path):
    path = tmp_path / "scores.json"
    ours = json_with("missing_hyp")
    check_target(path, ours)
    for mine in ("{}", "[1]", "words", '{"tiers": {"x": 1}}'):
        path.write_text(mine)
        with pytest.raises(FileExistsError, match="holds something else, which would be lost"):
            check_target(path, ours)
        check_target(path)
    for own in ('{"missing_hyp": []}', '{"runs/a": {"missing_hyp": []}, "b": 1}'):
        path.write_text(own)
        check_target(path, ours)


def test_a_folder_of_other_things_is_never_replaced(tmp_path):
    path = tmp_path / "thesis"
    path.mkdir()
    (path / "chapter.tex").write_text("years of work")

    def write(target):
        with atomic_folder(target) as folder:
            (folder / "weights").write_text("new")

    with pytest.raises(FileExistsError, match=r"other files \(chapter\.tex\), which would be lost"):
        write(path)
    with pytest.raises(FileExistsError, match="is a file"):
        write(path / "chapter.tex")
    assert names(tmp_path) == ["thesis"]
    assert (path / "chapter.tex").read_text() == "years of work"
    (path / "chapter.tex").unlink()
    write(path)
    assert names(path) == ["weights"]


def test_places_where_nothing_can_be_written_are_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    for path, error, said in (
        (tmp_path, IsADirectoryError, "is a folder"),
        (tmp_path / "file" / "new" / "x.json", NotADirectoryError, "file is a file"),
    ):
        with pytest.raises(error, match=said):
            check_target(path)
        with pytest.raises(error, match=said), atomic_write(path):
            pass
    check_target(tmp_path / "new" / "folder" / "x.json")
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path)
    with pytest.raises(PermissionError, match="read-only"):
        check_target(tmp_path / "new" / "x.json")
    assert names(tmp_path) == ["file"]


def test_a_failure_of_the_last_step_brings_the_old_folder_back(tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.mkdir()
    (path / "same").write_text("old")
    rename = Path.rename

    def failing(self, target):
        if self.suffix == ".tmp":
            raise OSError("disk full")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="disk full"), atomic_folder(path) as folder:
        (folder / "same").write_text("new")
    assert (path / "same").read_text() == "old"
    assert names(tmp_path) == ["model"]


def test_long_names_fit_the_file_system(tmp_path):
    name = safe_name("ŋ" * 300)
    with atomic_write(tmp_path / name) as file:
        file.write("x")
    with atomic_folder(tmp_path / ("d" * 250)):
        pass
    assert len(names(tmp_path)) == 2


@pytest.mark.parametrize(
    ("id", "expected"),
    [
        ("spk1_utt-2.v3", "spk1_utt-2.v3"),
        ("ŋ שלום 👩", "ŋ שלום 👩"),
        ("../x", "___x"),
        ("a/b", "a_b"),
        ("C:\\x", "C__x"),
        ("..", "_"),
        ("", "_"),
        ("   ", "_"),
        (".hidden", "_hidden"),
        ("a\0b\n", "a_b_"),
        ("\udc80", "_"),
    ],
)
def test_safe_names(id, expected):
    assert safe_name(id) == expected


@given(st.one_of(st.text(st.characters(), max_size=300), st.text("./\\ a\0:~", max_size=12)))
@settings(max_examples=300, deadline=None)
def test_a_safe_name_never_leaves_its_folder(id):
    name = safe_name(id)
    assert 0 < len(name.encode()) <= 200
    assert name not in (".", "..")
    assert not set(name) & set("/\\\0\n:")
    base = Path("/folder")
    assert Path(os.path.normpath(base / name)).parent == base
    assert safe_name(name) == name
