"""The command ``isotone evaluate``: thin, over :mod:`isotone.evaluation.files`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isotone.cli.console import JsonFile, explained, is_standard, out, print_json

if TYPE_CHECKING:
    from isotone.evaluation.files import Evaluation


_Hyp = Annotated[Path, typer.Argument(help="Hypothesis: a file, a folder of files, or a run folder.")]
_Ref = Annotated[
    Path, typer.Argument(help="Reference: a file or a folder (TextGrid, CTM, JSON, .phn/.wrd ...).")
]
_Tier = Annotated[
    str,
    typer.Option(
        help="Tier to score: phones, words, or another by its name ('A - words' where speakers have their own)."
    ),
]
_Collar = Annotated[
    float | None,
    typer.Option(help="Collar of the start F1 in milliseconds. Default: 20 for phones, 200 for words."),
]
_AnyLabel = Annotated[bool, typer.Option("--any-label", help="Match boundaries whatever their labels.")]
_AsWritten = Annotated[
    bool, typer.Option("--as-written", help="Compare words with their case and punctuation.")
]
_Against = Annotated[Path | None, typer.Option(help="A second hypothesis: paired tests of the difference.")]
_Phones = Annotated[
    int | None,
    typer.Option(
        help="Fold phones to TIMIT's 39 or 48 before scoring, on both sides: TIMIT's, ARPAbet's and English IPA."
    ),
]


def evaluate(
    hyp: _Hyp,
    ref: _Ref,
    tier: _Tier = "phones",
    collar: _Collar = None,
    any_label: _AnyLabel = False,
    as_written: _AsWritten = False,
    against: _Against = None,
    phones: _Phones = None,
    json_file: JsonFile = None,
) -> None:
    """Score alignments against a reference: boundary errors, start F1, IDR, error rate, with confidence intervals.

    Example: isotone evaluate runs/timit/joint /corpora/TIMIT/TEST --phones 39 --json scores.json
    """
    from isotone.evaluation import table
    from isotone.evaluation.files import evaluate_files, results
    from isotone.evaluation.tables import comparison_markdown

    with explained():
        _check_options(tier, collar, phones, as_written)
        found, comparison = evaluate_files(
            hyp,
            ref,
            tier=tier,
            collar_s=None if collar is None else collar / 1000,
            strict=not any_label,
            as_written=as_written,
            against=against,
            phones=phones,  # type: ignore[arg-type]  # checked
            json_file=None if is_standard(json_file) else json_file,
        )
    if is_standard(json_file):
        print_json(results(found, comparison))
    else:
        out.print(table({name: e.report for name, e in found.items()}))
    if hyp.resolve() == ref.resolve():
        typer.echo(f"Hypothesis and reference are both {hyp}: it was compared with itself.", err=True)
    if comparison is not None and not is_standard(json_file):
        first, second = found
        typer.echo(comparison_markdown(comparison, (first, second)))
    for name, e in found.items():
        _report_uncovered(name, e)
    if any(e.skipped for e in found.values()):
        raise typer.Exit(1)


def _check_options(tier: str, collar: float | None, phones: int | None, as_written: bool) -> None:
    """Check options; messages have their names and units on the command line.

    Raises:
        ValueError: an option is out of range, missing, or meaningless for the tier.
    """
    from isotone.evaluation.measures import DEFAULT_COLLARS_S
    from isotone.format.tier_names import standard_name

    kind = standard_name(tier)
    if collar is not None and not (collar >= 0 and math.isfinite(collar)):
        raise ValueError(f"--collar expects milliseconds, 0 or more; got {collar:g}.")
    if collar is None and kind not in DEFAULT_COLLARS_S:
        known = " and ".join(sorted(DEFAULT_COLLARS_S))
        raise ValueError(f"--tier {tier} needs --collar, in milliseconds: only {known} have a default.")
    if phones is not None and phones not in (39, 48, 61):
        raise ValueError(f"--phones expects 39 or 48, the size of a set of TIMIT's phones; got {phones}.")
    if phones is not None and kind != "phones":
        raise ValueError(
            f"--phones folds phones; --tier {tier} has none. Leave it out, or give --tier phones."
        )
    if as_written and kind != "words":
        raise ValueError(
            f"--as-written is for words; --tier {tier} has none. Leave it out, or give --tier words."
        )


def _report_uncovered(name: str, evaluation: Evaluation) -> None:
    """Print the files that the scores do not cover, and those that failed."""
    missing = (
        ("without a prediction", evaluation.missing_hyp),
        ("without a reference", evaluation.missing_ref),
    )
    for what, ids in missing:
        if ids:
            typer.echo(f"{name}: {len(ids)} {what}, not scored: {_some(ids)}", err=True)
    empty = (("predictions", evaluation.empty_hyp), ("references", evaluation.empty_ref))
    for what, ids in empty:
        if ids:
            typer.echo(
                f"{name}: {len(ids)} {what} with nothing in the tier, scored so: {_some(ids)}", err=True
            )
    if evaluation.foreign:
        files = evaluation.foreign
        typer.echo(f"{name}: {len(files)} files that are no alignments, left alone: {_some(files)}", err=True)
    for file, reason in evaluation.skipped[:5]:
        typer.echo(f"{name}: {file}: {reason.removeprefix(f'{file}: ')}", err=True)
    if evaluation.skipped[5:]:
        typer.echo(f"{name}: {len(evaluation.skipped) - 5} more could not be scored.", err=True)


def _some(values: Sequence[str], count: int = 5) -> str:
    """Join the first values, and the number of others."""
    more = f" and {len(values) - count} more" if len(values) > count else ""
    return ", ".join(values[:count]) + more
