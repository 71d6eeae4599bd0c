"""The viewer and the page that compares systems."""

import base64
import hashlib
import io
import json
import math
import re

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.alignment import SILENCE, Alignment, Margin, Segment, Tier
from isotone.report import Example, Overview, Table, Text, Viewer, overview_report, write_report
from isotone.report.html import page
from isotone.report.recording import CHUNK_S, ROWS, chunks, packed
from isotone.report.spreads import spreads
from tests.report.pages import check_page

RATE = 8000
AUDIO = np.random.default_rng(0).normal(0, 0.1, RATE)
WORDS = Tier("words", (Segment("so", 0.2, 0.8),))
PHONES = Tier(
    "phones", (Segment("h#", 0, 0.2), Segment("s", 0.2, 0.45, -0.25, 0.25), Segment("ow", 0.45, 0.8))
)
REFERENCE = Alignment("u", 1.0, (WORDS, PHONES))
PEAKY = Alignment("u", 1.0, (Tier("phones", (Segment("s", 0.3, 0.32), Segment("ow", 1 / 3, 0.62))),))
EMPTY = Alignment("u", 1.0, (Tier("phones", ()), Tier("words", ())))


def _viewer(alignments, **options):
    parsed = check_page(page("t", [Viewer(AUDIO, RATE, alignments, **options)]))
    (viewer,) = parsed.root.find("div", "viewer")
    return viewer, json.loads(viewer.find("script", "data")[0].text)


def test_one_row_a_system_and_tier_that_it_has():
    viewer, data = _viewer({"reference": REFERENCE, "CTC": PEAKY, "none": EMPTY})
    rows = [(row["system"], row["tier"]) for row in data["tiers"]]
    assert rows == [
        ("reference", "words"), ("none", "words"), ("reference", "phones"), ("CTC", "phones"), ("none", "phones"),
    ]  # fmt: skip
    labels = [[segment[0] for segment in row["segments"]] for row in data["tiers"]]
    assert labels == [["so"], [], ["h#", "s", "ow"], ["s", "ow"], []]
    names = viewer.find("div", "names")[0].find("div")
    assert [n.text for n in names] == ["1.00 s", *(a + b for a, b in rows)]


def test_tiers_of_all_systems_are_shown_where_none_are_named():
    extra = Alignment("u", 1.0, (Tier("notes", (Segment("x", 0, 1),)), PHONES))
    _, data = _viewer({"mine": REFERENCE, "other": extra}, tiers=None)
    rows = [(row["system"], row["tier"], row["own"]) for row in data["tiers"]]
    assert rows == [
        ("mine", "words", True), ("mine", "phones", True), ("other", "phones", False), ("other", "notes", False),
    ]  # fmt: skip


def test_segments_carry_their_exact_times():
    _, data = _viewer({"reference": REFERENCE, "CTC": PEAKY}, tiers=("phones",))
    first, peaky = data["tiers"]
    assert first["segments"] == [
        ["h#", 0, 0.2, None, True], ["s", 0.2, 0.45, 0.25, False], ["ow", 0.45, 0.8, None, False],
    ]  # fmt: skip
    assert peaky["segments"][1][1] == 1 / 3
    assert data["duration"] == 1.0
    # s is there twice, and so is ow: both systems' boundaries make the interval
    assert first["spreads"] == [None, [0.2, 0.3, 0.32, 0.45], [1 / 3, 0.45, 0.62, 0.8]]
    assert peaky["spreads"] is None


@pytest.mark.parametrize("seconds, kind, close", [(1.0, b"fLaC", 1 / 32000), (601.0, b"OggS", 0.05)])
def test_the_sound_is_inside_to_the_sample(seconds, kind, close):
    """Every chunk is a file of its own, and joined they are the recording."""
    rate = RATE
    tone = 0.5 * np.sin(np.arange(round(seconds * rate)) * 2 * np.pi * 440 / rate)
    found = [base64.b64decode(chunk) for chunk in chunks(tone, rate)]
    assert {data[:4] for data in found} == {kind}
    parts = [soundfile.read(io.BytesIO(data)) for data in found]
    assert {r for _, r in parts} == {rate}
    assert {len(part) for part, _ in parts[:-1]} <= {round(CHUNK_S * rate)}
    np.testing.assert_allclose(np.concatenate([part for part, _ in parts]), tone, atol=close)


def test_outline_and_levels_are_those_of_the_samples():
    quiet, loud = np.zeros(RATE // 2), 0.5 * np.sin(np.arange(RATE) * 2 * np.pi * 1000 / RATE)
    audio = np.concatenate([quiet, loud])
    data = packed(audio, RATE)
    peaks = np.frombuffer(base64.b64decode(data["peaks"]), np.int8).reshape(-1, 2)
    assert len(peaks) == 150  # a hundred per second
    assert not peaks[:50].any()
    for column, (low, high) in enumerate(peaks):
        part = audio[column * RATE // 100 : (column + 1) * RATE // 100] / np.abs(audio).max()
        assert (low, high) == (round(127 * part.min()), round(127 * part.max()))
    levels = np.frombuffer(base64.b64decode(data["levels"]), np.uint8).reshape(-1, ROWS)
    assert len(levels) == 15
    assert not levels[:4].any()
    # 1 kHz of the 4 kHz that are shown
    assert {int(column.argmax()) for column in levels[6:]} == {ROWS // 4}
    assert levels.max() == 255


def test_a_silent_recording_is_blank():
    data = packed(np.zeros(RATE), RATE)
    assert not any(base64.b64decode(data["levels"]))
    assert not any(base64.b64decode(data["peaks"]))


def test_style_and_script_are_there_once_and_only_when_needed():
    two = page("t", [Viewer(AUDIO, RATE, {"a": REFERENCE}), Viewer(AUDIO, RATE, {"a": PEAKY})])
    assert two.count("class Recording {") == 1
    assert two.count(".viewer .stage {") == 1
    assert "class Recording {" not in page("t", [Text("x")])


def test_only_the_script_of_the_page_is_trusted():
    text = page("t", [Viewer(AUDIO, RATE, {"a": REFERENCE})])
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text


@pytest.mark.parametrize("alignments", [{}, {"none": EMPTY}, {"no tier": Alignment("u", 1.0)}])
def test_a_viewer_of_nothing(alignments):
    viewer, data = _viewer(alignments, save_as="u.TextGrid")
    assert not any(row["segments"] for row in data["tiers"])
    assert len(viewer.find("script", "chunk")) == 1


def test_least_sure_places_come_first():
    sure = [0.95, 0.2, None, 0.6]
    words = Tier("words", tuple(Segment(f"w{i}", i / 4, (i + 1) / 4, None, c) for i, c in enumerate(sure)))
    phones = Tier(
        "phones",
        (
            Segment("a", 0, 0.2, None, 0.8),
            Segment("b", 0.2, 0.4, None, 0.3),
            Segment("c", 0.5, 0.9, None, 0.1),
        ),
    )
    viewer, _ = _viewer({"mine": Alignment("u", 1.0, (words, phones))}, save_as="u.TextGrid")
    lists = viewer.find("aside")[0].find("section")
    assert [section.find("h3")[0].text for section in lists] == [
        "Least sure words",
        "Least sure boundaries: phones",
    ]
    rows = [[b.text for b in section.find("bdi")] for section in lists]
    # a gap is no boundary of two phones
    assert rows == [["w1", "w3"], ["a | b"]]
    first = lists[0].find("button")[0].attributes
    assert (first["data-row"], first["data-index"], float(first["data-time"])) == ("0", "1", 0.25)
    assert not _viewer({"mine": REFERENCE})[0].find("aside")


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_confidence_that_is_no_number_is_not_known(odd):
    words = Tier("words", (Segment("so", 0.2, 0.8, None, odd), Segment("sil", 0.8, 1.0, None, 0.1)))
    viewer, data = _viewer({"mine": Alignment("u", 1.0, (words,))}, save_as="u.TextGrid")
    assert data["tiers"][0]["segments"] == [["so", 0.2, 0.8, None, False], ["sil", 0.8, 1.0, None, True]]
    assert not viewer.find("ol")


def test_boundaries_that_systems_put_furthest_apart_come_first():
    def alignment(*times):
        parts = zip("abc", times, times[1:])
        return Alignment("u", 1.0, (Tier("phones", tuple(Segment(x, s, e) for x, s, e in parts)),))

    mine, other = alignment(0.1, 0.3, 0.5, 0.7), alignment(0.11, 0.36, 0.5, 0.8)
    viewer, _ = _viewer({"mine": mine, "other": other}, tiers=None, save_as="u.TextGrid")
    section = viewer.find("aside")[0].find("section")[-1]
    rows = [[part.text for part in row.find("span")] for row in section.find("button")]
    assert [b.text for b in section.find("bdi")] == ["end of c", "a | b"]  # 10 ms is close enough
    assert rows == [["0.70 s", "100 ms apart"], ["0.30 s", "60 ms apart"]]


def test_margins_are_drawn_and_the_least_sure_boundaries_come_first():
    unsure, sure = Margin(0.03, 0.05, 0.4), Margin(0.01, 0.01, 0.97)
    phones = (
        Segment("a", 0.1, 0.3, None, 0.9, start_margin=sure, end_margin=unsure),
        Segment("b", 0.3, 0.5, None, 0.2, start_margin=unsure, end_margin=Margin(0.02, 0.02, 0.7)),
        Segment("c", 0.6, 0.8),
    )
    mine = Alignment("u", 1.0, (Tier("phones", phones),))
    viewer, data = _viewer({"mine": mine}, tiers=None, save_as="u.TextGrid")
    (row,) = data["tiers"]
    expected = [[0.09, 0.11, 0.27, 0.35], [0.3, 0.3, 0.48, 0.52], [0.6, 0.6, 0.8, 0.8]]
    np.testing.assert_allclose(row["spreads"], expected)
    section = viewer.find("aside")[0].find("section")[-1]
    assert section.find("h3")[0].text == "Least sure boundaries: phones"
    assert [b.text for b in section.find("bdi")] == ["a | b", "end of b"]
    rows = [[part.text for part in row.find("span")] for row in section.find("button")]
    assert rows == [["0.30 s", "-30 to +50 ms"], ["0.50 s", "-20 to +20 ms"]]
    # beside another system, its boundaries make the interval
    other = Alignment("u", 1.0, (Tier("phones", (Segment("a", 0.1, 0.4),)),))
    _, data = _viewer({"mine": mine, "other": other}, tiers=None)
    assert data["tiers"][0]["spreads"] == [[0.1, 0.1, 0.3, 0.4], None, None]


def test_systems_are_paired_by_their_labels():
    """A word that one system lacks, or that is another word, has no interval; case and punctuation do not matter."""
    mine = Tier("words", (Segment("So,", 0, 0.2), Segment("it", 0.2, 0.4), Segment("is", 0.4, 0.6)))
    other = Tier("words", (Segment("so", 0.01, 0.2), Segment("at", 0.2, 0.4), Segment("is", 0.5, 0.6)))
    assert spreads(mine, [other]) == [(0, 0.01, 0.2, 0.2), None, (0.4, 0.5, 0.6, 0.6)]


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5), st.text(min_size=1, max_size=8))
@settings(deadline=None, max_examples=25)
def test_labels_and_names_hold_anything(labels, name):
    labels = [x.encode("utf-8", "ignore").decode() or "x" for x in labels]
    n = len(labels)
    tier = Tier("phones", tuple(Segment(x, i / n, (i + 1) / n, None, 0.1) for i, x in enumerate(labels)))
    viewer, data = _viewer({name: Alignment("u", 1.0, (tier,))}, save_as="u.TextGrid")
    assert [segment[0] for segment in data["tiers"][0]["segments"]] == labels
    shown = [b.text for b in viewer.find("section")[0].find("bdi")] if viewer.find("section") else []
    for label in labels:
        assert label in shown or not label.isprintable() or label in SILENCE


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
