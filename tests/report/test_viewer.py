"""The viewer and the page that compares systems."""

import base64
import io

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import image

from isotone.alignment import Alignment, Segment, Tier
from isotone.report import Example, Overview, Table, Text, Viewer, overview_report, write_report
from isotone.report.html import page
from tests.report.pages import check_page

RATE = 8000
AUDIO = np.random.default_rng(0).normal(0, 0.1, RATE)
WORDS = Tier("words", (Segment("so", 0.2, 0.8),))
PHONES = Tier("phones", (Segment("h#", 0, 0.2), Segment("s", 0.2, 0.45, -0.25), Segment("ow", 0.45, 0.8)))
REFERENCE = Alignment("u", 1.0, (WORDS, PHONES))
PEAKY = Alignment("u", 1.0, (Tier("phones", (Segment("s", 0.3, 0.32), Segment("ow", 1 / 3, 0.62))),))
EMPTY = Alignment("u", 1.0, (Tier("phones", ()), Tier("words", ())))


def _viewer(alignments, **options):
    parsed = check_page(page("t", [Viewer(AUDIO, RATE, alignments, **options)]))
    (viewer,) = parsed.root.find("div", "viewer")
    return parsed, viewer


def test_one_row_a_system_and_tier_that_it_has():
    _, viewer = _viewer({"reference": REFERENCE, "CTC": PEAKY, "none": EMPTY})
    rows = viewer.find("div", "row")
    assert [r.attributes["aria-label"] for r in rows] == [
        "reference, words", "none, words", "reference, phones", "CTC, phones", "none, phones",
    ]  # fmt: skip
    assert [[b.text for b in r.find("button")] for r in rows] == [
        ["so"],
        [],
        ["h#", "s", "ow"],
        ["s", "ow"],
        [],
    ]
    names = viewer.find("div", "names")[0].find("div")
    assert [n.text for n in names[1:]] == [
        "referencewords", "nonewords", "referencephones", "CTCphones", "nonephones",
    ]  # fmt: skip


def test_segments_carry_their_exact_times():
    _, viewer = _viewer({"reference": REFERENCE, "CTC": PEAKY}, tiers=("phones",))
    first, peaky = viewer.find("div", "row")
    s = first.find("button")[1]
    assert (float(s.attributes["data-start"]), float(s.attributes["data-end"])) == (0.2, 0.45)
    assert s.attributes["title"] == "s: 0.200\u20130.450 s (250 ms, score -0.25)"
    assert s.attributes["style"] == "left: 20.0000%; width: 25.0000%"
    assert float(peaky.find("button")[1].attributes["data-start"]) == 1 / 3
    assert float(viewer.attributes["data-duration"]) == 1.0
    assert "silent" in first.find("button")[0].attributes["class"]
    # one stop for the tab key per row
    assert [b.attributes["tabindex"] for b in first.find("button")] == ["0", "-1", "-1"]


def test_sound_and_spectrogram_are_inside():
    _, viewer = _viewer({"reference": REFERENCE})
    data = viewer.find("audio")[0].attributes["src"].split(",")[1]
    back, rate = soundfile.read(io.BytesIO(base64.b64decode(data)))
    assert rate == RATE
    np.testing.assert_allclose(back, AUDIO, atol=1 / 32768)
    picture = base64.b64decode(viewer.find("img")[0].attributes["src"].split(",")[1])
    assert image.imread(io.BytesIO(picture)).shape[1] > 300
    paths = [p.attributes["d"] for p in viewer.find("path")]
    assert paths[0] == "M0.00 0V1 M200.00 0V1 M450.00 0V1 M800.00 0V1"  # the finest tier's, over the picture


def test_style_and_script_are_there_once_and_only_when_needed():
    two = page("t", [Viewer(AUDIO, RATE, {"a": REFERENCE}), Viewer(AUDIO, RATE, {"a": PEAKY})])
    assert two.count("requestAnimationFrame(tick)") == 1
    assert two.count(".viewer .track {") == 1
    assert "requestAnimationFrame" not in page("t", [Text("x")])


@pytest.mark.parametrize("alignments", [{}, {"none": EMPTY}, {"no tier": Alignment("u", 1.0)}])
def test_a_viewer_of_nothing(alignments):
    _, viewer = _viewer(alignments)
    assert viewer.find("button") == []
    assert len(viewer.find("audio")) == 1


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5), st.text(min_size=1, max_size=8))
@settings(deadline=None, max_examples=25)
def test_labels_and_names_hold_anything(labels, name):
    labels = [x.encode("utf-8", "ignore").decode() or "x" for x in labels]
    n = len(labels)
    tier = Tier("phones", tuple(Segment(x, i / n, (i + 1) / n) for i, x in enumerate(labels)))
    viewer = Viewer(AUDIO[:400], RATE, {name: Alignment("u", 1.0, (tier,))})
    parsed = check_page(page("t", [viewer]))
    shown = [b.text for b in parsed.root.find("button")]
    assert len(shown) == n
    for given_label, label in zip(labels, shown):
        if given_label.isprintable():
            assert label == given_label


def test_an_overview_leaves_out_what_is_not_known(tmp_path):
    path = overview_report(tmp_path / "r.html", "t", Overview())
    assert check_page(path.read_text(encoding="utf-8")).root.find("h2") == []


def test_an_overview_of_everything(tmp_path):
    collars = {"CTC": {0.01: 20.0, 0.02: 40.0}, "OTTC": {0.01: 30.0, 0.02: 60.0}}
    overview = Overview(
        scores=Table(["system", "PER (%)"], [["CTC", 8.0], ["OTTC", 9.0]], best={"PER (%)": "min"}),
        frontier={"CTC": (8.0, 27.0), "OTTC": (9.0, 77.0)},
        collars=collars,
        errors={"CTC": np.array([0.01, 0.03]), "OTTC": np.array([0.0])},
        history={"CTC": [{"step": 1, "loss": 2.0}]},
        examples=[Example("u: so", AUDIO, RATE, {"reference": REFERENCE, "CTC": PEAKY}, "Look at s.")],
    )
    path = overview_report(tmp_path / "r.html", "CTC and OTTC", overview, facts={"corpus": "none"})
    parsed = check_page(path.read_text(encoding="utf-8"))
    heads = [h.text for h in parsed.root.find("h2")]
    assert heads == ["Results", "Text against times", "Boundaries", "Examples", "Training"]
    assert len(parsed.root.find("div", "viewer")) == 1
    alts = [i.attributes["alt"] for i in parsed.root.find("img")]
    assert any("CTC: 8.00 % errors, IDR 27.00 %" in a for a in alts)
    assert any("medians: CTC +20.0 ms; OTTC +0.0 ms" in a for a in alts)


def test_a_section_of_ones_own(tmp_path):
    class Rule:
        css = "hr { border: 0 }"
        script = ""

        def markup(self, key):
            return f'<hr id="{key}">'

    text = write_report(tmp_path / "r.html", "t", [Rule(), Rule()]).read_text(encoding="utf-8")
    assert [n.attributes["id"] for n in check_page(text).root.find("hr")] == ["s1", "s2"]
    assert text.count("hr { border: 0 }") == 1
