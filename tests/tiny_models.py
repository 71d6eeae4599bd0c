"""Small models with random weights, noise to feed them, and the command line as a function."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from typer.testing import CliRunner, Result

from isotone.batch.ledger import NAME
from isotone.cli import app
from isotone.model import DecodingConfig, Model
from isotone.model.encoder import SpeechEncoder
from isotone.text.tokenizer import CharacterTokenizer, PhoneTokenizer

ENCODER = {
    "model_type": "wav2vec2-bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 16, "conv_depthwise_kernel_size": 3, "feature_projection_input_dim": 160,
    "position_embeddings_type": None, "layerdrop": 0.0, "apply_spec_augment": False,
}  # fmt: skip
PHONES = ["<pad>", "sil", "aa", "iy", "s", "t"]
LETTERS = "abcdefghijklmnopqrstuvwxyz'"


def save_character_model(folder: Path, guide: str = "") -> Path:
    """Save a model of characters with a CTC head for the text, an OTTC head for the times, and perhaps a guide."""
    torch.manual_seed(0)
    heads = {"ctc": {"name": "ctc"}, "ottc": {"name": "ottc", "reads": "features", "layers": 1, "width": 8}}
    guided = {"guide": guide, "guide_aligner": {"name": "ctc"}} if guide else {}
    reading = DecodingConfig("ctc", {"name": "ctc-greedy"}, "ottc", {"name": "segmental"}, **guided)
    tokenizer = CharacterTokenizer(["<pad>", "<unk>", "|", *LETTERS])
    Model(SpeechEncoder(ENCODER), heads, tokenizer, reading).save(folder)
    return folder


def save_phone_model(folder: Path) -> Path:
    """Save a model of phones without a pronouncer: texts are phones."""
    torch.manual_seed(1)
    reading = DecodingConfig("ctc", {"name": "ctc-greedy"}, "ctc", {"name": "ctc"})
    tokenizer = PhoneTokenizer(PHONES, None, "sil")
    Model(SpeechEncoder(ENCODER), {"ctc": {"name": "ctc"}}, tokenizer, reading).save(folder)
    return folder


def save_transformers_model(
    folder: Path, labels: Sequence[str] = (), tokenizer: Any = None, **config: Any
) -> Path:
    """A ``Wav2Vec2ForCTC`` with its processor, as transformers saves them.

    Args:
        folder: Where to.
        labels: Of the tokenizer. Default: those of English letters.
        tokenizer: What saves itself beside the model. Default: a ``Wav2Vec2CTCTokenizer`` of the labels.
        config: Changes to the model's configuration.
    """
    from transformers import (
        Wav2Vec2Config,
        Wav2Vec2CTCTokenizer,
        Wav2Vec2FeatureExtractor,
        Wav2Vec2ForCTC,
    )

    torch.manual_seed(2)
    folder.mkdir(parents=True)
    labels = labels or ["<pad>", "<s>", "</s>", "<unk>", "|", *LETTERS.upper()]
    settings = Wav2Vec2Config(
        vocab_size=len(labels), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        conv_dim=[8] * 7, num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2,
        **{"pad_token_id": 0} | config,
    )  # fmt: skip
    model = Wav2Vec2ForCTC(settings)
    with torch.no_grad():
        model.lm_head.weight.mul_(50.0)  # so that it gives more than one label
    model.save_pretrained(folder)
    Wav2Vec2FeatureExtractor().save_pretrained(folder)
    if tokenizer is None:
        vocabulary = folder / "vocab.json"
        vocabulary.write_text(json.dumps({label: i for i, label in enumerate(labels)}), encoding="utf-8")
        tokenizer = Wav2Vec2CTCTokenizer(str(vocabulary))
    tokenizer.save_pretrained(folder)
    return folder


def save_adapters(folder: Path, labels: Mapping[str, Sequence[str]], languages: Sequence[str] = ()) -> Path:
    """Save a ``Wav2Vec2ForCTC`` with a vocabulary and an adapter for each language, as MMS has them.

    Args:
        folder: Where to.
        labels: The vocabulary of each language, by its code. The model is saved with that of ``eng``.
        languages: Those whose adapters are saved. Default: all.
    """
    from safetensors.torch import save_file
    from transformers import Wav2Vec2CTCTokenizer, Wav2Vec2ForCTC

    indices = {language: {label: i for i, label in enumerate(own)} for language, own in labels.items()}
    with tempfile.TemporaryDirectory() as base:
        file = Path(base, "vocab.json")
        file.write_text(json.dumps(indices, ensure_ascii=False), encoding="utf-8")
        tokenizer = Wav2Vec2CTCTokenizer(str(file), target_lang="eng")
        english = list(labels["eng"])
        save_transformers_model(folder, english, tokenizer, adapter_attn_dim=4, do_stable_layer_norm=True)
    model = Wav2Vec2ForCTC.from_pretrained(folder)
    for seed, language in enumerate(languages or labels):
        torch.manual_seed(seed)
        rows = len(labels[language])
        adapter = {name: torch.randn_like(value) for name, value in model._get_adapters().items()}
        adapter |= {"lm_head.weight": torch.randn(rows, 16), "lm_head.bias": torch.randn(rows)}
        save_file(adapter, folder / f"adapter.{language}.safetensors")
    return folder


def save_noise(
    path: Path, seconds: float = 1.5, *, rate: int = 16_000, text: str | None = None, seed: int = 0
) -> Path:
    """Write a file of noise, and a transcript beside it if one is given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.random.default_rng(seed).normal(0, 0.1, round(seconds * rate)), rate)
    if text is not None:
        path.with_suffix(".txt").write_text(text, encoding="utf-8")
    return path


def isotone(*arguments: str | Path, code: int | None = 0, data: bytes = b"") -> Result:
    """Run a command in this process, with data from a pipe; any exit code but ``code`` fails (None: any will do)."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        result = CliRunner().invoke(app, [str(a) for a in arguments], input=data)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert code is None or result.exit_code == code, f"{result.exit_code}: {result.output}"
    return result


def error_of(*arguments: str | Path, code: int = 2) -> str:
    """Return the message of a command that fails: one line on standard error, without a traceback."""
    output = isotone(*arguments, code=code).stderr
    assert "Traceback" not in output
    lines = [line for line in output.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, output
    return lines[0].removeprefix("error: ")


def lines_of(path: Path) -> Sequence[dict[str, str]]:
    """Read the rows of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def names_in(out: Path) -> list[str]:
    """List the names of the files of an output folder, except the ledger."""
    return sorted(p.name for p in out.iterdir() if p.name != NAME)
