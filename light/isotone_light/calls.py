"""Forced alignment of one recording in one call, and the aligner behind it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from isotone.kernels import compiling
from isotone.model.onnx_form import check_current, description_of
from isotone.model.onnx_model import OnnxModel
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.passages import SLACK_S
from isotone.quick import given
from isotone.quick.aligned import Aligned
from isotone.quick.one import align_one
from isotone.text.options import TextOptions

#: The English pack of isotone, as ONNX.
ENGLISH = Path(__file__).parent / "english"


def align(
    audio: Any,
    text: given.Text,
    *,
    rate: float | None = None,
    model: str | Path = ENGLISH,
    dictionaries: Sequence[str | Path] = (),
    rules: Sequence[str | Path] = (),
    slack_s: float = SLACK_S,
    tiers: str | Sequence[str] = (),
    **options: Any,
) -> Aligned:
    """Find the time of each word and phone of a text in a recording, as ``isotone.align`` does.

    Args:
        audio: Path of a recording; an array with its ``rate``; or the pair of both.
        text: The text; a ``pathlib.Path`` is a transcript of any kind that isotone reads; a mapping or list is the
            result of a recogniser.
        rate: Hz of an array.
        model: Folder that ``isotone export --onnx`` wrote, or added to. Default: English.
        dictionaries, rules: Pronunciation dictionaries, and tables of readings of written forms.
        slack_s: Seconds by which the times of passages may be wrong.
        tiers: The tiers of an annotation that hold speech; other tiers are not read.
        options: Of :class:`isotone.pipeline.forced.ForcedPipeline`, such as ``extra_speech`` or ``closures``.

    Raises:
        OSError: there is no such recording, text file, dictionary or model.
        AudioError, TextError: the recording or the text cannot be read.
        AlignmentError: the text needs more frames than the recording has.
        TypeError: an array without a rate, or an argument of another kind.
    """
    words = TextOptions(None, tuple(map(Path, dictionaries)), False, tuple(map(Path, rules)))
    aligner, chosen = pipeline(model, words, **options), given.chosen_tiers(tiers)
    return align_one(aligner, Path(model).name, audio, text, rate, slack_s, tiers=chosen)


def pipeline(model: Path | str = ENGLISH, text: TextOptions | None = None, **options: Any) -> ForcedPipeline:
    """Make an aligner of a model; the model is kept for the next call."""
    compiling.announce()
    folder = Path(model).resolve()
    changed = max((path.stat().st_mtime_ns for path in folder.rglob("*")), default=0)
    return ForcedPipeline(_model(folder, changed), text=text or TextOptions(), **options)


@lru_cache(maxsize=1)
def _model(folder: Path, changed: int) -> Any:
    if folder != ENGLISH.resolve():
        check_current(folder, description_of(folder))
    return OnnxModel(folder)
