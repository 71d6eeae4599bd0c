"""The letter network in torch, for training; :mod:`isotone.text.letter_network` describes it and runs it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from isotone.text.letter_network import CHARACTERS

#: Width of the neighbourhood that a layer sums directly.
TAPS = 5


class Layer(nn.Module):
    """A layer of the network, with dropout of whole channels of a word."""

    def __init__(self, width: int, heads: int, reach: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.reach, self.dropout = heads, reach, dropout
        self.taps = nn.Parameter(torch.randn(TAPS, width) * 0.2)
        self.bias = nn.Parameter(torch.zeros(heads, 2 * reach + 1))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the next layer's input ``(B, T, D)`` for an input of that shape and a mask ``(B, T)``."""
        words, size, width = x.shape
        padded = F.pad(x * mask[..., None], (0, 0, TAPS // 2, TAPS // 2))
        x = x + sum(padded[:, k : k + size] * self.taps[k] for k in range(TAPS))
        q, k, v = self.qkv(self.norm1(x)).view(words, size, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        places = torch.arange(size)
        distance = (places - places[:, None]).clamp(-self.reach, self.reach) + self.reach
        bias = self.bias[:, distance].expand(words, -1, -1, -1).masked_fill(~mask[:, None, None], -1e4)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))
        x = x + self._dropped(self.o(attended.transpose(1, 2).reshape(words, size, width)))
        up = F.gelu(self.up(self.norm2(x)), approximate="tanh")
        return x + self._dropped(self.down(self._dropped(up)))

    def _dropped(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        kept = torch.rand(x.shape[0], 1, x.shape[2]) >= self.dropout
        return x * (kept.to(x.dtype) / (1 - self.dropout))


class Network(nn.Module):
    """Letters to scores of the phones of every letter.

    Args:
        outputs: Number of outputs.
        width, heads, layers: Size of the network.
        reach: Largest distance with a bias of its own.
        dropout: Share of channels left out.
    """

    def __init__(
        self,
        outputs: int,
        *,
        width: int = 128,
        heads: int = 4,
        layers: int = 4,
        reach: int = 12,
        dropout: float = 0.15,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.embedding = nn.Parameter(torch.randn(len(CHARACTERS), width) * 0.5)
        self.given = nn.Parameter(torch.randn(outputs + 1, width) * 0.1)
        self.layers = nn.ModuleList(Layer(width, heads, reach, dropout) for _ in range(layers))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, outputs)

    def forward(self, letters: Tensor, mask: Tensor, given: Tensor) -> Tensor:
        """Return scores ``(B, T, outputs)`` of letters.

        Args:
            letters: Their numbers ``(B, T)``.
            mask: True for those that exist ``(B, T)``.
            given: 1 + the output of every letter whose phones are given, else 0 ``(B, T)``.
        """
        x = self.embedding[letters] + self.given[given]
        for layer in self.layers:
            x = layer(x, mask)
        return self.out(self.norm(x))

    def matrices(self) -> list[nn.Parameter]:
        """Return the matrices of the layers, which Muon trains."""
        return [p for name, p in self.layers.named_parameters() if name.endswith("weight") and p.ndim == 2]
