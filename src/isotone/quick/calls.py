"""Forced alignment of one recording in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isotone.batch.options import Options, Part
from isotone.model.packs import pack_for
from isotone.pipeline.passages import SLACK_S
from isotone.pipeline.windows import Windows
from isotone.quick import given
from isotone.quick.aligned import Aligned
from isotone.quick.kept import Kept
from isotone.quick.one import align_one
from isotone.text.options import TextOptions

#: The model and the pipeline of the last call.
kept = Kept()


def align(
    audio: Any,
    text: given.Text,
    *,
    rate: float | None = None,
    model: str | Path | None = None,
    language: str | None = None,
    dictionaries: Sequence[str | Path] = (),
    rules: Sequence[str | Path] = (),
    aligner: Part | None = None,
    times: str | None = None,
    device: str = "cpu",
    engine: str = "auto",
    window_s: float = Windows.window_s,
    guided: bool = True,
    edges: bool = True,
    extra_speech: bool = False,
    star_cost: float | None = None,
    closures: bool = False,
    keep_markup: bool = False,
    slack_s: float = SLACK_S,
    channels: str = "auto",
    margins: bool = False,
    tiers: str | Sequence[str] = (),
) -> Aligned:
    """Find the time of each word and phone of a text in a recording.

    The model of the last call is kept, so a loop over recordings loads it once.

    Args:
        audio: Path of a recording; an array ``(N,)``, ``(N, C)`` or ``(C, N)`` with its ``rate``; or the pair of both.
        text: The text; a ``pathlib.Path`` is a transcript of any kind that ``isotone align`` reads; a mapping or list
            is the result of Whisper, WhisperX or a pipeline of transformers. Passages with times are aligned near them.
        rate: Hz of an array.
        model: Name of a model pack, model or run folder, or hub id. Default: the pack of the language.
        language: ISO 639 code of the language. Default: English for the choice of the pack, then the model's own.
        dictionaries, rules: Pronunciation dictionaries, and tables of readings of written forms; see
            :class:`isotone.text.options.TextOptions`.
        aligner, times, device, engine, window_s, guided, edges, extra_speech, star_cost, closures: See
            :class:`isotone.batch.options.Options`.
        keep_markup: Align markup such as ``[laughs]`` as if it were spoken.
        slack_s: Seconds by which the times of passages may be wrong.
        channels: ``auto``, ``order`` or ``mix``: see :class:`isotone.batch.options.Options`; an array is mixed.
        margins: Say how sure every boundary is: see :class:`isotone.alignment.Margin`.
        tiers: The tiers of a TextGrid or another annotation that hold speech, of several speakers perhaps; other tiers
            are not read. A name; a kind, as ``words`` for ``Ann - words`` and ``Bob - words``; or a pattern with ``*``.
            Default: those of utterances, else of words, else all but those of phones and notes.

    Raises:
        LookupError: no pack has the language, or there is no such aligner or head.
        ValueError: the model does not know how sure its boundaries are.
        OSError: there is no such recording, text file, dictionary or model.
        AudioError, TextError: the recording or the text cannot be read.
        AlignmentError: the text needs more frames than the recording has.
        TypeError: an array without a rate, or an argument of another kind.

    Example:
        >>> isotone.align("talk.wav", "She washed the dog.").save("talk.TextGrid")  # doctest: +SKIP
    """
    options = options_of(
        model, language, dictionaries, keep_markup, rules, aligner=aligner, times=times, device=device,
        engine=engine, window_s=window_s, guided=guided, edges=edges, extra_speech=extra_speech, star_cost=star_cost,
        closures=closures, slack_s=slack_s, channels=channels, margins=margins, tiers=tiers,
    )  # fmt: skip
    pipeline = kept.pipeline(options)
    return align_one(pipeline, options.model, audio, text, rate, slack_s, channels, options.tiers)


def options_of(
    model: str | Path | None = None,
    language: str | None = None,
    dictionaries: Sequence[str | Path] = (),
    keep_markup: bool = False,
    rules: Sequence[str | Path] = (),
    tiers: str | Sequence[str] = (),
    **others: Any,
) -> Options:
    """Make the options of :func:`align`, with the pack of the language where no model is given."""
    name = str(model) if model is not None else pack_for(language).name
    text = TextOptions(language, tuple(map(Path, dictionaries)), keep_markup, tuple(map(Path, rules)))
    return Options(name, text=text, tiers=given.chosen_tiers(tiers), **others)
