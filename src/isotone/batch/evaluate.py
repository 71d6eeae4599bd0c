"""Scoring files against files: the command ``evaluate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isotone.corpus import SILENCE
from isotone.evaluation import Comparison, compare
from isotone.evaluation.files import Evaluation, evaluate_paths
from isotone.files import atomic_write, check_target
from isotone.inputs import place
from isotone.text.normalize import normalize
from isotone.text.phones import PHONE_CLASSES, PHONES_61, PhoneSet, fold


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
        hyp, ref: See :func:`isotone.evaluation.files.evaluate_paths`.
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
