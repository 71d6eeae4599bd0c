"""The commands ``align`` and ``transcribe``: thin, over :mod:`isotone.batch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotone import batch
from isotone.cli import options as opt
from isotone.cli.console import AsJson, AudioArgument, OutOption, SpeechArgument, explained, say
from isotone.cli.outcomes import finish, interrupted
from isotone.cli.parts import plugin
from isotone.cli.replacing import KeepEdited, Overwrite, Prune, Redo

_Channels = Annotated[
    str,
    typer.Option(
        help="Channels of a transcript's speakers: auto (each their own where the levels are clear), order (the first "
        "speakers the first), mix (their mean)."
    ),
]
_Margins = Annotated[
    bool,
    typer.Option(
        "--margins",
        help="Say how sure every boundary is: the interval that holds the true one in nine of ten cases, and the "
        "probability of being within 20 ms. Point tiers in TextGrids, columns in CSV, fields in JSON, bands in pages.",
    ),
]


def align(
    audio: SpeechArgument,
    model: opt.Model = None,
    text: opt.Text = None,
    text_dir: opt.TextDir = None,
    book: opt.Book = None,
    tier: opt.Tier = [], slack: opt.Slack = 1.0,  # noqa: B006
    channels: _Channels = "auto",
    aligner: opt.Aligner = None,
    times: opt.Times = None,
    language: opt.Language = None,
    dictionary: opt.Dictionary = None,
    rules: opt.Rules = None,
    keep_markup: opt.KeepMarkup = False,
    closures: opt.Closures = False,
    format: opt.Format = ["textgrid"],  # noqa: B006 - typer copies it
    out_dir: OutOption = Path("alignments"),
    device: opt.Device = "cpu",
    engine: opt.Engine = "auto",
    window: opt.Window = 15.0,
    guide: opt.Guide = True,
    edges: opt.Edges = True,
    extra_speech: opt.ExtraSpeech = False,
    star_cost: opt.StarCost = None,
    check: opt.Check = True,
    min_score: opt.MinScore = None,
    presence: opt.Presence = True,
    margins: _Margins = False,
    strict: opt.Strict = False,
    adapt: opt.Adapt = False,
    overwrite: Overwrite = False, keep_edited: KeepEdited = False, redo: Redo = False, prune: Prune = False,
    analysis: opt.Analysis = False,
    speaker_characters: opt.SpeakerCharacters = 0,
    page: opt.Page = False,
    beside: opt.Beside = [],  # noqa: B006
    jobs: opt.Jobs = 0,
    cluster: opt.Cluster = "",
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Align a given text: find the time of each word and phone.

    A word * (or <star>) of a transcript stands for any unwritten speech. So does a word that the model cannot spell or
    pronounce: it keeps its position, and is listed among the warnings.

    A number or an abbreviation can be read in several ways ("1984", "Dr."): what is heard is chosen. JSON has it, with
    every word as written and its position in the text.

    JSON and CSV hold scores: for each segment the mean log-probability per frame (nats) and the confidence that its
    frames belong to it (0 to 1); in JSON also the fit of the whole text.

    OUT mirrors the input's folders: speech/dr1/sa1.wav becomes OUT/dr1/sa1.TextGrid. A ledger in OUT records what
    isotone wrote there. The same command resumes an interrupted run and redoes recordings that have changed. Without
    --overwrite it never replaces files that others wrote or that you have changed.

    One bad file does not stop the others: it is listed in OUT/errors.jsonl and the exit code is 1. Warnings are in
    OUT/warnings.jsonl. Words that were not said get no times. Files whose text is wrong, wholly or partly, or in
    another language, are printed; with --strict the exit code is then 2.

    Example: isotone align talk.wav talk.txt; isotone align speech/ --out aligned --format textgrid --jobs 4
    """
    with explained(), interrupted(out_dir):
        texts = opt.texts(language, dictionary, keep_markup, rules)
        options = batch.Options(opt.chosen(model, language), plugin(aligner), None, times, device, engine, window,
            guide, edges, extra_speech, star_cost, texts, closures, presence, slack, channels, margins,
            (*tier,))  # fmt: skip
        target = batch.Target(out_dir, (*format,), overwrite, redo, prune, analysis, speaker_characters, page,
            keep_edited)  # fmt: skip
        options = _adapted(audio, options, out_dir, text, text_dir, book) if adapt else options
        done = batch.align_files(audio, options, target, beside=beside, book=book, text=text, text_dir=text_dir,
            min_score=min_score, check=check, workers=batch.Workers(jobs, cluster))  # fmt: skip
    finish(done, out_dir, strict=strict, pages=page, as_json=as_json)


def _adapted(
    audio: list[Path],
    options: batch.Options,
    out_dir: Path,
    text: Path | None,
    text_dir: Path | None,
    book: Path | None,
) -> batch.Options:
    """Adapt the model to the recordings, and say what came of it."""
    from isotone.batch.adapting import adapted_for

    if book is not None:
        raise ValueError("--adapt learns from a transcript of each recording, which --book does not have.")
    options, found = adapted_for(audio, options, out_dir, text, text_dir)
    what = f"the model of step {found.step}" if found.better else "the model stays as it was"
    said = f"Adapted: loss of held-out recordings {found.before:.4f} before, {found.after:.4f} after; {what}."
    say(said, err=True)
    return options


def transcribe(
    audio: AudioArgument,
    model: opt.Model = None,
    decoder: opt.Decoder = None,
    aligner: opt.Aligner = None,
    times: opt.Times = None,
    language: opt.Language = None,
    format: opt.Format = ["textgrid"],  # noqa: B006
    out_dir: OutOption = Path("transcripts"),
    device: opt.Device = "cpu",
    window: opt.Window = 15.0,
    guide: opt.Guide = True,
    overwrite: Overwrite = False,
    keep_edited: KeepEdited = False,
    redo: Redo = False,
    prune: Prune = False,
    jobs: opt.Jobs = 0,
    cluster: opt.Cluster = "",
    as_json: AsJson = False,
) -> None:
    """Recognise speech, with the time of every word or phone; the text alone is printed, and in transcripts.jsonl.

    The English pack recognises phones; for words, name a model that has letters or word pieces.

    Example: isotone transcribe interview.wav --model facebook/wav2vec2-base-960h --format srt
    """
    model = opt.chosen(model, language)

    with explained(), interrupted(out_dir):
        options = batch.Options(
            model, aligner=plugin(aligner), decoder=plugin(decoder), times=times, device=device,
            window_s=window, guided=guide, text=opt.texts(language),
        )  # fmt: skip
        target = batch.Target(out_dir, tuple(format), overwrite, redo, prune, keep_edited=keep_edited)
        outcome = batch.transcribe_files(audio, options, target, batch.Workers(jobs, cluster))
    for file, text in outcome.texts.items() if not as_json else ():
        typer.echo(f"{file}: {text}")
    finish(outcome, out_dir, as_json=as_json)
