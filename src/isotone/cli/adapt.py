"""The command ``adapt``: thin, over :func:`isotone.batch.adapting.adapt_files`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from isotone.cli import options as opt
from isotone.cli.console import AsJson, AudioArgument, explained, fail, print_json, say
from isotone.cli.outcomes import interrupted

# Exit code of an adaptation that did not help; 1 and 2 are errors.
_NO_BETTER = 3


def adapt(
    audio: AudioArgument,
    out_dir: Annotated[Path, typer.Option("--out", "-o", help="Folder of the adapted model.")],
    model: opt.Model = None,
    text: opt.Text = None,
    text_dir: opt.TextDir = None,
    tier: opt.Tier = [],  # noqa: B006 - typer copies it
    language: opt.Language = None,
    dictionary: opt.Dictionary = None,
    device: opt.Device = "cpu",
    steps: Annotated[int, typer.Option(help="Most training steps.", min=1)] = 200,
    batch_size: Annotated[int, typer.Option(help="Recordings per step.", min=1)] = 8,
    lr: Annotated[float, typer.Option(help="Peak learning rate.")] = 5e-4,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a model in OUT.")] = False,
    as_json: AsJson = False,
) -> None:
    """Adapt a model to your recordings, by their transcripts alone: minutes of training, no labels.

    The model aligns the recordings and learns from its own alignments: the encoder and the heads on it do. A fifth of
    the recordings, at most 200, is held out to measure it by the loss of their texts. Training ends when the loss stops
    falling, and OUT gets the best model. If none is better, nothing is written and the exit code is 3.

    The same command resumes an interrupted run, which is kept in OUT.run. One bad file does not stop the others: it is
    printed, and the exit code is 1.

    Example: isotone adapt speech/ --out my-model && isotone align speech/ --model my-model
    """
    model = opt.chosen(model, language)

    from isotone.batch import Options
    from isotone.batch.adapting import adapt_files
    from isotone.training.adapt import Settings

    with explained(), interrupted(out_dir):
        options = Options(model, device=device, text=opt.texts(language, dictionary), tiers=(*tier,))
        settings = Settings(steps, batch_size, lr, seed=seed)
        outcome = adapt_files(
            audio, options, out_dir, text=text, text_dir=text_dir, settings=settings, overwrite=overwrite
        )
    found = outcome.adapted
    if as_json:
        print_json({"out": str(out_dir) if found.better else None, **asdict(outcome)})
    else:
        say(f"{outcome.trained} recordings to train on, {outcome.held_out} held out.")
        say(
            f"Loss of the held-out recordings, nats per token: {found.before:.4f} before, {found.after:.4f} after."
        )
    if outcome.unwritten:
        typer.echo(
            f"{outcome.unwritten} neither trained on nor measured by: words without a pronunciation, or stars.",
            err=True,
        )
    for row in outcome.errors:
        typer.echo(f"left out: {row['file']}: {row['error']}", err=True)
    if not found.better:
        fail("no step of the training made the model better: nothing is written", _NO_BETTER)
    if not as_json:
        say(f"Model: {out_dir} (step {found.step})")
    if outcome.errors:
        fail(f"{len(outcome.errors)} recordings were left out", 1)
