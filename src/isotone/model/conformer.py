"""The encoder of a Wav2Vec2-BERT without position embeddings, without transformers, whose import takes seconds.

Trained encoders of isotone's presets load as this module. It has the parameters, the names and the results of
transformers' ``Wav2Vec2BertModel``, which trains them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

#: Frames of a convolution up to which a sum over them is the fastest.
_FEW = 7


class Settings(SimpleNamespace):
    """A configuration that transformers saved, as attributes."""

    def to_dict(self) -> dict[str, Any]:
        """Return the settings by name."""
        return dict(vars(self))

    def save_pretrained(self, folder: Path | str) -> None:
        """Write ``config.json`` as transformers does."""
        text = json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n"
        Path(folder, "config.json").write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class Output:
    """Hidden states.

    Attributes:
        last_hidden_state: ``(B, T, D)`` of the last layer.
        hidden_states: The input of every layer, then the output of the last, each ``(B, T, D)``.
    """

    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...]


def read_settings(folder: Path) -> Settings | None:
    """Read the configuration of an encoder folder; None if :class:`Conformer` does not compute that encoder."""
    try:
        found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # transformers says what is wrong
        return None
    return Settings(**found) if isinstance(found, dict) and _computable(found) else None


def _computable(found: Mapping[str, Any]) -> bool:
    needed = {
        "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "conv_depthwise_kernel_size",
        "feature_projection_input_dim", "layer_norm_eps", "hidden_dropout", "activation_dropout", "attention_dropout",
        "feat_proj_dropout", "conformer_conv_dropout", "mask_time_prob", "mask_feature_prob",
    }  # fmt: skip
    return (
        found.get("model_type") == "wav2vec2-bert"
        and needed <= found.keys()
        and found.get("position_embeddings_type", "relative_key") is None
        and found.get("hidden_act") in ("swish", "silu")
        and not (found.get("add_adapter", True) or found.get("use_intermediate_ffn_before_adapter", True))
        and not (found.get("layerdrop", 1) or found.get("apply_spec_augment", True))
        and found.get("dtype", found.get("torch_dtype")) in (None, "float32")
    )


class Conformer(nn.Module):
    """Input features to hidden states.

    Args:
        config: From :func:`read_settings`.
    """

    def __init__(self, config: Settings) -> None:
        super().__init__()
        self.config = config
        self.feature_projection = _Projection(config)
        if config.mask_time_prob > 0 or config.mask_feature_prob > 0:  # unused, and part of the weights
            self.masked_spec_embed = nn.Parameter(torch.zeros(config.hidden_size))
        self.encoder = _Layers(config)

    def forward(self, values: Tensor, attention_mask: Tensor, output_hidden_states: bool = True) -> Output:
        """Compute hidden states of features ``(B, T, D)``; the mask ``(B, T)`` is 1 at frames of the recording."""
        states: tuple[Tensor, ...] = self.encoder(self.feature_projection(values), attention_mask.bool())
        return Output(states[-1], states)


class _Projection(nn.Module):
    def __init__(self, config: Settings) -> None:
        super().__init__()
        self.layer_norm = nn.LayerNorm(config.feature_projection_input_dim, eps=config.layer_norm_eps)
        self.projection = nn.Linear(config.feature_projection_input_dim, config.hidden_size)
        self.dropout = nn.Dropout(config.feat_proj_dropout)

    def forward(self, values: Tensor) -> Tensor:
        return self.dropout(self.projection(self.layer_norm(values)))


class _Layers(nn.Module):
    #: Set in graphs of whole recordings, without padding.
    unpadded = False

    def __init__(self, config: Settings) -> None:
        super().__init__()
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.layers = nn.ModuleList([_Layer(config) for _ in range(config.num_hidden_layers)])

    def forward(self, values: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        # faster without a mask; a graph that is compiled has to serve any
        whole = self.unpadded or (not torch.compiler.is_compiling() and bool(mask.all()))
        padded = None if whole else ~mask
        values = self.dropout(_without(values, padded))
        states = [values]
        for layer in self.layers:
            values = layer(values, padded)
            states.append(values)
        return tuple(states)


def _without(values: Tensor, padded: Tensor | None) -> Tensor:
    """Set padded frames to 0."""
    return values if padded is None else values.masked_fill(padded[..., None], 0.0)


class _Layer(nn.Module):
    def __init__(self, config: Settings) -> None:
        super().__init__()

        def norm() -> nn.LayerNorm:
            return nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

        self.ffn1_layer_norm, self.ffn1 = norm(), _FeedForward(config)
        self.self_attn_layer_norm, self.self_attn = norm(), _Attention(config)
        self.self_attn_dropout = nn.Dropout(config.attention_dropout)
        self.conv_module = _Convolution(config)
        self.ffn2_layer_norm, self.ffn2 = norm(), _FeedForward(config)
        self.final_layer_norm = norm()

    def forward(self, values: Tensor, padded: Tensor | None) -> Tensor:
        values = torch.add(values, self.ffn1(self.ffn1_layer_norm(values)), alpha=0.5)
        values = values + self.self_attn_dropout(self.self_attn(self.self_attn_layer_norm(values), padded))
        values = values + self.conv_module(values, padded)
        return self.final_layer_norm(torch.add(values, self.ffn2(self.ffn2_layer_norm(values)), alpha=0.5))


class _FeedForward(nn.Module):
    def __init__(self, config: Settings) -> None:
        super().__init__()
        self.intermediate_dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.intermediate_dropout = nn.Dropout(config.activation_dropout)
        self.output_dense = nn.Linear(config.intermediate_size, config.hidden_size)
        self.output_dropout = nn.Dropout(config.hidden_dropout)

    def forward(self, values: Tensor) -> Tensor:
        inner = self.intermediate_dropout(F.silu(self.intermediate_dense(values)))
        return self.output_dropout(self.output_dense(inner))


class _Attention(nn.Module):
    unpadded = False

    def __init__(self, config: Settings) -> None:
        super().__init__()
        self.heads, self.dropout = config.num_attention_heads, config.attention_dropout
        self.linear_q, self.linear_k, self.linear_v, self.linear_out = (
            nn.Linear(config.hidden_size, config.hidden_size) for _ in range(4)
        )

    def forward(self, values: Tensor, padded: Tensor | None) -> Tensor:
        query, key, value = (
            part(values).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.linear_q, self.linear_k, self.linear_v)
        )
        return self.linear_out(self._mixed(query, key, value, padded).transpose(1, 2).flatten(2))

    def _mixed(self, query: Tensor, key: Tensor, value: Tensor, padded: Tensor | None) -> Tensor:
        if self.unpadded:  # an exporter guards the other form against rows without a frame, which takes long
            return torch.softmax(query @ key.mT * query.shape[-1] ** -0.5, -1) @ value
        seen = None if padded is None else ~padded[:, None, None, :].expand(-1, 1, padded.shape[1], -1)
        dropout = self.dropout if self.training else 0.0
        return F.scaled_dot_product_attention(query, key, value, attn_mask=seen, dropout_p=dropout)


class _Convolution(nn.Module):
    def __init__(self, config: Settings) -> None:
        super().__init__()
        size, kernel = config.hidden_size, config.conv_depthwise_kernel_size
        self.layer_norm = nn.LayerNorm(size, eps=config.layer_norm_eps)
        self.pointwise_conv1 = nn.Conv1d(size, 2 * size, 1, bias=False)
        self.depthwise_conv = nn.Conv1d(size, size, kernel, groups=size, bias=False)
        self.depthwise_layer_norm = nn.LayerNorm(size, eps=config.layer_norm_eps)
        self.pointwise_conv2 = nn.Conv1d(size, size, 1, bias=False)
        self.dropout = nn.Dropout(config.conformer_conv_dropout)

    def forward(self, values: Tensor, padded: Tensor | None) -> Tensor:
        # convolutions of one frame are linear layers, and one of few is a sum: frames stay rows, nothing is moved
        values = _without(self.layer_norm(values), padded)
        values = F.glu(F.linear(values, self.pointwise_conv1.weight[..., 0]))
        values = F.silu(self.depthwise_layer_norm(self._past(values)))
        found = F.linear(values, self.pointwise_conv2.weight[..., 0])
        # in training the random numbers are those of transformers, whose features are rows here
        return self.dropout(found.mT.contiguous()).mT if self.training else found

    def _past(self, values: Tensor) -> Tensor:
        """Convolve every feature over its past."""
        (kernel,) = self.depthwise_conv.kernel_size
        before = F.pad(values, (0, 0, kernel - 1, 0))
        if kernel > _FEW:
            return self.depthwise_conv(before.mT).mT
        taps = self.depthwise_conv.weight[:, 0].unbind(1)
        size = values.shape[1]
        found = before[:, :size] * taps[0]
        for i, tap in enumerate(taps[1:], 1):
            found = torch.addcmul(found, before[:, i : i + size], tap)
        return found
