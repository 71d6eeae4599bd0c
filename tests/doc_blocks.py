"""Code blocks of the documentation: found in a page, and run in order, as a reader runs them.

The blocks of a page share their names and a folder. A block of Python is executed; of a block ``sh`` each line is a
command of isotone, whose comment may say ``exits with 3``. A block ``text`` after one of these is what it prints:
numbers with a point may differ by 0.03. An HTML comment before a block changes that:

- ``<!-- slow -->``: the page's remaining blocks are run by the slow test alone.
- ``<!-- not run: REASON -->``: commands of isotone are parsed, all else is shown only.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from isotone.cli import app
from isotone.registries import ALL
from tests.tiny_models import isotone

_BLOCK = re.compile(
    r"(?:<!-- (?P<mark>[^\n]*) -->\n+)?^```(?P<kind>\w*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its page and line, its language, what the comment before it says, and its code."""

    page: Path
    line: int
    kind: str
    mark: str
    code: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, m.start("code")) + 1, m["kind"], m["mark"] or "", m["code"])
        for m in _BLOCK.finditer(text)
    ]


def quick_and_all(page: Path) -> tuple[list[Block], list[Block]]:
    """The blocks before the first slow one, and all of them."""
    found = blocks(page)
    cut = next((i for i, block in enumerate(found) if block.mark == "slow"), len(found))
    return found[:cut], found


def run(found: list[Block]) -> dict[str, Any]:
    """Run blocks in the current folder, and return the names that they define.

    Raises:
        AssertionError: a command fails, or another output than the page shows.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    output = ""
    before = {registry: set(registry.names()) for registry in ALL}
    try:
        for block in found:
            if block.kind == "python" and not block.mark.startswith("not run"):
                output = _python(block, names)
            elif block.kind == "sh":
                output = "".join(_command(block, command) for command in commands(block))
            elif block.kind == "text":
                _check_output(block, output)
    finally:
        for registry, known in before.items():  # other tests run over all names
            for new in set(registry.names()) - known:
                registry.unregister(new)
    return names


@dataclass(frozen=True)
class Command:
    """A command of a line: its words, its exit code, what pipes its input, and the file that its output goes to."""

    words: list[str]
    code: int = 0
    source: tuple[str, ...] = ()
    into: str = ""


def commands(block: Block) -> Iterator[Command]:
    """The commands of a block of shell, in order."""
    for line in block.code.replace("\\\n", " ").splitlines():
        said = re.search(r"# .*exits with (\d+)", line)
        words = shlex.split(line, comments=True)
        while words:
            end = words.index("&&") if "&&" in words else len(words)
            one, words = words[:end], words[end + 1 :]
            into = ""
            if ">" in one:
                one, _, into = one[:-2], *one[-2:]
            cut = one.index("|") if "|" in one else -1
            yield Command(one[cut + 1 :], int(said[1]) if said else 0, tuple(one[: max(cut, 0)]), into)


def parse(words: list[str]) -> None:
    """Parse a command of isotone, without running it.

    Raises:
        ValueError: there is no such command, or it does not understand an option.
    """
    command: Any = typer.main.get_command(app)
    words = words[1:]
    while subcommands := getattr(command, "commands", {}):
        if words[0] not in subcommands:
            raise ValueError(f"no command {words[0]}")
        command, words = subcommands[words[0]], words[1:]
    parsed(command, words)


def parsed(command: Any, arguments: list[str]) -> dict[str, Any]:
    """The options of a command by their names; ValueError where it does not understand one."""
    parser = command.make_parser(command.context_class(command))
    try:
        options, _, _ = parser.parse_args(list(arguments))
    except Exception as error:  # click's, or that of the copy of it inside of typer
        raise ValueError(error) from error
    return dict(options)


def _python(block: Block, names: dict[str, Any]) -> str:
    # so that a traceback has the page and its line
    code = compile("\n" * (block.line - 1) + block.code, str(block.page), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    return out.getvalue()


def execute(command: Command, data: bytes = b"") -> str:
    """Run a command of isotone as a shell would, with data from its pipe; return its standard output."""
    assert not command.source or data, f"{command.source} gives nothing"
    words = [found for word in command.words[1:] for found in _expanded(word)]
    output = isotone(*words, code=command.code, data=data).stdout
    if command.into:
        Path(command.into).write_text(output, encoding="utf-8")
        return ""
    return output


def _expanded(word: str) -> list[str]:
    """The files that a pattern stands for; else the word itself, as in a shell."""
    found = sorted(map(str, Path().glob(word))) if "*" in word else []
    return found or [word]


def _command(block: Block, command: Command) -> str:
    words = command.words
    if block.mark.startswith("not run"):
        if words[0] == "isotone":
            parse(words)
        return ""
    assert words[0] == "isotone", f"{block.page.name}:{block.line}: mark what is not run: {words}"
    return execute(command)


def _check_output(block: Block, output: str) -> None:
    shown, printed = block.code.split(), output.split()
    where = f"{block.page.name}:{block.line}: the page shows\n{block.code}\nand this is printed:\n{output}"
    assert len(shown) == len(printed), where
    for a, b in zip(shown, printed):
        numbers = re.fullmatch(r"-?\d+\.\d+", a) and re.fullmatch(r"-?\d+\.\d+", b)
        assert abs(float(a) - float(b)) <= 0.03 if numbers else a == b, where
