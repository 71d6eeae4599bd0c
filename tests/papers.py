"""The pages of docs/papers: their rows, and what can be wrong with one."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks import harness
from isotone import registries
from isotone.training.config import load_recipe
from tests.doc_blocks import parse, parsed
from tests.paths import RECIPES, ROOT

PAGES = sorted((ROOT / "docs" / "papers").glob("*.md"))
HEAD = ["paper item", "file", "command", "ours", "paper", "why different"]
NOTHING = "—"
#: Items of a paper that are counted, as the pages call them.
KINDS = ("Table", "Figure", "Algorithm", "Theorem", "Lemma", "Proposition", "Definition", "Eq.")
_ITEM = re.compile(
    rf"\b({'|'.join(re.escape(kind) for kind in KINDS)}) (\d+)"
    r"|\b(Eqs\.) (\d+(?:(?:, | and | to )\d+)*)"
)
#: A number with decimals; whole numbers are mostly sizes.
_DECIMAL = re.compile(r"(?<![\d.])\d*\.\d+")


@dataclass(frozen=True)
class Row:
    """A row of a page."""

    item: str
    file: str
    command: str
    ours: str
    paper: str
    why: str


def rows(page: Path) -> list[Row]:
    """The rows of all tables of a page with the head of this table."""
    found, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            inside = False
        elif cells == HEAD:
            inside = True
        elif inside and set(line) - set("|- "):
            assert len(cells) == len(HEAD), f"{page.name}: {len(cells)} cells in {line}"
            found.append(Row(*cells))
    return found


def items(row: Row) -> Iterator[tuple[str, int]]:
    """The numbered items that a row is about, such as ``("Table", 3)``; rows about whole columns have none."""
    if row.item.startswith("Column"):
        return
    for kind, number, equations, numbers in _ITEM.findall(row.item):
        if kind:
            yield kind, int(number)
        if equations:
            for part in re.split(r", | and ", numbers):
                first, _, last = part.partition(" to ")
                yield from (("Eq.", i) for i in range(int(first), int(last or first) + 1))


def problems(row: Row) -> list[str]:
    """What is wrong with a row, in words."""
    found = [error for path in _marked(row.file) if (error := _wrong_file(path))]
    for command in _marked(row.command):
        try:
            check_command(command)
        except (ValueError, OSError) as error:
            found.append(f"{command}: {error}")
    for cell in (row.file, row.command):
        if not _marked(cell) and cell != NOTHING:
            found.append(f"{cell!r} is neither marked nor {NOTHING}")
    if not row.ours and not row.why:
        found.append("no number and no reason")
    if row.ours in ("not done", "not done yet") and not row.why:
        found.append("not done, without a reason")
    for piece in row.ours.split("<br>"):
        numbers = set(_DECIMAL.findall(piece))
        if not any(numbers <= unit for unit in _measured()):
            found.append(f"no README has {piece!r} in one place")
    return found


def missing_numbers(row: Row, text: str) -> list[str]:
    """Decimal numbers of a row's paper cell that the paper's text does not have."""
    return [number for number in _DECIMAL.findall(row.paper) if number not in text]


def unknown_words(page: Path) -> list[str]:
    """Marked words of a page that no source has: files, commands, names and options."""
    found = []
    for mark in _marked(page.read_text(encoding="utf-8")):
        if " " in mark and not re.match(r"[\w.]+=", mark):
            continue  # a command: checked in its row
        for word in mark.split():
            if "/" in word and "=" not in word:
                if error := _wrong_file(word.replace("...", "")):
                    found.append(error)
            elif (name := re.split(r"[.:]", word.partition("=")[0])[-1]) and name not in _words():
                found.append(word)
    return found


def check_command(command: str) -> None:
    """Check that a command's parts exist and that its options are understood, without running it.

    Raises:
        ValueError, OSError: they are not.
    """
    words = shlex.split(command)
    if words[:2] == ["accelerate", "launch"]:
        words[:2] = ["python"]
    if words[0] == "python" and re.fullmatch(r"recipes/\w+/run\.py", words[1]):
        if not (ROOT / words[1]).is_file():
            raise ValueError(f"no {words[1]}")
        load(words[1].split("/")[1], words[2], words[3:])
    elif words[:2] == ["python", "recipes/hashing/vectors.py"]:
        if any(int(bits) < 1 for bits in words[2:]):
            raise ValueError("codes have at least one bit")
    elif words[0] == "make":
        if unknown := set(words[1:]) - {*re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text())}:
            raise ValueError(f"no target {unknown}")
    elif words[:3] == ["python", "-m", "pytest"] and words[3:-1] in ([], ["-m", "full_size"]):
        if not (ROOT / words[-1]).is_file():
            raise ValueError(f"no {words[-1]}")
    elif words[:3] == ["python", "-m", "benchmarks"]:
        main = importlib.import_module("benchmarks.__main__").app
        context = parsed(typer.main.get_command(main), words[3:])
        known = {name for module in harness.modules() for name in (module, *_benches(module))}
        if unknown := set(context["names"] or ()) - known:
            raise ValueError(f"no benchmark {unknown}")
    elif words[0] == "isotone":
        parse(words)
    else:
        raise ValueError("not a command of this repository")


def load(recipe: str, experiment: str, overrides: list[str]) -> Any:
    """Load an experiment of any recipe, as its run.py does; build the plugins that a speech recipe names."""
    own: dict[str, Callable[[], Any]] = {
        "music_speech": lambda: _module("music_speech", "ordered_search.settings").load_settings,
        "contrastive": lambda: functools.partial(_experiment, "contrastive", "two_views.settings"),
        "hashing": lambda: functools.partial(_experiment, "hashing", "learned_codes.settings"),
        "separation": lambda: functools.partial(_experiment, "separation", "assigned.settings"),
        "permutation": lambda: _alone(RECIPES / "permutation" / "settings.py").load_settings,
    }
    if recipe in own:
        return own[recipe]()(experiment, overrides)
    loaded = load_recipe(RECIPES / recipe / f"{experiment}.yaml", overrides)
    try:
        for term in loaded.objective.values():
            registries.losses.create(term.loss)
        registries.decoders.create(loaded.reading.decoder)
        registries.aligners.create(loaded.reading.aligner)
    except (LookupError, TypeError) as error:
        raise ValueError(error) from error
    return loaded


def _experiment(recipe: str, settings: str, experiment: str, overrides: list[str]) -> Any:
    return _module(recipe, settings).load_experiment(RECIPES / recipe / f"{experiment}.yaml", overrides)


def _module(recipe: str, name: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RECIPES / recipe))
        return importlib.import_module(name)


@functools.cache
def _alone(path: Path) -> Any:
    """A module under a name of its own, as other recipes have modules of the same name."""
    spec = importlib.util.spec_from_file_location(f"papers_{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # a schema's types are looked up there
    spec.loader.exec_module(module)
    return module


def _benches(module: str) -> list[str]:
    return [bench.name for bench in harness.load(module)]


def _marked(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _wrong_file(mark: str) -> str | None:
    """Why ``file`` or ``file:name`` does not exist; None where it does."""
    path, _, name = mark.partition(":")
    if path.startswith(("/", "runs/")):  # the reader's own
        return None
    if not (ROOT / path).exists():
        return f"no file {path}"
    if name and name not in _names(ROOT / path):
        return f"no {name} in {path}"
    return None


@functools.cache
def _names(path: Path) -> frozenset[str]:
    """Functions and classes of a module, those inside of classes as ``Class.method``."""

    def of(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                yield prefix + node.name
            if isinstance(node, ast.ClassDef):
                yield from of(node.body, f"{node.name}.")

    return frozenset(of(ast.parse(path.read_text(encoding="utf-8")).body))


@functools.cache
def _words() -> frozenset[str]:
    folders = ("src", "plugins", "recipes", "benchmarks")
    paths = [p for f in folders for p in (ROOT / f).rglob("*") if p.suffix in (".py", ".yaml")]
    return frozenset(w for p in paths for w in re.findall(r"[\w-]+|\w+", p.read_text(encoding="utf-8"))) | {
        p.stem for p in paths
    }


@functools.cache
def _measured() -> list[frozenset[str]]:
    """The decimal numbers of every table row and every paragraph of the READMEs."""
    found = [frozenset[str]()]
    for pattern in ("README.md", "benchmarks/README.md", "plugins/*/README.md", "recipes/*/README.md"):
        for path in ROOT.glob(pattern):
            for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
                lines = paragraph.splitlines()
                table = [line for line in lines if line.startswith("|")]
                text = " ".join(line for line in lines if not line.startswith("|"))
                found += [frozenset(_DECIMAL.findall(unit)) for unit in (*table, text)]
    return found
