"""The command line: thin, over functions that Python code can call as well."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.logging import RichHandler
from rich.markup import escape
from rich.table import Table

from isotone import __version__
from isotone.cli.adapt import adapt
from isotone.cli.console import AsJson, OutOption, command, err, explained, fail, out, print_json, say
from isotone.cli.doctor import doctor
from isotone.cli.evaluate import evaluate
from isotone.cli.export import export
from isotone.cli.lm import lm
from isotone.cli.match import match
from isotone.cli.page import page
from isotone.cli.replacing import Overwrite
from isotone.cli.score_check import score_check
from isotone.cli.search import search_app
from isotone.cli.speech import align, transcribe
from isotone.cli.stream import stream

if TYPE_CHECKING:
    from isotone.registry import PluginInfo

app = typer.Typer(
    help="Speech recognition whose time stamps can be trusted, and alignment of any sequence to any other.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
command(app)(align)
command(app)(transcribe)
command(app)(stream)
command(app)(page)
command(app)(match)
command(app)(adapt)
command(app, "score-check")(score_check)
app.add_typer(search_app, name="search")
command(app)(lm)
command(app)(evaluate)
command(app)(doctor)


def _print_version(requested: bool) -> None:
    """Print the version and exit."""
    if requested:
        typer.echo(f"isotone {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show progress messages and tracebacks.")
    ] = False,
) -> None:
    """Set up logging, and collect garbage rarely: the many objects of a start stay, and need no search."""
    gc.set_threshold(50_000, 20, 50)
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING,
        format="%(message)s",
        handlers=[RichHandler(console=err, show_time=False, show_path=False)],
        force=True,
    )
    for noisy in ("numba", "matplotlib", "urllib3", "fsspec", "filelock", "datasets", "accelerate"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


@command(app)
def train(
    recipe: Annotated[Path, typer.Argument(help="The experiment's YAML, such as recipes/timit/joint.yaml.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            help="key=value pairs: data=synthetic data.root=/corpora/TIMIT train.lr=1e-4 output=runs/x"
        ),
    ] = None,
) -> None:
    """Train from a recipe, evaluate and export; the same command resumes an interrupted run.

    Example: isotone train recipes/timit/ottc.yaml data=synthetic output=runs/ottc
    """
    from isotone.training.config import load_recipe
    from isotone.training.run import run

    with explained():
        folder = run(load_recipe(recipe, overrides or []))
    say(f"Run folder: {folder}")


@command(app)
def report(
    runs: Annotated[list[Path], typer.Argument(help="Finished run folders with the same test split.")],
    out_dir: OutOption = Path("report"),
    tier: Annotated[
        str,
        typer.Option(help="Tier to score: phones or words. Default: phones, where the references have any."),
    ] = "",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Compare finished runs: a table, figures, and one self-contained page to look at and to listen to.

    Example: isotone report runs/timit/ctc runs/timit/joint --out runs/timit/report
    """
    from isotone.batch import published
    from isotone.report.runs import columns, report_runs

    # a pattern such as runs/digits/* finds the report of the time before as well
    runs = [run for run in runs if run.resolve() != out_dir.resolve()]
    with explained(), published(out_dir, overwrite=overwrite) as folder:
        found = report_runs(runs, folder, tier=tier)
    if as_json:
        names = columns(found[0].runs[0].tier)
        scores = [{"run": r.name, **dict(zip(names, r.values()))} for s in found for r in s.runs]
        print_json({"page": str(out_dir / "report.html"), "runs": scores})
        return
    table = Table(
        "metric", *(escape(system.name) for system in found)
    )  # one row per metric fits into 80 columns
    for row in zip(columns(found[0].runs[0].tier), *(system.cells() for system in found)):
        table.add_row(*row)
    out.print(table)
    say(f"Page: {out_dir / 'report.html'}")


@command(app)
def results(
    runs: Annotated[list[Path], typer.Argument(help="Finished run folders, of any corpora.")],
    out_dir: OutOption = Path("results"),
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Make the tables of the OTTC paper from finished runs: error rates, times, ablations, with the published numbers.

    Writes results.md, results.csv and, for each corpus with times, a figure of error rate against IDR. Runs that differ
    only in their seed are one row.

    Example: isotone results runs/librispeech/* runs/ami/* runs/timit/* --out results
    """
    from dataclasses import asdict

    from isotone.batch import published
    from isotone.report.results import markdown, write_results

    with explained(), published(out_dir, overwrite=overwrite) as folder:
        rows = write_results(runs, folder)
    if as_json:
        print_json({"out": str(out_dir), "rows": [asdict(row) for row in rows]})
        return
    typer.echo(markdown(rows))
    say(f"Tables: {out_dir / 'results.md'}")


@command(app)
def synth(
    folder: Annotated[Path, typer.Argument(help="Folder of the corpus.")],
    hours: Annotated[float, typer.Option(help="Hours of training speech.")] = 1.0,
    test_hours: Annotated[float, typer.Option(help="Hours of test speech, by other voices.")] = 0.2,
    layout: Annotated[str, typer.Option(help="Layout of the files: timit, librispeech or ami.")] = "timit",
    seed: Annotated[int, typer.Option(help="Seed of voices and sentences.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a corpus made with other options.")
    ] = False,
) -> None:
    """Make a corpus of synthetic speech with exact phone and word times (needs the extra: isotone\\[synth]).

    Example: isotone synth corpora/librispeech --layout librispeech --hours 0.5
    """
    from isotone.corpus.synth import generate

    with explained():
        generate(folder, layout=layout, hours=hours, test_hours=test_hours, seed=seed, overwrite=overwrite)
    say(f"Corpus: {folder}")


command(app)(export)


@command(app)
def plugins(
    as_json: AsJson = False,
    kind: Annotated[
        str | None, typer.Option(help="One kind only: loss, aligner, head, decoder, format, pack ...")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Import every plugin, and say why one fails: takes seconds.")
    ] = False,
) -> None:
    """List all plugins: name, kind, distribution, version.

    Model packs are listed with their languages, licence, size and training data.

    Example: isotone plugins --kind pack
    """
    from dataclasses import asdict

    from isotone.registries import ALL
    from isotone.registry import nearest

    kinds = [registry.kind for registry in ALL]
    if kind is not None and kind not in kinds:
        fail(f"No kind {kind!r}.{nearest(kind, kinds)} There are: {', '.join(kinds)}.")
    rows = [row for registry in ALL if kind in (None, registry.kind) for row in registry.describe(check)]
    if as_json:
        print_json([asdict(r) for r in rows])
        return
    table = Table("Kind", "Name", "Distribution", "Version", "What it is")
    for r in rows:
        summary = f"[red]{escape(r.error)}[/]" if r.error else escape(_about(r))
        table.add_row(r.kind, r.name, r.distribution, r.version, summary)
    out.print(table)


def _about(plugin: PluginInfo) -> str:
    """Describe a plugin in one line: its summary, or the facts of a model pack."""
    facts = plugin.facts
    if not facts:
        return plugin.summary
    languages = ", ".join(facts["languages"] or ("no language",))
    return f"{facts['title']}; {languages}; {facts['licence']}; {facts['size_mb']} MB; trained on {facts['trained_on']}"


if __name__ == "__main__":
    app()
