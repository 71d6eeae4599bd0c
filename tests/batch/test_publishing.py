"""Reports are written over nothing that isotone did not write."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotone.batch import OutputConflict, published
from tests.batch.parts import tree


def publish(out: Path, text: str, **options: bool) -> None:
    with published(out, **options) as folder:
        (folder / "figures").mkdir()
        (folder / "figures/a.png").write_text(text)
        (folder / "table.md").write_text(text)


def test_what_isotone_wrote_is_written_again(tmp_path: Path) -> None:
    for text in ("one", "two", "two"):
        publish(tmp_path / "out", text)
        assert tree(tmp_path / "out") == {"figures/a.png": text.encode(), "table.md": text.encode()}


@pytest.mark.parametrize("changed", [False, True])
def test_nothing_else_is(changed: bool, tmp_path: Path) -> None:
    if changed:
        publish(tmp_path, "one")
    (tmp_path / "table.md").write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(OutputConflict, match=r"1 files in .* which isotone did not write .*: table\.md"):
        publish(tmp_path, "two")
    assert tree(tmp_path) == before
    publish(tmp_path, "two", overwrite=True)
    assert (tmp_path / "table.md").read_text() == "two"


def test_an_error_writes_nothing(tmp_path: Path) -> None:

    def fail() -> None:
        with published(tmp_path / "out") as folder:
            (folder / "table.md").write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError, match="is a file"), published(tmp_path / "file"):
        pass
