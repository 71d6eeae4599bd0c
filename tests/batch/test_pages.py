"""Pages as files of an output folder: which alignments they show, what they replace, and how corrections come back."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
import soundfile
from accelerate.state import AcceleratorState

from isotone import format as files
from isotone.alignment import Alignment, Segment, Tier
from isotone.batch import Options, OutputConflict, Target, align_files, page_files
from isotone.batch.adapting import adapt_files
from isotone.format.json import JSONFormat
from isotone.format.textgrid import TextGridFormat
from isotone.training.adapt import Settings
from tests.batch.parts import tree
from tests.paths import DATA
from tests.tiny_models import error_of, isotone, lines_of, save_noise

TIMIT = DATA / "timit_sample" / "dr1-fvmh0"


def _words(
    *words: tuple[str, float, float], seconds: float = 1.0, confidence: float | None = None
) -> Alignment:
    tier = Tier("words", tuple(Segment(label, a, b, None, confidence) for label, a, b in words))
    return Alignment("a", seconds, (tier,))


def _record(path: Path, seconds: float = 1.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.random.default_rng(0).normal(0, 0.1, round(16_000 * seconds)), 16_000)
    return path


def _align(path: Path, alignment: Alignment) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((JSONFormat() if path.suffix == ".json" else TextGridFormat()).dumps(alignment))
    return path


def _shown(page: Path) -> dict[str, Any]:
    """Read what a page shows."""
    found = re.search(
        r'<script type="application/json" class="data">(.*?)</script>', page.read_text(), re.DOTALL
    )
    assert found
    return json.loads(found[1])


def _rows(page: Path) -> list[tuple[str, str, list[str]]]:
    return [(row["system"], row["tier"], [s[0] for s in row["segments"]]) for row in _shown(page)["tiers"]]


class _Links(HTMLParser):
    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[str] = []
        self.scripts = 0
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.scripts += tag == "script"
        if tag == "a":
            self.found.append(values["href"] or "")


def _page(*paths: Path, out: Path, **options: Any) -> Any:
    beside = options.pop("beside", ())
    return page_files(paths, Target(out, (), page=True, **options), beside=beside)


# Which alignments a page shows


def test_a_recording_and_its_alignment(tmp_path: Path) -> None:
    audio = _record(tmp_path / "talk.wav")
    grid = _align(tmp_path / "other name.TextGrid", _words(("so", 0.1, 0.5)))
    result = isotone("page", audio, grid, "-o", tmp_path / "out")
    assert re.search(r"Pages: .*/out/index\.html \(1, \d\.\d MB\)", result.stdout)
    page = tmp_path / "out/talk.page.html"
    assert _rows(page) == [("other name.TextGrid", "words", ["so"])]
    assert _shown(page)["saveAs"] == "talk.TextGrid"
    assert "talk.page.html" in _Links(tmp_path / "out/index.html").found


def test_a_folder_of_both_with_others_beside(tmp_path: Path) -> None:
    for name in ("dr1/a", "dr2/a"):
        _record(tmp_path / f"speech/{name}.wav")
        _align(tmp_path / f"speech/{name}.TextGrid", _words((name, 0.1, 0.5)))
    _align(tmp_path / "mfa/dr1/a.TextGrid", _words(("one", 0.1, 0.6)))
    _align(tmp_path / "hand/dr1/a.TextGrid", _words(("two", 0.1, 0.6)))
    _align(tmp_path / "hand/dr2/a.TextGrid", _words(("three", 0.1, 0.6)))
    outcome = _page(tmp_path / "speech", out=tmp_path / "out", beside=(tmp_path / "mfa", tmp_path / "hand"))
    assert (outcome.done, outcome.errors) == (2, [])
    first, second = (_rows(tmp_path / f"out/{name}.page.html") for name in ("dr1/a", "dr2/a"))
    assert first == [("speech", "words", ["dr1/a"]), ("mfa", "words", ["one"]), ("hand", "words", ["two"])]
    assert second == [("speech", "words", ["dr2/a"]), ("hand", "words", ["three"])]


def test_alignments_in_a_folder_of_their_own(tmp_path: Path) -> None:
    _record(tmp_path / "speech/deep/a.wav")
    _align(tmp_path / "flat/a.TextGrid", _words(("flat", 0.1, 0.5)))
    _page(tmp_path / "speech", tmp_path / "flat", out=tmp_path / "out")
    assert _rows(tmp_path / "out/deep/a.page.html") == [("flat", "words", ["flat"])]


def test_transcripts_beside_the_recordings_are_no_alignments(tmp_path: Path) -> None:
    for name in ("a", "b"):
        audio = _record(tmp_path / f"speech/{name}.wav")
        audio.with_suffix(".txt").write_text("words alone")
        _align(audio.with_suffix(".TextGrid"), _words(("rough", 0.0, 1.0)))
        _align(tmp_path / f"corrected/{name}.TextGrid", _words(("exact", 0.1, 0.5)))
    (tmp_path / "speech/b.TextGrid").unlink()
    _page(tmp_path / "speech", tmp_path / "corrected", out=tmp_path / "out")
    for name in ("a", "b"):
        assert _rows(tmp_path / f"out/{name}.page.html") == [("corrected", "words", ["exact"])]
    outcome = _page(tmp_path / "speech", out=tmp_path / "own")
    assert _rows(tmp_path / "own/a.page.html") == [("speech", "words", ["rough"])]
    assert [Path(row["file"]).name for row in outcome.errors] == ["b.wav"]


def test_a_folder_that_align_wrote_knows_its_recordings(model: Path, tmp_path: Path) -> None:
    for name in ("x/a", "x/b"):
        save_noise(tmp_path / f"speech/{name}.wav", text="go on")
    isotone("align", tmp_path / "speech", "-m", model, "-o", tmp_path / "out")
    _page(tmp_path / "out", out=tmp_path / "pages")
    assert next(row[2] for row in _rows(tmp_path / "pages/x/b.page.html")) == ["go", "on"]


def test_align_writes_pages_with_others_beside(model: Path, tmp_path: Path) -> None:
    for name in ("x/a", "y/a"):
        save_noise(tmp_path / f"speech/{name}.wav", text="go on")
    for name, word in (("hand/x/a", "one"), ("hand/y/a", "two"), ("mfa/y/a", "three")):
        _align(tmp_path / f"{name}.TextGrid", _words((word, 0.1, 0.6)))
    command = ("align", tmp_path / "speech", "-m", model, "-o", tmp_path / "out", "--no-check", "--no-edges")
    beside = ("--beside", tmp_path / "hand", "--beside", tmp_path / "mfa")
    assert "give --page as well" in error_of(*command, *beside)
    assert "No such file or folder" in error_of(*command, "--page", "--beside", tmp_path / "nowhere")
    isotone(*command, "--page", *beside)
    first, second = (_rows(tmp_path / f"out/{name}.page.html") for name in ("x/a", "y/a"))
    assert [row for row in first if row[0] != "isotone"] == [("hand", "words", ["one"])]
    assert [row for row in second if row[0] != "isotone"] == [
        ("hand", "words", ["two"]), ("mfa", "words", ["three"])
    ]  # fmt: skip
    assert first[0][0] == "isotone", "its own come first"
    assert "(2 of them there before)" in isotone(*command, "--page", *beside).stdout
    _align(tmp_path / "hand/x/a.TextGrid", _words(("changed", 0.1, 0.6)))
    assert "(1 of them there before)" in isotone(*command, "--page", *beside).stdout
    assert ("hand", "words", ["changed"]) in _rows(tmp_path / "out/x/a.page.html")


def test_align_writes_pages_with_its_confidences(model: Path, tmp_path: Path) -> None:
    save_noise(tmp_path / "speech/a.wav", text="go on")
    result = isotone("align", tmp_path / "speech", "-m", model, "-o", tmp_path / "out")
    assert "Pages" not in result.stdout
    # written later, beside what is there
    result = isotone(
        "align", tmp_path / "speech", "-m", model, "-o", tmp_path / "out", "--page", "-f", "json"
    )
    assert "Pages" in result.stdout
    page = _shown(tmp_path / "out/a.page.html")
    found = {row["tier"]: row["segments"] for row in page["tiers"]}
    read = files.read(tmp_path / "out/a.json")
    for tier in read.tiers:
        assert [s[:4] for s in found[tier.name]] == [[s.label, s.start, s.end, s.confidence] for s in tier]
    before = tree(tmp_path / "out")
    assert (
        "1 of them there before"
        in isotone(
            "align", tmp_path / "speech", "-m", model, "-o", tmp_path / "out", "--page", "-f", "json"
        ).stdout
    )
    assert tree(tmp_path / "out") == before


def test_changed_alignments_make_a_new_page(tmp_path: Path) -> None:
    audio = _record(tmp_path / "talk.wav")
    grid = _align(tmp_path / "talk.TextGrid", _words(("so", 0.1, 0.5)))
    assert _page(audio, grid, out=tmp_path / "out").there == 0
    assert _page(audio, grid, out=tmp_path / "out").there == 1
    _align(grid, _words(("so", 0.1, 0.7)))
    assert _page(audio, grid, out=tmp_path / "out").there == 0
    assert _shown(tmp_path / "out/talk.page.html")["tiers"][0]["segments"][0][2] == 0.7


def test_the_index_has_the_least_sure_first(tmp_path: Path) -> None:
    for name, confidence in (("a", 0.9), ("b", 0.2), ("c", 0.6)):
        _record(tmp_path / f"in/{name}.wav")
        _align(tmp_path / f"in/{name}.json", _words(("so", 0.1, 0.5), confidence=confidence))
    _page(tmp_path / "in", out=tmp_path / "out")
    links = _Links(tmp_path / "out/index.html").found
    assert [link for link in links if "#" not in link] == ["b.page.html", "c.page.html", "a.page.html"]
    assert "b.page.html#t=0.100" in links


# Bad input, and files of others


def test_one_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    for name in ("good", "none", "broken", "silent"):
        _record(tmp_path / f"in/{name}.wav")
    (tmp_path / "in/cut.wav").write_bytes(b"RIFF")
    for name in ("good", "silent", "cut"):
        _align(tmp_path / f"in/{name}.TextGrid", _words(("so", 0.1, 0.5)))
    (tmp_path / "in/broken.TextGrid").write_text("no TextGrid")
    soundfile.write(tmp_path / "in/silent.wav", np.zeros(16_000), 16_000)
    outcome = _page(tmp_path / "in", out=tmp_path / "out")
    assert outcome.done == 2
    errors = {Path(row["file"]).name: row["error"] for row in lines_of(tmp_path / "out/errors.jsonl")}
    assert errors.keys() == {"none.wav", "broken.wav", "cut.wav"}
    assert "no alignment: expected none.TextGrid" in errors["none.wav"]
    assert "broken.TextGrid" in errors["broken.wav"]
    index = (tmp_path / "out/index.html").read_text()
    assert "no alignment: expected none.TextGrid" in index
    assert len([x for x in _Links(tmp_path / "out/index.html").found if "#" not in x]) == 2


def test_names_stay_in_the_folder_and_are_text(tmp_path: Path) -> None:
    name = '<script>alert(1)<!--" onclick=x %2e%2e #'
    _record(tmp_path / f"in/{name}.wav")
    _align(tmp_path / f"in/{name}.TextGrid", _words(("</script><script>alert(2)</script>", 0.1, 0.5)))
    _page(tmp_path / "in", out=tmp_path / "out")
    pages = list((tmp_path / "out").rglob("*.page.html"))
    assert len(pages) == 1
    assert pages[0].parent == tmp_path / "out"
    assert not set(pages[0].name) & set('<>"')
    index = _Links(tmp_path / "out/index.html")

    assert (tmp_path / "out" / unquote(index.found[0])).resolve() == pages[0]
    assert index.scripts == 1  # its own
    # its own, the data and the sound
    assert _Links(pages[0]).scripts == 3


def test_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    audio = _record(tmp_path / "talk.wav")
    grid = _align(tmp_path / "talk.TextGrid", _words(("so", 0.1, 0.5)))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/index.html").write_text("mine")
    (tmp_path / "out/talk.page.html").write_text("mine")
    with pytest.raises(OutputConflict, match=r"(?s)index\.html.*talk\.page\.html"):
        _page(audio, grid, out=tmp_path / "out")
    assert set(tree(tmp_path / "out").values()) == {b"mine"}
    _page(audio, grid, out=tmp_path / "out", overwrite=True)
    assert b"mine" not in tree(tmp_path / "out").values()


def test_pages_do_not_replace_what_the_ledger_knows_of_alignments(model: Path, tmp_path: Path) -> None:
    save_noise(tmp_path / "speech/a.wav", text="go on")
    isotone("align", tmp_path / "speech", "-m", model, "-o", tmp_path / "out")
    message = error_of("page", tmp_path / "out", "-o", tmp_path / "out")
    assert "has the files of isotone align: give pages another --out" in message
    again = isotone("align", tmp_path / "speech", "-m", model, "-o", tmp_path / "out")
    assert "1 of them there before" in again.stdout


@pytest.mark.parametrize(
    "given, message",
    [
        (["talk.TextGrid"], r"No recordings among .*talk.TextGrid\. Give the recordings as well"),
        (["nothing.wav"], "No such file or folder: .*nothing.wav"),
        (
            ["talk.wav", "talk.TextGrid", "two.TextGrid"],
            "are two alignments of one recording: give one as --beside",
        ),
        (["talk.wav", "b.wav", "two.TextGrid"], "two.TextGrid is named after none of the recordings"),
    ],
)
def test_what_cannot_be_paired_is_said(tmp_path: Path, given: list[str], message: str) -> None:
    for name in ("talk.wav", "b.wav"):
        _record(tmp_path / name)
    for name in ("talk.TextGrid", "two.TextGrid"):
        _align(tmp_path / name, _words(("so", 0.1, 0.5)))
    with pytest.raises((ValueError, OSError), match=message):
        _page(*(tmp_path / name for name in given), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_alignment_longer_than_the_recording_is_cut_and_said(tmp_path: Path) -> None:
    audio = _record(tmp_path / "talk.wav", 1.0)
    words = _words(("so", 0.1, 0.5), ("long", 0.9, 2.0), ("gone", 2.0, 3.0), seconds=3.0)
    _page(audio, _align(tmp_path / "talk.TextGrid", words), out=tmp_path / "out")
    segments = _shown(tmp_path / "out/talk.page.html")["tiers"][0]["segments"]
    assert [s[:3] for s in segments] == [["so", 0.1, 0.5], ["long", 0.9, 1.0]]
    assert "is it of this recording?" in (tmp_path / "out/talk.page.html").read_text()


# Corrections come back


def test_corrections_are_transcripts_to_align_and_to_adapt_to(model: Path, tmp_path: Path) -> None:
    """A TextGrid as pages save it, in a folder for --text-dir: words and their times are read."""
    AcceleratorState._reset_state(reset_partial_state=True)
    texts = ["so it is", "and so on", "go and see", "well it was", "as you were", "or not to"]
    for number, text in enumerate(texts):
        audio = save_noise(tmp_path / f"speech/{number}.wav", seed=number)
        seconds = soundfile.info(audio).duration
        words = [(w, i * seconds / 3, (i + 1) * seconds / 3) for i, w in enumerate(text.split())]
        _align(tmp_path / f"corrected/{number}.TextGrid", _words(*words, seconds=seconds))
    corrected, options = tmp_path / "corrected", Options(str(model), slack_s=0.1)
    outcome = align_files([tmp_path / "speech"], options, Target(tmp_path / "out"), text_dir=corrected)
    assert outcome.errors == []
    for number, text in enumerate(texts):
        assert files.read(tmp_path / f"out/{number}.TextGrid").tier("words").labels == text.split()
    few = Settings(steps=2, batch_size=4, lr=1e-2, evaluate_every=2)
    found = adapt_files([tmp_path / "speech"], options, tmp_path / "mine", text_dir=corrected, settings=few)
    assert (found.trained + found.held_out, found.errors) == (6, [])


@pytest.mark.skipif(not TIMIT.is_dir(), reason="needs the public sample of TIMIT (ISOTONE_TEST_DATA)")
def test_hand_labels_of_timit(tmp_path: Path) -> None:
    """Its labels beside the audio are the alignment."""
    _page(TIMIT, out=tmp_path / "out")
    shown = _shown(tmp_path / "out/sa1.page.html")
    assert [row["tier"] for row in shown["tiers"]] == ["words", "phones"]
    assert shown["tiers"][0]["segments"][0][0] == "she"
    phones = (TIMIT / "sa1.phn").read_text().split("\n")[1].split()
    assert shown["tiers"][1]["segments"][1][:3] == [
        phones[2],
        int(phones[0]) / 16_000,
        int(phones[1]) / 16_000,
    ]
