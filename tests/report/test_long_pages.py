"""Long recordings in a real browser, and paper."""

from __future__ import annotations

import base64
import io
import time

import numpy as np
import pytest
import soundfile

from isotone.alignment import Alignment, Segment, Tier
from isotone.report.recording_page import recording_page
from tests.browser import program
from tests.report.browsing import RATE, WIDTH, Place, example, listen, noise

pytestmark = [
    pytest.mark.skipif(program() is None, reason="no Chromium is installed (apt install chromium)"),
    pytest.mark.slow,
]


def test_it_prints_in_the_colours_of_paper(chromium, shown):
    """A dark page is printed light, and is dark again afterwards."""
    shown(noise(6.0), {"mine": example()})
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


@pytest.mark.parametrize("seconds", [6.0, 90.0])
def test_the_spectrogram_is_that_of_the_sound(chromium, shown, seconds):
    """A tone of 2 kHz for the middle third: dark at a quarter of the height, there and nowhere else.

    A short view is computed from the samples in the page, a long one from the levels that came with it.
    """
    time_s = np.arange(round(seconds * RATE)) / RATE
    inside = (time_s > seconds / 3) & (time_s < 2 * seconds / 3)
    audio = (0.5 * inside * np.sin(2 * np.pi * 2000 * time_s)).astype(np.float32)
    shown(audio, {"mine": Alignment("talk", seconds, (Tier("words", ()),))})
    chromium.run("document.querySelector('[data-do=all]').click()")
    time.sleep(1)  # until what is seen is drawn from the samples
    pixels = chromium.run(
        "(() => { const c = document.querySelector('canvas.main');"
        "const image = c.getContext('2d').getImageData(0, 84, c.width, 136);"
        "return [image.width, Array.from(image.data)]; })()"
    )
    picture = 255 - np.array(pixels[1]).reshape(136, pixels[0], 4)[:, :, 0].astype(int)
    dark = picture.sum(0)
    width = pixels[0]
    quiet = np.r_[dark[20 : width // 3 - 20], dark[2 * width // 3 + 20 : width - 20]]
    assert dark[width // 3 + 20 : 2 * width // 3 - 20].min() > 10 * (quiet.max() + 1)
    column = picture[:, width // 2]
    # the highest frequency, 8 kHz, is on top
    assert 135 - np.average(np.arange(136), weights=column**4) == pytest.approx(136 / 4, abs=2.5)


def test_an_hour_is_there_at_once_and_zooms_without_stalling(chromium, tmp_path):
    """First paint in 2 s, every step of the zoom in 100 ms; 10,000 words and 40,000 phones."""
    seconds = 3600
    audio = np.tile(np.concatenate([noise(20.0), np.zeros(40 * RATE, np.float32)]), 60)
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
    audio = noise(640.0)
    # a click in quiet, near the end of the last but one chunk
    audio[:] *= 0.01
    at = 619.5
    audio[round(at * RATE)] = 0.9
    shown(audio, {"mine": Alignment("talk", 640.0, (Tier("words", (Segment("tick", 619.0, 621.0),)),))})
    chromium.run("document.querySelector('[data-do=all]').click()")
    time.sleep(0.3)
    place = Place(chromium, 640.0)
    chromium.click(place.x(620.0), place.y(0))
    heard = np.abs(listen(chromium, 2.0))
    assert heard.argmax() == pytest.approx(round((at - 619.0) * RATE), abs=16)


def test_the_sound_inside_is_what_is_heard():
    """The oracle of this file: a chunk is read as libsndfile reads it."""
    text = recording_page("talk", noise(1.0), RATE, {"mine": example()})
    chunk = text.split('class="chunk">')[1].split("<")[0]
    back, rate = soundfile.read(io.BytesIO(base64.b64decode(chunk)))
    assert rate == RATE
    np.testing.assert_allclose(back, noise(1.0), atol=1 / 32000)
