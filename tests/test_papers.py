"""The pages of the papers: nothing numbered is missing, and what they name exists, loads and was measured."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.papers import (
    HEAD,
    PAGES,
    Row,
    check_command,
    items,
    missing_numbers,
    problems,
    rows,
    unknown_words,
)
from tests.paths import DATA, ROOT

#: How many of each the papers number. Equations beyond these are steps of proofs.
NUMBERED = {
    "ottc": {
        "Table": 2,
        "Figure": 7,
        "Algorithm": 1,
        "Lemma": 1,
        "Proposition": 4,
        "Definition": 1,
        "Eq.": 13,
    },
    "opas": {"Table": 21, "Figure": 12, "Theorem": 2, "Eq.": 30},
    "ot4p": {"Table": 7, "Figure": 7, "Algorithm": 1, "Theorem": 2, "Eq.": 22},
    "qare": {"Table": 4, "Figure": 3, "Algorithm": 2, "Proposition": 2, "Eq.": 17},
    "talr": {"Table": 3, "Figure": 3, "Proposition": 2, "Eq.": 78},
}
#: Methods that the papers compare with.
BASELINES = {
    "ottc": ["CTC", "soft-DTW", "Single path", "Fixed", "Oracle"],
    "opas": ["FastDTW", "SDTW", "SHARP", "MASS", "ColBERT", "FAISS", "DeepSet_1", "DeepSet_2", "LRL", "Conv1D"],
    "ot4p": [
        "weight matching", "Sinkhorn", "naive", "Gumbel-Sinkhorn", "Reg", "OrthReg", "RiemanBirk",
    ],
    "qare": [
        "triplet", "InfoNCE", "NT-Logistic", "SimCLR", "SparseCLR", "supervised", "random weights", "DeepCluster",
        "RotationNet", "Deep InfoMax",
    ],
    "talr": ["BRE", "MACHash", "FastHash", "StructHash", "DPSH", "DTSH", "MIHash", "HashNet", "LSH"],
}  # fmt: skip
TEXTS = DATA.parent / "seeds"
ROWS = [(page.stem, row) for page in PAGES for row in rows(page)]
NAMES = [f"{page}: {row.item}" for page, row in ROWS]


def text_of(paper: str) -> str:
    path = TEXTS / f"{paper}.txt"
    if not path.is_file():
        pytest.skip(f"{path} is not there: the paper's text")
    return path.read_text(encoding="utf-8")


def test_every_paper_has_a_page_that_the_index_names() -> None:
    assert {page.stem for page in PAGES} == {*NUMBERED}
    index = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    assert all(f"(papers/{name}.md)" in index for name in NUMBERED)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "docs" / "papers.md"], ids=lambda page: page.stem)
def test_links_lead_somewhere_and_names_are_of_the_code(page) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert links
    assert [link for link in links if not (page.parent / link).exists()] == []
    assert unknown_words(page) == []


@pytest.mark.parametrize("paper", NUMBERED)
def test_nothing_numbered_is_missing(paper: str) -> None:
    there: dict[str, set[int]] = {}
    for kind, number in (item for page, row in ROWS if page == paper for item in items(row)):
        there.setdefault(kind, set()).add(number)
    for kind, count in NUMBERED[paper].items():
        assert there.get(kind, set()) >= {*range(1, count + 1)}, kind
        assert max(there[kind]) <= count, f"{paper} has no {kind} {max(there[kind])}"


@pytest.mark.parametrize("paper", NUMBERED)
def test_the_numbers_are_those_of_the_text(paper: str) -> None:
    """The last table, figure and algorithm that the text names are the last ones here."""
    text = text_of(paper)
    for kind, name in (("Table", "Table"), ("Figure", r"(?:Figure|Fig\.)"), ("Algorithm", "Algorithm")):
        found = [int(n) for n in re.findall(rf"{name} (\d+)", text)]
        assert max(found, default=0) == NUMBERED[paper].get(kind, 0), kind


@pytest.mark.parametrize("paper", BASELINES)
def test_no_baseline_is_missing(paper: str) -> None:
    text = " ".join(row.item for page, row in ROWS if page == paper)
    assert [name for name in BASELINES[paper] if not re.search(rf"\b{re.escape(name)}\b", text)] == []


@pytest.mark.parametrize("row", [row for _, row in ROWS], ids=NAMES)
def test_a_row_is_right(row: Row) -> None:
    assert problems(row) == []


@pytest.mark.parametrize("paper", NUMBERED)
def test_the_papers_numbers_are_in_its_text(paper: str) -> None:
    text = text_of(paper)
    wrong = {row.item: missing_numbers(row, text) for page, row in ROWS if page == paper}
    assert {item: numbers for item, numbers in wrong.items() if numbers} == {}


RIGHT = Row(
    "Table 1",
    "`recipes/models/ctc.yaml`",
    "`python recipes/timit/run.py ctc data=synthetic`",
    "tested",
    "",
    "",
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"file": "`recipes/models/cct.yaml`"}, "no file recipes/models/cct.yaml"),
        ({"file": "`plugins/isotone_ottc/sotd.py:sodt`"}, "no sodt in"),
        ({"file": "`plugins/isotone_opas/model.py:OPAS.combined`"}, r"no OPAS\.combined"),
        ({"file": "ctc.yaml"}, "neither marked"),
        ({"command": "`python recipes/timit/run.py cct data=synthetic`"}, "No recipe"),
        ({"command": "`python recipes/timit/run.py ctc data=sinthetic`"}, "No preset"),
        ({"command": "`python recipes/timit/run.py ctc data=synthetic train.stepz=3`"}, "stepz"),
        ({"command": "`python recipes/timit/run.py ctc data=sample`"}, r"no value for data\.root"),
        ({"command": "`python recipes/timit/run.py ctc data=synthetic reading.decoder.beem=3`"}, "beem"),
        (
            {"command": "`python recipes/timit/run.py ctc data=synthetic reading.decoder.name=gready`"},
            "gready",
        ),
        ({"command": "`python recipes/music_speech/run.py opas train.stepz=3`"}, "stepz"),
        ({"command": "`python recipes/contrastive/run.py probing`"}, r"data\.root"),
        ({"command": '`python recipes/permutation/run.py synchronisation "methods=[OT5P]"`'}, "No method"),
        ({"command": "`python recipes/hashing/run.py words bitz=[12]`"}, "bitz"),
        ({"command": "`python recipes/hashing/run.py numbers`"}, r"data\.root"),
        ({"command": "`python recipes/hashing/vectors.py 24 x`"}, "invalid literal"),
        ({"command": "`python recipes/separation/run.py two_voices seedz=[0]`"}, "seedz"),
        ({"command": "`python recipes/hashes/run.py ctc`"}, r"no recipes/hashes/run\.py"),
        ({"command": "`make demonstration`"}, "no target"),
        ({"command": "`python -m pytest tests/test_paper.py`"}, r"no tests/test_paper\.py"),
        ({"command": "`python -m benchmarks opus`"}, "no benchmark"),
        ({"command": "`python -m benchmarks opas --treads 1`"}, "treads"),
        ({"command": "`isotone repport runs/timit/ctc`"}, "no command repport"),
        ({"command": "`isotone report runs/timit/ctc --outt x`"}, "outt"),
        ({"command": "`rm -rf runs`"}, "not a command"),
        ({"ours": "6.2 ± 0.987"}, "no README has"),
        ({"ours": "not done"}, "without a reason"),
        ({"ours": ""}, "no reason"),
    ],
)
def test_a_wrong_row_is_seen(change: dict[str, str], message: str) -> None:
    assert problems(RIGHT) == []
    assert re.search(message, "; ".join(problems(replace(RIGHT, **change))))


def test_items_and_numbers_are_read() -> None:
    row = replace(
        RIGHT, item="Table 16, 15 iterations; Eqs. 1 to 3, 7 and 9, Figure 2", paper="62.08±16.0, 9.99"
    )
    assert [*items(row)] == [("Table", 16), *(("Eq.", i) for i in (1, 2, 3, 7, 9)), ("Figure", 2)]
    assert [*items(replace(RIGHT, item="Columns CIFAR of Table 1"))] == []
    assert missing_numbers(row, "Gumbel-Sinkhorn 62.08±16.0") == ["9.99"]
    assert [row.item for page in PAGES for row in rows(page) if row.item in HEAD] == []
    with pytest.raises(ValueError, match="not a command"):
        check_command("python -c pass")
