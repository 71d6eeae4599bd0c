"""Pipelines that several test files share."""

from __future__ import annotations

import pytest

from isotone.pipeline import Pipeline
from tests.pipeline.parts import model_of_characters, model_of_phones


@pytest.fixture(scope="module")
def characters() -> Pipeline:
    return Pipeline(model_of_characters())


@pytest.fixture(scope="module")
def phones() -> Pipeline:
    return Pipeline(model_of_phones())
