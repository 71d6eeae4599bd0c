"""The microphone of the tutorial on streams: its code as printed, with a file read at the pace of a microphone."""

from __future__ import annotations

import sys
import time
from types import ModuleType

import numpy as np
import pytest
import soxr

import isotone
from isotone.text.espeak import SAMPLE_RATE, Engine
from tests import doc_blocks
from tests.paths import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "plugins/isotone_english/model").is_dir(), reason="the pack's weights are not built"
)
TEXT = "A cold rain fell on the town. Nobody heard the small bell."
RATE = 48_000


class PacedFile:
    """The part of ``sounddevice.InputStream`` that the tutorial uses: a read returns when its last sample was made."""

    def __init__(self, samplerate: int, channels: int) -> None:
        assert (samplerate, channels) == (RATE, 1)
        voice = Engine().say(TEXT, voice="en-us+f1", rate=150).samples.astype(np.float32) / 32768
        room = np.random.default_rng(0).normal(0, 1e-4, 5 * RATE).astype(np.float32)
        self.samples = np.concatenate([soxr.resample(voice, SAMPLE_RATE, RATE), room])
        self.read_s = 0.0

    def __enter__(self) -> PacedFile:
        self.begin = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, frames: int) -> tuple[np.ndarray, bool]:
        start = round(self.read_s * RATE)
        piece = self.samples[start : start + frames, None]
        assert len(piece) == frames, "the words did not end with the text"
        self.read_s += frames / RATE
        time.sleep(max(0.0, self.begin + self.read_s - time.monotonic()))
        return piece, False


def test_the_microphone_of_the_tutorial(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("espeakng_loader", reason="espeak-ng is an extra")
    opened: list[PacedFile] = []
    printed: list[tuple[str, float | None, float | None, float]] = []
    device = ModuleType("sounddevice")

    def open_stream(**options: int) -> PacedFile:
        opened.append(PacedFile(**options))
        return opened[-1]

    def note(text: str, start: float | None, end: float | None, *, flush: bool) -> None:
        printed.append((text, start, end, opened[-1].read_s))

    device.InputStream = open_stream  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sounddevice", device)
    page = doc_blocks.blocks(ROOT / "docs/tutorials/streaming.md")
    (block,) = (b for b in page if b.kind == "python" and "import sounddevice" in b.code)
    exec(block.code, {"isotone": isotone, "text": TEXT, "print": note})

    first: dict[str, tuple[float, float]] = {}
    for text, start, end, read_s in printed:
        assert start is not None
        assert end is not None
        first.setdefault(text, (end, read_s))
    assert [*first] == list(dict.fromkeys(TEXT.split()))
    # the first words wait for a second of speech
    late = [read_s - end for end, read_s in first.values() if end > 1.0]
    assert len(late) > 6
    assert min(late) >= 0.2 - 1e-6
    # a piece has 20 ms, and the resampler holds 12 ms back
    assert np.median(late) <= 0.3 + 0.02
    assert opened[-1].read_s < len(opened[-1].samples) / RATE
