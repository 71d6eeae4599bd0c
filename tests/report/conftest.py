"""A browser for the tests of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from isotone.alignment import Alignment
from isotone.report.recording_page import recording_page
from tests.browser import Browser, browser
from tests.report.browsing import LISTEN, RATE, WIDTH


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as one:
        yield one


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
