"""The commands of ``isotone search``: thin, over :mod:`isotone.search`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from isotone.cli.parts import formats, plugin
from isotone.progress import bars

if TYPE_CHECKING:
    from isotone.batch.options import Part
    from isotone.search import Built, Match, Searcher, SearchIndex

search_app = typer.Typer(
    help="Find a clip of audio, or similar audio, in a collection of recordings.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Exit code of a query that finds nothing; 1 and 2 are errors.
_NO_MATCH = 3

_Model = Annotated[
    Path | None,
    typer.Option("--model", "-m", help="New folder of the model that made the index, if it has moved."),
]
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
    model: _Model = None,
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
        searcher = _searcher_of(SearchIndex.open(index_dir), model)
        built = add_recordings(audio or [], searcher, index_dir, progress=show)
    if not as_json:
        say(f"{built.added} added, {built.replaced} replaced, {built.moved} moved")
    _report_built(built, index_dir, as_json)


_Top = Annotated[int, typer.Option(min=1, help="Most matches to show.")]
_Start = Annotated[float, typer.Option(min=0, help="Start of the part to look for, seconds.")]
_End = Annotated[
    float | None, typer.Option(min=0, help="End of that part, seconds. Default: the clip's end.")
]
_OutDir = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Folder for results.json, and for files in each --format."),
]
_Format = Annotated[
    list[str],
    typer.Option(
        "--format",
        "-f",
        help="Format of the matches' times, such as textgrid or audacity; with --out.",
        callback=formats,
    ),
]
_Threshold = Annotated[
    float | None,
    typer.Option(help="Score that a match must reach. Default: as measured on the index, for this clip."),
]
_All = Annotated[bool, typer.Option("--all", help="Show matches of any score.")]
_Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files in OUT that no search wrote.")]
_Candidates = Annotated[
    int, typer.Option(min=1, help="Items that the model ranks after the quick first stage.")
]


@command(search_app)
def query(
    index_dir: Annotated[
        Path, typer.Argument(metavar="INDEX", help="Folder that `isotone search index` wrote.")
    ],
    clip: Annotated[Path, typer.Argument(help="Audio file to look for, whole or between --start and --end.")],
    top: _Top = 10,
    start: _Start = 0.0,
    end: _End = None,
    out_dir: _OutDir = None,
    format: _Format = ["textgrid"],  # noqa: B006 - typer copies it
    threshold: _Threshold = None,
    every: _All = False,
    overwrite: _Overwrite = False,
    model: _Model = None,
    candidates: _Candidates = 500,
    as_json: AsJson = False,
) -> None:
    """List the places of an index that match a clip, the best first.

    A match has a score that clips not in the index reach in 1 % of cases; the threshold is measured when an index is
    made. Without a match the output is "no match", and the exit code is 3.

    Example: isotone search query recordings.index clip.wav --top 5 --out found --format textgrid --format audacity
    """
    from isotone.search import about_matches, bar, search, write_matches

    with explained():
        if every and threshold is not None:
            raise ValueError(
                "--all shows places whatever their score, --threshold those that reach one: give one."
            )
        clip_ = _Clip(index_dir, clip, start, end, format, model)
        found = search(clip_.index, clip_.searcher, clip_.vectors, top=top, candidates=candidates)
        measured = None
        if threshold is None and found:
            measured = bar(clip_.index, clip_.searcher, clip_.vectors, found[0].item)
        least = measured.score if measured is not None else threshold
        matches = [m for m in found if every or least is None or m.score >= least]
        kept = None if every else least
        if out_dir is not None:
            write_matches(matches, clip, out_dir, format, threshold=kept, overwrite=overwrite)
    if clip_.short:
        seconds = f"{clip_.searcher.window_s:g} s"
        _note(f"the clip is shorter than a window of {seconds}: it is found where it stands alone.")
    _note(_judgement(clip_.index, found, least, measured.rate if measured is not None else None))
    if as_json:
        print_json(about_matches(matches, clip, kept))
    for line in _lines(matches) if not as_json else ():
        typer.echo(line)
    if out_dir is not None:
        say(f"written to {out_dir}", err=True)
    if not matches:
        raise typer.Exit(_NO_MATCH)


class _Clip:
    """The vectors of a clip, with the index that is searched and its model."""

    def __init__(
        self,
        index_dir: Path,
        clip: Path,
        start: float,
        end: float | None,
        format: Sequence[Part],
        model: Path | None,
    ) -> None:
        from isotone import audio
        from isotone.batch.writers import writer_for
        from isotone.search import SearchIndex, query_vectors

        for spec in format:
            writer_for(spec, ["matches"])
        self.index = SearchIndex.open(index_dir)
        self.searcher = _searcher_of(self.index, model)
        samples = audio.load(clip, self.searcher.sample_rate, start, end)
        self.vectors = query_vectors(self.searcher, samples)
        self.short = len(samples) < self.searcher.window_s * self.searcher.sample_rate


def _judgement(index: SearchIndex, found: Sequence[Match], least: float | None, rate: float | None) -> str:
    """Judge a clip's best matches in one sentence."""
    if not found:
        return "no match: the index's first stage found no candidates for this clip."
    if least is None:
        if index.threshold is None:
            lacks = f"has no threshold; `isotone search add --index {index.folder}` measures one"
        else:
            lacks = "is too small to measure a threshold for this clip"
        return f"the index {lacks}. All places are shown, also where the clip is not there."
    best = found[0].score
    chance = "" if rate is None else f", which clips that are not there reach in {100 * rate:.2g} % of cases"
    if best < least:
        return f"no match: the best score is {best:.3f}, below {least:.3f}{chance}. --all shows where."
    return f"threshold: {least:.3f}{chance}."


def _lines(matches: Sequence[Match]) -> Iterator[str]:
    """Format matches in columns; paths come last and are never cut."""
    if matches:
        yield "rank   score   start s     end s  file"
    for m in matches:
        file = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in m.file)
        yield f"{m.rank:4d}  {m.score:6.3f}  {m.start_s:8.2f}  {m.end_s:8.2f}  {file}"


def _searcher_of(index: SearchIndex, model: Path | None) -> Searcher:
    """Load the model that made an index."""
    from isotone.search import open_searcher

    searcher = open_searcher(
        model or index.model["source"] or None, sample_rate=int(index.model["sample_rate"])
    )
    index.check_model(searcher)
    return searcher


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
        _note(f"{len(built.copies)} left out, copies of others; first: {first['file']}, of {first['of']}")
    if built.errors:
        failed = built.errors[0]
        count, path = len(built.errors), folder / "errors.jsonl"
        fail(f"{count} failed ({path} lists them); first: {failed['file']}: {failed['error']}", 1)


def _note(text: str) -> None:
    typer.echo(text, err=True)
