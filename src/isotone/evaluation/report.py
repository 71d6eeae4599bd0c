"""The result of an evaluation: values with confidence intervals, and the statistics behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from isotone.evaluation.error_rates import EditCounts
from isotone.evaluation.measures import Measure, measures
from isotone.evaluation.sample import Sample, bootstrap_weights
from isotone.evaluation.segments import defined
from isotone.evaluation.tracks import Floats
from isotone.registry import nearest

#: Share of the bootstrap values that a confidence interval holds.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Metric:
    """One measured value.

    Attributes:
        name: As in ``start_f1@20ms``.
        value: In ``unit``; ``None`` where undefined (its denominator is zero).
        low, high: 95 % confidence interval, percentile bootstrap over utterances; ``None`` where undefined or
            with fewer than two utterances.
        unit: ``%`` or ``ms``.
        better: ``higher``, ``lower`` or ``zero``.
        count: Number of segments, boundaries, labels or utterances behind it.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    unit: str
    better: str
    count: int


@dataclass(frozen=True)
class Report:
    """The result of an evaluation.

    Attributes:
        tier: Name of the tier that was compared.
        strict: True where labels had to agree.
        collar_s: Collar of the start-boundary F1, in seconds.
        tolerance_s: Tolerance of the boundary detection measures, in seconds.
        ids: The utterances.
        metrics: The measures by name.
        edits: Edit counts behind ``per``, ``wer`` and ``cer``.
        classes: Boundary errors by class of phone, where classes were given.
        transitions: Boundary errors by type of boundary, where classes were given.
        seed, resamples: Of the bootstrap.
        sample: The contribution of each utterance.
    """

    tier: str
    strict: bool
    collar_s: float
    tolerance_s: float
    ids: tuple[str, ...]
    metrics: Mapping[str, Metric]
    edits: Mapping[str, EditCounts]
    classes: tuple[dict[str, Any], ...]
    transitions: tuple[dict[str, Any], ...]
    seed: int
    resamples: int
    sample: Sample = field(repr=False, compare=False)

    def __getitem__(self, name: str) -> Metric:
        """Return the metric of that name.

        Raises:
            KeyError: no such metric; the message lists the metrics there are.
        """
        if name not in self.metrics:
            known = list(self.metrics)
            raise KeyError(
                f"No metric {name!r} in this report.{nearest(name, known)} It has: {', '.join(known)}."
            )
        return self.metrics[name]

    def measures(self) -> list[Measure]:
        """Return the definitions behind :attr:`metrics`, in order."""
        return measures(self.collar_s, self.tolerance_s, tuple(self.edits), "quiet_share" in self.sample.sums)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per metric: ``metric``, ``value``, ``low``, ``high``, ``unit``, ``better``, ``count``."""
        return [{"metric": row.pop("name"), **row} for row in map(asdict, self.metrics.values())]

    def to_dict(self, per_utterance: bool = True) -> dict[str, Any]:
        """Return the report as plain values; undefined ones are ``None``.

        Args:
            per_utterance: Add the contribution of each utterance (counts, and sums in ms).
        """
        out: dict[str, Any] = {
            "tier": self.tier,
            "strict": self.strict,
            "collar_s": self.collar_s,
            "tolerance_s": self.tolerance_s,
            "utterances": len(self.ids),
            "bootstrap": {"resamples": self.resamples, "seed": self.seed, "confidence": CONFIDENCE},
            "metrics": self.rows(),
            "edits": {name: {**asdict(counts), "rate": counts.rate} for name, counts in self.edits.items()},
            "classes": list(self.classes),
            "transitions": list(self.transitions),
        }
        if per_utterance:
            columns = {name: np.round(column, 6).tolist() for name, column in self.sample.sums.items()}
            out["per_utterance"] = {"id": list(self.ids), **columns}
        return out

    def to_json(self, per_utterance: bool = True) -> str:
        """Write the report as JSON text: see :meth:`to_dict`."""
        return json.dumps(self.to_dict(per_utterance), indent=1, ensure_ascii=False, allow_nan=False)


def estimate(sample: Sample, requested: list[Measure], resamples: int, seed: int) -> dict[str, Metric]:
    """Compute values and bootstrap intervals of measures.

    Args:
        sample: The contribution of each utterance.
        requested: The measures.
        resamples: Number of resamples of the utterances; 0 for no intervals.
        seed: Of the resampling.
    """
    whole = sample.totals(np.ones((1, len(sample)), dtype=np.int64))
    drawn: dict[str, Floats] = {}
    if len(sample) > 1 and resamples > 0:
        blocks = [sample.totals(w) for w in bootstrap_weights(len(sample), resamples, seed)]
        drawn = {name: np.concatenate([b[name] for b in blocks]) for name in whole}
    out = {}
    for measure in requested:
        value = defined(measure.value(whole)[0])
        low, high = interval(measure.value(drawn)) if drawn and value is not None else (None, None)
        count = int(whole[measure.base][0])
        out[measure.name] = Metric(measure.name, value, low, high, measure.unit, measure.better, count)
    return out


def interval(values: Floats) -> tuple[float | None, float | None]:
    """Return the percentile interval of the defined bootstrap values; ``None`` where none is defined."""
    values = values[~np.isnan(values)]
    if not len(values):
        return None, None
    low, high = np.quantile(values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
