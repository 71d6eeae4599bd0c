"""Output of the commands: standard output, standard error, and errors in one line."""

from __future__ import annotations

import errno
import functools
import inspect
import json
import logging
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from isotone import progress

#: Exit code of a command that Ctrl-C ended, as of a shell's.
INTERRUPTED = 130

out = Console()
err = Console(stderr=True)


_Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print results, warnings and errors alone: no progress and no summary."
    ),
]


def command(app: typer.Typer, name: str | None = None) -> Callable[[Callable], Callable]:
    """Register a function as a command; its docstring is the help, one line per paragraph for any width.

    Every command gets the option --quiet, and ends with 130 after Ctrl-C.
    """

    def register(function: Callable) -> Callable:
        paragraphs = (inspect.getdoc(function) or "").split("\n\n")
        text = "\n\n".join(" ".join(p.split()) for p in paragraphs)
        app.command(name, help=text)(_with_habits(function))
        return function

    return register


def _with_habits(function: Callable) -> Callable:
    """Give a command what all of them have, so that it need not know of it."""

    @functools.wraps(function)
    def run(*arguments: Any, quiet: bool, **options: Any) -> Any:
        try:
            with progress.quiet(quiet):
                return function(*arguments, **options)
        except KeyboardInterrupt:
            fail("interrupted", INTERRUPTED)
        except OSError as error:  # of standard output: commands explain those of files
            if error.errno != errno.ENOSPC:
                raise
            fail(f"standard output cannot be written: {error.strerror}", 1)

    signature = inspect.signature(function, eval_str=True)
    own = inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_Quiet)
    parameters = {**signature.parameters, "quiet": own}
    run.__signature__ = signature.replace(parameters=list(parameters.values()))  # type: ignore[attr-defined]
    run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    return run


def say(text: str, *, err: bool = False) -> None:
    """Print what is no result, such as the model in use or the folder that was written; nothing with --quiet."""
    if not progress.is_quiet():
        typer.echo(text, err=err)


def print_json(value: Any) -> None:
    """Print a result for scripts, as JSON on standard output; numbers that are not finite are null."""
    write(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write(text: str) -> None:
    """Print a part of a result at once. If nobody reads it any more, as after ``| head``, the command ends quietly."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise typer.Exit(1) from None


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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

#: Option of commands whose outcome a script may read.
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the outcome as JSON, and nothing else on standard output.")
]

#: Output folder of commands that write several files.
JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--json",
        help="Write all results, file by file, as JSON to this file; -: print them instead of the tables.",
    ),
]
OutOption = Annotated[Path, typer.Option("--out", "-o", help="Folder the files are written to.")]


def is_standard(path: Path | None) -> bool:
    """True for the path that stands for standard output."""
    return path == Path("-")


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
