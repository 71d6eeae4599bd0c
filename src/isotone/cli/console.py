"""Output of the commands: standard output, standard error, and errors in one line."""

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
    """Print an error and exit."""
    err.print("[bold red]error:[/]", escape(_plain(error)), highlight=False, soft_wrap=True)
    raise typer.Exit(code)


def path_argument(text: str) -> Path:
    """Turn an argument into a path.

    Raises:
        typer.BadParameter: it is empty, like an unset shell variable; as a path that would be the current folder.
    """
    if not text:
        raise typer.BadParameter("an empty argument; expected a file or a folder (the current one is '.').")
    return Path(text)


#: Argument of commands that take recordings.
AudioArgument = Annotated[list[Path], typer.Argument(help="Audio files or folders.", parser=path_argument)]

#: Argument of commands that take recordings and transcripts.
SpeechArgument = Annotated[
    list[Path],
    typer.Argument(
        help="Recordings, folders, and transcripts: the one of the one recording, or named like their recordings.",
        parser=path_argument,
    ),
]

#: Output folder of commands that write several files.
OutOption = Annotated[Path, typer.Option("--out", "-o", help="Folder the files are written to.")]


@contextmanager
def explained() -> Iterator[None]:
    """Print errors that users can fix as one line; others keep their traceback."""
    try:
        yield
    except (OSError, ValueError, LookupError, ImportError, TypeError, FloatingPointError) as error:
        if logging.getLogger().isEnabledFor(logging.DEBUG):
            raise
        if type(error) in (
            TypeError,
            KeyError,
            IndexError,
        ):  # likely a bug: name the option that shows the traceback
            fail(f"{type(error).__name__}: {_plain(error)} (isotone --verbose COMMAND ... shows where)")
        fail(error)


def _plain(error: BaseException | str) -> str:
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    message = str(text) or type(error).__name__
    notes = getattr(error, "__notes__", [])
    return " ".join([f"{message.rstrip('.')}.", *notes]) if notes else message
