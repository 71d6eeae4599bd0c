"""The command line: thin, over functions that Python code can call as well."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.logging import RichHandler
from rich.markup import escape
from rich.table import Table

from isotone.cli_lm import lm
from isotone.cli_search import search_app
from isotone.console import AudioArgument, err, explained, fail, out

if TYPE_CHECKING:
    from isotone.batch import Outcome

app = typer.Typer(
    help="Speech recognition whose time stamps can be trusted, and alignment of any sequence to any other.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(search_app, name="search")
app.command()(lm)

Model_ = Annotated[
    str,
    typer.Option(
        "--model", "-m", help="Model or run folder, or a hub id of a CTC model (Wav2Vec2ForCTC ...)."
    ),
]
Format_ = Annotated[
    list[str],
    typer.Option("--format", "-f", help="File format; repeat for several. `isotone plugins` lists them."),
]
Out_ = Annotated[Path, typer.Option("--out", "-o", help="Folder the files are written to.")]
Device_ = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps ...")]
Window_ = Annotated[
    float,
    typer.Option(
        help="Seconds of the windows in which longer audio is encoded, each with 2 s more on both sides that are "
        "dropped: memory does not grow with the audio's length. 0: all at once."
    ),
]
Guide_ = Annotated[
    bool,
    typer.Option(
        "--guide/--no-guide",
        help="Keep tokens near where the model's other head hears them, if it has one for that. Without, forced "
        "alignment needs no more of the encoder than the times do.",
    ),
]
TextDir_ = Annotated[
    Path | None,
    typer.Option(
        help="Folder of transcripts named like the audio (.txt or .lab). Default: beside the audio."
    ),
]


def _some(values: Sequence[str], count: int = 5) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(values) - count} more" if len(values) > count else ""
    return ", ".join(values[:count]) + more


@app.callback()
def main(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show what is done, and tracebacks.")
    ] = False,
) -> None:
    """Set up logging."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING,
        format="%(message)s",
        handlers=[RichHandler(console=err, show_time=False, show_path=False)],
        force=True,
    )
    for noisy in ("numba", "matplotlib", "urllib3", "fsspec", "filelock", "datasets", "accelerate"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


@app.command()
def align(
    audio: AudioArgument,
    model: Model_,
    text: Annotated[Path | None, typer.Option(help="Transcript of the one audio file.")] = None,
    text_dir: TextDir_ = None,
    aligner: Annotated[
        str | None, typer.Option(help="Aligner, instead of the model's own. `isotone plugins` lists them.")
    ] = None,
    times: Annotated[
        str | None, typer.Option(help="Head the times are read from, instead of the model's own.")
    ] = None,
    format: Format_ = ["textgrid"],  # noqa: B006 - typer copies it
    out_dir: Out_ = Path("alignments"),
    device: Device_ = "cpu",
    window: Window_ = 30.0,
    guide: Guide_ = True,
    extra_speech: Annotated[
        bool,
        typer.Option(
            "--extra-speech",
            help="There may be speech that is not in the transcript, before, after and between words: where it is "
            "found, the tier of words has a segment '*'.",
        ),
    ] = False,
    star_cost: Annotated[
        float,
        typer.Option(
            help="Nats a frame that speech outside the transcript costs: the higher, the less is taken for such."
        ),
    ] = 3.0,
    min_score: Annotated[
        float | None,
        typer.Option(
            help="Warn of files whose score (nats a token, 0 is perfect) is lower: their transcript is likely wrong. "
            "`isotone score-check` finds a threshold for a model."
        ),
    ] = None,
) -> None:
    """Find when each word and phone of a known text was said.

    A word * (or <star>) of a transcript stands for any speech that is not written down. JSON and CSV hold scores: of a
    segment the mean log-probability a frame (nats) and the confidence that its frames are its own (0 to 1), of the
    whole how well the text fits (JSON).

    One bad file does not stop the others: it is listed in OUT/errors.jsonl and the exit code is 1. Warnings are listed
    in OUT/warnings.jsonl; the files they are about are written.

    Example: isotone align speech/*.wav --model runs/timit/joint --format textgrid --format ctm
    """
    from isotone.batch import align_files

    with explained():
        report = align_files(
            audio,
            model,
            text=text,
            text_dir=text_dir,
            aligner=aligner,
            times=times,
            formats=format,
            out=out_dir,
            device=device,
            window_s=window,
            guided=guide,
            extra_speech=extra_speech,
            star_cost=star_cost,
            min_score=min_score,
        )
    _finish(report, out_dir)


@app.command()
def transcribe(
    audio: AudioArgument,
    model: Model_,
    decoder: Annotated[
        str | None,
        typer.Option(
            help="Decoder, instead of the model's own; with options as YAML: '{name: ctc-beam, model: lm.arpa, "
            "alpha: 1, beta: 3}'. `isotone plugins --kind decoder` lists them."
        ),
    ] = None,
    aligner: Annotated[
        str | None, typer.Option(help="Aligner for the times, instead of the model's own.")
    ] = None,
    times: Annotated[
        str | None, typer.Option(help="Head the times are read from, instead of the model's own.")
    ] = None,
    format: Format_ = ["textgrid"],  # noqa: B006
    out_dir: Out_ = Path("transcripts"),
    device: Device_ = "cpu",
    window: Window_ = 30.0,
    guide: Guide_ = True,
) -> None:
    """Recognise speech, with the time of every word and phone; the text alone is printed, and in transcripts.jsonl.

    Example: isotone transcribe interview.wav --model runs/timit/joint --format srt
    """
    from isotone.batch import transcribe_files

    with explained():
        report = transcribe_files(
            audio,
            model,
            aligner=aligner,
            decoder=None if decoder is None else _specification(decoder),
            times=times,
            formats=format,
            out=out_dir,
            device=device,
            window_s=window,
            guided=guide,
        )
    _finish(report, out_dir)


def _specification(text: str) -> str | dict[str, Any]:
    """A part as it is asked for: its name, or a mapping of a name and options in YAML."""
    if not text.lstrip().startswith("{"):
        return text
    import yaml  # type: ignore[import-untyped]

    try:
        return dict(yaml.safe_load(text))
    except (yaml.YAMLError, ValueError, TypeError):
        raise ValueError(f"{text!r} is no YAML mapping such as {{name: ctc-beam, beam: 16}}.") from None


def _finish(report: Outcome, out_dir: Path) -> None:
    for file, text in report.texts.items():
        typer.echo(f"{file}: {text}")
    typer.echo(f"{report.done} of {report.done + len(report.errors)} files written to {out_dir}")
    if report.warnings:
        first, place = report.warnings[0], out_dir / "warnings.jsonl"
        said = f"{len(report.warnings)} with a warning ({place} lists them); first: {first['file']}: {first['warning']}"
        typer.echo(f"warning: {said}", err=True)
    if report.errors:
        first, place = report.errors[0], out_dir / "errors.jsonl"
        fail(f"{len(report.errors)} failed ({place} lists them); first: {first['file']}: {first['error']}", 1)


@app.command(name="score-check")
def score_check(
    audio: AudioArgument,
    model: Model_,
    text_dir: TextDir_ = None,
    aligner: Annotated[str | None, typer.Option(help="Aligner, instead of the model's own.")] = None,
    times: Annotated[
        str | None, typer.Option(help="Head the times are read from, instead of the model's own.")
    ] = None,
    device: Device_ = "cpu",
    window: Window_ = 30.0,
    guide: Guide_ = True,
    seed: Annotated[int, typer.Option(help="Of the shuffle of the transcripts.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write everything, file by file, as JSON to this file.")
    ] = None,
) -> None:
    """Measure how well a model's score tells a right transcript from a wrong one.

    Every file is aligned with its own transcript and with another file's. Says the area under the ROC curve (the
    probability that a right transcript scores higher than a wrong one), the equal error rate, and the threshold to
    give to `isotone align --min-score`.

    Example: isotone score-check speech/ --model runs/timit/joint
    """
    from isotone.score_check import check_scores

    with explained():
        check = check_scores(
            audio,
            model,
            text_dir=text_dir,
            aligner=aligner,
            times=times,
            device=device,
            window_s=window,
            guided=guide,
            seed=seed,
            json_file=json_file,
        )
    found = check.roc
    table = Table("right", "wrong", "AUC %", "equal error rate %", "threshold")
    rates = (f"{100 * x:.1f}" for x in (found.auc, found.equal_error_rate))
    table.add_row(str(found.right), str(found.wrong), *rates, f"{found.threshold:.2f}")
    out.print(table)
    if check.errors:
        first = check.errors[0]
        fail(f"{len(check.errors)} files left out; first: {first['file']}: {first['error']}", 1)


@app.command(context_settings={"allow_extra_args": False})
def train(
    recipe: Annotated[Path, typer.Argument(help="The experiment's YAML, such as recipes/timit/joint.yaml.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            help="key=value pairs: data=synthetic data.root=/corpora/TIMIT train.lr=1e-4 output=runs/x"
        ),
    ] = None,
) -> None:
    """Train from a recipe, evaluate and export; the same command goes on with an interrupted run.

    Example: isotone train recipes/timit/ottc.yaml data=synthetic output=runs/ottc
    """
    from isotone.training.config import load_recipe
    from isotone.training.run import run

    with explained():
        folder = run(load_recipe(recipe, overrides or []))
    typer.echo(f"Run folder: {folder}")


@app.command()
def evaluate(
    hyp: Annotated[Path, typer.Argument(help="Hypothesis: a file, a folder of files, or a run folder.")],
    ref: Annotated[
        Path, typer.Argument(help="Reference: a file or a folder (TextGrid, CTM, JSON, .phn/.wrd ...).")
    ],
    tier: Annotated[str, typer.Option(help="Tier to score: phones or words.")] = "phones",
    collar: Annotated[
        float | None,
        typer.Option(help="Collar of the start F1 in milliseconds. Default: 20 for phones, 200 for words."),
    ] = None,
    any_label: Annotated[
        bool, typer.Option("--any-label", help="Match boundaries whatever their labels.")
    ] = False,
    as_written: Annotated[
        bool, typer.Option("--as-written", help="Compare words with their case and punctuation.")
    ] = False,
    against: Annotated[
        Path | None, typer.Option(help="A second hypothesis: paired tests of the difference.")
    ] = None,
    phones: Annotated[
        int | None, typer.Option(help="Fold TIMIT's phones to 39 or 48 before scoring, on both sides.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write everything as JSON to this file.")
    ] = None,
) -> None:
    """Score alignments against a reference: boundary errors, start F1, IDR, error rate, with confidence intervals.

    Example: isotone evaluate runs/timit/joint /corpora/TIMIT/TEST --phones 39 --json scores.json
    """
    from isotone.batch import evaluate_files
    from isotone.evaluation import table
    from isotone.evaluation.tables import comparison_markdown

    with explained():
        found, comparison = evaluate_files(
            hyp,
            ref,
            tier=tier,
            collar_s=None if collar is None else collar / 1000,
            strict=not any_label,
            as_written=as_written,
            against=against,
            phones=phones,  # type: ignore[arg-type]  # fold checks it
            json_file=json_file,
        )
        out.print(table({name: e.report for name, e in found.items()}))
    if hyp.resolve() == ref.resolve():
        typer.echo(f"Hypothesis and reference are both {hyp}: it was compared with itself.", err=True)
    if comparison is not None:
        first, second = found
        typer.echo(comparison_markdown(comparison, (first, second)))
    failed = 0
    for name, e in found.items():
        for what, ids in (("without a prediction", e.missing_hyp), ("without a reference", e.missing_ref)):
            if ids:
                typer.echo(f"{name}: {len(ids)} {what}, not scored: {_some(ids)}", err=True)
        for file, reason in e.skipped[:5]:
            typer.echo(f"{name}: {file}: {reason.removeprefix(f'{file}: ')}", err=True)
        if e.skipped[5:]:
            typer.echo(f"{name}: {len(e.skipped) - 5} more could not be scored.", err=True)
        failed += len(e.skipped)
    if failed:
        raise typer.Exit(1)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Finished run folders with the same test split.")],
    out_dir: Out_ = Path("report"),
    tier: Annotated[
        str,
        typer.Option(help="Tier to score: phones or words. Default: phones, where the references have any."),
    ] = "",
) -> None:
    """Compare finished runs: a table, figures, and one self-contained page to look at and to listen to.

    Example: isotone report runs/timit/ctc runs/timit/joint --out runs/timit/report
    """
    from isotone.report.runs import columns, report_runs

    with explained():
        found = report_runs(runs, out_dir, tier=tier)
    table = Table("metric", *(escape(system.name) for system in found))  # a row a metric fits into 80 columns
    for row in zip(columns(found[0].runs[0].tier), *(system.cells() for system in found)):
        table.add_row(*row)
    out.print(table)
    typer.echo(f"Page: {out_dir / 'report.html'}")


@app.command()
def results(
    runs: Annotated[list[Path], typer.Argument(help="Finished run folders, of any corpora.")],
    out_dir: Out_ = Path("results"),
) -> None:
    """Make the tables of the OTTC paper from finished runs: error rates, times, ablations, with the published numbers.

    Writes results.md, results.csv and, for each corpus with times, a figure of error rate against IDR. Runs that differ
    in their seed alone are one row.

    Example: isotone results runs/librispeech/* runs/ami/* runs/timit/* --out results
    """
    from isotone.report.results import markdown, write_results

    with explained():
        rows = write_results(runs, out_dir)
    typer.echo(markdown(rows))
    typer.echo(f"Tables: {out_dir / 'results.md'}")


@app.command()
def synth(
    folder: Annotated[Path, typer.Argument(help="Where the corpus goes.")],
    hours: Annotated[float, typer.Option(help="Hours of training speech.")] = 1.0,
    test_hours: Annotated[float, typer.Option(help="Hours of test speech, by other voices.")] = 0.2,
    layout: Annotated[str, typer.Option(help="Layout of the files: timit, librispeech or ami.")] = "timit",
    seed: Annotated[int, typer.Option(help="Of voices and sentences.")] = 0,
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
    typer.echo(f"Corpus: {folder}")


@app.command()
def export(
    source: Annotated[Path, typer.Argument(help="Run or model folder.")],
    folder: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write a model that plain transformers loads to this folder."),
    ] = None,
    head: Annotated[str, typer.Option(help="Its CTC head. Default: the one that text is read from.")] = "",
    push: Annotated[
        str | None,
        typer.Option(
            help="Upload to this id of the Hugging Face hub, USER/NAME: what --out wrote, or the model."
        ),
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="A new repository is private.")] = False,
) -> None:
    """Let a model travel: as a CTC model of plain transformers, or to the Hugging Face hub with its model card.

    Example: isotone export runs/librispeech/ctc --out wav2vec2-ctc
    """
    from isotone.hub import copy_card, export_transformers, push_to_hub
    from isotone.model import Model

    if folder is None and push is None:
        fail("Nothing to do: give --out FOLDER, --push USER/NAME, or both.")
    with explained():
        if folder is not None:
            export_transformers(Model.load(source), folder, head)
            copy_card(source, folder)
            typer.echo(f"Model: {folder}")
        if push is not None:
            typer.echo(f"Uploaded: {push_to_hub(folder or source, push, private=private)}")


@app.command()
def plugins(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    kind: Annotated[
        str | None, typer.Option(help="One kind only: loss, aligner, head, decoder, format ...")
    ] = None,
) -> None:
    """List every plugin: name, kind, distribution, version; and of those that do not import, why."""
    from dataclasses import asdict

    from isotone.registries import ALL
    from isotone.registry import nearest

    kinds = [registry.kind for registry in ALL]
    if kind is not None and kind not in kinds:
        fail(f"No kind {kind!r}.{nearest(kind, kinds)} There are: {', '.join(kinds)}.")
    rows = [row for registry in ALL if kind in (None, registry.kind) for row in registry.describe()]
    if as_json:
        sys.stdout.write(json.dumps([asdict(r) for r in rows], indent=2, ensure_ascii=False) + "\n")
        return
    table = Table("Kind", "Name", "Distribution", "Version", "What it is")
    for r in rows:
        summary = f"[red]{escape(r.error)}[/]" if r.error else escape(r.summary)
        table.add_row(r.kind, r.name, r.distribution, r.version, summary)
    out.print(table)


if __name__ == "__main__":
    app()
