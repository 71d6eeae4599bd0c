"""Bootstrap and permutation tests against scoring the resamples themselves, NumPy and SciPy."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import Alignment, Segment, Tier, tier_from_spans
from isotone.evaluation import QuietFrames, Report, compare, score
from isotone.evaluation.report import interval
from isotone.evaluation.sample import Errors, Sample, bootstrap_weights

Pair = tuple[Alignment, Alignment]


def make_corpus(seed: int, utterances: int, noise_s: float = 0.01, wrong: float = 0.1) -> list[Pair]:
    """Random references (fixed) and predictions with noisy boundaries and wrong labels (by seed)."""
    fixed, rng = np.random.default_rng(17), np.random.default_rng(seed)
    pairs = []
    for u in range(utterances):
        n = int(fixed.integers(3, 9))
        edges = np.cumsum(fixed.uniform(0.04, 0.15, n + 1))
        labels = fixed.choice(list("abcd"), n)
        duration = float(edges[-1]) + 0.2
        moved = np.sort(edges + rng.normal(0, noise_s, n + 1))
        heard = np.where(rng.random(n) < wrong, rng.choice(list("abcde"), n), labels)
        ref = Tier(
            "phones", tuple(Segment(str(x), float(s), float(e)) for x, s, e in zip(labels, edges, edges[1:]))
        )
        spans = [(str(x), float(s), float(e), None) for x, s, e in zip(heard, moved, moved[1:])]
        hyp = tier_from_spans("phones", spans, duration)
        pairs.append((Alignment(f"u{u}", duration, (hyp,)), Alignment(f"u{u}", duration, (ref,))))
    return pairs


def quiet(seed: int, utterances: int) -> dict[str, QuietFrames]:
    rng = np.random.default_rng(seed)
    return {f"u{u}": QuietFrames(np.arange(100) < rng.integers(60, 100)) for u in range(utterances)}


def test_totals_of_a_resample_equal_scoring_it() -> None:
    pairs, counts = make_corpus(0, 5), quiet(0, 5)
    report = score(pairs, quiet_frames=counts, resamples=0)
    weights = np.array([[2, 0, 1, 3, 0]])
    drawn, drawn_counts = [], {}
    for (hyp, ref), times in zip(pairs, weights[0]):
        for k in range(times):
            drawn.append((hyp, replace(ref, id=f"{ref.id}-{k}")))
            drawn_counts[f"{ref.id}-{k}"] = counts[ref.id]
    direct = score(drawn, quiet_frames=drawn_counts, resamples=0)
    totals = report.sample.totals(weights)
    found = {m.name: float(m.value(totals)[0]) for m in report.measures()}
    assert found == pytest.approx({name: metric.value for name, metric in direct.metrics.items()})


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 1.0, 1.5, 4.0, 10.0])), max_size=25),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
def test_quantiles_of_a_resample_equal_numpy(errors: list[tuple[int, float]], weights: list[int]) -> None:
    utterance = np.array([u for u, _ in errors], dtype=np.int64)
    values = np.array([v for _, v in errors])
    sample = Sample({"n": np.ones(4)}, {"both": Errors.sort(values, utterance)})
    totals = sample.totals(np.array([weights]))
    drawn = np.repeat(values, np.array(weights)[utterance])
    for name, q in (("median", 0.5), ("p90", 0.9)):
        found = totals[f"both_{name}"][0]
        if len(drawn):
            assert found == pytest.approx(np.quantile(drawn, q))
        else:
            assert np.isnan(found)


def test_bootstrap_draws_every_utterance_once_on_average() -> None:
    weights = np.concatenate(list(bootstrap_weights(50, 2000, 0)))
    assert weights.shape == (2000, 50)
    assert (weights.sum(1) == 50).all()
    # multinomial: mean 1, variance 1 - 1/50; five standard errors of either
    assert np.abs(weights.mean(0) - 1).max() < 5 * np.sqrt(0.98 / 2000)
    assert np.abs(weights.var(0) - 0.98).max() < 5 * np.sqrt(3 / 2000)


def test_interval_agrees_with_scipy() -> None:
    counts = quiet(3, 60)
    report = score(make_corpus(0, 60), quiet_frames=counts, resamples=4000)
    shares = np.array([100 * row.quiet.mean() for row in counts.values()])
    theirs = scipy.stats.bootstrap(
        (shares,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    metric = report["peaky_raw"]
    width = theirs.high - theirs.low
    # 4,000 resamples place each end to 1.5 % of the width; an interval of 90 % would be 8 % off
    assert metric.low == pytest.approx(theirs.low, abs=0.04 * width)
    assert metric.high == pytest.approx(theirs.high, abs=0.04 * width)


def test_an_interval_leaves_out_a_fortieth_at_either_end() -> None:
    values = np.random.default_rng(0).permutation(np.arange(1001.0))
    assert interval(values) == pytest.approx((25, 975))
    assert interval(np.append(values, np.nan)) == pytest.approx((25, 975))  # of those that are defined
    assert interval(np.full(3, np.nan)) == (None, None)


def test_the_interval_of_a_difference_is_that_of_paired_resamples() -> None:
    a, b = report_of(0, 20), report_of(1, 20)
    drawn = np.concatenate(list(bootstrap_weights(20, 300, 4)))
    means = [100 * drawn @ r.sample.sums["quiet_share"] / 20 for r in (a, b)]
    found = compare(a, b, resamples=300, seed=4)["peaky_raw"]
    assert (found.low, found.high) == pytest.approx(np.quantile(means[0] - means[1], [0.025, 0.975]))


def test_intervals_follow_the_seed_and_need_two_utterances() -> None:
    pairs = make_corpus(0, 12)
    assert score(pairs, seed=1).rows() == score(pairs, seed=1).rows()
    assert score(pairs, seed=1)["idr"].low != score(pairs, seed=2)["idr"].low
    assert score(pairs[:1])["idr"].low is None
    assert score(pairs[:2])["idr"].low is not None
    assert score(pairs, resamples=0)["idr"].low is None
    for metric in score(pairs).metrics.values():
        assert metric.low is not None
        assert metric.high is not None
        assert metric.low <= metric.high


def report_of(
    seed: int, utterances: int = 30, noise_s: float = 0.01, quiet_seed: int | None = None
) -> Report:
    counts = quiet(seed if quiet_seed is None else quiet_seed, utterances)
    return score(make_corpus(seed, utterances, noise_s), quiet_frames=counts, resamples=0)


def test_a_system_does_not_differ_from_itself() -> None:
    a = report_of(0)
    for d in compare(a, a, resamples=200).differences.values():
        assert (d.difference, d.low, d.high, d.p_bootstrap, d.p_permutation) == (0, 0, 0, 1, 1), d


def test_a_worse_system_is_told_apart() -> None:
    good, bad = report_of(0, noise_s=0.005), report_of(1, noise_s=0.02)
    forth, back = compare(good, bad), compare(bad, good)
    for name in ("error_mean", "error_median", "error_p90", "idr", "within_20ms", "iou"):
        d = forth[name]
        assert d.p_bootstrap is not None
        assert d.p_permutation is not None
        assert d.low is not None
        assert d.high is not None
        assert max(d.p_bootstrap, d.p_permutation) < 0.01, name
        assert d.low <= d.difference <= d.high  # type: ignore[operator]
        assert (d.low > 0) == (d.better == "higher")
        mirrored = back[name]
        assert mirrored.difference == pytest.approx(-d.difference)  # type: ignore[operator]
        assert (mirrored.low, mirrored.high) == pytest.approx((-d.high, -d.low))
        assert mirrored.p_permutation == d.p_permutation


def test_permutation_test_agrees_with_scipy_on_a_mean() -> None:
    # 10 utterances: SciPy goes through all 1,024 exchanges
    a, b = report_of(0, 10, quiet_seed=5), report_of(0, 10, quiet_seed=8)
    x, y = (r.sample.sums["quiet_share"] for r in (a, b))
    exact = scipy.stats.permutation_test(
        (x, y), lambda p, q: np.mean(p - q), permutation_type="samples", n_resamples=np.inf
    )
    found = compare(a, b, resamples=4000)["peaky_raw"].p_permutation
    assert 0.02 < exact.pvalue < 0.98  # or this would test nothing
    assert found == pytest.approx(exact.pvalue, abs=0.03)


@pytest.mark.parametrize("name", ["idr", "error_median", "start_f1@20ms"])
def test_permutation_exchanges_whole_utterances(name: str) -> None:
    # 3 utterances: all 8 exchanges scored one by one
    pairs_a, pairs_b = make_corpus(0, 3, 0.005), make_corpus(4, 3, 0.03)
    a, b = score(pairs_a, resamples=0), score(pairs_b, resamples=0)
    observed = a[name].value - b[name].value  # type: ignore[operator]
    reached = 0
    for coins in range(8):
        flip = [bool(coins >> u & 1) for u in range(3)]
        one = score([q if f else p for p, q, f in zip(pairs_a, pairs_b, flip)], resamples=0)[name].value
        two = score([p if f else q for p, q, f in zip(pairs_a, pairs_b, flip)], resamples=0)[name].value
        reached += abs(one - two) >= abs(observed) - 1e-9  # type: ignore[operator]
    assert compare(a, b, resamples=4000)[name].p_permutation == pytest.approx(reached / 8, abs=0.03)


@pytest.mark.parametrize("resamples", [1, 99, 400])
def test_no_p_is_below_what_so_many_resamples_can_show(resamples: int) -> None:
    """One system worse on each of 40 utterances: no exchange reaches the difference, no resample turns it around."""
    pairs = make_corpus(0, 40)
    a, b = (
        score(
            pairs,
            quiet_frames={f"u{u}": QuietFrames(np.arange(100) < u + less) for u in range(40)},
            resamples=0,
        )
        for less in (9, 0)
    )
    found = compare(a, b, resamples=resamples)["peaky_raw"]
    assert found.p_permutation == pytest.approx(1 / (1 + resamples))
    assert found.p_bootstrap == pytest.approx(min(1, 2 / (1 + resamples)))


def test_p_of_the_bootstrap_counts_the_draws_on_the_other_side() -> None:
    a, b = report_of(0, 12, quiet_seed=5), report_of(0, 12, quiet_seed=9)
    drawn = np.concatenate(list(bootstrap_weights(12, 400, 2)))
    delta = drawn @ (a.sample.sums["quiet_share"] - b.sample.sums["quiet_share"])
    side = min((delta < 1e-9).sum(), (delta > -1e-9).sum())
    assert 10 < side < 190  # or this would test nothing
    assert compare(a, b, 400, 2)["peaky_raw"].p_bootstrap == pytest.approx(2 * (1 + side) / 401)


def test_two_samples_as_one_keep_their_errors_apart() -> None:
    a, b = report_of(0, 4).sample, report_of(1, 4, noise_s=0.04).sample
    both = a.join(b)
    only_b = np.array([[0, 0, 0, 0, 1, 2, 0, 1]])
    ours, theirs = both.totals(only_b), b.totals(only_b[:, 4:])
    assert {k: v[0] for k, v in ours.items()} == pytest.approx({k: v[0] for k, v in theirs.items()})


def test_equal_systems_are_rarely_told_apart() -> None:
    # two systems with noise of one size: p below 0.1 in about a tenth of 40 comparisons
    found = {"p_bootstrap": 0, "p_permutation": 0}
    for trial in range(40):
        d = compare(report_of(2 * trial, 15), report_of(2 * trial + 1, 15), resamples=200)["error_mean"]
        for name in found:
            found[name] += getattr(d, name) < 0.1
    assert all(0 < n <= 12 for n in found.values()), found


def test_order_of_utterances_does_not_matter() -> None:
    pairs = make_corpus(3, 12, 0.03)
    a, b = report_of(0, 12), score(pairs, quiet_frames=quiet(3, 12), resamples=0)
    ours = compare(a, b, resamples=100).rows()
    for order in (pairs[::-1], pairs[5:] + pairs[:5]):
        turned = score(order, quiet_frames=quiet(3, 12), resamples=0)
        for one, two in zip(ours, compare(a, turned, resamples=100).rows()):
            assert one == pytest.approx(two, nan_ok=True), one["metric"]


def test_reports_must_be_comparable() -> None:
    pairs = make_corpus(0, 4)
    a = score(pairs, resamples=0)
    with pytest.raises(ValueError, match=r"1 are only in the first report \(u3\)"):
        compare(a, score(pairs[:3], resamples=0))
    with pytest.raises(ValueError, match=r"same strict; got True and False"):
        compare(a, score(pairs, strict=False, resamples=0))
    other = make_corpus(0, 5)[4][1]
    with pytest.raises(ValueError, match=r"same references; those of utterance 1 differ"):
        compare(a, score([(pairs[0][0], replace(other, id="u0")), *pairs[1:]], resamples=0))
    hyp, ref = pairs[2]
    first = ref.tiers[0].segments[0]
    longer = Tier("phones", (replace(first, start=first.start / 2), *ref.tiers[0].segments[1:]))
    with pytest.raises(ValueError, match=r"same references; those of utterance 3 differ in duration"):
        compare(a, score([*pairs[:2], (hyp, replace(ref, tiers=(longer,))), *pairs[3:]], resamples=0))


def test_comparison_as_json() -> None:
    comparison = compare(report_of(0, 6), report_of(1, 6), resamples=50, seed=3)
    out = json.loads(comparison.to_json())
    assert out["differences"] == comparison.rows()
    assert out["resampling"] == {"resamples": 50, "seed": 3, "confidence": 0.95}
    single = compare(report_of(0, 1), report_of(1, 1), resamples=50)["error_mean"]
    assert (single.low, single.p_bootstrap) == (None, None)  # one utterance says nothing of others
    with pytest.raises(KeyError, match="these were: start_f1@20ms"):
        comparison["f1"]
