"""Pages in a real browser: recordings to show, places in the window, and what is heard and saved."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from isotone import format as files
from isotone.alignment import Alignment, Segment, Tier
from tests.browser import Browser

RATE = 16_000
WIDTH = 1200

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


def noise(seconds: float, rate: int = RATE) -> np.ndarray:
    """Noise whose samples are all different, quiet at both ends: no part of it is like another one."""
    rng = np.random.default_rng(0)
    return (0.2 * rng.standard_normal(round(seconds * rate)).clip(-3, 3)).astype(np.float32)


def example(seconds: float = 6.0, start: float = 0.5) -> Alignment:
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


def listen(chromium: Browser, seconds: float) -> np.ndarray:
    """Wait until so many seconds are to be heard; return the samples, joined as they are scheduled."""
    chromium.wait(
        f"window.heard.reduce((sum, [, rate, part]) => sum + part.length / rate, 0) >= {seconds} - 0.001"
    )
    parts = chromium.run("window.heard")
    for (when, rate, part), (after, _, _) in pairwise(parts):
        assert after == pytest.approx(when + len(part) / rate, abs=1e-4)
    return np.concatenate([part for _, _, part in parts])


def save(chromium: Browser, folder: Path, name: str = "talk.TextGrid") -> Alignment:
    path = folder / name
    path.unlink(missing_ok=True)
    chromium.run("document.querySelector('[data-do=save]').click()")
    end = time.monotonic() + 30
    while not path.is_file():
        assert time.monotonic() < end, list(folder.iterdir())
        chromium.run("0")
        time.sleep(0.05)
    return files.read(path)


def kept(alignment: Alignment) -> Alignment:
    """What a TextGrid keeps of an alignment."""
    tiers = (Tier(t.name, tuple(Segment(s.label, s.start, s.end) for s in t)) for t in alignment.tiers)
    return Alignment(alignment.id, alignment.duration, tuple(tiers))


def shift(alignment: Alignment, times: dict[float, float]) -> Alignment:
    def segment(s: Segment) -> Segment:
        return Segment(s.label, times.get(s.start, s.start), times.get(s.end, s.end))

    return Alignment(
        alignment.id, alignment.duration, tuple(Tier(t.name, tuple(map(segment, t))) for t in alignment.tiers)
    )
