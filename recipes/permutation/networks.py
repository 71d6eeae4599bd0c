"""Networks as weight tensors and the groups of hidden units that may be permuted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layer:
    """One weight tensor: its shape ``(out, in, taps)`` and the groups whose permutations act on it.

    Attributes:
        out, into: Number of the group of its output and its input units; None where these are not permuted.
    """

    shape: tuple[int, int, int]
    out: int | None
    into: int | None


@dataclass(frozen=True)
class Network:
    """Layers, and the number of units of each group."""

    layers: tuple[Layer, ...]
    groups: tuple[int, ...]

    def weights(self, generator: torch.Generator) -> list[Tensor]:
        """Draw random weights with He's variance, ``(out, in, taps)`` each."""
        return [
            torch.randn(layer.shape, generator=generator) * (2 / (layer.shape[1] * layer.shape[2])) ** 0.5
            for layer in self.layers
        ]

    def permuted(self, weights: Sequence[Tensor], permutations: Sequence[Tensor]) -> list[Tensor]:
        """Compute ``P_out W P_in^T`` of every layer, for permutations or relaxed ones ``(n, n)``, one per group."""
        moved = []
        for layer, weight in zip(self.layers, weights):
            if layer.into is not None:
                weight = torch.einsum("oit,ji->ojt", weight, permutations[layer.into])
            if layer.out is not None:
                weight = (permutations[layer.out] @ weight.flatten(1)).reshape(weight.shape)
            moved.append(weight)
        return moved


def _chain(widths: Sequence[int], taps: int) -> list[Layer]:
    """Chain layers; every hidden width is a group."""
    last = len(widths) - 2
    return [
        Layer((widths[i + 1], widths[i], taps), None if i == last else i, None if i == 0 else i - 1)
        for i in range(last + 1)
    ]


def mlp5() -> Network:
    """Build five linear layers, 1-10-10-10-10-1; the hidden ones' biases are layers from one constant unit."""
    widths = (1, 10, 10, 10, 10, 1)
    biases = [Layer((10, 1, 1), i, None) for i in range(4)]
    return Network((*_chain(widths, 1), *biases), widths[1:-1])


def vgg11(width: float, kernel: int) -> Network:
    """Build VGG11's eight convolutions with biases, and a linear layer to 10 classes in place of the large ones."""
    channels = [max(1, round(width * c)) for c in (64, 128, 256, 256, 512, 512, 512, 512)]
    layers = _chain([3, *channels, 10], kernel**2)
    head = layers.pop()
    layers.append(Layer((10, channels[-1], 1), None, head.into))
    layers += [Layer((c, 1, 1), i, None) for i, c in enumerate(channels)]
    return Network(tuple(layers), tuple(channels))


def resnet18(width: float, kernel: int) -> Network:
    """Build ResNet18's convolutions: units that a skip connection adds to each other share a permutation."""
    groups: list[int] = []
    layers: list[Layer] = []

    def group(channels: int) -> int:
        groups.append(channels)
        return len(groups) - 1

    def convolution(out: int, into: int | None, taps: int = kernel**2) -> None:
        layers.append(Layer((groups[out], 3 if into is None else groups[into], taps), out, into))

    stream = group(max(1, round(width * 64)))
    convolution(stream, None, 49)
    for stage, channels in enumerate((64, 128, 256, 512)):
        for block in range(2):
            before = stream
            inner = group(max(1, round(width * channels)))
            if stage and not block:
                stream = group(groups[inner])
                convolution(stream, before, 1)
            convolution(inner, before)
            convolution(stream, inner)
    layers.append(Layer((10, groups[stream], 1), None, stream))
    return Network(tuple(layers), tuple(groups))


def build(name: str, width: float, kernel: int) -> Network:
    """Build a network by name.

    Raises:
        ValueError: no such network.
    """
    if name == "MLP5":
        return mlp5()
    if name == "VGG11":
        return vgg11(width, kernel)
    if name == "ResNet18":
        return resnet18(width, kernel)
    raise ValueError(f"Expected a network of MLP5, VGG11 and ResNet18; got {name!r}.")
