"""The page: well formed, self-contained, escaped, accessible."""

import base64
import io
import re

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.report import (
    Audio,
    Code,
    Estimate,
    Heading,
    Image,
    Table,
    Text,
    Tiles,
    collar_figure,
    write_report,
)
from isotone.report.html import page
from isotone.report.markup import wav_uri
from tests.report.pages import check_page

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;"


def _figure():
    return collar_figure({"CTC": {0.01: 50.0, 0.2: 90.0}})


def test_a_page_of_everything(tmp_path):
    sections = [
        Tiles([("PER", "8.4 %", "dev"), ("IDR", "70 %", "")]),
        Heading("Results"),
        Text("One `code` word.\n\nTwo <b>."),
        Table(
            ["system", "PER (%)"], [["CTC", 8.4], ["OTTC", 8.8]], caption="Scores.", best={"PER (%)": "min"}
        ),
        Heading("Figures"),
        Image(_figure(), "Start F1 of CTC", "By collar."),
        Image(_figure(), "The same", kind="png"),
        Heading("Part", 3),
        Code("a < b", "listing"),
        Audio(np.zeros(100), 16000, "silence"),
    ]
    path = write_report(tmp_path / "sub" / "r.html", "Title", sections, subtitle="Sub", facts={"seed": 3})
    text = path.read_text(encoding="utf-8")
    parsed = check_page(text)
    assert [p.text for p in parsed.root.find("p")] == ["Sub", "One code word.", "Two <b>."]
    assert [c.text for c in parsed.root.find("code")] == ["code", "a < b"]
    assert [(a.text, a.attributes["href"]) for a in parsed.root.find("nav")[0].find("a")] == [
        ("Results", "#s2"), ("Figures", "#s5"),
    ]  # fmt: skip
    assert [i.attributes["alt"] for i in parsed.root.find("img")] == ["Start F1 of CTC", "The same"]
    kinds = [i.attributes["src"].split(";")[0] for i in parsed.root.find("img")]
    assert kinds == ["data:image/svg+xml", "data:image/png"]
    assert parsed.root.find("dl", "facts")[0].text == "seed3"
    assert list((tmp_path / "sub").iterdir()) == [path]
    assert not parsed.root.find("script")  # no section here has a script
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text


def test_equal_contents_give_equal_pages_and_a_failure_keeps_the_old_one(tmp_path):
    path = tmp_path / "r.html"
    write_report(path, "t", [Image(_figure(), "a")])
    first = path.read_bytes()
    write_report(path, "t", [Image(_figure(), "a")])
    assert path.read_bytes() == first

    class Broken(Text):
        def markup(self, key):
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        write_report(path, "t", [Broken("x")])
    assert path.read_bytes() == first
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_given_can_become_markup():
    sections = [
        Heading(EVIL), Heading(EVIL, 3), Text(EVIL), Code(EVIL, EVIL), Tiles([(EVIL, EVIL, EVIL)]),
        Table([EVIL, "b"], [[EVIL, EVIL]], caption=EVIL), Image(_figure(), EVIL, EVIL),
        Audio(np.zeros(9), 8000, EVIL),
    ]  # fmt: skip
    parsed = check_page(page(EVIL, sections, subtitle=EVIL, facts={EVIL: EVIL}))
    assert not parsed.root.find("script")
    assert len(parsed.root.find("img")) == 1
    for tag, count in (("h1", 1), ("title", 1), ("h2", 1), ("h3", 1), ("pre", 1), ("caption", 1)):
        assert [n.text for n in parsed.root.find(tag)] == [EVIL] * count
    assert parsed.root.find("img")[0].attributes["alt"] == EVIL


@given(st.text(max_size=40))
@settings(deadline=None, max_examples=150)
def test_any_text_comes_back_from_the_page(text):
    expected = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", "\ufffd", text)
    made = page("t", [Heading("x" + text, 3), Audio(np.zeros(9), 8000, "x" + text)])
    parsed = check_page(made)
    made.encode("utf-8")
    assert parsed.root.find("h3")[0].text == "x" + expected
    assert parsed.root.find("audio")[0].attributes["aria-label"] == "x" + expected


def test_any_character_is_made_fit_for_utf8():
    made = page("a\ud800\x00<\"'>", [])
    assert "<title>a\ufffd\ufffd&lt;&#34;&#39;&gt;</title>" in made
    made.encode("utf-8")


def _cells(table):
    parsed = check_page(page("t", [table]))
    rows = [r.find("th") + r.find("td") for r in parsed.root.find("tbody")[0].find("tr")]
    return parsed, rows


def test_numbers_are_aligned_and_the_best_are_bold():
    table = Table(
        ["system", "PER", "F1", "note", "count"],
        [
            ["a", 8.456, Estimate(90.0, 88.0, 91.5), "x", 1_234_567],
            ["b", 8.111, 90.0, "y", np.int64(3)],
            ["c", None, float("nan"), None, 2],
            ["d", np.float32(8.25), 85.0, "3", 1],
        ],
        caption="Scores.",
        best={"PER": "min", "F1": "max"},
        digits={"F1": 1},
    )
    parsed, rows = _cells(table)
    assert [c.text for c in rows[0]] == ["a", "8.46", "90.0[88.0, 91.5]", "x", "1,234,567"]
    assert [c.text for c in rows[2]] == ["c", *["\u2013"] * 3, "2"]
    bold = [[bool(c.find("strong")) for c in row] for row in rows]
    assert bold == [
        [False, False, True, False, False],
        [False, True, True, False, False],  # a tie: both are best
        [False] * 5,
        [False] * 5,
    ]
    numeric = [["number" in c.attributes.get("class", "").split() for c in row] for row in rows]
    assert numeric == [[False, True, True, False, True]] * 4
    assert [h.attributes["scope"] for h in parsed.root.find("thead")[0].find("th")] == ["col"] * 5
    assert [row[0].attributes["scope"] for row in rows] == ["row"] * 4
    assert parsed.root.find("caption")[0].text == "Scores. Bold: the best of its column."


def test_a_lone_value_beats_nobody():
    parsed, rows = _cells(Table(["system", "PER"], [["a", 8.0], ["b", None]], best={"PER": "min"}))
    assert not parsed.root.find("strong")
    assert [c.text for c in rows[0]] == ["a", "8.00"]


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(float("nan"))), max_size=6), st.booleans())
@settings(deadline=None, max_examples=60)
def test_bold_is_the_extreme_of_the_numbers(values, lowest):
    table = Table(["s", "v"], [["r", v] for v in values], best={"v": "min" if lowest else "max"})
    rows = _cells(table)[1]
    numbers = [v for v in values if v is not None and v == v]
    top = (min if lowest else max)(numbers) if len(numbers) > 1 else None
    assert [bool(r[1].find("strong")) for r in rows] == [top is not None and v == top for v in values]


def test_negative_numbers_have_a_minus_sign():
    rows = _cells(Table(["s", "v", "n"], [["r", -1.5, -3]]))[1]
    assert [c.text for c in rows[0]] == ["r", "\u22121.50", "\u22123"]


def test_tables_are_checked():
    with pytest.raises(ValueError, match=r"2 columns got a row of 1 cells: \['x'\]"):
        Table(["a", "b"], [["x"]])
    with pytest.raises(ValueError, match="no column 'c'"):
        Table(["a", "b"], [], best={"c": "min"})
    with pytest.raises(ValueError, match="'min' or 'max'; got 'low'"):
        Table(["a", "b"], [["x", 1], ["y", 2]], best={"b": "low"}).markup("k")
    assert _cells(Table(["a"], []))[1] == []


@given(st.integers(1, 400), st.sampled_from([8000, 16000, 22050]), st.integers(0, 5))
@settings(deadline=None, max_examples=25)
def test_sound_inside_the_page_is_the_sound(samples, rate, seed):
    audio = np.random.default_rng(seed).uniform(-1.2, 1.2, samples)
    head, data = wav_uri(audio, rate).split(",")
    assert head == "data:audio/wav;base64"
    back, found = soundfile.read(io.BytesIO(base64.b64decode(data)))
    assert found == rate
    np.testing.assert_allclose(back, np.clip(audio, -1, 1), atol=1.01 / 32768)


def test_sound_that_is_none_is_refused():
    with pytest.raises(ValueError, match="mono"):
        Audio(np.zeros((2, 5)), 16000).markup("k")
