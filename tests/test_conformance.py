"""Every registered plugin keeps to the laws of its kind."""

from __future__ import annotations

import pytest
import torch

from isotone import aligners, decoders, formats, heads, losses
from isotone.testing import check_aligner, check_decoder, check_format, check_head, check_loss


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("name", losses.names())
def test_loss(name: str) -> None:
    check_loss(losses.build(name))


@pytest.mark.parametrize("name", heads.names())
def test_head(name: str) -> None:
    check_head(heads.build(name, 7, 5), 7, 5)


@pytest.mark.parametrize("name", aligners.names())
def test_aligner(name: str) -> None:
    check_aligner(aligners.build(name))


@pytest.mark.parametrize("name", decoders.names())
def test_decoder(name: str) -> None:
    check_decoder(decoders.build(name))


@pytest.mark.parametrize("name", formats.names())
def test_format(name: str) -> None:
    check_format(formats.build(name))
