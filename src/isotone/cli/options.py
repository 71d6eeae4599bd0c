"""Options that several commands have: their types with names and help, and the making of options objects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isotone.cli.console import explained, say
from isotone.cli.parts import formats
from isotone.model.fetch import check_source
from isotone.model.packs import pack_for

if TYPE_CHECKING:
    from isotone.text.options import TextOptions

_Files = list[Path] | None


def _there(model: str | None) -> str | None:
    """Check a model's name before torch is imported, which takes longer."""
    if model is not None:
        with explained():
            check_source(model)
    return model


def chosen(model: str | None, language: str | None = None) -> str:
    """Return the given model, or the name of the pack of a language, which is said on standard error.

    It comes before torch is imported; without a pack the command ends with the reason.
    """
    if model is not None:
        return model
    with explained():
        pack = pack_for(language)
        pack.folder()
    say(f"Model: {pack.name} ({pack.title}; {pack.licence}). --model names another.", err=True)
    return pack.name


Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="Model pack (`isotone plugins --kind pack` lists them), model or run folder, or a hub id of a CTC model "
        "(Wav2Vec2ForCTC ...). Default: the pack of the --language, or of English.",
        callback=_there,
        show_default=False,
    ),
]
Format = Annotated[
    list[str],
    typer.Option(
        "--format",
        "-f",
        help="File format; repeat for several; with options as YAML: '{name: srt, level: word}'. `isotone plugins "
        "--kind format` lists them.",
        callback=formats,
    ),
]
Aligner = Annotated[
    str | None,
    typer.Option(
        help="Aligner of the times, instead of the model's own; with options as YAML: '{name: segmental, "
        "min_frames: 2}'. `isotone plugins --kind aligner` lists them."
    ),
]
Times = Annotated[str | None, typer.Option(help="Head that gives the times, instead of the model's own.")]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps ...")]
Engine = Annotated[
    str,
    typer.Option(
        help="onnx (onnxruntime, which starts in less time), torch, or auto: onnx where it can be. Times are the same."
    ),
]
Window = Annotated[
    float,
    typer.Option(
        help="Seconds of the windows in which long audio (more than two windows) is encoded, which limits the memory. "
        "Each is encoded with 2 s more on both sides, which are dropped. 0: all at once."
    ),
]
Guide = Annotated[
    bool,
    typer.Option(
        "--guide/--no-guide",
        help="Keep tokens near the frames where the model's guide, another head, finds them, if it has one. Without, "
        "forced alignment runs only the part of the encoder that the timing head needs.",
    ),
]
Language = Annotated[
    str | None,
    typer.Option(
        help="ISO code of the spoken language (de, deu ...), for the choice of a model pack, for numbers, and for "
        "models with an adapter per language. Default: the model's own, if known."
    ),
]
Analysis = Annotated[
    bool,
    typer.Option(
        "--analysis",
        help="Write alignment_analysis.csv, oovs_found.txt and utterance_oovs.txt, as Montreal Forced Aligner does.",
    ),
]
Page = Annotated[
    bool,
    typer.Option(
        "--page",
        help="Write a page for every recording, to look at, to listen to and to correct, and their index.html; see "
        "`isotone page`.",
    ),
]
Beside = Annotated[
    list[Path],
    typer.Option(
        help="Further alignments of the same recordings, in their pages: a file or a folder, of another system or a "
        "reference. Repeat for several."
    ),
]
SpeakerCharacters = Annotated[
    int,
    typer.Option(
        min=0,
        help="Characters of a recording's name that name its speaker, in the tables of --analysis. 0: its folder does.",
        show_default=False,
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        min=0,
        help="Processes that share the recordings, with a copy of the model and one thread each. 0: one process, with "
        "all threads; with --cluster as many as there is room for.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str,
    typer.Option(
        help="Address of a Ray cluster whose machines share the recordings: auto, HOST:PORT ... They need isotone, and "
        "the files at the same paths.",
        show_default=False,
    ),
]
TextDir = Annotated[
    Path | None,
    typer.Option(
        help="Folder of transcripts named like the audio (.txt, .lab, .srt, .TextGrid ...), or a data folder of Kaldi. "
        "Default: beside the audio."
    ),
]
Text = Annotated[
    Path | None,
    typer.Option(
        help="Transcript of the one audio file: text, subtitles, annotations, a recogniser's JSON; or a manifest, CTM, "
        "STM or data folder of Kaldi that names several."
    ),
]
Book = Annotated[
    Path | None,
    typer.Option(
        help="Text of a whole book, in plain text: each recording is aligned with the parts of it that it holds. What "
        "nobody reads has no times. OUT/book.json has chapters, parts and other speech."
    ),
]
Tier = Annotated[
    list[str],
    typer.Option(
        help="Tier of the transcripts (TextGrid, ELAN ...) that holds speech; repeat for several speakers. Other tiers "
        "are not read. A name; a kind, as words for 'Ann - words' and 'Bob - words'; or a pattern, as 'tx@*'. Default: "
        "the tiers of utterances, else of words, else all but phones and notes.",
        show_default=False,
    ),
]
Slack = Annotated[
    float,
    typer.Option(
        help="Seconds by which the times of subtitles and other transcripts may be wrong. Words further off are placed "
        "where they are heard, and reported."
    ),
]
Dictionary = Annotated[
    list[Path] | None,
    typer.Option(
        help="Pronunciation dictionary (CMUdict, Montreal Forced Aligner); repeat for several. The first with the word "
        "counts; words in none have the model's own pronunciation."
    ),
]
Rules = Annotated[
    list[Path] | None,
    typer.Option(
        help="Table of readings: a written form, a tab, and what is said, with more tabs for alternatives; repeat for "
        "several tables."
    ),
]
KeepMarkup = Annotated[
    bool,
    typer.Option(
        "--keep-markup", help=r"Align markup such as \[laughs], <b> or SPEAKER 1: as if it were spoken."
    ),
]
Closures = Annotated[
    bool,
    typer.Option(
        "--closures/--no-closures",
        help="Show the closures of stops as segments of their own, as in TIMIT (tcl t), where the model chooses how "
        "stops are said. Otherwise a stop is one segment.",
    ),
]
Edges = Annotated[
    bool,
    typer.Option(
        "--edges/--no-edges", help="Leave out music, noise and other voices before and after the text."
    ),
]
ExtraSpeech = Annotated[
    bool,
    typer.Option(
        "--extra-speech",
        help="Allow speech that is not in the transcript, before, after and between words: where it is found, the "
        "tier of words has a segment '*'.",
    ),
]
StarCost = Annotated[
    float | None,
    typer.Option(
        help="Cost in nats per frame of speech outside the transcript: with a higher one, less is found. Default: 3 "
        "with --extra-speech, 1.5 for the words * and unknown words of a transcript."
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check/--no-check",
        help="Warn of files whose text is likely wrong, by the model's own threshold; cues of their subtitles stay "
        "where they were.",
    ),
]
MinScore = Annotated[
    float | None,
    typer.Option(
        help="Warn of files whose score (nats per token, 0 is perfect) is lower, in place of the model's own "
        "threshold. `isotone score-check` measures both."
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Exit with code 2 where a text is wrong, even partly, or foreign."),
]
Presence = Annotated[
    bool,
    typer.Option(
        "--presence/--no-presence",
        help="Leave out words that were surely not said, name those that may not have been, and mark speech that is "
        "not in the text (*), where the model knows.",
    ),
]
Adapt = Annotated[
    bool,
    typer.Option(
        "--adapt",
        help="Adapt the model to these recordings first, as `isotone adapt` does: minutes of training, for six "
        "recordings or more with transcripts beside them or in --text-dir.",
    ),
]
Decoder = Annotated[
    str | None,
    typer.Option(
        help="Decoder, instead of the model's own; with options as YAML: '{name: ctc-beam, model: lm.arpa, "
        "alpha: 1, beta: 3}'. `isotone plugins --kind decoder` lists them."
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the shuffle of the transcripts.")]


def texts(
    language: str | None, dictionary: _Files = None, keep_markup: bool = False, rules: _Files = None
) -> TextOptions:
    """Make the options of given texts."""
    from isotone.text.options import TextOptions

    return TextOptions(language, tuple(dictionary or ()), keep_markup, tuple(rules or ()))
