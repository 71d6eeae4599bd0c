"""The commands of ``isotone search``: thin, over :mod:`isotone.search`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from isotone.console import AudioArgument, explained, fail, out

search_app = typer.Typer(
    help="Find where a clip of audio, or the like of it, is in a collection of recordings.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_Rate = Annotated[
    int, typer.Option(help="Hz of the audio that the model was trained with; not used without --model.")
]


@search_app.command()
def index(
    audio: AudioArgument,
    out_dir: Annotated[Path, typer.Option("--out", "-o", help="Folder of the index.")],
    model: Annotated[
        Path | None,
        typer.Option(
            "--model", "-m",
            help="Folder of a trained search model (OPAS). Without one, recordings are compared by their log-mel "
            "energies: the same sound event is found, in noise or re-recorded; the same words by another voice "
            "are not.",
        ),
    ] = None,
    sample_rate: _Rate = 16_000,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an index, or an unfinished one.")
    ] = False,
) -> None:  # fmt: skip
    """Index recordings of any length for `isotone search query`.

    A run that was interrupted goes on when its command is given again. One bad file does not stop the others: it is
    listed in OUT/errors.jsonl and the exit code is 1.

    Example: isotone search index recordings/ --out recordings.index
    """
    from isotone.search import build_index, open_searcher

    screen = Console(stderr=True)
    with explained(), Progress(console=screen, transient=True, disable=not screen.is_terminal) as bars:
        task = bars.add_task("", total=1.0)

        def show(what: str, share: float) -> None:
            bars.update(task, description=escape(what), completed=share)

        searcher = open_searcher(model, sample_rate=sample_rate)
        built = build_index(audio, searcher, out_dir, overwrite=overwrite, progress=show)
    typer.echo(f"{built.done} files, {built.seconds / 3600:.2f} h, {built.items} items: {out_dir}")
    if built.errors:
        first = built.errors[0]
        count, place = len(built.errors), out_dir / "errors.jsonl"
        fail(f"{count} failed ({place} lists them); first: {first['file']}: {first['error']}", 1)


@search_app.command()
def query(
    index_dir: Annotated[
        Path, typer.Argument(metavar="INDEX", help="Folder that `isotone search index` wrote.")
    ],
    clip: Annotated[Path, typer.Argument(help="Audio file to look for, whole or between --start and --end.")],
    top: Annotated[int, typer.Option(min=1, help="Places to show.")] = 10,
    start: Annotated[float, typer.Option(min=0, help="Seconds at which the part to look for begins.")] = 0.0,
    end: Annotated[
        float | None, typer.Option(min=0, help="Seconds at which it ends. Default: the clip's end.")
    ] = None,
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for results.json, and for files in each --format."),
    ] = None,
    format: Annotated[
        list[str],
        typer.Option(
            "--format", "-f", help="Format of the matches' times, as textgrid or audacity; with --out."
        ),
    ] = ["textgrid"],  # noqa: B006 - typer copies it
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", help="Where the model that made the index is now, if it has moved."),
    ] = None,
    candidates: Annotated[
        int, typer.Option(min=1, help="Items that the model ranks after the quick first stage.")
    ] = 500,
) -> None:
    """List the places of an index that are most like a clip, best first.

    Example: isotone search query recordings.index clip.wav --top 5 --out found --format textgrid --format audacity
    """
    from isotone import audio
    from isotone.registries import formats
    from isotone.search import SearchIndex, open_searcher, query_vectors, search
    from isotone.search.query import write_matches

    with explained():
        for name in format:
            formats.get(name)
        opened = SearchIndex.open(index_dir)
        source = model or opened.model["source"] or None
        searcher = open_searcher(source, sample_rate=int(opened.model["sample_rate"]))
        opened.check_model(searcher)
        vectors = query_vectors(searcher, audio.load(clip, searcher.sample_rate, start, end))
        matches = search(opened, searcher, vectors, top=top, candidates=candidates)
        if out_dir is not None:
            write_matches(matches, clip, out_dir, format)
    table = Table("rank", "score", "start s", "end s", "file")
    for m in matches:
        table.add_row(str(m.rank), f"{m.score:.3f}", f"{m.start_s:.2f}", f"{m.end_s:.2f}", escape(m.file))
    out.print(table)
    if out_dir is not None:
        typer.echo(f"Written to {out_dir}")
