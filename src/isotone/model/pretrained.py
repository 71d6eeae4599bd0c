"""The parts of a ``*ForCTC`` model of transformers, with the adapter of its language."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from isotone.interfaces import Encoder
from isotone.model.fetch import adapters_of
from isotone.registries import encoders
from isotone.text import tokenizer as tokenizers
from isotone.text.foreign import languages_of, load_foreign
from isotone.text.languages import among, spoken_target
from isotone.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Pretrained:
    """The parts of a model.

    Attributes:
        encoder: Audio to frames, with its weights.
        head: The specification of the CTC head.
        weights: ``weight`` and ``bias`` of the head's linear layer, one row per label of the tokenizer.
        tokenizer: Text to labels.
    """

    encoder: Encoder
    head: dict[str, Any]
    weights: dict[str, Tensor]
    tokenizer: Tokenizer


def load_ctc(folder: Path, language: str = "") -> Pretrained:
    """Load the parts of a model that transformers saved.

    Args:
        folder: Folder with all its files; nothing is downloaded.
        language: See :meth:`isotone.model.Model.load`.

    Raises:
        ValueError: it is no CTC model of a speech encoder, its tokenizer does not match, or it has no such language.
        OSError: the weights are missing.
    """
    from transformers import AutoConfig, AutoModelForCTC

    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    if not any(name.endswith("ForCTC") for name in config.architectures or ()):
        raise ValueError(
            f"it is a {config.architectures} model: to align or transcribe, one '...ForCTC' is needed."
        )
    target = _target(folder, language)
    tokenizer = _tokenizer(folder, target or language, config.pad_token_id)
    encoder = encoders.build("transformers", str(folder), pretrained=False)
    theirs = AutoModelForCTC.from_pretrained(folder, local_files_only=True)
    if target in adapters_of([path.name for path in folder.iterdir()]):
        theirs.load_adapter(target, local_files_only=True)
    encoder.model = theirs.base_model
    labels, scored = len(tokenizer), theirs.lm_head.out_features
    if labels > scored:
        raise ValueError(f"the tokenizer has {labels} labels, the model {scored}.")
    # scores beyond the tokenizer's labels have no name and were never targets
    weights = {name: value[:labels] for name, value in theirs.lm_head.state_dict().items()}
    head = {"name": "ctc", "reads": "last", "dropout": getattr(config, "final_dropout", 0.0)}
    return Pretrained(encoder, head, weights, tokenizer)


def _tokenizer(folder: Path, language: str, blank: int | None) -> Tokenizer:
    """Load the tokenizer of a folder: isotone's own, where it was saved beside the model, or that of transformers."""
    if not (folder / tokenizers.CONFIG).is_file():
        return load_foreign(folder, language, blank=blank)
    tokenizer = tokenizers.load(folder)
    if language:
        tokenizer.use_language(language)
    return tokenizer


def _target(folder: Path, language: str) -> str:
    """Return the model's name of the language whose adapter to load; empty for a model without adapters.

    Raises:
        ValueError: the model has no such language, or the adapter's file is missing.
    """
    there = adapters_of([path.name for path in folder.iterdir()])
    known = languages_of(folder) or list(there)
    if not known:
        return ""
    own = spoken_target(folder)
    target = among(language, known) if language else own
    if not target:
        raise ValueError(f"it has {len(known)} languages: say which, by its ISO 639 code.")
    if target not in there and target != own:
        raise ValueError(
            f"the adapter of {target!r} is not on this machine, only that of {', '.join(sorted(there)[:10]) or own}: "
            "load the model once where there is a network."
        )
    return target
