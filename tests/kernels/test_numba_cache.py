"""Folders of compiled kernels, where nothing is writable but the temporary folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from isotone.kernels.numba_cache import VARIABLE, ensure_cache


@pytest.fixture
def read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder; the package and the home are read-only."""
    monkeypatch.setattr("os.access", lambda path, mode: False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    return tmp_path


def test_nothing_is_set_where_numba_finds_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setattr("os.access", lambda path, mode: True)
    ensure_cache()
    assert os.environ[VARIABLE] == ""


def test_the_users_own_setting_stays(read_only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = read_only / "mine"
    monkeypatch.setattr("os.access", lambda path, mode: path == mine)
    monkeypatch.setenv(VARIABLE, str(mine))
    ensure_cache()
    assert os.environ[VARIABLE] == str(mine)
    assert list(read_only.iterdir()) == [mine]


@pytest.mark.parametrize("name", ["a file/below", "read-only"])
def test_a_setting_that_cannot_be_used_is_replaced(
    read_only: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (read_only / "a file").touch()
    monkeypatch.setenv(VARIABLE, str(read_only / name))
    ensure_cache()
    assert Path(os.environ[VARIABLE]).name.startswith("isotone-numba-")


def test_a_read_only_home_gets_a_private_folder_that_is_found_again(read_only: Path) -> None:
    ensure_cache()
    folder = Path(os.environ[VARIABLE])
    assert folder.parent == read_only
    assert folder.stat().st_mode & 0o777 == 0o700
    os.environ[VARIABLE] = ""
    ensure_cache()
    assert Path(os.environ[VARIABLE]) == folder


@pytest.mark.parametrize("trap", ["open to all", "a link", "a file"])
def test_a_folder_that_others_can_write_to_is_not_trusted(read_only: Path, tmp_path: Path, trap: str) -> None:
    ensure_cache()
    folder = Path(os.environ[VARIABLE])
    if trap == "open to all":
        folder.chmod(0o777)
    else:
        folder.rmdir()
        if trap == "a link":
            (tmp_path / "elsewhere").mkdir()
            folder.symlink_to(tmp_path / "elsewhere")
        else:
            folder.touch()
    os.environ[VARIABLE] = ""
    ensure_cache()
    other = Path(os.environ[VARIABLE])
    assert other != folder
    assert other.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="this system has no user numbers")
def test_kernels_are_compiled_there(tmp_path: Path) -> None:
    script = """
        import os, tempfile, sys
        tempfile.tempdir, os.environ["NUMBA_CACHE_DIR"] = sys.argv[1], ""
        import numba
        access, os.access = os.access, lambda path, mode: False
        import isotone
        os.access = access
        from isotone.evaluation.sample import _weighted_quantiles
        print(_weighted_quantiles._cache.cache_path)
    """
    lines = "\n".join(line.strip() for line in script.splitlines())
    done = subprocess.run(
        [sys.executable, "-c", lines, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path / f"isotone-numba-{os.getuid()}"))
