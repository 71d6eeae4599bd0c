"""Adaptation of a model to a folder of recordings with transcripts."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from isotone import __version__
from isotone import audio as sound
from isotone.alignment import Alignment, AlignmentError, Segment, Tier
from isotone.batch.inputs import find_recordings, read_text, readable, transcript_of
from isotone.batch.keys import model_key
from isotone.batch.options import Options
from isotone.batch.pairs import Given, check_places, paired
from isotone.batch.progress import progress_of
from isotone.batch.work import explain
from isotone.corpus import tier_column
from isotone.files import atomic_write, check_folder, digest_of
from isotone.kernels import compiling
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.presence import Evidence
from isotone.text.tokenizer import Tokenizer
from isotone.training.adapt import Adapted, Settings, adapt
from isotone.training.data import evenly
from isotone.training.known_words import loosened
from isotone.training.presence import watching

log = logging.getLogger(__name__)

_CLAIM = "claim.txt"
_REVISION = 2  # of what is learned and measured: a run of another is not gone on with

#: Share of the recordings that measure the model and do not train it, and the least and the largest number of them.
HELD_OUT, LEAST, MOST = 0.2, 3, 200


@dataclass(frozen=True)
class Outcome:
    """The result of :func:`adapt_files`.

    Attributes:
        adapted: The loss of the recordings that were held out, before and after.
        trained, held_out: Numbers of recordings.
        unwritten: Number of recordings that were left out, for some of their speech has no phones: stars, and words
            without a pronunciation.
        errors: ``{"file", "error"}`` of recordings that were left out.
    """

    adapted: Adapted
    trained: int
    held_out: int
    unwritten: int
    errors: list[dict[str, str]]


@dataclass(frozen=True)
class _Recording:
    id: str
    path: Path
    text: str
    alignment: Alignment


def adapt_files(
    audio: Sequence[Path],
    options: Options,
    out: Path,
    *,
    text: Path | None = None,
    text_dir: Path | None = None,
    settings: Settings = Settings(),  # noqa: B008 - frozen
    overwrite: bool = False,
) -> Outcome:
    """Train a model further on recordings with transcripts, without labels, and write it where that made it better.

    The model aligns the recordings, and learns from its own alignments (:mod:`isotone.training.adapt`). A fifth of the
    recordings, and no more than :data:`MOST`, is held out. Their loss is measured before and while it learns. The
    weights with the lowest are kept. If none are better than before, nothing is written.

    Args:
        audio: Recordings, folders, and transcripts of recordings.
        options: The model and its use, with the device that it is trained on.
        out: Folder of the adapted model. The run, which the same call resumes, is in ``OUT.run`` beside it until the
            end.
        text, text_dir: See :func:`isotone.batch.align_files`.
        settings: Settings of the training.
        overwrite: Replace a model in ``out``.

    Raises:
        FileExistsError: ``out`` holds something, or ``OUT.run`` another run.
        ValueError: too few recordings that can be aligned and measured.
        OSError, LookupError: As in :func:`isotone.batch.align_files`.
    """
    options.check()
    check_places(text, text_dir)
    check_folder(out)
    if out.exists() and any(out.iterdir()) and not overwrite:
        raise FileExistsError(f"{out} is not empty: choose another folder, or --overwrite a model in it.")
    given = paired(audio, text)
    compiling.announce()
    options = _asked(options)
    pipeline = options.pipeline()
    run = out.with_name(f"{out.name}.run")
    claim = _claim(model_key(pipeline.model), given, options, text_dir, settings)
    _check_run(run, claim)
    found, errors = _aligned(given, pipeline, text_dir, options.tiers)
    written = [one for one in found if _is_written(one.alignment)]
    held_out, train = ([_row(one, pipeline.model) for one in part] for part in _split(written, found, errors))
    with atomic_write(run / _CLAIM) as file:
        file.write(claim)
    adapted = adapt(pipeline.model, train, held_out, run / "training", settings)
    if adapted.better:
        _keep_presence(pipeline.model, options, found)
        pipeline.model.save(out)
    shutil.rmtree(run)
    return Outcome(adapted, len(train), len(held_out), len(found) - len(written), errors)


def adapted_for(
    audio: Sequence[Path],
    options: Options,
    out: Path,
    text: Path | None = None,
    text_dir: Path | None = None,
) -> tuple[Options, Adapted]:
    """Adapt a model to recordings that are about to be aligned, and return the options with the better model.

    The model is kept in the output folder, so that the same call again does not train again unless something changed.

    Args:
        audio, options, text, text_dir: See :func:`adapt_files`.
        out: Output folder of the alignments; the model is in its hidden folder ``.isotone-adapted``.

    Raises:
        ValueError, OSError, LookupError: As in :func:`adapt_files`.
    """
    folder = out / ".isotone-adapted"
    model, said = folder / "model", folder / "outcome.json"
    settings = Settings()
    options.check()
    check_places(text, text_dir)
    shown = _asked(options)
    claim = _claim(model_key(options.load()), paired(audio, text), shown, text_dir, settings)
    found = _before(said, claim)
    if found is None:
        run = folder / "model.run"
        if run.is_dir() and (run / _CLAIM).is_file() and (run / _CLAIM).read_text(encoding="utf-8") != claim:
            shutil.rmtree(run)  # cut off before the recordings changed
        found = adapt_files(
            audio, options, model, text=text, text_dir=text_dir, settings=settings, overwrite=True
        ).adapted
        with atomic_write(said) as file:
            json.dump({"claim": claim, **asdict(found)}, file)
    return (replace(options, model=str(model)) if found.better else options), found


def _asked(options: Options) -> Options:
    """Return the options by which recordings are aligned to learn from: closures are tokens of their own."""
    return replace(options, closures=True, presence=False)


def _before(said: Path, claim: str) -> Adapted | None:
    """Read the outcome of the same adaptation; None if there is none."""
    try:
        found = json.loads(said.read_text(encoding="utf-8"))
        return Adapted(found["before"], found["after"], found["step"]) if found["claim"] == claim else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _aligned(
    given: Given, pipeline: Pipeline, text_dir: Path | None, tiers: Sequence[str]
) -> tuple[list[_Recording], list[dict[str, str]]]:
    """Align all recordings; list those that cannot be."""
    found: list[_Recording] = []
    errors: list[dict[str, str]] = []
    recordings = [(recording.path, recording.id) for recording in find_recordings(given.audio)]
    for path, id in progress_of(recordings, pipeline.watch):
        try:
            source = transcript_of(path, given.transcripts, text_dir, tiers=tiers)
            text = read_text(source.path, sound.info(path).seconds, path, tiers=tiers)
            found.append(_align(pipeline, id, path, text))
        except Exception as error:  # of any kind: the other files go on
            log.debug("%s", path, exc_info=True)
            errors.append({"file": readable(path), "error": explain(error, path)})
    return found, errors


def _align(pipeline: Pipeline, id: str, path: Path, text: str) -> _Recording:
    samples = sound.load(path, pipeline.model.encoder.sample_rate)
    result = pipeline.align(id, samples, pipeline.encode(text))
    return _Recording(id, path, text, result.alignment)


def _keep_presence(model: Model, options: Options, recordings: Sequence[_Recording]) -> None:
    """Let a model that has learned find the words that it found before (:mod:`isotone.training.known_words`)."""
    judging = replace(options, presence=True)
    after = judging.pipeline(model)
    presence = after.presence
    if presence is None or model.check is None:
        return
    chosen = [recordings[i] for i in evenly(len(recordings), MOST)]
    pairs = zip(_evidence(judging.pipeline(), chosen), _evidence(after, chosen))
    found = loosened(presence, [(was, now) for was, now in pairs if was and now])
    model.check = replace(model.check, presence=found)


def _evidence(pipeline: Pipeline, recordings: Sequence[_Recording]) -> list[Evidence | None]:
    """Collect the evidence on the words of recordings; None where there is none."""
    watching(pipeline, pipeline.presence)
    found: list[Evidence | None] = []
    for one in recordings:
        samples = sound.load(one.path, pipeline.model.encoder.sample_rate)
        try:
            found.append(pipeline.align(one.id, samples, pipeline.encode(one.text)).evidence)
        except AlignmentError:
            found.append(None)
    return found


def _split(
    written: Sequence[_Recording], found: Sequence[_Recording], errors: Sequence[dict[str, str]]
) -> tuple[list[_Recording], list[_Recording]]:
    """Divide recordings whose words have phones into held-out ones and the others, by their ids alone."""
    if len(written) < 2 * LEAST:
        first = f" First: {errors[0]['file']}: {errors[0]['error']}" if errors else ""
        raise ValueError(
            f"{len(found)} recordings can be aligned, {len(written)} of them with a pronunciation for all of their "
            f"words (--dictionary gives more); adaptation needs {2 * LEAST}. {len(errors)} failed.{first}"
        )
    drawn = sorted(written, key=lambda one: _draw(one.id))
    count = min(MOST, max(LEAST, round(HELD_OUT * len(written))))
    return drawn[:count], drawn[count:]


def _draw(id: str) -> bytes:
    return hashlib.blake2b(id.encode("utf-8", "surrogateescape"), digest_size=8).digest()


def _is_written(alignment: Alignment) -> bool:
    """Tell if every word has a phone or letter: the gap of one that has none would be learned as silence."""
    words, *others = alignment.tiers
    middles = [(part.start + part.end) / 2 for tier in others for part in tier]
    return not others or all(any(word.start <= t < word.end for t in middles) for word in words)


def _row(one: _Recording, model: Model) -> dict[str, Any]:
    """Make the row of a corpus; its phones are those of the alignment, with silence in gaps and closures."""
    empty = tier_column(Tier("", ()))
    words = phones = empty
    if model.tokenizer.unit == "phones" and one.alignment.has("words"):
        words = tier_column(one.alignment.tier("words"))
        tier = one.alignment.tier("phones").filled(one.alignment.duration)
        phones = tier_column(Tier("phones", _spoken(tier, model.tokenizer)))
    return {
        "id": one.id, "audio": str(one.path.absolute()), "start": 0.0, "end": one.alignment.duration,
        "text": one.text, "words": words, "phones": phones, "speaker": "",
    }  # fmt: skip


def _spoken(tier: Tier, tokenizer: Tokenizer) -> tuple[Segment, ...]:
    """Name gaps and closures by the tokenizer's silence, joined where they meet; without one they are left out."""
    silence = tokenizer.silence or ""
    found: list[Segment] = []
    for segment in tier:
        label = segment.label if segment.label in tokenizer.labels else silence
        if label == silence and found and found[-1].label == silence:
            found[-1] = replace(found[-1], end=segment.end)
        else:
            found.append(replace(segment, label=label))
    return tuple(segment for segment in found if segment.label)


def _claim(model: str, given: Given, options: Options, text_dir: Path | None, settings: Settings) -> str:
    """Compute a digest of all that an adaptation depends on: model, options, settings, recordings and texts."""
    files: list[list[str]] = []
    for recording in find_recordings(given.audio):
        try:
            texts = transcript_of(recording.path, given.transcripts, text_dir, tiers=options.tiers)
            files.append([recording.id, digest_of(recording.path), *map(digest_of, texts.files.values())])
        except OSError as error:
            files.append([recording.id, explain(error, recording.path)])
    whole = [model, options.values(), asdict(settings), files, __version__, _REVISION]
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()


def _check_run(run: Path, claim: str) -> None:
    """Raise FileExistsError if a folder holds another run, or other files."""
    path = run / _CLAIM
    if run.exists() and not (path.is_file() and path.read_text(encoding="utf-8") == claim):
        raise FileExistsError(f"{run} holds another run, or other files: remove it, or choose another --out.")
