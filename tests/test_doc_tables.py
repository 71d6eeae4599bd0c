"""`python -m docs.tables`: pages get what the commands beside their tables print, and keep theirs where one fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import tables
from docs.tables import TableError, marked, pages, refreshed

PAGE = """# A page

| a | b |
|---|---|
| by hand | 1 |

<!-- table: python -m benchmarks.toy /corpora/x -->
| a | b |
|---|---|
| one | 1 |

Words.

<!-- table "phones": python -m benchmarks.toy /corpora/x -->

| a | b |
|---|---|
| two | 2 |
"""
PRINTED = """noise
**words**

| a | c |
| --- | --- |
| other | 0 |

| a | b |
| --- | --- |
| one | 3 |

**phones**

| a | b |
| --- | --- |
| two | 4 |
| three | 5 |"""
TOY = f"""import sys
from pathlib import Path

count = Path("count")
count.write_text(count.read_text() + "x" if count.exists() else "x")
if sys.argv[1].endswith("nothing"):
    sys.exit(3)
print({PRINTED!r}.replace("other", sys.argv[1]))
"""


def test_tables_are_found_by_their_headings_and_titles() -> None:
    (command,) = {one.command for one in marked(PAGE)}
    new = refreshed(PAGE, {command: PRINTED})
    assert new == PAGE.replace("|---|---|\n| one | 1 |", "| --- | --- |\n| one | 3 |").replace(
        "|---|---|\n| two | 2 |", "| --- | --- |\n| two | 4 |\n| three | 5 |"
    )
    assert refreshed(new, {command: PRINTED}) == new
    with pytest.raises(TableError, match='no table "phones" with the heading'):
        refreshed(PAGE, {command: PRINTED.replace("**phones**", "**syllables**")})
    with pytest.raises(TableError, match=r"heading \['a', 'b'\]"):
        refreshed(PAGE, {command: PRINTED.replace("| b |", "| d |")})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a benchmark that prints tables and counts its runs."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "toy.py").write_text(TOY)
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    (tmp_path / "README.md").write_text(PAGE)
    return tmp_path


def test_commands_run_once_and_get_the_folder_of_the_corpora(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = home / "kept"
    assert tables.main([str(home / "my corpora"), "--kept", str(kept)]) == 0
    assert "| three | 5 |" in (home / "README.md").read_text()
    assert "README.md: changed" in capsys.readouterr().out
    assert (home / "count").read_text() == "x", "one command, two tables"
    assert f"| {home}/my corpora/x | 0 |" in next(kept.glob("*.md")).read_text()
    assert tables.main([str(home / "my corpora"), "--kept", str(kept), "--jobs", "2"]) == 0
    assert (home / "count").read_text() == "x"
    assert "changed" not in capsys.readouterr().out
    (home / tables.PACK / "encoder").mkdir(parents=True)
    (home / tables.PACK / "encoder" / "weights").write_text("of another model")
    assert tables.main([str(home / "my corpora"), "--kept", str(kept)]) == 0
    assert (home / "count").read_text() == "xx", "outputs are those of one pack"


def test_a_command_that_fails_leaves_its_page_and_not_the_others(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = PAGE.replace("/corpora/x", "/corpora/nothing")
    (home / "docs").mkdir()
    (home / "docs" / "broken.md").write_text(broken)
    (home / "docs" / "strange.md").write_text(PAGE.replace("python -m benchmarks.toy", "rm -r"))
    assert tables.main([str(home), "--kept", str(home / "kept")]) == 1
    told = capsys.readouterr().err
    assert "exit code 3" in told
    assert "no command of the benchmarks" in told
    assert (home / "docs" / "broken.md").read_text() == broken
    assert "| three | 5 |" in (home / "README.md").read_text()
    assert tables.main([str(home), str(home / "docs" / "broken.md"), "--kept", str(home / "kept")]) == 1


def test_what_is_written_meanwhile_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tables.printed

    def slowly(*arguments: object) -> str:
        page = home / "README.md"
        page.write_text(page.read_text().replace("# A page", "# A better page"))
        return run(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(tables, "printed", slowly)
    assert tables.main([str(home), "--kept", str(home / "kept")]) == 0
    text = (home / "README.md").read_text()
    assert text.startswith("# A better page")
    assert "| three | 5 |" in text


def test_pages_of_the_product_have_such_tables() -> None:
    found = {page.name for page in pages()}
    assert found
    for page in pages():
        assert all(one.command.startswith("python -m benchmarks.") for one in marked(page.read_text("utf-8")))
