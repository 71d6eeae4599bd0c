"""A small transformer that reads the letters of a word and gives the phones of each, in order, in numpy."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

#: Inputs of the network: the beginning and the end of a word, and its letters.
CHARACTERS = "^$abcdefghijklmnopqrstuvwxyz'"

Array = np.ndarray[Any, Any]
_TYPES = {"I8": np.int8, "F16": np.float16}


class LetterNetwork:
    """Probabilities of the phones of every letter.

    A letter's input is a vector for the letter, and one for its phones where these are given. Every layer adds to its
    input (letters, width): a weighted sum of five neighbours per channel, self-attention with a
    bias for every distance, and a feed-forward network with GELU. The last two read their input after layer
    normalisation.

    Args:
        tensors: Weights by name, see :meth:`save`.
        outputs: The phones, none to several, of every output.
        heads: Heads of the attention.

    Attributes:
        outputs: See above.
    """

    def __init__(self, tensors: Mapping[str, Array], outputs: Sequence[tuple[str, ...]], heads: int) -> None:
        self._tensors = {name: np.asarray(tensor, np.float32) for name, tensor in tensors.items()}
        # products with matrices that are turned in memory take less time
        self._turned = {name: np.ascontiguousarray(x.T) for name, x in self._tensors.items() if x.ndim == 2}
        self._heads = heads
        self._layers = sum(name.endswith(".taps") for name in tensors)
        self.outputs = list(outputs)

    def log_probs(
        self, word: str, begun: Sequence[Sequence[int]] = ((),), letters: slice = slice(None)
    ) -> Array:
        """Return log-probabilities in nats of the outputs of letters, float32 (readings, letters, outputs).

        Args:
            word: Letters.
            begun: Readings of the word's first letters, all of one length: the numbers of their outputs. They are
                what the other letters' probabilities are conditioned on.
            letters: Those whose probabilities are returned. Default: all.

        Raises:
            ValueError: the word has other characters than a to z and the apostrophe.
        """
        if strange := set(word) - set(CHARACTERS[2:]):
            raise ValueError(f"The letters of a word are a to z and '; got {sorted(strange)} in {word!r}.")
        numbers = [0, *map(CHARACTERS.index, word), 1]
        given = np.zeros((len(begun), len(numbers)), np.int64)
        given[:, 1 : 1 + len(begun[0])] = np.add(begun, 1)
        x = self._tensors["embedding"][numbers] + self._tensors["given"][given]
        places = np.arange(1, 1 + len(word))[letters]
        for layer in range(self._layers):
            last = layer == self._layers - 1
            x = self._layer(x, f"layers.{layer}.", places if last else None)
        scores = self._linear(self._normalised(x, "norm"), "out")
        scores -= scores.max(axis=-1, keepdims=True)
        return np.asarray(scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True)))

    def _layer(self, x: Array, name: str, places: Array | None) -> Array:
        """Compute a layer; after its attention only of some places, where these are given."""
        taps = self._tensors[name + "taps"]
        size, reach = x.shape[1], len(taps) // 2
        padded = np.zeros((len(x), size + 2 * reach, x.shape[2]), np.float32)
        padded[:, reach : reach + size] = x
        x = x + sum(padded[:, k : k + size] * tap for k, tap in enumerate(taps))
        mixed = self._attended(x, name)
        if places is not None:
            x, mixed = x[:, places], mixed[:, places]
        x = x + self._linear(mixed, name + "o")
        up = self._linear(self._normalised(x, name + "norm2"), name + "up")
        gelu = 0.5 * up * (1 + np.tanh(math.sqrt(2 / math.pi) * (up + 0.044715 * up * up * up)))
        return x + self._linear(gelu, name + "down")

    def _attended(self, x: Array, name: str) -> Array:
        many, size, width = x.shape
        bias = self._tensors[name + "bias"]  # (heads, 2 reach + 1)
        reach = bias.shape[1] // 2
        places = np.arange(size)
        distance = np.clip(places - places[:, None], -reach, reach) + reach
        qkv = self._linear(self._normalised(x, name + "norm1"), name + "qkv")
        q, k, v = qkv.reshape(many, size, 3, self._heads, -1).transpose(2, 0, 3, 1, 4)
        scores = q @ k.swapaxes(-1, -2) / math.sqrt(width // self._heads) + bias[:, distance]
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        attention = scores / scores.sum(axis=-1, keepdims=True)
        return np.asarray((attention @ v).swapaxes(1, 2).reshape(many, size, width))

    def _linear(self, x: Array, name: str) -> Array:
        # one product of matrices: numpy would do that of every reading by itself
        flat = x.reshape(-1, x.shape[-1]) @ self._turned[name + ".weight"]
        flat += self._tensors[name + ".bias"]
        return flat.reshape(*x.shape[:-1], -1)

    def _normalised(self, x: Array, name: str) -> Array:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
        return np.asarray(x * self._tensors[name + ".weight"] + self._tensors[name + ".bias"])


def dump(tensors: Mapping[str, Array], outputs: Sequence[Sequence[str]], heads: int, **header: Any) -> bytes:
    """Return the content of a file with a network: matrices as bytes with a scale per row, vectors in half precision.

    Args:
        tensors: Weights by name: ``embedding``, ``given`` (its first row for phones that are not), ``norm``, ``out``,
            and ``layers.N.`` with ``taps``, ``bias``, ``norm1``, ``qkv``, ``o``, ``norm2``, ``up`` and ``down``.
        outputs: See :class:`LetterNetwork`.
        heads: See :class:`LetterNetwork`.
        header: What the file is to say of itself; values of JSON.
    """
    stored: dict[str, Array] = {}
    for name, tensor in tensors.items():
        if name.endswith("weight") and tensor.ndim == 2:
            scale = np.maximum(np.abs(tensor).max(axis=1, keepdims=True), 1e-6) / 127
            stored[name] = np.rint(tensor / scale).astype(np.int8)
            stored[name + ".scale"] = scale.astype(np.float16)
        else:
            stored[name] = tensor.astype(np.float16)
    head = {**header, "heads": heads, "outputs": [list(some) for some in outputs]}
    return bytes(save(stored, metadata={"isotone": json.dumps(head)}))


def parse(data: bytes) -> LetterNetwork:
    """Return the network of a file that :func:`dump` made.

    Raises:
        ValueError: it is another file, or damaged.
    """
    try:
        size = int.from_bytes(data[:8], "little")
        head = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["isotone"])
        stored = {
            name: np.frombuffer(part["data"], _TYPES[part["dtype"]]).reshape(part["shape"]).astype(np.float32)
            for name, part in deserialize(data)
        }
        scales = {name: scale for name, scale in stored.items() if name.endswith(".scale")}
        tensors = {
            name: tensor * scales.get(name + ".scale", 1)
            for name, tensor in stored.items()
            if name not in scales
        }
        return LetterNetwork(tensors, [tuple(some) for some in head["outputs"]], head["heads"])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"no letter-to-sound model of isotone, or damaged ({error})") from None
