"""Data sets of the ``datasets`` library in, and with a column of words with times out."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from isotone.batch.keys import model_key
from isotone.format.tier_names import voices
from isotone.pipeline.forced import ForcedPipeline
from isotone.pipeline.given import align_text, align_texts, has_times
from isotone.pipeline.passages import Passages
from isotone.pipeline.result import Result
from isotone.quick import given
from isotone.quick.calls import kept, options_of
from isotone.transcripts import Passage

if TYPE_CHECKING:
    from datasets import Dataset

    from isotone.batch.options import Options

log = logging.getLogger(__name__)


def align_dataset(
    dataset: Dataset,
    *,
    audio: str = "audio",
    text: str = "text",
    column: str = "words",
    batch_size: int = 8,
    **options: Any,
) -> Dataset:
    """Add a column of words with times to a data set.

    The column holds a list of ``{"word", "start", "end", "score", "confidence", "speaker"}`` per row: seconds, and the
    score and the confidence as :class:`isotone.alignment.Segment` defines them. A row that cannot be aligned has None,
    and is logged with the reason. Results are cached as ``datasets`` caches those of ``map``.

    Args:
        dataset: The data set.
        audio: Column of recordings: the ``Audio`` feature, paths, or ``{"array", "sampling_rate"}``.
        text: Column of texts, of segments with times as recognisers give them, or of transcripts: ``pathlib.Path``
            values, which a data set's transform can make.
        column: Name of the new column.
        batch_size: Rows that are aligned at once; only rows without times are.
        options: As of :func:`isotone.align`: ``model``, ``language``, ``device`` ...

    Raises:
        ValueError: the data set lacks a column, or has the new one.
        OSError, LookupError: as :func:`isotone.align`.
    """
    from datasets import Audio, List, Value
    from datasets.fingerprint import Hasher

    lacking = [name for name in (audio, text) if name not in dataset.column_names]
    if lacking or column in dataset.column_names:
        what = f"no column {lacking[0]!r}" if lacking else f"a column {column!r} already"
        raise ValueError(f"The data set has {what}; it has {', '.join(dataset.column_names)}.")
    whole = options_of(**options)
    pipeline = kept.pipeline(whole)
    before = dataset.features[audio]
    if isinstance(before, Audio):  # isotone decodes by itself
        dataset = dataset.cast_column(audio, Audio(decode=False))
    number = Value("float64")
    word = {"word": Value("string"), "start": number, "end": number, "score": number, "confidence": number}
    features = dataset.features.copy()
    features[column] = List({**word, "speaker": Value("string")})

    def batch(rows: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        with tempfile.TemporaryDirectory() as folder:
            return {column: _aligned(pipeline, rows[audio], rows[text], whole, Path(folder))}

    key = [dataset._fingerprint, model_key(pipeline.model), whole.values(), audio, text, column]
    out = dataset.map(
        batch, batched=True, batch_size=batch_size, features=features, new_fingerprint=Hasher.hash(key)
    )
    return out.cast_column(audio, before) if isinstance(before, Audio) else out


def _aligned(
    pipeline: ForcedPipeline, audio: Sequence[Any], texts: Sequence[Any], options: Options, folder: Path
) -> list[list[dict[str, Any]] | None]:
    """Align the rows of a batch: those without times together, and one by one where that fails.

    Recordings that a row holds as bytes become files of ``folder``.
    """
    rate = pipeline.model.encoder.sample_rate
    read: dict[int, tuple[given.Recording, list[Passage]]] = {}
    out: list[list[dict[str, Any]] | None] = [None] * len(audio)
    for i, (sound, text) in enumerate(zip(audio, texts)):
        try:
            recording = _recording(sound, rate, folder / str(i))
            seconds = len(recording.samples) / rate
            read[i] = recording, given.passages(text, recording, seconds, tiers=options.tiers)
        except Exception as error:  # of any kind: the other rows go on
            log.warning("A row is not aligned: %s", error)
    plain = [i for i, (_, passages) in read.items() if not has_times(passages)]
    recordings = [read[i][0] for i in plain]
    with suppress(ValueError):  # whose it is shows where each is done by itself
        found = align_texts(
            pipeline, [r.id for r in recordings], [r.samples for r in recordings], [read[i][1] for i in plain]
        )
        for i, one in zip(plain, found):
            out[i] = _rows(one[0]) if one else None
    for i, ((id, samples, path), passages) in read.items():
        if out[i] is not None:
            continue
        try:
            out[i] = _rows(
                align_text(pipeline, id, samples, passages, options.slack_s, path, options.channels)[0]
            )
        except ValueError as error:
            log.warning("%s is not aligned: %s", id, error)
    return out


def _recording(sound: Any, rate: int, file: Path) -> given.Recording:
    """Read the recording of a row; bytes are written to a file of this name, without its ending."""
    if isinstance(sound, Mapping) and sound.get("array") is not None:
        return given.recording((sound["array"], sound["sampling_rate"]), None, rate)
    if not isinstance(sound, Mapping):
        return given.recording(sound, None, rate)
    data, name = sound.get("bytes"), sound.get("path") or ""
    if data is None:
        return given.recording(Path(name), None, rate)
    path = file.with_suffix(PurePath(name).suffix)
    path.write_bytes(data)
    return given.recording(path, None, rate)._replace(id=PurePath(name).stem or "audio")


def _rows(result: Result | Passages) -> list[dict[str, Any]]:
    """Return the words of a result as values of the column."""
    tiers = result.alignment.tiers
    # a model without words has its tokens
    first = "words" if tiers[0].name.endswith("words") else tiers[0].name
    rows = []
    for speaker, tier in voices(result.alignment, first).items():
        for s in tier:
            row = {
                "word": s.label,
                "start": s.start,
                "end": s.end,
                "score": s.score,
                "confidence": s.confidence,
            }
            rows.append({**row, "speaker": speaker or None})
    return sorted(rows, key=lambda row: (row["start"], row["end"]))
