"""Scoring what lies on disk: files, folders of files, and the folders that runs write."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isotone.alignment import Alignment
from isotone.corpus import SILENCE
from isotone.evaluation.comparison import Comparison, compare
from isotone.evaluation.ids import key, match_ids
from isotone.evaluation.report import Report
from isotone.evaluation.scoring import score
from isotone.evaluation.tracks import Relabel
from isotone.files import atomic_write, check_target
from isotone.format import FormatError, ManyUtterances, read, read_folder
from isotone.format.reading import decode
from isotone.inputs import place
from isotone.registries import formats
from isotone.text.normalize import normalize
from isotone.text.phones import PHONE_CLASSES, PHONES_61, PhoneSet, fold

#: What a run writes: alignments in a folder, and a line of JSON an utterance.
RUN_ALIGNMENTS, RUN_PREDICTIONS = "alignments", "predictions.jsonl"


@dataclass(frozen=True)
class Evaluation:
    """A report on files, and the files it does not cover.

    Attributes:
        report: The scores of the utterances that both sides have.
        missing_hyp: References without a prediction. They are *not* in the scores.
        missing_ref: Predictions without a reference.
        skipped: (id or path, why) of files that could not be read and pairs without the tier.
        renamed: (id of the prediction, id of the reference) of the pairs whose ids differ by more than case.
    """

    report: Report
    missing_hyp: tuple[str, ...]
    missing_ref: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]
    renamed: tuple[tuple[str, str], ...]

    def to_json(self, per_utterance: bool = True) -> str:
        """The report as JSON text, with what it does not cover."""
        uncovered = {
            "missing_hyp": list(self.missing_hyp),
            "missing_ref": list(self.missing_ref),
            "skipped": [{"file": name, "reason": reason} for name, reason in self.skipped],
            "renamed": [{"hyp": hyp, "ref": ref} for hyp, ref in self.renamed],
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

    Utterances are matched by id, whatever its case: the path below the folder, or the file's name, without
    its ending. Of the others, an id that ends like exactly one of the other side is matched with it
    (``fvmh0_sa1`` with ``dr1-fvmh0/sa1``), and reported. Two single files are a pair whatever their names.

    Args:
        hyp: A file, a folder of them, or the folder of a run: its ``alignments`` are read, and the blank
            frames of ``predictions.jsonl``, for the peakiness.
        ref: A file or a folder of them.
        tier: Name of the tier to compare.
        collar_s, strict, seed, silence, relabel, classes, tolerance_s, resamples: As in
            :func:`isotone.evaluation.scoring.score`.
        out: Where to write the result as JSON.

    Raises:
        FileNotFoundError: ``hyp`` or ``ref`` is not there.
        ValueError: the two sides share no utterance that has the tier, ids that differ only in case, or a
            broken ``predictions.jsonl``.
    """
    hyp, ref = Path(hyp), Path(ref)
    predicted, unread_hyp = read_alignments(hyp, tier)
    references, unread_ref = read_alignments(ref, tier)
    skipped = [(str(path), str(error)) for path, error in (*unread_hyp, *unread_ref)]
    if hyp.is_file() and ref.is_file() and len(predicted) == len(references) == 1:
        matches = list(zip(predicted, references))
    else:
        matches = match_ids(predicted, references)
    pairs = []
    for a, b in matches:
        sides = (("prediction", predicted[a]), ("reference", references[b]))
        if lacking := [side for side, alignment in sides if not alignment.has(tier)]:
            skipped.append((b, f"The {' and the '.join(lacking)} has no tier {tier!r}."))
        else:
            pairs.append((predicted[a], references[b]))
    if not pairs:
        raise ValueError(
            f"{hyp} and {ref} share no utterance with a tier {tier!r}: "
            f"ids {_some(predicted)} and {_some(references)}"
            f"{''.join(f'; {name}: {why}' for name, why in skipped[:3])}."
        )
    report = score(
        pairs, tier, collar_s, strict, _blank_counts(hyp, pairs), seed,
        silence=silence, relabel=relabel, classes=classes, tolerance_s=tolerance_s, resamples=resamples,
    )  # fmt: skip
    evaluation = Evaluation(
        report,
        missing_hyp=tuple(sorted(set(references) - {b for _, b in matches})),
        missing_ref=tuple(sorted(set(predicted) - {a for a, _ in matches})),
        skipped=tuple(skipped),
        renamed=tuple((a, b) for a, b in matches if key(a) != key(b)),
    )
    if out is not None:
        with atomic_write(out) as file:
            file.write(evaluation.to_json() + "\n")
    return evaluation


def read_alignments(
    path: Path, tier: str = "phones"
) -> tuple[dict[str, Alignment], list[tuple[Path, Exception]]]:
    """The alignments of a file, a folder or a run, by id, and the files that could not be read.

    Args:
        path: Where they are. A CTM file may hold many.
        tier: What the one tier of a single CTM file, which does not say, is called.

    Raises:
        FileNotFoundError: there is nothing of that name.
    """
    if is_run(path):
        path = path / RUN_ALIGNMENTS
    if path.is_dir():
        found, errors = read_folder(path)
        return found, list(errors)
    if not path.exists():
        raise FileNotFoundError(f"Expected a file or a folder of alignments; there is no {path}.")
    if path.suffix.lower() == ".ctm":
        ctm = formats.build("ctm", tier=tier)
        if isinstance(ctm, ManyUtterances):
            try:
                return {a.id: a for a in ctm.loads_all(decode(path.read_bytes()))}, []
            except FormatError as error:
                raise FormatError(f"{path}: {error}") from error
    alignment = read(path)
    return {alignment.id: alignment}, []


def is_run(path: Path) -> bool:
    """Whether a folder was written by a run."""
    return (path / RUN_ALIGNMENTS).is_dir()


def read_blank_counts(path: Path) -> dict[str, tuple[int, int]]:
    """Blank frames and all frames of each utterance, from the lines of a run's ``predictions.jsonl``.

    Lines without ``frames`` and ``blank_frames`` are passed over: not every decoder counts them.

    Raises:
        ValueError: a line is no JSON object or has no ``id``; the message has its number.
    """
    counts = {}
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row: dict[str, Any] = json.loads(line)
                if row.get("blank_frames") is not None and row.get("frames") is not None:
                    counts[str(row["id"])] = (int(row["blank_frames"]), int(row["frames"]))
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                raise ValueError(
                    f"{path}, line {number}: expected a JSON object with id, frames and blank_frames; "
                    f"{type(error).__name__}: {error}."
                ) from error
    return counts


def _blank_counts(hyp: Path, pairs: list[tuple[Alignment, Alignment]]) -> dict[str, tuple[int, int]] | None:
    """The blank counts of a run by reference id; ``None`` where there are none."""
    if not (hyp / RUN_PREDICTIONS).is_file():
        return None
    counts = {key(id): count for id, count in read_blank_counts(hyp / RUN_PREDICTIONS).items()}
    found = {r.id: counts[key(h.id)] for h, r in pairs if key(h.id) in counts}
    return found or None


def _some(ids: Iterable[str]) -> str:
    names = sorted(map(repr, ids))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") or "none"


def _plain_word(label: str) -> str:
    """A word without case and punctuation; silence, and what is nothing without them, as it is."""
    return label if label in SILENCE else normalize(label) or label


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
        phones: TIMIT phone set that labels of larger sets are folded to, on both sides; None leaves them.
        as_written: Compare words with their case, punctuation and digits; otherwise "Year." is "year".
        json_file: Where everything is written as JSON.

    Returns:
        Evaluations by the name of the hypothesis, and the paired comparison where there are two.

    Raises:
        ValueError: both hypotheses are one, or there is no such phone set. Also what ``evaluate_paths`` raises.
    """
    if json_file is not None:
        check_target(json_file)
    if against is not None and place(against) == place(hyp):
        raise ValueError(
            f"--against {against} is the hypothesis itself: give another one to compare it with."
        )
    options: dict[str, Any] = {"tier": tier, "collar_s": collar_s, "strict": strict}
    options["classes"] = PHONE_CLASSES if tier == "phones" else None
    if phones is not None:
        # a phone that the smaller set does not have (q) is as silent as its closures are
        options["relabel"] = {p: "".join(fold([p], phones)) for p in PHONES_61}
    elif tier == "words" and not as_written:
        options["relabel"] = _plain_word
    names = [hyp.resolve().name] if against is None else [str(hyp), str(against)]
    found = {
        name: evaluate_paths(path, ref, **options)
        for name, path in zip(names, [p for p in (hyp, against) if p])
    }
    first, *second = (e.report for e in found.values())
    comparison = compare(first, second[0]) if second else None
    if json_file is not None:
        whole: dict[str, Any] = {name: json.loads(e.to_json()) for name, e in found.items()}
        if comparison is not None:
            whole["comparison"] = comparison.rows()
        with atomic_write(json_file) as file:
            json.dump(whole, file, indent=1, ensure_ascii=False, allow_nan=False)
    return found, comparison
