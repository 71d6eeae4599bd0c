"""Output and files of a query: no false match, whole paths, and no changes to other files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from isotone.batch.ledger import Entry, Ledger
from isotone.search import build_index
from isotone.search.searcher import LogMelSearcher
from tests.search.parts import RATE, collection, sounds, write
from tests.tiny_models import error_of, isotone

LOG_MEL = LogMelSearcher()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    build_index([collection(folder / "recordings", (9.0, 8.0, 7.0, 10.0, 6.0))], LOG_MEL, folder / "index")
    return folder / "index"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return write(tmp_path / "there.wav", sounds(9.0, 0)[3 * RATE : 6 * RATE])


@pytest.fixture
def absent(tmp_path: Path) -> Path:
    return write(tmp_path / "absent.wav", sounds(3.0, 999))


def test_a_clip_that_is_not_there_is_not_found(index: Path, absent: Path, tmp_path: Path) -> None:
    done = isotone("search", "query", index, absent, "--out", tmp_path / "found", code=3)
    assert done.stdout == ""
    assert done.stderr.startswith("no match: the best score is ")
    assert re.search(r"below [\d.]+, which clips that are not there reach in [\d.]+ % of cases", done.stderr)
    about = json.loads((tmp_path / "found" / "results.json").read_text())
    assert about["matches"] == []
    assert names(tmp_path / "found") == ["results.json"]


def test_a_clip_that_is_there_is_all_that_is_found(index: Path, there: Path) -> None:
    lines = isotone("search", "query", index, there).stdout.splitlines()
    assert [line.split()[-1] for line in lines] == ["file", str(index.parent / "recordings" / "sound0.wav")]


def test_the_threshold_can_be_changed(index: Path, absent: Path, there: Path) -> None:
    every = isotone("search", "query", index, absent, "--all")
    assert len(every.stdout.splitlines()) > 2
    scores = [float(line.split()[1]) for line in every.stdout.splitlines()[1:]]
    some = isotone("search", "query", index, absent, "--threshold", str(scores[1] - 0.0005)).stdout
    assert len(some.splitlines()) == 3
    isotone("search", "query", index, there, "--threshold", "1.5", code=3)
    assert "give one" in error_of("search", "query", index, there, "--all", "--threshold", "0.5")


def test_an_index_too_small_says_so(tmp_path: Path, there: Path) -> None:
    build_index([write(tmp_path / "one.wav", sounds(5.0, 3))], LOG_MEL, tmp_path / "index")
    said = isotone("search", "query", tmp_path / "index", there)
    assert "too small to measure a threshold" in said.stderr
    assert len(said.stdout.splitlines()) == 2


@pytest.mark.parametrize("columns", ["20", "80"])
def test_paths_are_whole_and_odd_names_are_one_line(
    tmp_path: Path, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    names = ["x" * 180 + ".wav", "[red]loud[/red].wav", "two\nlines\tand\x1b[31m.wav", "a\u2028b.wav"]
    folder = tmp_path / ("deep" * 20)
    for seed, name in enumerate(names):
        write(folder / name, sounds(4.0, seed))
    build_index([folder], LOG_MEL, tmp_path / "index")
    for seed, name in enumerate(names):
        clip = write(tmp_path / "clip.wav", sounds(4.0, seed)[RATE : 3 * RATE])
        _, best, *_ = isotone("search", "query", tmp_path / "index", clip, "--all").stdout.split("\n")
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
        assert best.endswith(f"  {folder}/{shown}")


def test_a_clip_shorter_than_a_window_is_said(index: Path, tmp_path: Path) -> None:
    clip = write(tmp_path / "short.wav", sounds(9.0, 0)[3 * RATE : 3 * RATE + 4000])
    assert "shorter than a window of 1 s" in isotone("search", "query", index, clip, code=None).stderr


def test_a_clip_longer_than_the_recordings_is_refused(tmp_path: Path) -> None:
    build_index([collection(tmp_path / "short", (2.0, 1.5, 2.5))], LOG_MEL, tmp_path / "index")
    clip = write(tmp_path / "long.wav", sounds(14.0, 0))
    assert "more than any recording" in error_of("search", "query", tmp_path / "index", clip)


# Files


def names(folder: Path) -> list[str]:
    """Return the files of a folder without the ledger."""
    return sorted(p.name for p in folder.iterdir() if not p.name.startswith("."))


def test_files_of_others_are_not_replaced(index: Path, there: Path, tmp_path: Path) -> None:
    out = tmp_path / "found"
    out.mkdir()
    (out / "sound0.TextGrid").write_text("by hand")
    assert "sound0.TextGrid" in error_of("search", "query", index, there, "--out", out)
    assert names(out) == ["sound0.TextGrid"]
    assert (out / "sound0.TextGrid").read_text() == "by hand"
    isotone("search", "query", index, there, "--out", out, "--overwrite")
    assert "matches" in (out / "sound0.TextGrid").read_text()


@pytest.mark.parametrize("text", ["{}", "no JSON", '{"clip": "a", "matches": []}'])
def test_results_of_something_else_are_not_replaced(
    index: Path, there: Path, tmp_path: Path, text: str
) -> None:
    out = tmp_path / "found"
    out.mkdir()
    (out / "results.json").write_text(text)
    assert "results.json" in error_of("search", "query", index, there, "--out", out)
    assert (out / "results.json").read_text() == text
    assert names(out) == ["results.json"]


def test_a_search_replaces_what_a_search_wrote(
    index: Path, there: Path, absent: Path, tmp_path: Path
) -> None:
    out = tmp_path / "found"
    isotone("search", "query", index, there, "--out", out)
    isotone("search", "query", index, there, "--out", out)
    (out / "mine.txt").write_text("mine")
    other = write(tmp_path / "other.wav", sounds(8.0, 1)[2 * RATE : 5 * RATE])
    isotone("search", "query", index, other, "--out", out)
    assert names(out) == ["mine.txt", "results.json", "sound1.TextGrid"]


def test_what_was_changed_by_hand_stays(index: Path, there: Path, absent: Path, tmp_path: Path) -> None:
    out = tmp_path / "found"
    isotone("search", "query", index, there, "--out", out)
    (out / "sound0.TextGrid").write_text("corrected")
    assert "sound0.TextGrid" in error_of("search", "query", index, there, "--out", out)
    isotone("search", "query", index, absent, "--out", out, code=3)
    assert (out / "sound0.TextGrid").read_text() == "corrected"


def test_outputs_of_align_are_not_replaced(index: Path, there: Path, tmp_path: Path) -> None:
    out = tmp_path / "found"
    with Ledger(out) as ledger:
        ledger.write(Entry("sound0", "a.wav", "/a.wav", "align"), {"sound0.TextGrid": b"aligned"})
    assert "sound0.TextGrid" in error_of("search", "query", index, there, "--out", out)
    assert (out / "sound0.TextGrid").read_bytes() == b"aligned"
