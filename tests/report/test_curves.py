"""Curves, errors and frontier: figures show the given numbers."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.transforms import Bbox

from isotone.report import collar_figure, error_figure, frontier_figure, training_figure
from isotone.report.frontier import frontier
from isotone.report.style import render

COLLARS = (0.01, 0.02, 0.05, 0.2)


def _legend(figure):
    return [t.get_text() for t in figure.legends[0].get_texts()]


def test_collar_curves_are_drawn_in_milliseconds():
    curves = {"CTC": {c: 300 * c for c in reversed(COLLARS)}, "_odd $": {c: 400 * c for c in COLLARS}}
    bands = {"CTC": {c: (299 * c, 301 * c) for c in COLLARS}}
    figure = collar_figure(curves, bands, collars_s=[0.02], title="t")
    (axes,) = figure.axes
    first, second = axes.lines[:2]
    np.testing.assert_allclose(first.get_xdata(), [10, 20, 50, 200])
    np.testing.assert_allclose(first.get_ydata(), [3, 6, 15, 60])
    np.testing.assert_allclose(second.get_ydata(), [4, 8, 20, 80])
    (band,) = [c for c in axes.collections if isinstance(c, PolyCollection)]
    vertices = band.get_paths()[0].vertices
    np.testing.assert_allclose(sorted(set(vertices[:, 0].round(9))), [10, 20, 50, 200])
    assert vertices[:, 1].max() == pytest.approx(60.2)
    assert vertices[:, 1].min() == pytest.approx(2.99)
    assert _legend(figure) == ["CTC", "_odd $"]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["10", "20", "50", "200"]
    assert first.get_color() != second.get_color()
    assert first.get_marker() != second.get_marker()


@pytest.mark.parametrize("curves", [{}, {"a": {}}, {"a": {0.0: 1.0, 0.1: 2.0}}, {"a": {0.02: 50.0}}])
def test_collar_figure_of_little(curves):
    figure = collar_figure(curves)
    assert render(figure, "png", 50).startswith(b"\x89PNG")
    assert bool(figure.axes[0].texts) == (not any(curves.values()))  # a note that there is nothing


def test_training_has_a_panel_a_term_and_a_line_a_system():
    history = {
        "CTC": [{"step": s, "loss": 2.0 - s, "ctc": 1.0, "note": "warm-up", "nothing": None} for s in (2, 1)],
        "joint": [{"step": 1, "loss": float("nan")}, {"step": 2, "loss": 5.0, "ottc": np.float32(3)}],
    }
    figure = training_figure(history, marks={"frozen": 1.5})
    panels = {a.get_title(loc="left"): a for a in figure.axes}
    assert list(panels) == ["loss", "ctc", "ottc"]
    ctc, joint, mark = panels["loss"].lines
    np.testing.assert_allclose(ctc.get_xydata(), [[1, 1], [2, 0]])
    np.testing.assert_allclose(joint.get_xydata(), [[2, 5]])
    assert list(mark.get_xdata()) == [1.5, 1.5]
    assert [t.get_text() for t in panels["loss"].texts] == ["frozen"]
    assert _legend(figure) == ["CTC", "joint"]
    one = training_figure(history, terms=["ottc"])
    assert [a.get_title(loc="left") for a in one.axes] == ["ottc"]


def test_long_curves_are_smoothed_without_bias():
    values = np.random.default_rng(0).normal(1.0, 0.5, 1000)
    figure = training_figure({"CTC": [{"step": i, "loss": v} for i, v in enumerate(values)]})
    raw, smooth = figure.axes[0].lines
    np.testing.assert_allclose(raw.get_ydata(), values)
    expected = [values[max(0, i - 20) : i + 21].mean() for i in range(1000)]
    np.testing.assert_allclose(smooth.get_ydata(), expected)
    assert raw.get_alpha() < 0.5


@pytest.mark.parametrize("history", [{}, {"a": []}, {"a": [{"step": 1}]}])
def test_nothing_logged_is_said(history):
    figure = training_figure(history)
    assert [t.get_text() for t in figure.axes[0].texts] == ["nothing was logged"]


def test_errors_show_density_share_and_median():
    rng = np.random.default_rng(1)
    errors = {"CTC": rng.normal(0.01, 0.03, 501), "OTTC": rng.normal(-0.002, 0.01, 400), "none": np.array([])}
    figure = error_figure(errors, limit_s=0.05)
    density, share = figure.axes
    for name, stairs in zip(errors, density.patches):
        values, edges, _ = stairs.get_data()
        inside = np.abs(errors[name]) <= 0.05
        assert (values * np.diff(edges)).sum() == pytest.approx(100 * inside.mean())
    for name, line in zip(errors, share.lines):
        x, y = line.get_data()
        expected = [100 * (1000 * np.abs(errors[name]) <= t).mean() for t in x]
        np.testing.assert_allclose(y, expected)
        assert (x[0], x[-1]) == (0, 50)
    outside = 100 * (np.abs(errors["CTC"]) > 0.05).mean()
    median = f"{1000 * np.median(errors['CTC']):+.1f}"
    assert _legend(figure)[0] == f"CTC: median {median} ms, {outside:.1f} % beyond 50 ms (n = 501)"
    assert "median \u2212" in _legend(figure)[1]
    assert _legend(figure)[2] == "none: no boundaries"


def test_errors_are_checked():
    with pytest.raises(ValueError, match="'CTC' hold NaN"):
        error_figure({"CTC": np.array([0.0, np.nan])})
    with pytest.raises(ValueError, match="limit_s > 0"):
        error_figure({}, limit_s=0.0)
    assert render(error_figure({}), "png", 50).startswith(b"\x89PNG")


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=8))
@settings(deadline=None, max_examples=100)
def test_the_frontier_holds_what_no_other_beats(values):
    points = {str(i): (float(x), float(y)) for i, (x, y) in enumerate(values)}
    best = frontier(points)

    def beaten(name):
        x, y = points[name]
        others = (p for n, p in points.items() if n != name)
        return any(a <= x and b >= y and (a, b) != (x, y) for a, b in others)

    assert {points[n] for n in best} == {points[n] for n in points if not beaten(n)}
    assert [points[n] for n in best] == sorted(points[n] for n in best)


def test_frontier_names_every_point_without_overlap():
    points = {
        "CTC": (8.4, 27.0), "OTTC": (8.8, 76.7), "joint": (8.4, 74.1), "uniform": (9.9, 61.0), "path": (14.1, 70.0),
        "oracle": (8.5, 75.0), "broken": (float("nan"), 3.0),
    }  # fmt: skip
    figure = frontier_figure(points, title="t")
    (axes,) = figure.axes
    FigureCanvasAgg(figure).draw()
    names = {t.get_text(): t.get_window_extent() for t in axes.texts}
    assert list(names) == ["CTC", "OTTC", "joint", "uniform", "path", "oracle"]
    assert [(a, b) for a, b in combinations(names, 2) if names[a].overlaps(names[b])] == []
    room = axes.get_window_extent()
    assert all(room.x0 <= b.x0 and b.x1 <= room.x1 for b in names.values())
    drawn = [tuple(line.get_xydata()[0]) for line in axes.lines if line.get_marker() not in ("None", "")]
    assert drawn == [p for n, p in points.items() if n != "broken"]


@pytest.mark.parametrize("points", [{}, {"a": (1.0, 2.0)}, {"a": (float("nan"), 2.0)}])
def test_frontier_of_little(points):
    assert render(frontier_figure(points), "png", 50).startswith(b"\x89PNG")


def test_bars_reach_as_far_as_the_spread():
    points = {"CTC": (8.0, 27.0), "joint": (8.5, 74.0), "one run": (9.0, 50.0)}
    figure = frontier_figure(points, {"CTC": (0.5, 2.0), "joint": (0.25, 1.0), "one run": (0.0, 0.0)})
    ends = [segment for bars in figure.axes[0].collections for segment in bars.get_segments()]
    expected = [
        [[7.5, 27], [8.5, 27]], [[8, 25], [8, 29]], [[8.25, 74], [8.75, 74]], [[8.5, 73], [8.5, 75]],
    ]  # fmt: skip
    np.testing.assert_allclose(ends, expected)
    figure.draw_without_rendering()
    place = figure.axes[0].transData.transform
    for text in figure.axes[0].texts:  # no name is struck through
        box = text.get_window_extent()
        for start, end in (place(segment) for segment in expected):
            assert not box.overlaps(Bbox([start, end]))
