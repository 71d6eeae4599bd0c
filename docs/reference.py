"""Pages of reference that are made from the code: the command line, and the list of the kernels' modules."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import typer

#: Packages of kernels whose internals are no one's concern: code for numba and torch themselves.
_INTERNAL = ("native",)


def commands() -> str:
    """Sections of the command line: every command with its arguments and options, as ``--help`` has them."""
    from isotone.cli import app

    return "\n\n".join(_command(typer.main.get_command(app), "isotone"))


def kernels() -> str:
    """Sections of the kernels: every public module."""
    from isotone import kernels

    names = sorted(
        info.name
        for info in pkgutil.iter_modules(kernels.__path__)
        if not info.name.startswith("_") and info.name not in _INTERNAL
    )
    return "\n\n".join(f"::: isotone.kernels.{name}" for name in names)


def _command(command: Any, name: str) -> Iterator[str]:
    """A command's section, then those of its subcommands."""
    subcommands = getattr(command, "commands", {})
    if name != "isotone":
        yield f"{'#' * len(name.split())} `{name}`"
        yield _plain(inspect.cleandoc(command.help or "").replace("\f", ""))
    context = typer.Context(command, info_name=name)
    if not subcommands:
        usage = " ".join(command.collect_usage_pieces(context))
        yield f"```text\n{name} {usage}\n```"
    shown = [p for p in command.params if p.name != "help"]
    if shown:
        yield "\n".join(["| | |", "|---|---|", *(_row(p, context) for p in shown)])
    for sub, inner in subcommands.items():
        yield from _command(inner, f"{name} {sub}")


def _row(parameter: Any, context: typer.Context) -> str:
    """A table row: how the parameter is written, and its help."""
    written, said = parameter.get_help_record(context) or (parameter.name, "")
    said = _plain(" ".join(said.split()))
    return "| `{}` | {} |".format(*(text.replace("|", "\\|") for text in (written, said)))


def _plain(text: str) -> str:
    """Text in which nothing is markup but code between back quotes."""
    code = text.split("`")
    code[::2] = [re.sub(r"([*_\[\]])", r"\\\1", part).replace("<", "&lt;") for part in code[::2]]
    return "`".join(code)
