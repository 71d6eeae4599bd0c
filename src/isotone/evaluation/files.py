"""Evaluation of files, folders of files, and run folders."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from isotone.alignment import SILENCE, Alignment, AlignmentError
from isotone.evaluation.comparison import Comparison, compare
from isotone.evaluation.ids import key, match_ids
from isotone.evaluation.peakiness import QuietFrames
from isotone.evaluation.report import Report
from isotone.evaluation.scoring import score
from isotone.evaluation.sides import (
    both_with_tier,
    check_speaker,
    describe_lack,
    describe_nothing,
    read_side,
)
from isotone.evaluation.tracks import Relabel
from isotone.files import atomic_write, check_target, json_with
from isotone.format.folder import Folder
from isotone.format.tier_names import standard_name
from isotone.text.normalize import normalize
from isotone.text.phones import PHONE_CLASSES, PhoneSet, fold, plain_phone

#: A run's predictions, beside its alignments: one line of JSON per utterance.
RUN_PREDICTIONS = "predictions.jsonl"


@dataclass(frozen=True)
class Evaluation:
    """A report on files, and the files it does not cover.

    Attributes:
        report: The scores of the utterances that both sides have.
        missing_hyp: References without a prediction. They are *not* in the scores.
        missing_ref: Predictions without a reference.
        skipped: (id or path, why) of files that could not be read and pairs without the tier.
        renamed: (id of the prediction, id of the reference) of the pairs whose ids differ by more than case.
        foreign: Paths of tables and texts that are no alignments, and were left alone.
        empty_hyp, empty_ref: Predictions, and references, whose tier has nothing but silence. They are scored.
    """

    report: Report
    missing_hyp: tuple[str, ...]
    missing_ref: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]
    renamed: tuple[tuple[str, str], ...]
    foreign: tuple[str, ...] = ()
    empty_hyp: tuple[str, ...] = ()
    empty_ref: tuple[str, ...] = ()

    def to_json(self, per_utterance: bool = True) -> str:
        """Write the report as JSON text, with the files that it does not cover."""
        uncovered = {
            "missing_hyp": list(self.missing_hyp),
            "missing_ref": list(self.missing_ref),
            "skipped": [{"file": name, "reason": reason} for name, reason in self.skipped],
            "renamed": [{"hyp": hyp, "ref": ref} for hyp, ref in self.renamed],
            "foreign": list(self.foreign),
            "empty_hyp": list(self.empty_hyp),
            "empty_ref": list(self.empty_ref),
        }
        out = {**uncovered, **self.report.to_dict(per_utterance)}
        return json.dumps(out, indent=1, ensure_ascii=False, allow_nan=False)


def evaluate_paths(
    hyp: Path | str,
    ref: Path | str,
    tier: str = "phones",
    *,
    collar_s: float | None = None,
    strict: bool = True,
    seed: int = 0,
    silence: Collection[str] = SILENCE,
    relabel: Relabel | None = None,
    classes: Mapping[str, str] | None = None,
    tolerance_s: float = 0.02,
    resamples: int = 1000,
    out: Path | str | None = None,
) -> Evaluation:
    """Compare predicted with reference alignments on disk, in any format that isotone reads.

    Utterances are matched by id, ignoring case: the path below the folder, or the file's name, without its
    suffix. Of the rest, an id that ends like exactly one id of the other side is matched with it
    (``fvmh0_sa1`` with ``dr1-fvmh0/sa1``), and reported. Two single files are a pair whatever their names. Tiers of
    speakers who talk at once are compared one after the other, by their names.

    Args:
        hyp: A file, a folder of them, or the folder of a run: its ``alignments`` are read, and the quiet
            frames of ``predictions.jsonl``, for the peakiness; those of early runs have none.
        ref: A file or a folder of them.
        tier: Name of the tier to compare, as :func:`isotone.format.tier_names.find_tier` takes it: of an
            utterance's files, one that has it is read.
        collar_s, strict, seed, silence, relabel, classes, tolerance_s, resamples: As in
            :func:`isotone.evaluation.scoring.score`.
        out: Where to write the result as JSON.

    Raises:
        FileNotFoundError: ``hyp`` or ``ref`` is not there.
        ValueError: the two sides share no utterance that has the tier, ids that differ only in case, or a
            broken ``predictions.jsonl``.
    """
    hyp, ref = Path(hyp), Path(ref)
    sides = predicted, references = read_side(hyp, tier), read_side(ref, tier)
    check_speaker(sides, tier)
    skipped = [(str(path), str(error)) for side in sides for path, error in side.errors]
    if hyp.is_file() and ref.is_file() and len(predicted.alignments) == len(references.alignments) == 1:
        matches = list(zip(predicted.alignments, references.alignments))
    else:
        matches = match_ids(predicted.alignments, references.alignments)
    pairs, without = _with_tier(sides, matches, tier)
    skipped += without
    if not pairs:
        raise ValueError(describe_nothing((hyp, ref), sides, tier, matches, without))
    report = score(
        pairs, standard_name(tier), collar_s, strict, _quiet_frames(hyp, pairs), seed,
        silence=silence, relabel=relabel, classes=classes, tolerance_s=tolerance_s, resamples=resamples,
    )  # fmt: skip
    evaluation = Evaluation(
        report,
        missing_hyp=tuple(sorted(set(references.alignments) - {b for _, b in matches})),
        missing_ref=tuple(sorted(set(predicted.alignments) - {a for a, _ in matches})),
        skipped=tuple(skipped),
        foreign=tuple(str(path) for side in sides for path, _ in side.foreign),
        empty_hyp=tuple(a.id for a, _ in pairs if _is_silent(a, silence)),
        empty_ref=tuple(b.id for _, b in pairs if _is_silent(b, silence)),
        renamed=tuple((a, b) for a, b in matches if key(a) != key(b)),
    )
    if out is not None:
        with atomic_write(out) as file:
            file.write(evaluation.to_json() + "\n")
    return evaluation


def _with_tier(
    sides: tuple[Folder, Folder], matches: Sequence[tuple[str, str]], tier: str
) -> tuple[list[tuple[Alignment, Alignment]], list[tuple[str, str]]]:
    """Return the matched alignments that have the tier, and (id, reason) of the others."""
    predicted, references = sides
    pairs, skipped = [], []
    for a, b in matches:
        try:
            hyp, ref = both_with_tier(predicted.alignments[a], references.alignments[b], tier)
        except AlignmentError as error:
            skipped.append((b, f"{error}."))
            continue
        if hyp and ref:
            pairs.append((hyp, ref))
            continue
        lacks = [describe_lack("prediction", predicted, a, tier)] if hyp is None else []
        lacks += [describe_lack("reference", references, b, tier)] if ref is None else []
        skipped.append((b, f"{'; '.join(lacks)}."))
    return pairs, skipped


def _from_root(path: Path) -> Path:
    """Resolve a path's folder; a file that is a link keeps its own name."""
    return path.parent.resolve() / path.name


def _is_silent(alignment: Alignment, silence: Collection[str]) -> bool:
    return all(segment.label in silence for tier in alignment.tiers for segment in tier)


def read_quiet_frames(path: Path) -> dict[str, QuietFrames]:
    """Read the quiet frames of each utterance from a run's ``predictions.jsonl``.

    Lines without ``quiet`` are skipped: earlier versions counted blank frames alone, without their times.

    Raises:
        ValueError: a line is no JSON object, or lacks a key, or its frames are impossible; the message has its number.
    """
    found = {}
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row: dict[str, Any] = json.loads(line)
                if row.get("quiet") is not None:
                    times = float(row["hop_s"]), float(row["offset_s"])
                    spans = [(int(first), int(end)) for first, end in row["quiet"]]
                    found[str(row["id"])] = QuietFrames.from_spans(int(row["frames"]), spans, *times)
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                raise ValueError(
                    f"{path}, line {number}: expected a JSON object with id, frames, hop_s, offset_s and quiet; "
                    f"{type(error).__name__}: {error}."
                ) from error
    return found


def _quiet_frames(hyp: Path, pairs: list[tuple[Alignment, Alignment]]) -> dict[str, QuietFrames] | None:
    """Return the quiet frames of a run by reference id; ``None`` where there are none."""
    if not (hyp / RUN_PREDICTIONS).is_file():
        return None
    frames = {key(id): found for id, found in read_quiet_frames(hyp / RUN_PREDICTIONS).items()}
    found = {r.id: frames[key(h.id)] for h, r in pairs if key(h.id) in frames}
    return found or None


def _plain_word(label: str) -> str:
    """Remove case and punctuation from a word; silence and pure punctuation stay as they are."""
    return label if label in SILENCE else normalize(label) or label


def _folded(label: str, phones: PhoneSet) -> str:
    """Fold a phone to a set of TIMIT's; silence and what is no phone of English stay as they are."""
    plain = label if label in SILENCE else plain_phone(label)
    return "".join(fold([plain], phones)) if plain in PHONE_CLASSES else label


def evaluate_files(
    hyp: Path,
    ref: Path,
    *,
    tier: str = "phones",
    collar_s: float | None = None,
    strict: bool = True,
    against: Path | None = None,
    phones: PhoneSet | None = None,
    as_written: bool = False,
    json_file: Path | None = None,
) -> tuple[dict[str, Evaluation], Comparison | None]:
    """Score files against files, and two hypotheses against each other.

    Args:
        hyp, ref: See :func:`evaluate_paths`.
        tier, collar_s, strict: See :func:`isotone.evaluation.score`.
        against: A second hypothesis.
        phones: TIMIT phone set that labels of larger sets, of ARPAbet and of English IPA are folded to, on both sides;
            None leaves them.
        as_written: Compare words with their case, punctuation and digits; otherwise "Year." is "year".
        json_file: File for all results as JSON.

    Returns:
        Evaluations by the name of the hypothesis, and the paired comparison where there are two.

    Raises:
        ValueError: both hypotheses are the same, or there is no such phone set. Also what ``evaluate_paths`` raises.
    """
    if json_file is not None:
        check_target(json_file, json_with("missing_hyp", "missing_ref"))
    if against is not None and _from_root(against) == _from_root(hyp):
        raise ValueError(
            f"--against {against} is the hypothesis itself: give another one to compare it with."
        )
    kind = standard_name(tier)
    options: dict[str, Any] = {"tier": tier, "collar_s": collar_s, "strict": strict}
    options["classes"] = PHONE_CLASSES if kind == "phones" else None
    if phones is not None:
        # a phone that the smaller set lacks (q) becomes silence, like the closures
        options["relabel"] = partial(_folded, phones=phones)
    elif kind == "words" and not as_written:
        options["relabel"] = _plain_word
    names = [hyp.resolve().name] if against is None else [str(hyp), str(against)]
    found = {
        name: evaluate_paths(path, ref, **options)
        for name, path in zip(names, [p for p in (hyp, against) if p])
    }
    first, *second = (e.report for e in found.values())
    comparison = compare(first, second[0]) if second else None
    if json_file is not None:
        with atomic_write(json_file) as file:
            json.dump(results(found, comparison), file, indent=1, ensure_ascii=False, allow_nan=False)
    return found, comparison


def results(found: Mapping[str, Evaluation], comparison: Comparison | None) -> dict[str, Any]:
    """Return what :func:`evaluate_files` gives as values for JSON, by the name of the hypothesis."""
    whole: dict[str, Any] = {name: json.loads(e.to_json()) for name, e in found.items()}
    return whole if comparison is None else {**whole, "comparison": comparison.rows()}
