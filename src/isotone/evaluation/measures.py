"""The measures of a report: names, units, and their formulas over a corpus's totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from isotone.evaluation import formulas
from isotone.evaluation.tracks import Floats

Totals = Mapping[str, Floats]

#: Collars of the start-boundary F1 curve, and thresholds of the boundary errors, in seconds.
CURVE_S = (0.01, 0.02, 0.025, 0.05, 0.1, 0.2)
THRESHOLDS_S = (0.01, 0.02, 0.025, 0.05, 0.1)

#: Collars where none is given: annotators agree on words about as well as WhisperX's 200 ms, and one frame on
#: phones.
DEFAULT_COLLARS_S = {"words": 0.2, "phones": 0.02}


@dataclass(frozen=True)
class Measure:
    """One line of a report.

    Attributes:
        name: As in ``start_f1@20ms``.
        unit: ``%`` or ``ms``.
        better: ``higher``, ``lower``, or ``zero`` for a bias.
        value: From totals ``(R,)`` each to values ``(R,)``, NaN where undefined.
        base: The total that counts its segments, boundaries or utterances.
    """

    name: str
    unit: Literal["%", "ms"]
    better: Literal["higher", "lower", "zero"]
    value: Callable[[Totals], Floats]
    base: str


def at(name: str, seconds: float) -> str:
    """Name a measure at a collar: ``start_f1@20ms``."""
    return f"{name}@{seconds * 1000:g}ms"


def collar_of(tier: str, collar_s: float | None) -> float:
    """Return the collar in seconds: the one given, or the tier's default.

    Raises:
        ValueError: it is negative, or there is no default for the tier.
    """
    if collar_s is None:
        if tier not in DEFAULT_COLLARS_S:
            raise ValueError(
                f"There is a default collar for {', '.join(DEFAULT_COLLARS_S)}; "
                f"give collar_s, in seconds, for {tier!r}."
            )
        return DEFAULT_COLLARS_S[tier]
    if not collar_s >= 0:
        raise ValueError(f"collar_s expects seconds, 0 or more; got {collar_s}.")
    return collar_s


def measures(
    collar_s: float, tolerance_s: float, error_rates: Sequence[str] = (), peaky: bool = False
) -> list[Measure]:
    """List all measures of a report: the paper's, then the phoneticians'.

    Args:
        collar_s: Collar of the start-boundary F1, in seconds, beside :data:`CURVE_S`.
        tolerance_s: Tolerance of the boundary detection measures, in seconds.
        error_rates: Those of ``per``, ``wer``, ``cer`` that were counted.
        peaky: True where quiet frames were counted.
    """
    out = _starts(collar_s)
    out += [
        Measure("idr", "%", "higher", _of(formulas.idr, "overlap", "duration"), "ref"),
        Measure("idr_mean", "%", "higher", _of(formulas.percent, "overlap_ratio", "timed"), "timed"),
    ]
    out += [_error_rate(name) for name in error_rates]
    if peaky:
        out += _peakiness()
    for end in ("both", "start", "end"):
        out += _boundary_errors(end)
    out += _detection(tolerance_s)
    out += [
        Measure("iou", "%", "higher", _of(formulas.percent, "iou", "spread"), "spread"),
        Measure("matched", "%", "higher", _of(formulas.percent, "counted", "ref"), "ref"),
    ]
    return out


def _of(formula: Callable[..., Floats], *columns: str) -> Callable[[Totals], Floats]:
    """Apply a formula to totals."""
    return lambda t: formula(*(t[column] for column in columns))


def _starts(collar_s: float) -> list[Measure]:
    def three(seconds: float) -> list[Measure]:
        tp = at("start_tp", seconds)
        precision, recall = _of(formulas.percent, tp, "hyp"), _of(formulas.percent, tp, "ref")
        return [
            Measure(at("start_f1", seconds), "%", "higher", _of(formulas.f1, tp, "hyp", "ref"), "ref"),
            Measure(at("start_precision", seconds), "%", "higher", precision, "hyp"),
            Measure(at("start_recall", seconds), "%", "higher", recall, "ref"),
        ]

    curve = [three(seconds)[0] for seconds in CURVE_S if seconds != collar_s]
    return three(collar_s) + curve


def _error_rate(name: str) -> Measure:
    edits = [f"{name}_{kind}" for kind in ("substitutions", "deletions", "insertions")]
    length = f"{name}_length"
    return Measure(
        name, "%", "lower", lambda t: formulas.error_rate(sum(t[e] for e in edits), t[length]), length
    )  # fmt: skip


def _peakiness() -> list[Measure]:
    def paper(name: str, silence: str | None) -> Measure:
        def value(t: Totals) -> Floats:
            silent = t[silence] if silence else 0.0
            return formulas.peakiness_paper(t["quiet_share"], silent, t["quiet_utterances"])

        return Measure(name, "%", "lower", value, "quiet_utterances")

    own = _of(formulas.peakiness, "quiet_speech", "speech_frames")
    return [
        Measure("peaky", "%", "lower", own, "speech_frames"),
        paper("peaky_paper", "silent_share"),
        paper("peaky_raw", None),
    ]


def _boundary_errors(end: str) -> list[Measure]:
    """List the boundary errors of counted segments: of their starts, their ends, or both together.

    Mean, median and 90th percentile of |error|, mean signed error (early is negative), shares within
    thresholds.
    """
    ends = ("start", "end") if end == "both" else (end,)
    prefix = "" if end == "both" else f"{end}_"
    size = len(ends)

    def pooled(column: str) -> Callable[[Totals], Floats]:
        return lambda t: formulas.ratio(sum(t[f"{e}_{column}"] for e in ends), size * t["counted"])

    def share(column: str) -> Callable[[Totals], Floats]:
        return lambda t: 100.0 * pooled(column)(t)

    out = [
        Measure(f"{prefix}error_mean", "ms", "lower", pooled("error"), "counted"),
        Measure(f"{prefix}error_median", "ms", "lower", lambda t: t[f"{end}_median"], "counted"),
        Measure(f"{prefix}error_p90", "ms", "lower", lambda t: t[f"{end}_p90"], "counted"),
        Measure(f"{prefix}bias", "ms", "zero", pooled("bias"), "counted"),
    ]
    for seconds in THRESHOLDS_S:
        name = f"within_{seconds * 1000:g}ms"
        out.append(Measure(f"{prefix}{name}", "%", "higher", share(name), "counted"))
    return out


def _detection(tolerance_s: float) -> list[Measure]:
    """List the measures of boundaries as points, whatever segments they belong to."""
    hits, hyp, ref = "boundary_hits", "hyp_boundaries", "ref_boundaries"
    precision, recall = _of(formulas.percent, hits, hyp), _of(formulas.percent, hits, ref)
    return [
        Measure(at("boundary_precision", tolerance_s), "%", "higher", precision, hyp),
        Measure(at("boundary_recall", tolerance_s), "%", "higher", recall, ref),
        Measure(at("boundary_f1", tolerance_s), "%", "higher", _of(formulas.f1, hits, hyp, ref), ref),
        Measure("over_segmentation", "%", "zero", _of(formulas.over_segmentation, hyp, ref), ref),
        Measure(at("r_value", tolerance_s), "%", "higher", _of(formulas.r_value, hits, hyp, ref), ref),
    ]
