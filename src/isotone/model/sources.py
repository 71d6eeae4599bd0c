"""Sources of speech encoders: presets, configurations, local folders and hub ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isotone.model.fetch import fetch
from isotone.model.frontend import LogMel, Waveform
from isotone.registry import nearest

#: Small encoders that train on two CPU cores, by name: ``transformers`` configurations.
PRESETS: dict[str, dict[str, Any]] = {
    "wav2vec2-bert-tiny": {  # 1.6M parameters on log-mel features, 20 ms frames
        "model_type": "wav2vec2-bert", "hidden_size": 144, "num_hidden_layers": 4, "num_attention_heads": 4,
        "intermediate_size": 432, "conv_depthwise_kernel_size": 3, "feature_projection_input_dim": 160,
        "position_embeddings_type": None,  # convolutions suffice for positions; a step is one third shorter without
        "lookahead_frames": 3,  # see SpeechEncoder
        "layerdrop": 0.0, "apply_spec_augment": False,
    },
    "wav2vec2-tiny": {  # 1.0M parameters on the wave form, 20 ms frames
        "model_type": "wav2vec2", "hidden_size": 144, "num_hidden_layers": 4, "num_attention_heads": 4,
        "intermediate_size": 432, "conv_dim": [64, 64, 64, 64, 64, 64, 64], "do_stable_layer_norm": True,
        "feat_extract_norm": "layer", "conv_bias": True, "num_conv_pos_embeddings": 32,
        "num_conv_pos_embedding_groups": 4, "layerdrop": 0.0, "apply_spec_augment": False,
    },
}  # fmt: skip


def resolve(source: str | Mapping[str, Any]) -> tuple[Any, str | None]:
    """Find the configuration of an encoder, and its folder of weights (None for a new encoder).

    Raises:
        OSError: there is no such preset, folder or hub id.
        ValueError: a mapping without ``model_type``, or with unknown settings.
    """
    from transformers import AutoConfig

    if isinstance(source, str) and source not in PRESETS:
        try:
            there = source if Path(source).is_dir() or len(Path(source).parts) != 2 else str(fetch(source))
            return AutoConfig.from_pretrained(there, local_files_only=True), there
        except OSError as error:
            raise OSError(
                f"No encoder {source!r}: not a preset ({', '.join(PRESETS)}), not a local folder with a config.json, "
                f"and not to be had from the hub.{nearest(source, list(PRESETS))} ({str(error).splitlines()[0]})"
            ) from error
    settings = dict(PRESETS[source] if isinstance(source, str) else source)
    if "model_type" not in settings:
        raise ValueError(
            f"An encoder configuration needs a 'model_type' (wav2vec2, hubert ...); got {settings}."
        )
    model_type = settings.pop("model_type")
    check_names(AutoConfig.for_model(model_type), settings)
    return AutoConfig.for_model(model_type, **settings), None


def check_names(config: Any, settings: Mapping[str, Any]) -> None:
    """Raise ValueError for a setting that the configuration does not have."""
    known = sorted(
        [*config.to_dict(), *(["lookahead_frames"] if config.model_type == "wav2vec2-bert" else [])]
    )
    for name in settings:
        if name not in known:
            raise ValueError(f"A {config.model_type} encoder has no setting {name!r}.{nearest(name, known)}")


def front_end(config: Any, folder: str | None) -> Waveform | LogMel:
    """Make the front end for the encoder's first layer."""
    processor = {} if folder is None else _processor(folder)
    rate = processor.get("sampling_rate", 16_000)
    if hasattr(config, "feature_projection_input_dim"):
        bands = processor.get("num_mel_bins", 80)
        return LogMel(rate, bands, processor.get("stride", config.feature_projection_input_dim // bands))
    if not hasattr(config, "conv_stride"):
        raise ValueError(f"{config.model_type!r} is not a speech encoder that isotone knows how to feed.")
    return Waveform(rate, processor.get("do_normalize", True))


def _processor(folder: str) -> dict[str, Any]:
    """Read the settings of a folder's preprocessor; none if there is none."""
    try:
        found = json.loads(Path(folder, "preprocessor_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if isinstance(found, dict) and found.keys() >= {"sampling_rate", "num_mel_bins", "stride"}:
        return found
    from transformers import AutoFeatureExtractor  # knows the defaults of what a file leaves out

    try:
        defaults: dict[str, Any] = AutoFeatureExtractor.from_pretrained(folder).to_dict()
    except (OSError, ValueError):  # weights without a preprocessor: the defaults of the class
        return {}
    return defaults
