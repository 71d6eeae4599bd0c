"""The documentation: code blocks that run as they stand there, and links that lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import jiwer
import pytest
import soundfile
import torch
import yaml

from docs import figures, metric_figures, reference
from isotone import aligners
from isotone.alignment import Alignment, Segment, Tier
from isotone.evaluation import score
from isotone.testing import check_aligner, check_loss, check_pack
from isotone.text.espeak import SAMPLE_RATE, Engine
from tests import doc_blocks, test_doc_commands, test_recipe_commands
from tests.doc_blocks import Block
from tests.doc_links import broken_links, pages
from tests.papers import check_command
from tests.paths import ROOT
from tests.tiny_models import save_character_model

README = ROOT / "README.md"
#: Pages whose blocks run in order. Commands of the other pages: see test_doc_commands.
RUN = sorted([*(ROOT / "docs").glob("tutorials/*.md"), *(ROOT / "docs").glob("explained/*.md")])
#: Pages whose blocks in Python run in one folder, and one whose block needs isotone-light (tests/light).
PYTHON = [README, ROOT / "docs/use.md", ROOT / "docs/plugins.md"]
LIGHT = ROOT / "docs/light.md"
SLOW = [page for page in RUN if len(doc_blocks.quick_and_all(page)[0]) < len(doc_blocks.blocks(page))]
PAGE = {"ids": lambda page: page.relative_to(ROOT).as_posix()}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", RUN, **PAGE)
def test_the_blocks_of_a_page_run(page: Path) -> None:
    doc_blocks.run(doc_blocks.quick_and_all(page)[0])


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW, **PAGE)
def test_its_slow_blocks_run_too(page: Path) -> None:
    doc_blocks.run(doc_blocks.blocks(page))


def test_the_blocks_in_python_run(tmp_path: Path) -> None:
    """Those of the README and of docs, with the recordings, the model and the pack that they speak of."""
    for name in ("talk.wav", "interview.wav"):
        soundfile.write(name, Engine().say("She washed the dog.").samples, SAMPLE_RATE)
    model = save_character_model(tmp_path / "runs" / "demo" / "joint")
    names = {}
    for page in PYTHON:
        names |= doc_blocks.run([block for block in doc_blocks.blocks(page) if block.kind == "python"])
        Path("talk.TextGrid").unlink(missing_ok=True)  # nothing is replaced
    check_loss(names["FocalCTC"]())
    check_aligner(names["Even"]())
    pack = names["German"]
    pack.folder = lambda self: model
    pack.size_mb = sum(path.stat().st_size for path in model.rglob("*") if path.is_file()) / 1e6
    check_pack(pack(), text="guten Tag")


def test_no_block_is_left_out() -> None:
    """Each fence is found, and is of a page and a kind that a test runs; what is not run is little, with a reason."""
    skipped = []
    for page in [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        found = doc_blocks.blocks(page)
        fences = re.findall(r"^ *```", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(found), page
        for before, block in zip([None, *found], found):
            where = f"{page.name}:{block.line}"
            skipped += [where] if block.mark.startswith("not run") and page in RUN else []
            if block.kind == "sh":
                assert page in [*RUN, *test_doc_commands.PAGES], where
            elif block.kind == "python":
                assert page in [*RUN, *PYTHON, LIGHT], where
            elif block.kind == "text":
                assert page in RUN, where
                assert before is not None, where
                assert before.kind in ("sh", "python"), where
            else:  # tests/test_recipe_commands.py reads these
                assert block.kind in test_recipe_commands.READERS, where
    assert len(skipped) <= 6, skipped


def test_every_table_of_numbers_has_a_command() -> None:
    text = (ROOT / "docs" / "numbers.md").read_text(encoding="utf-8")
    found = re.findall(r"\| `(.+)` \|$", text, re.MULTILINE)
    assert len(found) >= 16
    for command in found:
        if module := re.fullmatch(r"python -m (benchmarks\.\w+)", command):
            assert importlib.util.find_spec(module[1]), command
        else:
            check_command(command)


def test_the_figure_shows_what_the_page_says() -> None:
    scores, targets = figures.emissions(blank=0.7)
    spans = {name: aligners.build(name)(scores, targets).hard().spans()[0] for name in figures.ALIGNERS}
    ends = torch.tensor(figures.HEARD).cumsum(0)
    assert (spans["ctc"].diff(dim=1) == 1).all(), "a peak each"
    assert spans["soft-dtw"][:, 1].tolist() == ends.tolist(), "the borders are where the labels change"
    assert spans["ottc"][0, 1] < ends[0], "with equal weights the first token ends too early"
    assert spans["opas"][0, 0] > 0, "the blank keeps frames at the ends"
    assert spans["opas"][-1, 1] < ends[-1]
    assert (spans["opas"][:-1, 1] - ends[:-1]).abs().max() <= 1


def test_the_drawn_metrics_are_those_that_are_measured() -> None:
    def drawn(segments: Sequence[tuple[str, float, float]]) -> Alignment:
        return Alignment("figure", 0.8, (Tier("phones", tuple(Segment(*one) for one in segments)),))

    figure = metric_figures
    report = score([(drawn(figure.PREDICTED), drawn(figure.REFERENCE))], collar_s=figure.COLLAR)
    ends = [sorted({t for _, *times in x for t in times}) for x in (figure.REFERENCE, figure.PREDICTED)]
    hits = len(figure.pairs(*ends, figure.COLLAR))
    assert report["boundary_recall@20ms"].value == pytest.approx(100 * hits / len(ends[0]))
    assert report["boundary_precision@20ms"].value == pytest.approx(100 * hits / len(ends[1]))
    said, heard = (" ".join(label for label in side if label) for side in zip(*figure.EDITS))
    assert 100 * jiwer.wer(said, heard) == 50, "as the page says"
    assert 100 * figure.FRAMES.count("") / len(figure.FRAMES) == 70
    chance = sum(figure.ORDERS) / len(figure.ORDERS)
    assert (figure.TEXT - chance) / (figure.BEST - chance) == pytest.approx(0.80)


def test_the_page_of_commands_has_all_of_them() -> None:
    page = reference.commands()
    sections = dict(re.findall(r"^#+ `isotone (.+?)`\n(.*?)(?=^#|\Z)", page, re.MULTILINE | re.DOTALL))
    assert {"align", "match", "search", "search index", "search query"} <= set(sections)
    assert "| `-j, --jobs <" in sections["align"]
    assert "(or &lt;star>)" in sections["align"], "is text, not a tag"


@pytest.mark.parametrize("page", pages(), **PAGE)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_every_page_is_in_the_navigation() -> None:
    """MkDocs says so as well, where it is installed."""
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    named = re.findall(r"([\w/.-]+\.md)$", nav, re.MULTILINE)
    assert len(named) == len(set(named))
    places = {page.relative_to(ROOT).as_posix().removeprefix("docs/") for page in pages()}
    assert places == set(named)


def test_the_citation_is_of_this_version() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (cited["version"], cited["license"]) == (about["version"], about["license"])


def test_a_wrong_page_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n[a](nowhere.md) [b](page.md#nothing) [c](page.md#a-page) [d](#a-page) `[e](f)`\n"
    )
    assert broken_links(page) == ["nowhere.md", "page.md#nothing"]
    page.write_text("```python\nprint(1.51, 'a')\n```\n\n```text\n1.5 a\n```\n")
    doc_blocks.run(doc_blocks.blocks(page))
    for wrong in ("1.6 a", "1.5 b", "1.5"):
        page.write_text(f"```python\nprint(1.51, 'a')\n```\n\n```text\n{wrong}\n```\n")
        with pytest.raises(AssertionError, match="the page shows"):
            doc_blocks.run(doc_blocks.blocks(page))
    with pytest.raises(AssertionError, match="mark what is not run"):
        doc_blocks.run([Block(page, 1, "sh", "", "rm talk.wav\n")])
    doc_blocks.run([Block(page, 1, "sh", "not run: it would", "rm talk.wav\n")])
    with pytest.raises(ValueError, match="No such option"):
        doc_blocks.run([Block(page, 1, "sh", "not run: it would", "isotone align a.wav --wrong\n")])
    with pytest.raises(AssertionError, match="No transcript"):
        doc_blocks.run([Block(page, 1, "sh", "", "isotone align nowhere.wav nowhere.txt\n")])
    doc_blocks.run([Block(page, 1, "sh", "", "isotone align nowhere.wav nowhere.txt   # exits with 2\n")])
