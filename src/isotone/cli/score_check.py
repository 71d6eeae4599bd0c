"""The command ``score-check``: thin, over :mod:`isotone.batch.score_check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.table import Table

from isotone.cli import options as opt
from isotone.cli.console import AudioArgument, JsonFile, explained, fail, is_standard, out
from isotone.cli.parts import plugin

if TYPE_CHECKING:
    from isotone.batch.score_check import ScoreCheck


def score_check(
    audio: AudioArgument,
    model: opt.Model = None,
    text_dir: opt.TextDir = None,
    tier: opt.Tier = [],  # noqa: B006 - typer copies it
    aligner: opt.Aligner = None,
    times: opt.Times = None,
    language: opt.Language = None,
    device: opt.Device = "cpu",
    window: opt.Window = 15.0,
    guide: opt.Guide = True,
    seed: opt.Seed = 0,
    json_file: JsonFile = None,
) -> None:
    """Measure how well a model separates right transcripts from wrong ones.

    Every file is aligned with its own transcript and with another file's. Prints the area under the ROC curve (the
    probability that a right transcript scores higher than a wrong one), the equal error rate, and the best threshold,
    for two statistics: the score (for `isotone align --min-score`) and the agreement, by which `isotone align` finds
    doubtful files by default. The error rates of that default are printed as well.

    Example: isotone score-check speech/ --model runs/timit/joint
    """
    model = opt.chosen(model, language)

    from isotone.batch import Options
    from isotone.batch.score_check import check_scores

    with explained():
        options = Options(
            model, aligner=plugin(aligner), times=times, device=device, window_s=window,
            guided=guide, text=opt.texts(language), tiers=(*tier,),
        )  # fmt: skip
        file = None if is_standard(json_file) else json_file
        check = check_scores(audio, options, text_dir=text_dir, seed=seed, json_file=file)
    if is_standard(json_file):
        typer.echo(check.to_json(), nl=False)
    else:
        _print(check)
    if check.errors:
        first = check.errors[0]
        fail(f"{len(check.errors)} files left out; first: {first['file']}: {first['error']}", 1)


def _print(check: ScoreCheck) -> None:
    """Print the table of a check, and its summary."""
    table = Table("", "right", "wrong", "AUC %", "equal error rate %", "threshold")
    for name, found in (("score", check.roc), ("agreement", check.agreement)):
        if found is not None:
            rates = (f"{100 * x:.1f}" for x in (found.auc, found.equal_error_rate))
            table.add_row(name, str(found.right), str(found.wrong), *rates, f"{found.threshold:.2f}")
    out.print(table)
    typer.echo(check.summary())
