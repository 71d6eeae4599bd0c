"""SpecAugment: the amount and the positions of masks, and their independence of padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from isotone.model.encoder import SpeechEncoder
from isotone.model.spec_augment import SpecAugment, draw_spans

SMALL: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "layerdrop": 0.0,
    "mask_time_prob": 0.0,
}  # fmt: skip
ENCODERS: dict[str, dict[str, Any]] = {
    "log-mel": {**SMALL, "model_type": "wav2vec2-bert", "conv_depthwise_kernel_size": 3},
    "wave": {
        **SMALL, "model_type": "wav2vec2", "conv_dim": [8] * 7, "feat_extract_norm": "layer", "conv_bias": True,
        "do_stable_layer_norm": True, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2,
    },
}  # fmt: skip
MASKS = {"time_share": 0.5, "time_width_s": 0.1, "frequency_width": 3}


def masked(part: SpecAugment, lengths: list[int], size: int, *, features: int, seed: int = 0) -> Tensor:
    """Return the masked positions of constant features."""
    torch.manual_seed(seed)
    return part(torch.full((len(lengths), size, features), 9.0), torch.tensor(lengths)) != 9


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=4), st.integers(0, 12), st.floats(0.02, 2.0),
    st.floats(0, 1), st.integers(0, 2**16),
)  # fmt: skip
def test_time_masks_take_at_most_their_share(
    lengths: list[int], masks: int, width: float, share: float, seed: int
) -> None:
    part = SpecAugment(
        0.02, 4, time_masks=masks, time_width_s=width, time_share=share, frequency_masks=0, frequency_width=0
    )
    found = masked(part, lengths, 64, features=8, seed=seed)
    for row, n in enumerate(lengths):
        frames = found[row].all(-1)
        assert torch.equal(found[row].any(-1), frames)  # whole frames
        assert frames.sum() <= share * n + 1e-4
        assert not frames[n:].any()


def test_usual_masks_and_those_of_consistency_training() -> None:
    """A second of width and a share: a half of it is masked in the mean, less what overlaps; 2.5 times of it then."""
    for masks, share in ((10, 0.15), (25, 0.375)):
        part = SpecAugment(0.01, 80, time_masks=masks, time_share=share, frequency_masks=0)
        frames = masked(part, [400] * 300, 400, features=80)[..., 0].float()
        # one mask of at most 60 frames; two of at most 75
        expected = share / 2 if share == 0.15 else 1 - (1 - share / 4) ** 2
        assert frames.mean().item() == pytest.approx(expected, abs=0.02)
        starts = (frames[:, 1:] > frames[:, :-1]).sum(1) + (frames[:, 0] > 0)
        assert starts.max() == (1 if share == 0.15 else 2)


def test_spans_are_uniform() -> None:
    """Widths from 0 to the widest, and places within the row, all as likely."""
    torch.manual_seed(0)
    count = 6000
    rows = torch.full((count,), 5)
    spans = draw_spans(rows, torch.full((count,), 2), torch.ones(count), 1, 7)
    assert not spans[:, 5:].any()
    seen, counts = torch.unique(spans[:, :5], dim=0, return_counts=True)
    shares = {tuple(row): n / count for row, n in zip(seen.int().tolist(), counts.tolist())}
    expected = {(0, 0, 0, 0, 0): 1 / 3}
    for width, positions in ((1, 5), (2, 4)):
        for start in range(positions):
            row = [0] * 5
            row[start : start + width] = [1] * width
            expected[tuple(row)] = 1 / 3 / positions  # type: ignore[index]
    assert shares == pytest.approx(expected, abs=0.02)


def test_bands_are_masked_alike_in_all_stacked_frames() -> None:
    part = SpecAugment(0.02, 10, time_masks=0, frequency_masks=2, frequency_width=4)
    found = masked(part, [30] * 50, 30, features=30)
    bands = found.view(50, 30, 3, 10)
    assert torch.equal(bands, bands[:, :1, :1].expand_as(bands))
    widths = bands[:, 0, 0].sum(1)
    assert widths.max() <= 8
    assert widths.float().mean() > 2
    assert len(torch.unique(bands[:, 0, 0], dim=0)) > 10  # every utterance has its own


def test_padding_decides_nothing() -> None:
    part = SpecAugment(0.02, 10, frequency_width=4, time_share=0.4)
    short = masked(part, [30, 17], 30, features=20)
    long = masked(part, [30, 17], 55, features=20)
    assert torch.equal(long[0, :30], short[0])
    assert torch.equal(long[1, :17], short[1, :17])
    assert short.any()


def test_masked_frames_keep_a_direction() -> None:
    """Layer normalisation of what is masked is no noise: every frame has its variance."""
    part = SpecAugment(0.02, 80, time_share=1.0, frequency_masks=2)
    torch.manual_seed(0)
    out = part(torch.zeros(4, 200, 160), torch.full((4,), 200))
    marked = out[(out != 0).any(-1)]
    assert len(marked) > 100
    assert marked.std(-1).min() > 0.8
    assert torch.equal(marked, marked[:1].expand_as(marked))


def test_in_training_only() -> None:
    part = SpecAugment(0.02, 10, frequency_width=4)
    values = torch.ones(2, 30, 20)
    assert part.eval()(values, torch.tensor([30, 20])) is values


def still(encoder: SpeechEncoder) -> SpeechEncoder:
    """Without dropout."""
    for module in encoder.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    encoder.model.config.update(
        dict.fromkeys(("hidden_dropout", "attention_dropout", "feat_proj_dropout"), 0.0)
    )
    return encoder


@pytest.mark.parametrize("kind", ENCODERS)
def test_encoder_and_heads_of_the_features_see_one_mask(kind: str) -> None:
    torch.manual_seed(0)
    encoder = still(SpeechEncoder(ENCODERS[kind], spec_augment=MASKS))
    audio, lengths = torch.randn(2, 8000) * 0.1, torch.tensor([8000, 5000])
    whole = encoder.eval()(audio, lengths)
    read: list[Tensor] = []
    encoder.model.feature_projection.register_forward_pre_hook(lambda _m, inputs: read.append(inputs[0]))
    torch.manual_seed(1)
    encoder.train()
    out = encoder(audio, lengths)
    torch.manual_seed(1)
    alone = encoder(audio, lengths, hidden=False)
    assert torch.equal(alone.features.values, out.features.values)
    values, mark = out.features.values, encoder.spec_augment.get_buffer("mark")
    frames = (values.unflatten(2, (-1, len(mark))) == mark).all((2, 3))
    assert 0 < frames.sum() <= 0.5 * out.features.lengths.sum()
    gone = (values == 0) & ~frames[..., None]
    assert 0 < gone.sum() < gone.numel() / 2
    expected = torch.where(frames[..., None], values, whole.features.values.masked_fill(gone, 0.0))
    torch.testing.assert_close(values, expected)
    if kind == "wave":  # of the log-mel frames the encoder reads advanced ones
        assert torch.equal(read[0], out.features.values)
    assert not torch.allclose(out.read("last").values, whole.read("last").values, atol=1e-3)
    without = still(SpeechEncoder(ENCODERS[kind]))
    without.load_state_dict(encoder.state_dict())  # the masks have no weights
    torch.testing.assert_close(without.eval()(audio, lengths).read("last").values, whole.read("last").values)


@pytest.mark.parametrize("kind", ENCODERS)
def test_heads_of_the_features_can_be_spared(kind: str) -> None:
    torch.manual_seed(0)
    encoder = still(SpeechEncoder(ENCODERS[kind], spec_augment=MASKS))
    spared = still(SpeechEncoder(ENCODERS[kind], spec_augment=MASKS, mask_features=False))
    spared.load_state_dict(encoder.state_dict())
    audio, lengths = torch.randn(2, 8000) * 0.1, torch.tensor([8000, 5000])
    whole = encoder.eval()(audio, lengths)
    found = []
    for part in (encoder, spared):
        torch.manual_seed(1)
        found.append(part.train()(audio, lengths))
        features = part(audio, lengths, hidden=False).features
        assert torch.equal(features.values, whole.features.values) is (part is spared)
    assert not torch.equal(found[0].features.values, whole.features.values)
    assert torch.equal(found[1].features.values, whole.features.values)
    assert torch.equal(found[0].read("last").values, found[1].read("last").values)


def test_the_same_seed_the_same_masks() -> None:
    encoder = still(SpeechEncoder(ENCODERS["log-mel"], spec_augment=MASKS)).train()
    audio, lengths = torch.randn(2, 8000), torch.tensor([8000, 5000])
    found = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        found.append(encoder(audio, lengths).features.values)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_mask": 3}, r"spec_augment has no option 'time_mask'\. Did you mean 'time_masks'\?"),
        ({"hop_s": 3}, "spec_augment has no option 'hop_s'"),
        ({"time_share": 1.5}, r"time_share from 0 to 1; got 10, 1\.0 and 1\.5"),
        ({"time_width_s": 0.001}, r"at least a frame \(0\.02 s\)"),
        ({"frequency_width": -1}, "frequency_width >= 0; got 2 and -1"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SpeechEncoder(ENCODERS["log-mel"], spec_augment=options)
