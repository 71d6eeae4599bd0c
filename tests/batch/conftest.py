"""Small models that the tests of batches share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny_models import save_character_model, save_phone_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("models") / "characters")


@pytest.fixture(scope="module")
def phone_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_phone_model(tmp_path_factory.mktemp("models") / "phones")
