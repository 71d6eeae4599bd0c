"""Pages in a real browser: what is heard, what is saved, and how fast an hour of audio is."""

from __future__ import annotations

import base64
import io
import json
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile

from isotone import format as files
from isotone.alignment import Alignment, Segment, Tier
from isotone.evaluation.files import evaluate_paths
from isotone.report import Viewer
from isotone.report.html import page
from isotone.report.recording_page import recording_page
from tests.browser import Browser, browser, program

pytestmark = [
    pytest.mark.skipif(program() is None, reason="no Chromium is installed (apt install chromium)"),
    pytest.mark.slow,
]

RATE = 16_000
WIDTH = 1200
ALT, CTRL, SHIFT = 1, 2, 8

#: Notes the samples of everything that is to be heard, as (offset, duration, samples of that part).
LISTEN = """
window.heard = [];
const start = AudioBufferSourceNode.prototype.start;
AudioBufferSourceNode.prototype.start = function (when, offset, duration) {
  const data = this.buffer.getChannelData(0), rate = this.buffer.sampleRate;
  const from = Math.round(offset * rate), to = Math.round((offset + duration) * rate);
  window.heard.push([when, rate, Array.from(data.subarray(from, to))]);
  return start.call(this, when, offset, duration);
};
"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


def _speech(seconds: float, rate: int = RATE) -> np.ndarray:
    """Noise whose samples are all different, quiet at both ends: no part of it is like another one."""
    rng = np.random.default_rng(0)
    return (0.2 * rng.standard_normal(round(seconds * rate)).clip(-3, 3)).astype(np.float32)


def _alignment(seconds: float = 6.0, start: float = 0.5) -> Alignment:
    words = [("so", 0.5, 1.2), ("it", 1.2, 1.8), ('"is"', 2.0, 3.0), ("here", 3.0, 4.25)]
    phones = [
        ("s", 0.5, 0.8),
        ("ow", 0.8, 1.2),
        ("ih", 1.2, 1.5),
        ("t", 1.5, 1.8),
        ("ih", 2.0, 2.5),
        ("z", 2.5, 3.0),
    ]
    tiers = [
        Tier(name, tuple(Segment(x, a, b, None, 0.99 if x != "it" else 0.3) for x, a, b in rows))
        for name, rows in (("words", words), ("phones", phones))
    ]
    return Alignment("talk", seconds, tuple(tiers))


@pytest.fixture
def shown(chromium: Browser, tmp_path: Path) -> Callable[..., Path]:
    """Open the page of a recording, and check that the browser complains of nothing."""

    def show(
        audio: np.ndarray,
        alignments: dict[str, Alignment],
        id: str = "talk",
        size: tuple[int, int] = (WIDTH, 900),
    ) -> Path:
        path = tmp_path / "talk.page.html"
        path.write_text(recording_page(id, audio, RATE, alignments), encoding="utf-8")
        chromium.size(*size)
        chromium.open(path)
        chromium.run(LISTEN)
        chromium.downloads(tmp_path)
        return path

    return show


class Place:
    """Coordinates of times and rows in the window, from what the page says of its own layout."""

    def __init__(self, chromium: Browser, seconds: float) -> None:
        box = json.loads(
            chromium.run(
                "(() => { const b = document.querySelector('canvas.main').getBoundingClientRect();"
                "return JSON.stringify([b.left, b.top, b.width]); })()"
            )
        )
        self.left, self.top, self.width = box
        self.seconds = seconds

    def x(self, time: float) -> float:
        return self.left + self.width * time / self.seconds

    def y(self, row: int) -> float:
        return self.top + 220 + 38 * row + 19


def _heard(chromium: Browser, seconds: float) -> np.ndarray:
    """Wait until so many seconds are to be heard; return the samples, joined as they are scheduled."""
    chromium.wait(
        f"window.heard.reduce((sum, [, rate, part]) => sum + part.length / rate, 0) >= {seconds} - 0.001"
    )
    parts = chromium.run("window.heard")
    for (when, rate, part), (after, _, _) in pairwise(parts):
        assert after == pytest.approx(when + len(part) / rate, abs=1e-4)
    return np.concatenate([part for _, _, part in parts])


def _saved(chromium: Browser, folder: Path, name: str = "talk.TextGrid") -> Alignment:
    path = folder / name
    path.unlink(missing_ok=True)
    chromium.run("document.querySelector('[data-do=save]').click()")
    end = time.monotonic() + 30
    while not path.is_file():
        assert time.monotonic() < end, list(folder.iterdir())
        chromium.run("0")
        time.sleep(0.05)
    return files.read(path)


def test_a_click_plays_that_word_to_the_sample(chromium, shown):
    audio, alignment = _speech(6.0), _alignment()
    shown(audio, {"mine": alignment})
    place = Place(chromium, 6.0)
    chromium.click(place.x(1.5), place.y(0))
    heard = _heard(chromium, 0.6)
    np.testing.assert_allclose(heard, audio[round(1.2 * RATE) : round(1.8 * RATE)], atol=1 / 16000)
    assert "it: 1.200" in chromium.run("document.querySelector('output').value")
    # it ends by itself, and in time
    chromium.wait("document.querySelector('[data-do=play]').textContent === 'Play'")
    assert chromium.problems == []


def test_playing_goes_on_over_chunks_without_a_gap(chromium, shown):
    audio = _speech(45.0)
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
        _heard(chromium, 1.0), audio[round(19.5 * RATE) : round(20.5 * RATE)], atol=1 / 16000
    )
    assert chromium.problems == []


def test_keys_walk_zoom_and_play(chromium, shown):
    audio = _speech(6.0)
    shown(audio, {"mine": _alignment()})
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
    heard = _heard(chromium, 0.4)
    np.testing.assert_allclose(heard, audio[round(0.8 * RATE) : round(1.2 * RATE)], atol=1 / 16000)
    chromium.wait("document.querySelector('[data-do=play]').textContent === 'Play'")
    # zoomed to the selection, a fifth of it on both sides, what is seen is played
    chromium.press("n", 78, text="n")
    chromium.run("window.heard = []")
    chromium.press("Tab", 9, modifiers=SHIFT)
    heard = _heard(chromium, 0.56)
    np.testing.assert_allclose(heard, audio[round(0.72 * RATE) : round(1.28 * RATE)], atol=1 / 16000)
    chromium.press("Escape", 27)
    assert chromium.run("document.querySelector('[data-do=play]').textContent") == "Play"
    chromium.press("b", 66, text="b")
    chromium.press("d", 68, text="d")
    assert chromium.run(output).startswith("it: ")  # the least sure word
    assert chromium.problems == []


def test_an_address_names_a_time(chromium, shown):
    """The index links to doubtful words: the page opens there."""
    path = shown(_speech(60.0), {"mine": _alignment(60.0)})
    chromium.open(path.with_name("talk.page.html"), "#t=3.000")
    assert chromium.run("document.querySelector('output').value").startswith("here: 3.000")
    assert chromium.problems == []


def test_the_wheel_zooms_around_the_pointer(chromium, shown):
    audio = _speech(6.0)
    shown(audio, {"mine": _alignment()})
    place = Place(chromium, 6.0)
    x, y = place.x(4.0), place.y(0) - 150
    for _ in range(8):
        chromium.mouse("Wheel", x, y, deltaX=0, deltaY=-120, modifiers=CTRL)
    time.sleep(0.2)
    # 4 s stayed where it was, and is in the word "here" still; without Ctrl nothing is zoomed
    chromium.click(x, place.y(0))
    heard = _heard(chromium, 1.25)
    np.testing.assert_allclose(heard, audio[3 * RATE : round(4.25 * RATE)], atol=1 / 16000)
    chromium.run("window.heard = []; document.querySelector('canvas.main').focus()")
    chromium.press("Escape", 27)
    chromium.press("Tab", 9, modifiers=SHIFT)
    seen = chromium.wait("window.heard[0] && window.heard[0][2].length") / RATE
    assert seen == pytest.approx(6.0 / 1.2 ** (8 * 3), rel=0.02)


def test_keys_move_boundaries(chromium, shown, tmp_path):
    shown(_speech(6.0), {"mine": _alignment()})
    chromium.run("document.querySelector('canvas.main').focus()")
    for _ in range(2):
        chromium.press("ArrowRight", 39)
    chromium.press(".", 190, text=".")
    chromium.press("<", 188, modifiers=SHIFT, text="<")
    expected = _moved(_plain(_alignment()), {1.2: 1.205, 1.8: 1.795})
    assert _saved(chromium, tmp_path).tiers == expected.tiers
    chromium.press("z", 90, modifiers=CTRL)
    assert _saved(chromium, tmp_path).tiers == _moved(_plain(_alignment()), {1.2: 1.205}).tiers
    assert chromium.problems == []


def test_a_drag_changes_the_textgrid_that_is_saved(chromium, shown, tmp_path):
    alignment = _alignment()
    shown(_speech(6.0), {"mine": alignment, "other": _alignment()})
    assert _saved(chromium, tmp_path).tiers == _plain(alignment).tiers  # nothing was changed yet
    place = Place(chromium, 6.0)
    second = place.width / 6.0
    chromium.drag(place.x(1.2), place.y(0), place.x(1.2) + 0.25 * second)
    saved = _saved(chromium, tmp_path)
    moved = saved.tier("words").segments[0].end
    assert moved == pytest.approx(1.45, abs=2 / second)
    # the phones share the boundary; all else is as it was
    expected = _moved(_plain(alignment), {1.2: moved})
    assert saved.tiers == expected.tiers
    # with Alt the word alone
    chromium.drag(place.x(3.0), place.y(0), place.x(3.0) + 0.3 * second, modifiers=ALT)
    saved = _saved(chromium, tmp_path)
    assert saved.tier("words").segments[2].end == pytest.approx(3.3, abs=2 / second)
    assert saved.tier("phones") == expected.tier("phones")
    # no further than the neighbour
    chromium.drag(place.x(4.25), place.y(0), place.x(1.0))
    last = _saved(chromium, tmp_path).tier("words").segments[-1]
    assert last.duration == pytest.approx(0.001, abs=1e-4)
    for _ in range(3):
        chromium.run("document.querySelector('[data-do=undo]').click()")
    assert _saved(chromium, tmp_path).tiers == _plain(alignment).tiers
    # rows of other systems stay as they are
    chromium.drag(place.x(1.2), place.y(1), place.x(1.6))
    assert _saved(chromium, tmp_path).tiers == _plain(alignment).tiers
    assert chromium.problems == []


def _plain(alignment: Alignment) -> Alignment:
    """What a TextGrid keeps of an alignment."""
    tiers = (Tier(t.name, tuple(Segment(s.label, s.start, s.end) for s in t)) for t in alignment.tiers)
    return Alignment(alignment.id, alignment.duration, tuple(tiers))


def _moved(alignment: Alignment, times: dict[float, float]) -> Alignment:
    def segment(s: Segment) -> Segment:
        return Segment(s.label, times.get(s.start, s.start), times.get(s.end, s.end))

    return Alignment(
        alignment.id, alignment.duration, tuple(Tier(t.name, tuple(map(segment, t))) for t in alignment.tiers)
    )


def test_what_is_saved_comes_back_to_evaluate(chromium, shown, tmp_path):
    """The corrected TextGrid is a reference: the alignment differs from it where it was corrected, and nowhere else."""
    alignment = _alignment()
    shown(_speech(6.0), {"mine": alignment})
    place = Place(chromium, 6.0)
    chromium.drag(place.x(1.2), place.y(0), place.x(1.32))
    moved = _saved(chromium, tmp_path).tier("words").segments[0].end
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
    shown(_speech(1.0), {label: Alignment("talk", 1.0, (words,))}, id=f"{label}/{label}")
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
    audio = _speech(2.0)
    viewers = [Viewer(audio, RATE, {"reference": _alignment()}) for _ in range(2)]
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
        _heard(chromium, 0.7), audio[round(0.5 * RATE) : round(1.2 * RATE)], atol=1 / 16000
    )
    assert chromium.problems == []


def test_it_prints_in_the_colours_of_paper(chromium, shown):
    """A dark page is printed light, and is dark again afterwards."""
    shown(_speech(6.0), {"mine": _alignment()})
    chromium.size(WIDTH, 900, dark=True)
    chromium.run(
        "window.printed = null; addEventListener('beforeprint', () => {"
        "  const c = document.querySelector('canvas.main');"
        "  window.printed = Array.from(c.getContext('2d').getImageData(2, 5, 1, 1).data);"
        "});"
    )
    pdf = chromium.paper()
    assert pdf[:5] == b"%PDF-"
    assert chromium.run("window.printed") == [255, 255, 255, 255]
    now = "Array.from(document.querySelector('canvas.main').getContext('2d').getImageData(2, 5, 1, 1).data)"
    chromium.wait(f"{now}[0] < 60")


def test_an_hour_is_there_at_once_and_zooms_without_stalling(chromium, tmp_path):
    """First paint in 2 s, every step of the zoom in 100 ms; 10,000 words and 40,000 phones."""
    seconds = 3600
    audio = np.tile(np.concatenate([_speech(20.0), np.zeros(40 * RATE, np.float32)]), 60)
    words = tuple(Segment(f"w{i}", 0.36 * i, 0.36 * i + 0.34, None, i % 97 / 97) for i in range(10_000))
    phones = tuple(Segment(f"p{i % 40}", 0.09 * i, 0.09 * (i + 1), None, 0.5) for i in range(40_000))
    alignment = Alignment("hour", float(seconds), (Tier("words", words), Tier("phones", phones)))
    path = tmp_path / "hour.page.html"
    path.write_text(recording_page("hour", audio, RATE, {"mine": alignment}), encoding="utf-8")
    assert path.stat().st_size < 60e6
    chromium.size(WIDTH, 900)
    chromium.open(path)
    paint = chromium.wait("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    assert paint < 2000
    steps = chromium.run(
        """(async () => {
          const times = [], root = document.querySelector('.viewer');
          for (const name of [...'ooooooooooooo'].map(() => 'out').concat([...'iiiiiiiiiiiiiiiii'].map(() => 'in'))) {
            const begin = performance.now();
            root.querySelector(`[data-do=${name}]`).click();
            await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
            times.push(performance.now() - begin);
            await new Promise(done => setTimeout(done, 30));
          }
          return times;
        })()"""
    )
    assert np.median(steps) < 100
    assert np.quantile(steps, 0.9) < 200  # the machine may be busy
    assert chromium.problems == []


def test_a_lossy_hour_is_in_time(chromium, shown):
    """The chunks of a long recording are where they belong: no codec's delay adds up."""
    audio = _speech(640.0)
    # a click in quiet, near the end of the last but one chunk
    audio[:] *= 0.01
    at = 619.5
    audio[round(at * RATE)] = 0.9
    shown(audio, {"mine": Alignment("talk", 640.0, (Tier("words", (Segment("tick", 619.0, 621.0),)),))})
    chromium.run("document.querySelector('[data-do=all]').click()")
    time.sleep(0.3)
    place = Place(chromium, 640.0)
    chromium.click(place.x(620.0), place.y(0))
    heard = np.abs(_heard(chromium, 2.0))
    assert heard.argmax() == pytest.approx(round((at - 619.0) * RATE), abs=16)


def test_the_sound_inside_is_what_is_heard():
    """The oracle of this file: a chunk is read as libsndfile reads it."""
    text = recording_page("talk", _speech(1.0), RATE, {"mine": _alignment()})
    chunk = text.split('class="chunk">')[1].split("<")[0]
    back, rate = soundfile.read(io.BytesIO(base64.b64decode(chunk)))
    assert rate == RATE
    np.testing.assert_allclose(back, _speech(1.0), atol=1 / 32000)
