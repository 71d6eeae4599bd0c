"""The commands of ``isotone search``: thin, over :mod:`isotone.search`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from isotone.cli.console import (
    AsJson,
    AudioArgument,
    command,
    explained,
    fail,
    path_argument,
    print_json,
    say,
)
from isotone.cli.parts import plugin
from isotone.cli.query import ModelOption, note, query, searcher_of
from isotone.progress import bars

if TYPE_CHECKING:
    from isotone.search import Built

search_app = typer.Typer(
    help="Find a clip of audio, or similar audio, in a collection of recordings.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_Rate = Annotated[
    int | None,
    typer.Option(
        help="Hz of the audio that --model was trained with. Default: what the model says; 16000 if it does not."
    ),
]


@command(search_app)
def index(
    audio: AudioArgument,
    out_dir: Annotated[Path, typer.Option("--out", "-o", help="Folder of the index.")],
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", "-m",
            help="Folder of a trained search model (OPAS), or of its run. Without one, recordings are compared by "
            "their log-mel energies: the same sound event is found, in noise or re-recorded; the same words by "
            "another voice are not.",
        ),
    ] = None,
    sample_rate: _Rate = None,
    first_stage: Annotated[
        str,
        typer.Option(
            "--index",
            help="Index that finds the candidates for the model; with options as YAML: '{name: lsh-talr, bits: 128}'. "
            "`isotone plugins --kind index` lists them.",
        ),
    ] = "centroids",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an index, or an unfinished one.")
    ] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Index recordings of any length for `isotone search query`.

    The same command resumes an interrupted run. One bad file does not stop the others: it is listed in OUT/errors.jsonl
    and the exit code is 1.

    Example: isotone search index recordings/ --out recordings.index
    """
    from isotone.search import build_index, open_searcher

    with explained(), _progress() as show:
        searcher = open_searcher(model, sample_rate=sample_rate)
        spec = plugin(first_stage) or first_stage
        built = build_index(audio, searcher, out_dir, index=spec, overwrite=overwrite, progress=show)
    _report_built(built, out_dir, as_json)


@command(search_app)
def add(
    index_dir: Annotated[
        Path, typer.Option("--index", "-i", help="Folder that `isotone search index` wrote.")
    ],
    audio: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Audio files or folders; none: measure the threshold of an index without one.",
            parser=path_argument,
        ),
    ] = None,
    model: ModelOption = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Add recordings to an index.

    Recordings that it has already, even under other names, are not added twice; changed ones replace their old content.
    Until the end the index stays as it was. The same command resumes an interrupted run. One bad file does not stop the
    others: it is listed in INDEX/errors.jsonl, and the exit code is 1.

    Example: isotone search add more/ --index recordings.index
    """
    from isotone.search import SearchIndex, add_recordings

    with explained(), _progress() as show:
        searcher = searcher_of(SearchIndex.open(index_dir), model)
        built = add_recordings(audio or [], searcher, index_dir, progress=show)
    if not as_json:
        say(f"{built.added} added, {built.replaced} replaced, {built.moved} moved")
    _report_built(built, index_dir, as_json)


@command(search_app)
def remove(
    index_dir: Annotated[
        Path, typer.Option("--index", "-i", help="Folder that `isotone search index` wrote.")
    ],
    audio: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Audio files or folders in the index; they need not exist any more.", parser=path_argument
        ),
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Remove all recordings whose files no longer exist.")
    ] = False,
    model: ModelOption = None,
    as_json: AsJson = False,
) -> None:
    """Remove recordings from an index; the files themselves stay.

    The threshold is measured anew. Until the end the index stays as it was.

    Example: isotone search remove recordings/old/ --index recordings.index
    """
    from isotone.search import SearchIndex, remove_recordings

    with explained(), _progress() as show:
        searcher = searcher_of(SearchIndex.open(index_dir), model)
        built = remove_recordings(audio or [], searcher, index_dir, missing=missing, progress=show)
    if not as_json:
        say(f"{built.removed} removed")
    _report_built(built, index_dir, as_json)


command(search_app)(query)


@contextmanager
def _progress() -> Iterator[Callable[[str, float], None]]:
    with bars() as shown:
        task = shown.add_task("", total=1.0)
        yield lambda what, share: shown.update(task, description=escape(what), completed=share)


def _report_built(built: Built, folder: Path, as_json: bool) -> None:
    """Print the contents of an index; exit with 1 if a file could not be read."""
    if as_json:
        print_json({"index": str(folder), **asdict(built)})
    else:
        say(f"{built.done} files, {built.seconds / 3600:.2f} h, {built.items} items: {folder}")
    if built.copies:
        first = built.copies[0]
        note(f"{len(built.copies)} left out, copies of others; first: {first['file']}, of {first['of']}")
    if built.errors:
        failed = built.errors[0]
        count, path = len(built.errors), folder / "errors.jsonl"
        fail(f"{count} failed ({path} lists them); first: {failed['file']}: {failed['error']}", 1)
