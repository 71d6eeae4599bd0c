"""The small synthetic corpus, made once per session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.synthetic import SMALL


@pytest.fixture(scope="session")
def synth_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from isotone.corpus.synth import generate  # it needs espeak-ng

    return generate(tmp_path_factory.mktemp("synth") / "corpus", seed=5, **SMALL)
