"""Put tables into the pages that show them, as the commands beside them print them.

``python -m docs.tables CORPORA [PAGE...] [--kept FOLDER]``

A comment before a table of a page has its command. Its folders are in /corpora, which CORPORA stands for::

    <!-- table: python -m benchmarks.pauses /corpora/librispeech_dev_clean -->
    <!-- table "words, clean": python -m benchmarks.aligners /corpora/timit_sample --model english -->

The table that the command prints with the same heading takes the place of the page's, that of the title where there is
one. Outputs are kept, and their commands are not run again with the same English pack; remove them after a change of
code. Without PAGE: all pages with such comments.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from isotone.files import atomic_write

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "plugins", "recipes", "benchmarks")
PACK = "plugins/isotone_english/model"
_TABLE = re.compile(r"(?:^\*\*(?P<title>.+)\*\*\n+)?(?P<table>(?:^\|.*\n)+)", re.MULTILINE)
_MARKED = re.compile(
    r'^<!-- table(?: "(?P<title>.+)")?: (?P<command>.*) -->\n+(?P<table>(?:^\|.*\n)+)', re.MULTILINE
)


class TableError(ValueError):
    """A command did not print the table of a page, or failed; the message says which."""


class Marked(NamedTuple):
    """A table of a page.

    Attributes:
        command: What prints it.
        title: Above the table where it is printed; empty: the first one with its heading.
        table: Its lines.
        start, end: Its place in the page's text.
    """

    command: str
    title: str
    table: str
    start: int
    end: int


def marked(text: str) -> Iterator[Marked]:
    """Iterate over the tables of a page that have their command before them."""
    for match in _MARKED.finditer(text):
        yield Marked(match["command"], match["title"] or "", match["table"], *match.span("table"))


def refreshed(text: str, outputs: Mapping[str, str]) -> str:
    """Return a page's text with the tables that commands printed.

    Args:
        text: The page.
        outputs: What every command of the page printed.

    Raises:
        TableError: a command printed no table of the heading and title that the page has.
    """
    parts, end = [], 0
    for one in marked(text):
        for found in _TABLE.finditer(outputs.get(one.command, "") + "\n"):
            alike = _heading(found["table"]) == _heading(one.table)
            if alike and (not one.title or found["title"] == one.title):
                break
        else:
            title = f' "{one.title}"' if one.title else ""
            raise TableError(
                f"no table{title} with the heading {_heading(one.table)} is printed by\n{one.command}"
            )
        parts += [text[end : one.start], found["table"]]
        end = one.end
    return "".join([*parts, text[end:]])


def _heading(table: str) -> list[str]:
    return [cell.strip() for cell in table.split("\n", 1)[0].strip().strip("|").split("|")]


def printed(command: str, corpora: Path, kept: Path) -> str:
    """Run a command, and return what it printed; outputs are kept by command, corpora and English pack.

    Raises:
        TableError: it failed, or it is no module of the benchmarks.
    """
    words = shlex.split(command)
    if not command.startswith("python -m benchmarks."):
        raise TableError(f"no command of the benchmarks:\n{command}")
    key = hashlib.sha256(f"{command}\n{corpora}\n".encode())
    for part in sorted(path for path in (ROOT / PACK).rglob("*") if path.is_file()):
        key.update(part.read_bytes())
    file = kept / f"{key.hexdigest()[:16]}.md"
    if not file.is_file():
        print(command, file=sys.stderr, flush=True)
        given = [re.sub(r"^/corpora\b", lambda _: str(corpora), word) for word in words[1:]]
        done = subprocess.run(
            [sys.executable, *given], cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8", check=False
        )
        if done.returncode:
            raise TableError(f"exit code {done.returncode}:\n{command}")
        with atomic_write(file) as out:
            out.write(done.stdout)
    return file.read_text("utf-8")


def pages() -> list[Path]:
    """List the pages that have tables with commands."""
    found = [ROOT / "README.md", *(page for top in FOLDERS for page in sorted((ROOT / top).rglob("*.md")))]
    return [page for page in found if any(marked(page.read_text("utf-8")))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Refresh pages; the exit code is 1 where one could not be, which stays as it was."""
    parser = argparse.ArgumentParser(
        prog="python -m docs.tables", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("corpora", type=Path, help="folder of the corpora")
    parser.add_argument("pages", type=Path, nargs="*", metavar="page", help="default: all")
    parser.add_argument("--kept", type=Path, default=Path("runs/tables"), help="folder of the outputs")
    parser.add_argument("--jobs", type=int, default=1, help="commands at once")
    given = parser.parse_args(arguments)
    given.kept.mkdir(parents=True, exist_ok=True)
    commands = {
        page: [one.command for one in marked(page.read_text("utf-8"))] for page in given.pages or pages()
    }
    failed = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        corpora, kept = given.corpora.absolute(), given.kept
        every = dict.fromkeys(command for own in commands.values() for command in own)
        runs = {command: pool.submit(printed, command, corpora, kept) for command in every}
        for page, own in commands.items():
            try:
                outputs = {command: runs[command].result() for command in own}
                text = page.read_text("utf-8")  # again: somebody may have written in it meanwhile
                new = refreshed(text, outputs)
            except TableError as error:
                print(f"{page}: {error}", file=sys.stderr)
                failed = 1
                continue
            if new != text:
                with atomic_write(page) as out:
                    out.write(new)
                print(f"{page}: changed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
