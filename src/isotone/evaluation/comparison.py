"""Paired tests of two systems on the same utterances: their differences, and how likely chance explains them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from isotone.evaluation.measures import Measure
from isotone.evaluation.report import CONFIDENCE, Report, interval
from isotone.evaluation.sample import Errors, Sample, bootstrap_weights, swaps
from isotone.evaluation.segments import defined
from isotone.evaluation.tracks import Floats, Ints

# Values of resamples that differ by no more than this are equal: sums in another order.
_SAME = 1e-9


@dataclass(frozen=True)
class Difference:
    """One metric of two systems.

    Attributes:
        name: As in ``start_f1@20ms``.
        a, b: The two values; ``None`` where undefined.
        difference: ``a - b``.
        low, high: 95 % confidence interval of the difference, paired percentile bootstrap.
        p_bootstrap: Two-sided p of "no difference", from the share of resampled differences on the other side
            of 0.
        p_permutation: Two-sided p of "it does not matter which system an utterance's output came from".
        unit, better: As in :class:`~isotone.evaluation.report.Metric`.
    """

    name: str
    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    p_bootstrap: float | None
    p_permutation: float | None
    unit: str
    better: str


@dataclass(frozen=True)
class Comparison:
    """The differences of system a from system b.

    Attributes:
        utterances: Number of utterances that both were scored on.
        differences: By metric name.
        seed, resamples: Of the bootstrap and the permutations.
    """

    utterances: int
    differences: dict[str, Difference]
    seed: int
    resamples: int

    def __getitem__(self, name: str) -> Difference:
        """Return the difference in the metric of that name."""
        if name not in self.differences:
            raise KeyError(f"No metric {name!r} was compared; these were: {', '.join(self.differences)}.")
        return self.differences[name]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per metric, for tables."""
        return [{"metric": row.pop("name"), **row} for row in map(asdict, self.differences.values())]

    def to_json(self) -> str:
        """Write the comparison as JSON text; undefined values are ``null``."""
        settings = {"resamples": self.resamples, "seed": self.seed, "confidence": CONFIDENCE}
        out = {"utterances": self.utterances, "resampling": settings, "differences": self.rows()}
        return json.dumps(out, indent=1, ensure_ascii=False, allow_nan=False)


def compare(a: Report, b: Report, resamples: int = 1000, seed: int = 0) -> Comparison:
    """Test whether two systems differ, metric by metric.

    Both tests are paired: they resample utterances, and each utterance brings the outputs of both systems.

    - *Bootstrap*: utterances are drawn with replacement, a - b is computed on each draw; its 2.5 and 97.5
      percentiles are the interval, and p = 2 min(share of draws <= 0, share >= 0), with one added to each
      count.
    - *Sign-flip permutation*: the two systems' outputs are exchanged, or not, utterance by utterance, by a
      fair coin (for a mean over utterances, that flips the sign of each difference); p = the share of
      exchanges whose |a - b| is no smaller than the one observed, the observed one among them.

    There is no correction for the number of metrics.

    Args:
        a, b: Reports on the same utterances and references with the same settings, in any order.
        resamples: Of each test.
        seed: Of both.

    Raises:
        ValueError: utterances, references or settings differ.
    """
    shared = _shared_measures(a, b)
    number = {id: u for u, id in enumerate(b.ids)}
    second = _reorder(b.sample, np.array([number[id] for id in a.ids]))
    _check_references(a.sample, second)
    whole = np.ones((1, len(a.ids)), dtype=np.int64)
    observed_a, observed_b = a.sample.totals(whole), second.totals(whole)
    both = a.sample.join(second)
    boot = _Draws(shared)
    for weights in bootstrap_weights(len(a.ids), resamples, seed):
        boot.add(a.sample.totals(weights), second.totals(weights))
    flips = _Draws(shared)
    for coins in swaps(len(a.ids), resamples, seed):
        flips.add(both.totals(np.hstack([1 - coins, coins])), both.totals(np.hstack([coins, 1 - coins])))
    differences = {}
    for m in shared:
        value_a, value_b = defined(m.value(observed_a)[0]), defined(m.value(observed_b)[0])
        delta = low = high = p_bootstrap = p_permutation = None
        if value_a is not None and value_b is not None:
            delta = value_a - value_b
            p_permutation = _p_flips(flips.values(m.name), delta)
            if len(a.ids) > 1:
                low, high = interval(boot.values(m.name))
                p_bootstrap = _p_bootstrap(boot.values(m.name))
        differences[m.name] = Difference(
            m.name, value_a, value_b, delta, low, high, p_bootstrap, p_permutation, m.unit, m.better
        )
    return Comparison(len(a.ids), differences, seed, resamples)


class _Draws:
    """Differences a - b of every measure over resamples."""

    def __init__(self, measures: list[Measure]) -> None:
        self.measures = measures
        self.found: dict[str, list[Floats]] = {m.name: [] for m in measures}

    def add(self, a: dict[str, Floats], b: dict[str, Floats]) -> None:
        for measure in self.measures:
            self.found[measure.name].append(measure.value(a) - measure.value(b))

    def values(self, name: str) -> Floats:
        """Return the differences in a measure, where they are defined."""
        values = np.concatenate(self.found[name]) if self.found[name] else np.zeros(0)
        return values[~np.isnan(values)]


def _p_bootstrap(drawn: Floats) -> float | None:
    if not len(drawn):
        return None
    side = min((drawn <= _SAME).sum(), (drawn >= -_SAME).sum())
    return min(1.0, 2.0 * (1 + int(side)) / (1 + len(drawn)))


def _p_flips(flipped: Floats, delta: float) -> float | None:
    if not len(flipped):
        return None
    return (1 + int((np.abs(flipped) >= abs(delta) - _SAME).sum())) / (1 + len(flipped))


def _shared_measures(a: Report, b: Report) -> list[Measure]:
    for name in ("tier", "strict", "collar_s", "tolerance_s"):
        one, other = getattr(a, name), getattr(b, name)
        if one != other:
            raise ValueError(f"compare expects reports with the same {name}; got {one!r} and {other!r}.")
    only_a, only_b = sorted(set(a.ids) - set(b.ids)), sorted(set(b.ids) - set(a.ids))
    if only_a or only_b:
        raise ValueError(
            f"compare expects the same utterances; {len(only_a)} are only in the first report "
            f"({', '.join(only_a[:3])}) and {len(only_b)} only in the second ({', '.join(only_b[:3])}). "
            "Score both systems on the utterances they share."
        )
    return [m for m in a.measures() if m.name in b.metrics]


def _reorder(sample: Sample, order: Ints) -> Sample:
    """Put the utterances into another order: ``order[u]`` is the old number of utterance u."""
    new = np.argsort(order)
    sums = {name: column[order] for name, column in sample.sums.items()}
    errors = {name: Errors(e.values, new[e.utterance]) for name, e in sample.errors.items()}
    return Sample(sums, errors)


def _check_references(a: Sample, b: Sample) -> None:
    for column in ("ref", "duration"):
        if not np.allclose(a.sums[column], b.sums[column], rtol=0, atol=1e-3):
            u = int(np.argmax(np.abs(a.sums[column] - b.sums[column])))
            raise ValueError(
                f"compare expects the same references; those of utterance {u + 1} differ in {column} "
                f"({a.sums[column][u]:g} and {b.sums[column][u]:g})."
            )
