"""The CTC head."""

from __future__ import annotations

import pytest
import torch
from isotone_ctc.head import CTCHead

from isotone.types import Frames, Grid, length_mask
from tests.plugins.ctc.parts import FLOAT32, GRID


def test_head_has_the_state_of_transformers() -> None:
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    config = Wav2Vec2Config(
        vocab_size=7, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        conv_dim=(8,), conv_stride=(5,), conv_kernel=(10,), num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2, final_dropout=0.0,
    )  # fmt: skip
    model = Wav2Vec2ForCTC(config).eval()
    head = CTCHead(16, 7, reads=3, dropout=0.2).eval()
    head.load_state_dict({k: v for k, v in model.state_dict().items() if k.startswith("lm_head")})
    with torch.no_grad():
        out = model(torch.randn(2, 400), output_hidden_states=True)
        emissions = head(Frames(out.hidden_states[-1], torch.tensor([79, 40]), GRID))
    valid = length_mask(emissions.lengths, 79)
    torch.testing.assert_close(emissions.logits[valid], out.logits[valid], **FLOAT32)
    assert (head.reads, head.blank, head.dropout.p) == (3, 0, 0.2)


def test_head_passes_lengths_grid_and_blank_on() -> None:
    head = CTCHead(5, 4, 3)
    frames = Frames(torch.randn(2, 9, 5), torch.tensor([9, 4]), Grid(0.01, 0.005))
    emissions = head(frames)
    assert emissions.logits.shape == (2, 9, 4)
    assert emissions.lengths is frames.lengths
    assert (emissions.grid, emissions.blank, emissions.weight_logits) == (frames.grid, 3, None)
    assert not torch.equal(head(frames).logits, emissions.logits)  # dropout, in training only
    head.eval()
    assert torch.equal(head(frames).logits, head(frames).logits)
    with pytest.raises(ValueError, match="blank from 0 to 3; got 4"):
        CTCHead(5, 4, 4)
