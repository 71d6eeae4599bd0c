"""Tokenizers that several test modules use."""

from __future__ import annotations

import pytest

from isotone.text.tokenizer import CharacterTokenizer, PieceTokenizer, train_pieces
from tests.text.samples import LETTERS, TEXTS


@pytest.fixture(scope="module")
def characters() -> CharacterTokenizer:
    return CharacterTokenizer(["<pad>", "<unk>", "|", *LETTERS])


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def pieces(request: pytest.FixtureRequest) -> PieceTokenizer:
    return train_pieces(TEXTS, 40, request.param)
