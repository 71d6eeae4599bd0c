"""The decoders of OTTC."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from isotone_ottc.decode import GreedyOTTC, SegmentalDecoder

from isotone.testing import check_decoder
from tests.plugins.ottc.parts import peaked


@pytest.mark.parametrize("decoder", [GreedyOTTC(min_alpha=0.3), SegmentalDecoder(change_penalty=0.0)])
def test_every_decoder_keeps_the_laws(decoder: GreedyOTTC | SegmentalDecoder) -> None:
    check_decoder(decoder)


def test_greedy_leaves_out_frames_without_weight() -> None:
    emissions = peaked([[1, 1, 3, 1, 0, 2]])
    light = replace(emissions, weight_logits=torch.tensor([[0.0, 0.0, -9.0, 0.0, 0.0, 0.0]]))
    assert GreedyOTTC()(light)[0].tolist() == [[1, 3, 1, 2]]
    tokens, coupling = GreedyOTTC(min_alpha=0.1)(light)
    assert tokens.tolist() == [[1, 2]]
    assert coupling.source[0].tolist() == [0, 1, 3, 5]
    assert coupling.target[0].tolist() == [0, 0, 0, 1]


def test_segmental_decoding_suppresses_flicker() -> None:
    emissions = peaked([[1, 1, 2, 1, 1, 3, 3, 3]], sharpness=1.5)
    assert SegmentalDecoder(change_penalty=0.0)(emissions)[0].tolist() == [[1, 2, 1, 3]]
    assert SegmentalDecoder(change_penalty=1.0)(emissions)[0].tolist() == [[1, 3]]
