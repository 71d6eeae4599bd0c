"""Tests of every device: on the CPU they check themselves, on a GPU that it computes what the CPU does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

#: Marks of a test that a GPU runs.
ON_GPU = (pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"))


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=ON_GPU)])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(autouse=True)
def _exact() -> Iterator[None]:
    """Round convolutions as the CPU does: by default a GPU gives them TF32, of ten bits."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    yield
    torch.backends.cudnn.allow_tf32 = before
