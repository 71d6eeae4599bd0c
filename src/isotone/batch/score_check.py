"""A check of scores: measure how well they separate correct transcripts from wrong ones."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from isotone import audio as sound
from isotone.alignment import AlignmentError
from isotone.batch import Options, explain, progress_of
from isotone.batch.inputs import find_audio, find_transcript, ids_of, read_text, readable
from isotone.evaluation import ROC, roc
from isotone.files import atomic_write, check_target, json_with
from isotone.kernels import compiling
from isotone.model.check import Check, usable
from isotone.pipeline import Pipeline
from isotone.pipeline.doubt import strangers
from isotone.pipeline.language import ANOTHER_LANGUAGE
from isotone.text.normalize import normalize

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pair:
    """An audio file with a transcript.

    Attributes:
        file: The audio.
        transcript_of: The audio whose transcript it is.
        score: See :class:`isotone.alignment.Alignment`; -inf where the transcript is too long for the audio.
        agreement: See :func:`isotone.pipeline.doubt.agreement`; None where the transcript is too short, or too long
            for the audio.
        verdict: Verdict on the transcript, see :class:`isotone.alignment.Alignment`.
    """

    file: str
    transcript_of: str
    score: float
    agreement: float | None = None
    verdict: str = ""


@dataclass(frozen=True)
class ScoreCheck:
    """The result of :func:`check_scores`.

    Attributes:
        roc: ROC of the score, correct against wrong transcripts.
        agreement: ROC of the agreement, over pairs that have one; None if no correct or no wrong pair has one.
        default: The model's threshold of the agreement, which `isotone align` uses by default.
        right, wrong: The pairs, file by file.
        errors: ``{"file", "error"}`` of files that could not be aligned with their own transcript; not in the ROC.
    """

    roc: ROC
    agreement: ROC | None
    default: Check
    right: list[Pair]
    wrong: list[Pair]
    errors: list[dict[str, str]]

    def flagged(self) -> tuple[float | None, float | None]:
        """Compute the shares, 0 to 1, of correct and wrong transcripts below the default threshold.

        A share is None if no transcript of the kind has an agreement.
        """
        return _flagged(self.right, self.default), _flagged(self.wrong, self.default)

    def summary(self) -> str:
        """Describe the default threshold and its error rates here, in a sentence or two."""
        own = self.default.files > 0
        origin = f"in the model, measured on {self.default.files} recordings of {self.default.split}"
        first = f"By default `isotone align` flags an agreement below {self.default.threshold:.3f} "
        first += f"({origin if own else 'built in, for the model has none of its own'}). "
        right, wrong = self.flagged()
        foreign = [pair.file for pair in self.right if pair.verdict == ANOTHER_LANGUAGE]
        if foreign:
            first += (
                f"In another language than the model's: {len(foreign)} transcripts, such as {foreign[0]}'s. "
            )
        if right is None or wrong is None:
            return f"{first}No text here is long enough to tell."
        shares = f"{100 * wrong:.1f} % of the wrong transcripts and {100 * right:.1f} % of the right"
        return f"{first}Here that is {shares}."

    def to_json(self) -> str:
        """Serialise everything as JSON; scores of -inf are null."""
        rows = {
            kind: [{**asdict(p), "score": p.score if math.isfinite(p.score) else None} for p in pairs]
            for kind, pairs in (("right", self.right), ("wrong", self.wrong))
        }
        right, wrong = self.flagged()
        whole = {
            "roc": asdict(self.roc),
            "agreement": self.agreement and asdict(self.agreement),
            "default": {**asdict(self.default), "right_flagged_here": right, "wrong_flagged_here": wrong},
            **rows,
            "errors": self.errors,
        }
        return json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def check_scores(
    audio: Sequence[Path],
    options: Options,
    *,
    text_dir: Path | None = None,
    seed: int = 0,
    json_file: Path | None = None,
) -> ScoreCheck:
    """Score every file with its own transcript and another file's, and measure how well a threshold separates them.

    Args:
        audio: Files or folders.
        options: The model and its options.
        text_dir: See :func:`isotone.batch.align_files`.
        seed: Seed of the shuffle that assigns each file another's transcript, with other words.
        json_file: File for all results as JSON.

    Raises:
        ValueError: fewer than two different transcripts among the files that could be aligned.
        OSError, LookupError: As in :func:`isotone.batch.align_files`.
    """
    options.check()
    if json_file is not None:
        check_target(json_file, json_with("right", "wrong"))
    found = find_audio(audio)
    texts, errors = _texts(found, text_dir, options.tiers)
    _check_any(texts, errors)
    others = strangers({path: normalize(text) for path, text in texts.items()}, seed)
    compiling.announce()
    pipeline = options.pipeline()
    right: list[Pair] = []
    wrong: list[Pair] = []
    files = [(p, i) for p, i in zip(found, ids_of(found)) if p in texts]
    for path, id in progress_of(files, pipeline.watch):
        try:
            own, stranger = _pair(pipeline, path, id, texts[path], others[path], texts[others[path]])
        except Exception as error:  # of any kind: the other files go on
            log.debug("%s", path, exc_info=True)
            errors.append({"file": readable(path), "error": explain(error, path)})
            continue
        right.append(own)
        wrong.append(stranger)
    _check_any(right, errors)
    check = _check(right, wrong, errors, usable(pipeline.model.check))
    if json_file is not None:
        with atomic_write(json_file) as file:
            file.write(check.to_json())
    return check


def _check_any(found: Collection[object], errors: Sequence[dict[str, str]]) -> None:
    """Raise ValueError where nothing was found, and there are errors."""
    if errors and not found:
        first = errors[0]
        raise ValueError(f"None of the files could be aligned; first: {first['file']}: {first['error']}")


def _pair(
    pipeline: Pipeline, path: Path, id: str, text: str, other: Path, other_text: str
) -> tuple[Pair, Pair]:
    """Align a recording with its own transcript, and with another's."""
    samples = sound.load(path, pipeline.model.encoder.sample_rate)
    own = pipeline.align(id, samples, pipeline.encode(text))
    stranger = pipeline.encode(other_text)
    right = Pair(readable(path), readable(path), own.score, own.agreement, own.alignment.verdict)
    try:
        wrong = pipeline.align(id, samples, stranger)
    except AlignmentError:  # too long for the audio
        return right, Pair(readable(path), readable(other), -math.inf)
    return right, Pair(readable(path), readable(other), wrong.score, wrong.agreement, wrong.alignment.verdict)


def _check(right: list[Pair], wrong: list[Pair], errors: list[dict[str, str]], default: Check) -> ScoreCheck:
    agreed = [[p.agreement for p in pairs if p.agreement is not None] for pairs in (right, wrong)]
    return ScoreCheck(
        roc([p.score for p in right], [p.score for p in wrong]),
        roc(*agreed) if all(agreed) else None,
        default,
        right,
        wrong,
        errors,
    )


def _texts(
    found: Sequence[Path], folder: Path | None, tiers: Sequence[str]
) -> tuple[dict[Path, str], list[dict[str, str]]]:
    """Read the transcripts, by audio file; return errors for those that cannot be read."""
    texts, errors = {}, []
    for path in found:
        try:
            source = find_transcript(path, folder, tiers=tiers).path
            texts[path] = read_text(source, sound.info(path).seconds, path, tiers=tiers)
        except (OSError, ValueError) as error:
            errors.append({"file": readable(path), "error": explain(error, path)})
    return texts, errors


def _flagged(pairs: Sequence[Pair], check: Check) -> float | None:
    flags = [p.agreement < check.threshold for p in pairs if p.agreement is not None]
    return sum(flags) / len(flags) if flags else None
