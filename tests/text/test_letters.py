"""Letter to sound: the network against a slow reference in loops, the search against all readings, its file."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.text.letter_network import CHARACTERS, LetterNetwork, dump, parse
from isotone.text.letters import LetterToSound, best
from tests.text.samples import tiny_letters, tiny_network

TENSORS, OUTPUTS = tiny_network()
NETWORK = LetterNetwork(TENSORS, OUTPUTS, 2)


def slow(word: str, begun: tuple[int, ...]) -> np.ndarray:
    """The definition of the network, one letter at a time; log-probabilities (letters, outputs)."""
    t = {name: tensor.astype(float) for name, tensor in TENSORS.items()}
    given = [0, *(number + 1 for number in begun)] + [0] * (len(word) + 1 - len(begun))
    x = [t["embedding"][CHARACTERS.index(c)] + t["given"][g] for c, g in zip(f"^{word}$", given)]
    for layer in range(2):
        name = f"layers.{layer}."

        def linear(v: np.ndarray, part: str, name: str = name) -> np.ndarray:
            return t[f"{name}{part}.weight"] @ v + t[f"{name}{part}.bias"]

        def norm(v: np.ndarray, part: str, name: str = name) -> np.ndarray:
            v = (v - np.mean(v)) / math.sqrt(np.var(v) + 1e-5)
            return v * t[f"{name}{part}.weight"] + t[f"{name}{part}.bias"]

        size = len(x)
        x = [
            x[i] + sum(t[name + "taps"][k] * x[i + k - 2] for k in range(5) if 0 <= i + k - 2 < size)
            for i in range(size)
        ]
        qkv = [linear(norm(v, "norm1"), "qkv") for v in x]
        new = []
        for i in range(size):
            heads = []
            for h in range(2):
                q = qkv[i][4 * h : 4 * h + 4]
                ks = [other[8 + 4 * h : 12 + 4 * h] for other in qkv]
                vs = [other[16 + 4 * h : 20 + 4 * h] for other in qkv]
                weights = [
                    math.exp(q @ ks[j] / 2 + t[name + "bias"][h, max(-3, min(3, j - i)) + 3])
                    for j in range(size)
                ]
                heads.append(sum(w * v for w, v in zip(weights, vs)) / sum(weights))
            new.append(x[i] + linear(np.concatenate(heads), "o"))
        x = []
        for v in new:
            up = linear(norm(v, "norm2"), "up")
            up = 0.5 * up * (1 + np.tanh(math.sqrt(2 / math.pi) * (up + 0.044715 * up**3)))
            x.append(v + linear(up, "down"))
    scores = []
    for v in x[1:-1]:
        v = (v - np.mean(v)) / math.sqrt(np.var(v) + 1e-5) * t["norm.weight"] + t["norm.bias"]
        out = t["out.weight"] @ v + t["out.bias"]
        scores.append(out - math.log(np.exp(out).sum()))
    return np.array(scores)


@settings(max_examples=25, deadline=None)
@given(st.text("abcxyz'", min_size=1, max_size=9), st.data())
def test_the_network_is_its_definition(word: str, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, len(word)))
    numbers = st.integers(0, len(OUTPUTS) - 1)
    begun = data.draw(st.lists(st.tuples(*[numbers] * size), min_size=1, max_size=3))
    found = NETWORK.log_probs(word, begun)
    np.testing.assert_allclose(found, [slow(word, one) for one in begun], atol=1e-4)


@pytest.mark.parametrize("word", ["ax", "sky", "it's"])
def test_the_search_finds_the_likeliest_of_all_readings(word: str) -> None:
    """With every reading enumerated, those with the same phones apart from stress added up."""
    total: dict[tuple[str, ...], float] = defaultdict(float)
    for reading in itertools.product(range(len(OUTPUTS)), repeat=len(word)):
        score = sum(NETWORK.log_probs(word, [reading[:i]])[0, i, reading[i]] for i in range(len(word)))
        plain = tuple(s.removesuffix("0") for number in reading for s in OUTPUTS[number])
        total[plain] += math.exp(score)
    found = best(NETWORK, word)
    first = tuple(s.removesuffix("0") for s in found[0][0])
    assert first == max(total, key=lambda phones: total[phones])
    assert 1 <= len(found) <= 3
    for symbols, score in found:  # the beam may have lost readings of little weight
        assert math.exp(score) <= total[tuple(s.removesuffix("0") for s in symbols)] * 1.001


def test_the_file() -> None:
    """Matrices are kept to a 254th of their rows' largest value."""
    network = parse(dump(TENSORS, OUTPUTS, 2, licence="free"))
    assert network.outputs == OUTPUTS
    for name, tensor in TENSORS.items():
        largest = np.abs(tensor).max(axis=-1, keepdims=True)
        assert (np.abs(network._tensors[name] - tensor) <= largest / 230).all(), name
    assert np.abs(network.log_probs("axy") - NETWORK.log_probs("axy")).max() < 0.3


def test_other_and_damaged_files(tmp_path: Path) -> None:
    from safetensors.numpy import save

    whole = dump(TENSORS, OUTPUTS, 2)
    for data in (b"", b"x" * 40, whole[:-9], whole[9:], save({"a": np.zeros(3, np.float16)})):
        with pytest.raises(ValueError, match="no letter-to-sound model of isotone, or damaged"):
            parse(data)
    (tmp_path / "x.st").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"x\.st: no letter-to-sound model"):
        LetterToSound(tmp_path / "x.st")
    with pytest.raises(FileNotFoundError, match=r"No letter-to-sound model .*gone\.st"):
        LetterToSound(tmp_path / "gone.st")


def test_words(tmp_path: Path) -> None:
    letters = tiny_letters(tmp_path)
    assert letters.lookup(["Naïve", "naive"])[0] == letters.lookup(["naive"])[0]
    assert letters.lookup(["x-y"])[0] == [*letters(["x"])[0], *letters(["y"])[0]]
    assert letters.lookup(["", "-", "4x", "你", "a" * 65]) == [None] * 5
    assert letters.lookup(["a" * 64])[0]
    (found,) = letters.alternatives(["sky"])
    assert math.isclose(sum(math.exp(one.log_prob) for one in found), 1)
    with pytest.raises(ValueError, match="The letters of a word are a to z"):
        letters.network.log_probs("é")
