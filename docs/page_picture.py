"""Photograph a page: ``python -m docs.page_picture RECORDING "TEXT"`` writes viewer.png; it needs Chromium.

The picture is of LJ001-0174 of LJSpeech (public domain).
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import isotone
from isotone.report.recording_page import recording_page
from tests.browser import browser


def main(recording: str, text: str) -> None:
    """Align a recording by the pack of English, and take a picture of its page in a browser."""
    found = isotone.align(recording, text)
    page = recording_page(
        Path(recording).stem, found.samples, found.sample_rate, {"isotone": found.alignment}
    )
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name,
        browser(Path(name) / "profile") as one,
    ):
        file = Path(name, "page.html")
        file.write_text(page, encoding="utf-8")
        one.size(1200, 780)
        one.open(file)
        one.run("document.activeElement.blur()")
        time.sleep(1)  # until the spectrogram is drawn from the samples
        one.picture(Path(__file__).parent / "viewer.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
