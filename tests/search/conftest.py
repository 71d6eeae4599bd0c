"""A small collection of recordings and its index, which several test modules search."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotone.search import SearchIndex, build_index
from tests.search.parts import LOG_MEL, collection


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return collection(tmp_path_factory.mktemp("search") / "recordings")


@pytest.fixture(scope="module")
def index(recordings: Path) -> SearchIndex:
    out = recordings.parent / "recordings.index"
    built = build_index([recordings], LOG_MEL, out)
    assert (built.done, built.errors) == (4, [])
    assert built.seconds == pytest.approx(49.5)
    return SearchIndex.open(out)
