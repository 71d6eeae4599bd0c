"""Pages in a real browser: what is heard, what keys and pointer do, and what is saved."""

from __future__ import annotations

import html
import time

import numpy as np
import pytest

from isotone import format as files
from isotone.alignment import Alignment, Segment, Tier
from isotone.evaluation.files import evaluate_paths
from isotone.report import Viewer
from isotone.report.html import page
from isotone.report.index_page import Listed, index_page
from tests.browser import program
from tests.report.browsing import LISTEN, RATE, WIDTH, Place, example, kept, listen, noise, save, shift

pytestmark = [
    pytest.mark.skipif(program() is None, reason="no Chromium is installed (apt install chromium)"),
    pytest.mark.slow,
]

ALT, CTRL, SHIFT = 1, 2, 8


def test_a_click_plays_that_word_to_the_sample(chromium, shown):
    audio, alignment = noise(6.0), example()
    shown(audio, {"mine": alignment})
    place = Place(chromium, 6.0)
    chromium.click(place.x(1.5), place.y(0))
    heard = listen(chromium, 0.6)
    np.testing.assert_allclose(heard, audio[round(1.2 * RATE) : round(1.8 * RATE)], atol=1 / 16000)
    assert "it: 1.200" in chromium.run("document.querySelector('output').value")
    # it ends by itself, and in time
    chromium.wait("document.querySelector('[data-do=play]').textContent === 'Play'")
    assert chromium.problems == []


def test_playing_goes_on_over_chunks_without_a_gap(chromium, shown):
    audio = noise(45.0)
    shown(
        audio,
        {"mine": Alignment("talk", 45.0, (Tier("words", (Segment("long", 19.5, 20.5),)),))},
        size=(1000, 900),
    )
    chromium.run("document.querySelector('[data-do=all]').click()")
    time.sleep(0.2)
    place = Place(chromium, 45.0)
    chromium.click(place.x(20.0), place.y(0))
    np.testing.assert_allclose(
        listen(chromium, 1.0), audio[round(19.5 * RATE) : round(20.5 * RATE)], atol=1 / 16000
    )
    assert chromium.problems == []


def test_keys_walk_zoom_and_play(chromium, shown):
    audio = noise(6.0)
    shown(audio, {"mine": example()})
    output = "document.querySelector('output').value"
    chromium.run("document.querySelector('canvas.main').focus()")
    for _ in range(2):
        chromium.press("ArrowRight", 39)
    assert chromium.run(output).startswith("it: ")
    chromium.press("ArrowDown", 40)
    assert chromium.run(output).startswith("t: ")
    chromium.press("ArrowLeft", 37)
    chromium.press("ArrowLeft", 37)
    assert chromium.run(output).startswith("ow: ")
    chromium.press("Tab", 9)
    heard = listen(chromium, 0.4)
    np.testing.assert_allclose(heard, audio[round(0.8 * RATE) : round(1.2 * RATE)], atol=1 / 16000)
    chromium.wait("document.querySelector('[data-do=play]').textContent === 'Play'")
    # zoomed to the selection, a fifth of it on both sides, what is seen is played
    chromium.press("n", 78, text="n")
    chromium.run("window.heard = []")
    chromium.press("Tab", 9, modifiers=SHIFT)
    heard = listen(chromium, 0.56)
    np.testing.assert_allclose(heard, audio[round(0.72 * RATE) : round(1.28 * RATE)], atol=1 / 16000)
    chromium.press("Escape", 27)
    assert chromium.run("document.querySelector('[data-do=play]').textContent") == "Play"
    chromium.press("b", 66, text="b")
    chromium.press("d", 68, text="d")
    assert chromium.run(output).startswith("it: ")  # the least sure word
    assert chromium.problems == []


def test_an_address_names_a_time(chromium, shown):
    """The index links to doubtful words: the page opens there."""
    path = shown(noise(60.0), {"mine": example(60.0)})
    chromium.open(path.with_name("talk.page.html"), "#t=3.000")
    assert chromium.run("document.querySelector('output').value").startswith("here: 3.000")
    assert chromium.problems == []


def test_the_wheel_zooms_around_the_pointer(chromium, shown):
    audio = noise(6.0)
    shown(audio, {"mine": example()})
    place = Place(chromium, 6.0)
    x, y = place.x(4.0), place.y(0) - 150
    for _ in range(8):
        chromium.mouse("Wheel", x, y, deltaX=0, deltaY=-120, modifiers=CTRL)
    time.sleep(0.2)
    # 4 s stayed where it was, and is in the word "here" still; without Ctrl nothing is zoomed
    chromium.click(x, place.y(0))
    heard = listen(chromium, 1.25)
    np.testing.assert_allclose(heard, audio[3 * RATE : round(4.25 * RATE)], atol=1 / 16000)
    chromium.run("window.heard = []; document.querySelector('canvas.main').focus()")
    chromium.press("Escape", 27)
    chromium.press("Tab", 9, modifiers=SHIFT)
    seen = chromium.wait("window.heard[0] && window.heard[0][2].length") / RATE
    assert seen == pytest.approx(6.0 / 1.2 ** (8 * 3), rel=0.02)


def test_changes_that_were_not_saved_are_asked_for(chromium, shown, tmp_path):
    """Leaving the page is stopped until the last change is saved, whatever was undone before."""
    shown(noise(6.0), {"mine": example()})
    asks = (
        "(() => { const leave = new Event('beforeunload', {cancelable: true});"
        "window.dispatchEvent(leave); return leave.defaultPrevented; })()"
    )
    assert not chromium.run(asks)
    chromium.run("document.querySelector('canvas.main').focus()")
    for _ in range(2):
        chromium.press("ArrowRight", 39)
    chromium.press(".", 190, text=".")
    assert chromium.run(asks)
    save(chromium, tmp_path)
    assert not chromium.run(asks)
    chromium.press("z", 90, modifiers=CTRL)
    assert chromium.run(asks)
    chromium.press(",", 188, text=",")  # as many changes as were saved, and another one
    assert chromium.run(asks)


def test_keys_move_boundaries(chromium, shown, tmp_path):
    shown(noise(6.0), {"mine": example()})
    chromium.run("document.querySelector('canvas.main').focus()")
    for _ in range(2):
        chromium.press("ArrowRight", 39)
    chromium.press(".", 190, text=".")
    chromium.press("<", 188, modifiers=SHIFT, text="<")
    expected = shift(kept(example()), {1.2: 1.205, 1.8: 1.795})
    assert save(chromium, tmp_path).tiers == expected.tiers
    chromium.press("z", 90, modifiers=CTRL)
    assert save(chromium, tmp_path).tiers == shift(kept(example()), {1.2: 1.205}).tiers
    assert chromium.problems == []


def test_a_drag_changes_the_textgrid_that_is_saved(chromium, shown, tmp_path):
    alignment = example()
    shown(noise(6.0), {"mine": alignment, "other": example()})
    assert save(chromium, tmp_path).tiers == kept(alignment).tiers  # nothing was changed yet
    place = Place(chromium, 6.0)
    second = place.width / 6.0
    chromium.drag(place.x(1.2), place.y(0), place.x(1.2) + 0.25 * second)
    saved = save(chromium, tmp_path)
    moved = saved.tier("words").segments[0].end
    assert moved == pytest.approx(1.45, abs=2 / second)
    # the phones share the boundary; all else is as it was
    expected = shift(kept(alignment), {1.2: moved})
    assert saved.tiers == expected.tiers
    # with Alt the word alone
    chromium.drag(place.x(3.0), place.y(0), place.x(3.0) + 0.3 * second, modifiers=ALT)
    saved = save(chromium, tmp_path)
    assert saved.tier("words").segments[2].end == pytest.approx(3.3, abs=2 / second)
    assert saved.tier("phones") == expected.tier("phones")
    # no further than the neighbour
    chromium.drag(place.x(4.25), place.y(0), place.x(1.0))
    last = save(chromium, tmp_path).tier("words").segments[-1]
    assert last.duration == pytest.approx(0.001, abs=1e-4)
    for _ in range(3):
        chromium.run("document.querySelector('[data-do=undo]').click()")
    assert save(chromium, tmp_path).tiers == kept(alignment).tiers
    # rows of other systems stay as they are
    chromium.drag(place.x(1.2), place.y(1), place.x(1.6))
    assert save(chromium, tmp_path).tiers == kept(alignment).tiers
    assert chromium.problems == []


def test_what_is_saved_comes_back_to_evaluate(chromium, shown, tmp_path):
    """The corrected TextGrid is a reference: the alignment differs from it where it was corrected, and nowhere else."""
    alignment = example()
    shown(noise(6.0), {"mine": alignment})
    place = Place(chromium, 6.0)
    chromium.drag(place.x(1.2), place.y(0), place.x(1.32))
    moved = save(chromium, tmp_path).tier("words").segments[0].end
    for folder in ("aligned", "corrected"):
        (tmp_path / folder).mkdir()
    files.write(alignment, tmp_path / "aligned", "textgrid")
    (tmp_path / "talk.TextGrid").rename(tmp_path / "corrected" / "talk.TextGrid")
    scores = evaluate_paths(tmp_path / "aligned", tmp_path / "corrected", "words").report.metrics
    assert scores["start_error_mean"].value == pytest.approx(1000 * (moved - 1.2) / 4, abs=0.1)


@pytest.mark.parametrize(
    "label",
    [
        "<script>window.evil=1</script>",
        "</script><img src=x onerror=window.evil=1>",
        "\u202e\u05e9\u05dc\u05d5\u05dd",
        "日本語 \u2028 é",
    ],
)
def test_labels_are_text(chromium, shown, tmp_path, label):
    """They are neither run nor changed."""
    words = Tier("words", (Segment(label, 0.2, 0.9, None, 0.1),))
    shown(noise(1.0), {label: Alignment("talk", 1.0, (words,))}, id=f"{label}/{label}")
    chromium.run("document.querySelector('aside button').click()")
    assert chromium.run("document.querySelector('aside bdi').textContent") == label
    assert chromium.run("document.querySelector('h1').textContent") == f"{label}/{label}"
    assert chromium.run("window.evil === undefined")
    assert not [p for p in chromium.problems if "gesture" not in p]
    name = chromium.run("JSON.parse(document.querySelector('script.data').textContent).saveAs")
    assert not set(name) & set('/\\<>:"|?*')
    text = chromium.run(
        "new Promise(ready => { URL.createObjectURL = blob => { blob.text().then(ready); return 'data:,'; };"
        "document.querySelector('[data-do=save]').click(); })"
    )
    (tmp_path / "read.TextGrid").write_text(text, encoding="utf-8")
    assert files.read(tmp_path / "read.TextGrid").tier("words").labels == [label]


def test_pages_of_reports_have_the_same_viewer_without_corrections(chromium, tmp_path):
    audio = noise(2.0)
    viewers = [Viewer(audio, RATE, {"reference": example()}) for _ in range(2)]
    path = tmp_path / "report.html"
    path.write_text(page("Report", viewers), encoding="utf-8")
    chromium.size(WIDTH, 900)
    chromium.open(path)
    chromium.run(LISTEN)
    assert chromium.run("document.querySelectorAll('[data-do=save], aside').length") == 0
    place = Place(chromium, 2.0)
    chromium.drag(place.x(1.2), place.y(0), place.x(1.5))
    chromium.click(place.x(0.9), place.y(0))
    np.testing.assert_allclose(
        listen(chromium, 0.7), audio[round(0.5 * RATE) : round(1.2 * RATE)], atol=1 / 16000
    )
    assert chromium.problems == []


def picture_of(chromium, canvas: str) -> str:
    """The picture of a canvas, when the spectrogram is drawn from the samples and changes no more."""
    seen, now = "", chromium.run(f"{canvas}.toDataURL()")
    while now != seen:
        time.sleep(0.5)
        seen, now = now, chromium.run(f"{canvas}.toDataURL()")
    return now


def test_a_page_that_gets_wider_or_is_seen_later_is_drawn_as_any(chromium, shown):
    """It was a second of one smeared column, in a frame that was hidden when it was loaded."""
    canvas = "document.querySelector('canvas.main')"
    path = shown(noise(6.0), {"mine": example()})
    expected = picture_of(chromium, canvas)
    chromium.size(500, 900)
    assert picture_of(chromium, canvas) != expected
    chromium.size(WIDTH, 900)
    assert picture_of(chromium, canvas) == expected

    frame = path.with_name("frame.html")
    page = html.escape(path.read_text(encoding="utf-8"), quote=True)
    style = f"width: {WIDTH}px; height: 900px; border: 0"
    frame.write_text(
        f'<body style="margin: 0"><div hidden><iframe style="{style}" srcdoc="{page}"></iframe></div>'
    )
    chromium.size(WIDTH, 900)
    chromium.open(frame)
    inside = canvas.replace("document", "document.querySelector('iframe').contentDocument")
    chromium.wait(f"!!{inside}")
    chromium.run("document.querySelector('div').hidden = false")
    assert picture_of(chromium, inside) == expected
    assert chromium.problems == []


def test_the_index_shows_warnings_beside_their_recordings(chromium, tmp_path):
    note = "not audio that libsndfile reads: install ffmpeg, or convert it elsewhere to WAV or FLAC. " * 2
    rows = [
        Listed("speech/anna/interview_number_one.wav", error=note),
        Listed("b", "b.page.html", 2.0, 8, notes=(note,)),
    ]
    path = tmp_path / "index.html"
    path.write_text(index_page(rows), encoding="utf-8")
    for width in (1100, 1500):
        chromium.size(width, 800)
        chromium.open(path)
        box = "document.querySelector('.scroll')"
        assert chromium.run(f"{box}.scrollWidth <= {box}.clientWidth"), "nothing is cut off"
        heights = chromium.run(
            "[...document.querySelectorAll('.index tbody tr')].map(row => row.clientHeight)"
        )
        assert max(heights) < 220
    assert chromium.problems == []
