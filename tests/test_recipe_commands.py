"""Commands of the READMEs of recipes, plugins and benchmarks: trainings and measurements, whose options are understood.

They are not run here: small sizes of the same are, by the tests of each recipe. Loops stand for their first round.
"""

from __future__ import annotations

import json
import re
import shlex
import string
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from docs.tables import marked
from isotone.registries import losses
from tests import doc_blocks, doc_outside
from tests.doc_links import pages
from tests.papers import check_command
from tests.paths import ROOT

PAGES = sorted(
    page for top in ("recipes", "plugins", "benchmarks") for page in (ROOT / top).rglob("README.md")
)
PAGES = [page for page in PAGES if any(block.kind in ("sh", "bash") for block in doc_blocks.blocks(page))]
READERS = {"yaml": yaml.safe_load, "toml": tomllib.loads, "json": json.loads}
DATA_PAGES = [page for page in pages() if any(block.kind in READERS for block in doc_blocks.blocks(page))]
#: Programs that no option of ours goes to.
OTHERS = {"apt-get", "find", "cat", "unzip", "done"}


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every command, with the variables that are set above it; then those that print the page's tables."""
    values: dict[str, str] = {}
    for block in doc_blocks.blocks(page):
        if block.kind not in ("sh", "bash"):
            continue
        for line in block.code.replace("\\\n", " ").splitlines():
            line = string.Template(line.strip()).safe_substitute(values)
            values |= dict(re.findall(r"for (\w+) in ([^ ;]+)", line))
            words = shlex.split(line, comments=True)
            while words and (given := re.fullmatch(r"([A-Z_]+)=(.*)", words[0], re.DOTALL)):
                values[given[1]] = given[2]
                words = words[1:]
            if words and words[0] not in {*OTHERS, "for", "done;"}:
                yield words
    yield from (shlex.split(table.command) for table in marked(page.read_text("utf-8")))


def check(words: list[str]) -> None:
    """Check a command.

    Raises:
        ValueError, OSError: something that it names does not exist.
    """
    if words[0] == "torchrun":
        words = ["python", *words[3:]]
    if words[0] == "pip":
        doc_outside.check(["pip", "install", *words[2:3]])
    elif words[0] == "python" and not _is_checked_in_full(words):
        doc_outside.check(words)
    elif "FILE" not in words:
        check_command(shlex.join(words))


def _is_checked_in_full(words: list[str]) -> bool:
    """True for a run of a recipe and for the benchmarks of kernels; other scripts have to be there."""
    if words[1] == "-m":
        return words[2] == "benchmarks"
    return words[1].endswith("/run.py") and words[1] != "recipes/english/run.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_are_understood(page: Path) -> None:
    for words in commands(page):
        try:
            check(words)
        except (ValueError, OSError) as error:
            raise AssertionError(f"{shlex.join(words)}: {error}") from error


@pytest.mark.parametrize("page", DATA_PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_blocks_of_data_can_be_read(page: Path) -> None:
    for block in doc_blocks.blocks(page):
        if block.kind not in READERS:
            continue
        found = READERS[block.kind](block.code)
        assert found
        for term in found.get("objective", {}).values():
            losses.create(term["loss"])


def test_the_block_of_contrastive_losses_runs() -> None:
    found = [
        block
        for block in doc_blocks.blocks(ROOT / "plugins/isotone_contrastive/README.md")
        if block.kind == "python"
    ]
    (block,) = found
    rows = "import torch\na, b = torch.randn(2, 8, 16, requires_grad=True)\n"
    names = doc_blocks.run([replace(block, code=rows + block.code)])
    assert torch.isfinite(names["loss"](names["a"], names["b"]))


def test_all_of_them_are_found() -> None:
    assert sum(1 for page in PAGES for _ in commands(page)) >= 90
    with pytest.raises(ValueError, match="wrong"):
        check(["python", "recipes/timit/run.py", "joint", "train.wrong=1"])
    with pytest.raises((ValueError, OSError)):
        check(["python", "recipes/timit/run.py", "nowhere"])
