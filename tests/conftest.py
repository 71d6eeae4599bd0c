"""Fixtures of many tests: a miniature of TIMIT, small recipes on it, training in this process, and registration."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import settings

from isotone.registry import Registry
from tests.registering import registered

# The same cases at every run where changes are judged; new ones everywhere else.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("default", deadline=None)  # of examples: the machine may be busy
settings.load_profile("default")
if os.environ.get("CI"):
    settings.load_profile("ci")

#: Hz of the tone that each phone is spoken with here; closures and pauses are silent.
TONES = {"sh": 3500, "iy": 2300, "b": 300, "aa": 900, "s": 5500, "t": 4500, "h#": 0, "bcl": 0, "tcl": 0}
WORDS = {"she": "sh iy", "bob": "bcl b aa bcl b", "see": "s iy", "tea": "tcl t iy", "spa": "s bcl b aa"}

BASE = """
data: {{name: timit, root: "{root}"}}
tokens: {{unit: phones, silence: sil}}
encoder:
  name: transformers
  source:
    model_type: wav2vec2-bert
    hidden_size: 16
    num_hidden_layers: 1
    num_attention_heads: 2
    intermediate_size: 16
    conv_depthwise_kernel_size: 3
    feature_projection_input_dim: 160
    position_embeddings_type: null
    layerdrop: 0.0
    mask_time_prob: 0.0
train: {{steps: 6, batch_size: 4, lr: 1.0e-3, warmup_steps: 2, evaluate_every: 3, save_every: 3, trackers: [none]}}
"""
CTC = """
heads: {ctc: {name: ctc}}
objective: {ctc: {head: ctc, loss: {name: ctc}}}
reading: {text: ctc, decoder: {name: ctc-greedy}, aligner: {name: ctc}}
"""
JOINT = """
heads:
  ctc: {name: ctc}
  ottc: {name: ottc, reads: features, layers: 1, width: 8}
objective:
  ctc: {head: ctc, loss: {name: ctc}}
  ottc: {head: ottc, loss: {name: ottc}}
reading: {text: ctc, decoder: {name: ctc-greedy}, times: ottc, aligner: {name: segmental}}
"""


def speak(folder: Path, stem: str, words: Sequence[str], rng: np.random.Generator) -> None:
    """One utterance in TIMIT's files: a tone for every phone, and labels with the exact samples."""
    folder.mkdir(parents=True, exist_ok=True)
    spans: list[tuple[str, str]] = [("h#", "")]
    for word in words:
        spans += [(phone, word) for phone in WORDS[word].split()]
    spans.append(("h#", ""))
    samples: list[np.ndarray] = []
    end, phones, spoken = 0, "", []
    for phone, word in spans:
        size = int(rng.integers(600, 1400))
        tone = 0.3 * np.sin(2 * np.pi * TONES[phone] * np.arange(size) / 16_000)
        samples.append(tone + rng.normal(0, 0.01, size))
        phones += f"{end} {end + size} {phone}\n"
        spoken.append((end, end + size, word))
        end += size
    lines, sizes = "", iter([len(WORDS[w].split()) for w in words])
    first = 1  # phone 0 is the leading silence
    for word, size in zip(words, sizes):
        lines += f"{spoken[first][0]} {spoken[first + size - 1][1]} {word}\n"
        first += size
    soundfile.write(folder / f"{stem}.WAV", np.concatenate(samples), 16_000, subtype="PCM_16")
    (folder / f"{stem}.PHN").write_text(phones)
    (folder / f"{stem}.WRD").write_text(lines)
    (folder / f"{stem}.TXT").write_text(f"0 {end} {' '.join(words)}\n")


@pytest.fixture(scope="session")
def timit_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A miniature corpus in TIMIT's layout: 12 utterances to train with, 2 for dev, 2 for test, half a second each."""
    root = tmp_path_factory.mktemp("corpus") / "TIMIT"
    rng = np.random.default_rng(0)
    people = {"TRAIN/DR1": ("FAAA0", "MBBB0", "FCCC0"), "TEST/DR1": ("FTAA0", "MTBB0")}
    for part, speakers in people.items():
        for speaker in speakers:
            for number in range(4 if part.startswith("TRAIN") else 2):
                words = rng.choice(list(WORDS), int(rng.integers(2, 4)))
                speak(root / part / speaker, f"SX{number + 1}", list(words), rng)
    return root


@pytest.fixture(scope="session")
def tiny_recipes(tmp_path_factory: pytest.TempPathFactory, timit_root: Path) -> Path:
    """A folder of recipes, ``ctc`` and ``joint``, that train within seconds on the miniature corpus."""
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "base.yaml").write_text(BASE.format(root=timit_root))
    (folder / "ctc.yaml").write_text(CTC)
    (folder / "joint.yaml").write_text(JOINT)
    return folder


@pytest.fixture(scope="session")
def train() -> Callable[..., Path]:
    """Run a recipe in this process, on one thread: ``train(path, *overrides)`` gives the run folder."""
    import torch
    from accelerate.state import AcceleratorState

    from isotone.training.config import load_recipe
    from isotone.training.run import run

    def go(path: Path, *overrides: str) -> Path:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        AcceleratorState._reset_state(reset_partial_state=True)  # its precision is one for a process
        try:
            return run(load_recipe(path, overrides))
        finally:
            torch.set_num_threads(threads)
            AcceleratorState._reset_state(reset_partial_state=True)

    return go


@pytest.fixture
def register() -> Iterator[Callable[[Registry[Any], str, Any], None]]:
    """Register plugins for one test: ``register(losses, "mine", Mine)``."""
    with ExitStack() as stack:
        yield lambda registry, name, plugin: stack.enter_context(registered(registry, name, plugin))
