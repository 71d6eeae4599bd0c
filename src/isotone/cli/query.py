"""The command ``isotone search query``: thin, over :mod:`isotone.search`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isotone.cli.console import AsJson, explained, print_json, say
from isotone.cli.parts import formats

if TYPE_CHECKING:
    from isotone.batch.options import Part
    from isotone.search import Match, Searcher, SearchIndex

# Exit code of a query that finds nothing; 1 and 2 are errors.
_NO_MATCH = 3

#: The model of an index.
ModelOption = Annotated[
    Path | None,
    typer.Option("--model", "-m", help="New folder of the model that made the index, if it has moved."),
]


def _number(score: float | None) -> float | None:
    if score is not None and math.isnan(score):
        raise typer.BadParameter("a score such as 0.6 was expected, not nan.")
    return score


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
    typer.Option(
        help="Score that a match must reach. Default: as measured on the index, for this clip.",
        callback=_number,
    ),
]
_All = Annotated[bool, typer.Option("--all", help="Show matches of any score.")]
_Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files in OUT that no search wrote.")]
_Candidates = Annotated[
    int, typer.Option(min=1, help="Items that the model ranks after the quick first stage.")
]


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
    model: ModelOption = None,
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
        note(f"the clip is shorter than a window of {seconds}: it is found where it stands alone.")
    note(_judgement(clip_.index, found, least, measured.rate if measured is not None else None))
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
        self.searcher = searcher_of(self.index, model)
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


def searcher_of(index: SearchIndex, model: Path | None) -> Searcher:
    """Load the model that made an index."""
    from isotone.search import open_searcher

    searcher = open_searcher(
        model or index.model["source"] or None, sample_rate=int(index.model["sample_rate"])
    )
    index.check_model(searcher)
    return searcher


def note(text: str) -> None:
    """Print a remark on standard error."""
    typer.echo(text, err=True)
