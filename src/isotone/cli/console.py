"""What the commands say: to standard output, to standard error, and of errors one line."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

out = Console()
err = Console(stderr=True)


def command(app: typer.Typer, name: str | None = None) -> Callable[[Callable], Callable]:
    """Register a function as a command; its docstring is the help, one line per paragraph for any width."""

    def register(function: Callable) -> Callable:
        paragraphs = (inspect.getdoc(function) or "").split("\n\n")
        return app.command(name, help="\n\n".join(" ".join(p.split()) for p in paragraphs))(function)

    return register


def fail(error: BaseException | str, code: int = 2) -> NoReturn:
    """Say what was wrong and leave."""
    err.print("[bold red]error:[/]", escape(_plain(error)), highlight=False, soft_wrap=True)
    raise typer.Exit(code)


def path_argument(text: str) -> Path:
    """The path of an argument.

    Raises:
        typer.BadParameter: it is empty, like a shell's variable that is not set; as a path that is the current folder.
    """
    if not text:
        raise typer.BadParameter("an empty argument; expected a file or a folder (the current one is '.').")
    return Path(text)


#: What commands that take recordings are called with.
AudioArgument = Annotated[list[Path], typer.Argument(help="Audio files or folders.", parser=path_argument)]

#: Where commands that write several files put them.
OutOption = Annotated[Path, typer.Option("--out", "-o", help="Folder the files are written to.")]


@contextmanager
def explained() -> Iterator[None]:
    """Turn the errors that users can mend into one line; others keep their traceback."""
    try:
        yield
    except (OSError, ValueError, LookupError, ImportError, TypeError, FloatingPointError) as error:
        if logging.getLogger().isEnabledFor(logging.DEBUG):
            raise
        if type(error) in (TypeError, KeyError, IndexError):  # not meant for users: say how to find its place
            fail(f"{type(error).__name__}: {_plain(error)} (isotone --verbose COMMAND ... shows where)")
        fail(error)


def _plain(error: BaseException | str) -> str:
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    said = str(text) or type(error).__name__
    notes = getattr(error, "__notes__", [])
    return " ".join([f"{said.rstrip('.')}.", *notes]) if notes else said
