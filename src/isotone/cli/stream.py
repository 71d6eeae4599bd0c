"""The command ``stream``: thin, over :class:`isotone.StreamingAligner`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from isotone.cli import options as opt
from isotone.cli.console import explained, path_argument, write

if TYPE_CHECKING:
    from isotone.quick.streaming import Spoken, StreamingAligner

_TextFile = Annotated[
    Path,
    typer.Argument(help="The text that is read aloud, of any kind that align takes.", parser=path_argument),
]
_Rate = Annotated[float, typer.Option(help="Samples per second.")]
_Channels = Annotated[int, typer.Option(help="Channels; they are averaged.")]
_Sample = Annotated[
    str, typer.Option(help="Kind of the samples: s16 (16 bits) or f32 (floats), little-endian.")
]

#: Kinds of samples: names of numpy's.
_KINDS = {"s16": "<i2", "f32": "<f4"}
#: Seconds that are read at once, at most.
_PIECE_S = 0.05


def stream(
    text: _TextFile,
    model: opt.Model = None,
    rate: _Rate = 16_000,
    channels: _Channels = 1,
    sample: _Sample = "s16",
    tier: opt.Tier = [],  # noqa: B006 - typer copies it
    language: opt.Language = None,
    dictionary: opt.Dictionary = None,
    rules: opt.Rules = None,
    keep_markup: opt.KeepMarkup = False,
    device: opt.Device = "cpu",
) -> None:
    """Align a text while it is read aloud: raw samples come in by a pipe, a line of JSON goes out for every word.

    A line has the word's number, its text, its times in seconds, its score, and its place in the text. A word that was
    not heard has null times. A line with "corrects": true takes the place of an earlier one with the same number,
    within 2.7 s of it.

    It ends with the samples, with the last word, or by Ctrl-C.

    Example: arecord -q -t raw -f S16_LE -r 16000 | isotone stream speech.txt
    """
    model = opt.chosen(model, language)
    from isotone.quick.streaming import StreamingAligner
    from isotone.transcripts import open_source
    from isotone.transcripts.descriptions import descriptions_note, without_descriptions

    with explained():
        if sample not in _KINDS or channels < 1 or not rate > 0:
            raise ValueError(
                f"--sample is one of {', '.join(_KINDS)}, --channels 1 or more, --rate above 0; "
                f"got {sample}, {channels} and {rate:g}."
            )
        source = open_source(text, tier)
        aligner = StreamingAligner(
            source.text(described=keep_markup), model, rate=rate, language=language,
            dictionaries=tuple(dictionary or ()), rules=tuple(rules or ()), keep_markup=keep_markup, device=device,
        )  # fmt: skip
        left_out = [] if keep_markup else without_descriptions(source.passages)[1]
        own = (source.warning, descriptions_note(left_out) if left_out else "")
        for note in (*filter(None, own), *aligner.notes):
            typer.echo(f"note: {note}", err=True)
        unheard = _run(aligner, _pieces(sys.stdin.buffer, rate, channels, _KINDS[sample]))
    if unheard:
        typer.echo(f"{unheard} words of the text were not heard.", err=True)


def _run(aligner: StreamingAligner, pieces: Iterator[Any]) -> int:
    """Print words until the samples or the words end; return the number of words that were not heard."""
    heard: dict[int, bool] = {}

    def show(words: list[Spoken]) -> None:
        for word in words:
            heard[word.number] = word.segment is not None
            write(json.dumps(_line(word), ensure_ascii=False) + "\n")

    try:
        for piece in pieces:
            show(aligner.feed(piece))
            if aligner.done:
                break
    except KeyboardInterrupt:
        pass
    show(aligner.finish())
    return sum(not here for here in heard.values())


def _pieces(source: IO[bytes], rate: float, channels: int, kind: str) -> Iterator[Any]:
    """Read samples ``(N, C)`` as they come; bytes of an unfinished sample wait for the rest."""
    import numpy as np

    size = np.dtype(kind).itemsize * channels
    most = max(1, round(_PIECE_S * rate)) * size
    read = getattr(source, "read1", source.read)
    rest, first = b"", True
    while data := read(most):
        rest += data
        if first and len(rest) >= 4:
            first = False
            if rest[:4] in (b"RIFF", b"fLaC", b"OggS"):
                raise ValueError(
                    "The samples begin with the header of an audio file; expected raw ones: arecord -t raw, "
                    "ffmpeg ... -f s16le -"
                )
        whole = len(rest) // size * size
        yield np.frombuffer(rest[:whole], kind).reshape(-1, channels)
        rest = rest[whole:]


def _line(word: Spoken) -> dict[str, Any]:
    """Return the values of a word's line."""
    score = None if word.segment is None else word.segment.score
    start, end, score = (
        None if value is None else round(value, 3) for value in (word.start, word.end, score)
    )
    return {
        "number": word.number, "word": word.text, "start": start, "end": end, "score": score,
        "start_char": word.start_char, "end_char": word.end_char, "corrects": word.corrects,
    }  # fmt: skip
