"""OT weights and the evolution of an alignment."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import LineCollection, PathCollection

from isotone.alignment import Segment, Tier
from isotone.report import WeightSnapshot, evolution_figure, weights_figure
from isotone.report.style import render
from isotone.report.weights import Group, groups

HOP = 0.02
ALPHA = np.array([0.05, 0.15, 0.1, 0.2, 0.1, 0.1, 0.25, 0.05])
TOKEN = np.array([0, 0, 0, 1, 1, -1, 2, 2])
REFERENCE = Tier("phones", (Segment("s", 0.0, 0.06), Segment("aa", 0.06, 0.12), Segment("t", 0.12, 0.16)))


@given(st.lists(st.integers(-1, 3), max_size=30))
@settings(deadline=None, max_examples=80)
def test_groups_are_the_runs(tokens):
    expected, at = [], 0
    for token, run in groupby(tokens):
        size = len(list(run))
        if token >= 0:
            expected.append(Group(token, at, at + size))
        at += size
    assert groups(np.array(tokens, dtype=int)) == expected


def _bullets(axes):
    return [c for c in axes.collections if isinstance(c, PathCollection)]


def test_bullets_have_the_area_of_their_weight():
    snapshots = [WeightSnapshot(0, np.full(8, 1 / 8), TOKEN), WeightSnapshot(500, ALPHA, TOKEN)]
    figure = weights_figure(snapshots, ["s", "aa", "t"], HOP, title="$w$")
    assert len(figure.axes) == 2
    uniform, trained = (_bullets(a)[0] for a in figure.axes)
    held = TOKEN >= 0
    scale = uniform.get_sizes()[0] * 8  # points squared per unit of weight, the same in both rows
    np.testing.assert_allclose(trained.get_sizes(), scale * ALPHA[held])
    np.testing.assert_allclose(trained.get_offsets()[:, 0], (np.flatnonzero(held) + 0.5) * HOP)
    hollow = _bullets(figure.axes[1])[1]
    np.testing.assert_allclose(hollow.get_offsets(), [[5.5 * HOP, 0]])
    assert len(hollow.get_facecolors()) == 0
    assert [a.get_ylabel() for a in figure.axes] == ["step\n0", "step\n500"]


def test_groups_alternate_in_colour_under_their_labels():
    figure = weights_figure([WeightSnapshot(7, ALPHA, TOKEN)], ["s", "aa", "t"], HOP)
    (axes,) = figure.axes
    colours = [tuple(c) for c in _bullets(axes)[0].get_facecolors()]
    assert colours[0] == colours[1] == colours[2] != colours[3]
    assert colours[3] == colours[4] != colours[5]
    assert len(set(colours)) == 2
    brackets = next(c for c in axes.collections if isinstance(c, LineCollection)).get_segments()
    spans = [[s[0][0], s[1][0]] for s in brackets]
    np.testing.assert_allclose(spans, [[0, 0.06], [0.06, 0.10], [0.12, 0.16]])
    labels = {t.get_text(): t.get_position()[0] for t in axes.texts if t.get_text() in ("s", "aa", "t")}
    assert list(labels) == ["s", "aa", "t"]
    centres = (np.arange(8) + 0.5) * HOP
    assert labels["t"] == pytest.approx(np.average(centres[6:], weights=ALPHA[6:]))


def test_a_window_and_a_reference():
    figure = weights_figure(
        [WeightSnapshot(7, ALPHA, TOKEN)] * 3,
        ["s", "aa", "t"],
        HOP,
        reference=REFERENCE,
        start_s=0.055,
        end_s=0.125,
    )
    for axes in figure.axes:
        assert axes.get_xlim() == (0.055, 0.125)
        lines = [c for c in axes.collections if isinstance(c, LineCollection)][-1].get_segments()
        assert [s[0][0] for s in lines] == [0.06, 0.12]
    centres = [x for x, _ in _bullets(figure.axes[0])[0].get_offsets()]
    np.testing.assert_allclose(centres, [0.07, 0.09])  # of frames 3 to 5, of which 5 is of no target
    assert render(figure, "png", 50).startswith(b"\x89PNG")


def test_snapshots_are_checked():
    good = WeightSnapshot(0, ALPHA, TOKEN)
    with pytest.raises(ValueError, match=r"shape \(T,\); got \(8,\), \(3,\)"):
        WeightSnapshot(0, ALPHA, TOKEN[:3])
    with pytest.raises(ValueError, match="step 5 has others"):
        WeightSnapshot(5, -ALPHA, TOKEN)
    with pytest.raises(ValueError, match=r"got lengths \[3, 8\]"):
        weights_figure([good, WeightSnapshot(1, ALPHA[:3], TOKEN[:3])], ["s", "aa", "t"], HOP)
    with pytest.raises(ValueError, match=r"got lengths \[\]"):
        weights_figure([], ["s"], HOP)
    with pytest.raises(ValueError, match="got 2 and token number 2"):
        weights_figure([good], ["s", "aa"], HOP)


def test_evolution_has_a_pixel_a_frame_and_white_blanks():
    tokens = np.array([[0, 0, 1, -1, 2], [0, 1, 1, -1, 2], [0, 1, 1, 2, 2]])
    figure = evolution_figure([1, 2, 3], tokens, HOP, offset_s=0.01, reference=REFERENCE, title="e")
    main, moved = figure.axes
    (image,) = main.images
    np.testing.assert_array_equal(image.get_array(), [[1, 1, 2, 0, 1], [1, 2, 2, 0, 1], [1, 2, 2, 1, 1]])
    colours = image.cmap(image.norm(np.array([0, 1, 2])))
    assert tuple(colours[0]) == (1.0, 1.0, 1.0, 1.0)
    assert len({tuple(c) for c in colours}) == 3
    np.testing.assert_allclose(image.get_extent(), [0.01, 0.11, 2.5, -0.5])
    assert [b.get_width() for b in moved.patches] == pytest.approx(
        [20.0, 20.0]
    )  # one frame of five each time
    lines = next(c for c in main.collections if c.get_gid() == "reference").get_segments()
    np.testing.assert_allclose([s[0][0] for s in lines], [0.06])
    assert [t.get_text() for t in main.get_yticklabels()] == ["1", "2", "3"]


@pytest.mark.parametrize("epochs", [1, 7, 400])
def test_ticks_of_many_epochs_have_room(epochs):
    tokens = np.zeros((epochs, 30), dtype=int)
    figure = evolution_figure(range(10, 10 + epochs), tokens, HOP)
    main = figure.axes[0]
    ticks = main.get_yticks()
    height = main.get_position().height * figure.get_figheight()
    assert 1 <= len(ticks) <= height / 0.16
    assert [t.get_text() for t in main.get_yticklabels()] == [str(10 + round(t)) for t in ticks]
    assert render(figure, "png", 50).startswith(b"\x89PNG")


def test_evolution_checks_its_shape():
    with pytest.raises(ValueError, match=r"got \(2, 3\) for 1 steps"):
        evolution_figure([1], np.zeros((2, 3), dtype=int), HOP)
    with pytest.raises(ValueError, match=r"got \(3,\)"):
        evolution_figure([1], np.zeros(3, dtype=int), HOP)
