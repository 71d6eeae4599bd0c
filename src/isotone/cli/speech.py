"""The commands that take recordings, ``align``, ``transcribe`` and ``score-check``: thin, over :mod:`isotone.batch`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from isotone.cli.console import AudioArgument, OutOption, explained, fail, out
from isotone.model.fetch import check_source

if TYPE_CHECKING:
    from isotone.batch import Outcome


def _there(model: str) -> str:
    """The model's name, once it is known to be somewhere: torch takes longer to import than that to find out."""
    with explained():
        check_source(model)
    return model


Model_ = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        help="Model or run folder, or a hub id of a CTC model (Wav2Vec2ForCTC ...).",
        callback=_there,
    ),
]
Format_ = Annotated[
    list[str],
    typer.Option("--format", "-f", help="File format; repeat for several. `isotone plugins` lists them."),
]
Aligner_ = Annotated[
    str | None,
    typer.Option(
        help="Aligner of the times, instead of the model's own; with options as YAML: '{name: segmental, "
        "min_frames: 2}'. `isotone plugins --kind aligner` lists them."
    ),
]
Times_ = Annotated[str | None, typer.Option(help="Head the times are read from, instead of the model's own.")]
Device_ = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps ...")]
Window_ = Annotated[
    float,
    typer.Option(
        help="Seconds of the windows in which audio of more than two of them is encoded, each with 2 s more on both "
        "sides that are dropped: memory does not grow with the audio's length. 0: all at once."
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
Language_ = Annotated[
    str | None,
    typer.Option(
        help="ISO code of the language of the speech (de, deu ...): in it numbers are read, and of models "
        "with an adapter per language it is the adapter. Default: the model's, where it says."
    ),
]
Overwrite_ = Annotated[
    bool,
    typer.Option(
        "--overwrite", help="Replace files in OUT that isotone did not write, or that were changed since."
    ),
]
Redo_ = Annotated[
    bool, typer.Option("--redo", help="Do recordings again whose files are there and up to date.")
]
Prune_ = Annotated[
    bool,
    typer.Option(
        "--prune",
        help="Remove the files of recordings that are no longer in the input folders. Changed ones stay.",
    ),
]
TextDir_ = Annotated[
    Path | None,
    typer.Option(
        help="Folder of transcripts named like the audio (.txt or .lab). Default: beside the audio."
    ),
]


def align(
    audio: AudioArgument,
    model: Model_,
    text: Annotated[Path | None, typer.Option(help="Transcript of the one audio file.")] = None,
    text_dir: TextDir_ = None,
    aligner: Aligner_ = None,
    times: Times_ = None,
    language: Language_ = None,
    dictionary: Annotated[
        list[Path] | None,
        typer.Option(
            help="Pronunciation dictionary (CMUdict, Montreal Forced Aligner); repeat for several. The first that has "
            "a word counts, and the model's own pronouncer for what is in none."
        ),
    ] = None,
    keep_markup: Annotated[
        bool,
        typer.Option(
            "--keep-markup", help="Align markup such as [laughs], <b> or SPEAKER 1: as if it were spoken."
        ),
    ] = False,
    format: Format_ = ["textgrid"],  # noqa: B006 - typer copies it
    out_dir: OutOption = Path("alignments"),
    device: Device_ = "cpu",
    window: Window_ = 15.0,
    guide: Guide_ = True,
    edges: Annotated[
        bool,
        typer.Option(
            "--edges/--no-edges",
            help="Leave out what a recording begins and ends with where it is not the text: music, noise, others.",
        ),
    ] = True,
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
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Warn of files whose text is likely not what is said, by the model's own threshold.",
        ),
    ] = True,
    min_score: Annotated[
        float | None,
        typer.Option(
            help="Warn of files whose score (nats per token, 0 is perfect) is lower, in place of the model's own "
            "threshold. `isotone score-check` measures both."
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 2 where the text of a file is doubtful.")
    ] = False,
    overwrite: Overwrite_ = False,
    redo: Redo_ = False,
    prune: Prune_ = False,
) -> None:
    """Find when each word and phone of a known text was said.

    A word * (or <star>) of a transcript stands for any speech that is not written down. So does a word that the model
    cannot spell or pronounce: it keeps its place, and is listed among the warnings.

    JSON and CSV hold scores: of a segment the mean log-probability per frame (nats) and the confidence that its frames
    are its own (0 to 1), of the whole how well the text fits (JSON).

    OUT mirrors the input's folders: speech/dr1/sa1.wav becomes OUT/dr1/sa1.TextGrid. A ledger in OUT knows what isotone
    wrote there: the same command goes on where it was interrupted, does again what has changed, and never replaces
    files of others, or those that you have changed, without --overwrite.

    One bad file does not stop the others: it is listed in OUT/errors.jsonl and the exit code is 1. Warnings are listed
    in OUT/warnings.jsonl; the files they are about are written. Files whose text is likely not what is said are named;
    with --strict the exit code is then 2.

    Example: isotone align speech/*.wav --model runs/timit/joint --format textgrid --format ctm
    """
    from isotone.batch import Options, Target, align_files
    from isotone.text.options import TextOptions

    with explained(), interrupted(out_dir):
        report = align_files(
            audio,
            Options(
                model,
                aligner=_part(aligner),
                times=times,
                device=device,
                window_s=window,
                guided=guide,
                edges=edges,
                extra_speech=extra_speech,
                star_cost=star_cost,
                text=TextOptions(language, tuple(dictionary or ()), keep_markup),
            ),
            Target(out_dir, tuple(format), overwrite, redo, prune),
            text=text,
            text_dir=text_dir,
            min_score=min_score,
            check=check,
        )
    _finish(report, out_dir, strict=strict)


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
    aligner: Aligner_ = None,
    times: Times_ = None,
    language: Language_ = None,
    format: Format_ = ["textgrid"],  # noqa: B006
    out_dir: OutOption = Path("transcripts"),
    device: Device_ = "cpu",
    window: Window_ = 15.0,
    guide: Guide_ = True,
    overwrite: Overwrite_ = False,
    redo: Redo_ = False,
    prune: Prune_ = False,
) -> None:
    """Recognise speech, with the time of every word and phone; the text alone is printed, and in transcripts.jsonl.

    Example: isotone transcribe interview.wav --model runs/timit/joint --format srt
    """
    from isotone.batch import Options, Target, transcribe_files
    from isotone.text.options import TextOptions

    with explained(), interrupted(out_dir):
        report = transcribe_files(
            audio,
            Options(
                model,
                aligner=_part(aligner),
                decoder=_part(decoder),
                times=times,
                device=device,
                window_s=window,
                guided=guide,
                text=TextOptions(language),
            ),
            Target(out_dir, tuple(format), overwrite, redo, prune),
        )
    for file, said in report.texts.items():
        typer.echo(f"{file}: {said}")
    _finish(report, out_dir)


def _part(text: str | None) -> str | dict[str, Any] | None:
    """A plugin as it is asked for: its name, or a mapping of a name and options in YAML."""
    if text is None or not text.lstrip().startswith("{"):
        return text
    import yaml  # type: ignore[import-untyped]

    try:
        part = dict(yaml.safe_load(text))
    except (yaml.YAMLError, ValueError, TypeError):
        part = {}
    if "name" not in part:
        raise ValueError(f"{text!r} is no YAML mapping such as {{name: ctc-beam, beam: 16}}.")
    return part


@contextmanager
def interrupted(out_dir: Path) -> Iterator[None]:
    """Say after Ctrl-C how to go on, and leave with the shell's code for it, 130."""
    try:
        yield
    except KeyboardInterrupt:
        fail(f"interrupted; what is finished is in {out_dir}, and the same command goes on from there", 130)


def _finish(report: Outcome, out_dir: Path, *, strict: bool = False) -> None:
    """Say what came of a command, and leave with its exit code."""
    before = f" ({report.there} of them there before)" if report.there else ""
    typer.echo(f"{report.done} of {report.done + len(report.errors)} files written to {out_dir}{before}")
    if report.kept:
        some = ", ".join(report.kept[:3]) + (" ..." if report.kept[3:] else "")
        typer.echo(f"{len(report.kept)} changed since isotone wrote them, and kept: {some}", err=True)
    if report.pruned:
        typer.echo(f"{report.pruned} recordings that are gone were removed from {out_dir}", err=True)
    if report.stale:
        typer.echo(
            f"{report.stale} recordings in {out_dir} are no longer in the input (--prune removes their files)",
            err=True,
        )
    if report.warnings:
        first, place = report.warnings[0], out_dir / "warnings.jsonl"
        said = f"{len(report.warnings)} with a warning ({place} lists them); first: {first['file']}: {first['warning']}"
        typer.echo(f"warning: {said}", err=True)
    if report.doubtful:
        some = "".join(f"\n  {file}" for file in report.doubtful[:20])
        more = f"\n  ... and {len(report.doubtful) - 20} more" if report.doubtful[20:] else ""
        typer.echo(
            f"warning: the text is likely not what is said in {len(report.doubtful)}:{some}{more}", err=True
        )
    if report.errors:
        first, place = report.errors[0], out_dir / "errors.jsonl"
        fail(f"{len(report.errors)} failed ({place} lists them); first: {first['file']}: {first['error']}", 1)
    if strict and report.doubtful:
        raise typer.Exit(2)


def score_check(
    audio: AudioArgument,
    model: Model_,
    text_dir: TextDir_ = None,
    aligner: Aligner_ = None,
    times: Times_ = None,
    device: Device_ = "cpu",
    window: Window_ = 15.0,
    guide: Guide_ = True,
    seed: Annotated[int, typer.Option(help="Of the shuffle of the transcripts.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write everything, file by file, as JSON to this file.")
    ] = None,
) -> None:
    """Measure how well a model tells a right transcript from a wrong one.

    Every file is aligned with its own transcript and with another file's. Says the area under the ROC curve (the
    probability that a right transcript scores higher than a wrong one), the equal error rate, and the threshold with
    the least of both errors: of the score, to give to `isotone align --min-score`, and of the agreement, by which
    `isotone align` finds doubtful files; and what the threshold does here by which it finds them.

    Example: isotone score-check speech/ --model runs/timit/joint
    """
    from isotone.batch.score_check import check_scores

    with explained():
        check = check_scores(
            audio,
            model,
            text_dir=text_dir,
            aligner=_part(aligner),
            times=times,
            device=device,
            window_s=window,
            guided=guide,
            seed=seed,
            json_file=json_file,
        )
    table = Table("", "right", "wrong", "AUC %", "equal error rate %", "threshold")
    for name, found in (("score", check.roc), ("agreement", check.agreement)):
        if found is not None:
            rates = (f"{100 * x:.1f}" for x in (found.auc, found.equal_error_rate))
            table.add_row(name, str(found.right), str(found.wrong), *rates, f"{found.threshold:.2f}")
    out.print(table)
    typer.echo(check.said())
    if check.errors:
        first = check.errors[0]
        fail(f"{len(check.errors)} files left out; first: {first['file']}: {first['error']}", 1)
