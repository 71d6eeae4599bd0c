"""Speech encoders by transformers: from a hub name, a local folder, a preset or a configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from isotone.interfaces import Encoder, Statistics
from isotone.model.fetch import fetch
from isotone.model.frontend import LogMel, Waveform
from isotone.model.spec_augment import build_spec_augment
from isotone.registry import nearest
from isotone.types import Encoded, Frames, Grid, length_mask

#: Small encoders that train on two CPU cores, by name: ``transformers`` configurations.
PRESETS: dict[str, dict[str, Any]] = {
    "wav2vec2-bert-tiny": {  # 1.6M parameters on log-mel features, 20 ms frames
        "model_type": "wav2vec2-bert", "hidden_size": 144, "num_hidden_layers": 4, "num_attention_heads": 4,
        "intermediate_size": 432, "conv_depthwise_kernel_size": 3, "feature_projection_input_dim": 160,
        "position_embeddings_type": None,  # the convolutions tell positions apart; a step is a third shorter
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


class SpeechEncoder(Encoder):
    """Any transformers speech encoder: Wav2Vec2, HuBERT, WavLM, Data2Vec, UniSpeech, Wav2Vec2-BERT ...

    The convolutions of a Wav2Vec2-BERT see the past alone. A new one learns to speak late, by the context that it
    waits for, and times read from it are late. ``lookahead_frames`` in its configuration advances the log-mel frames
    by so many, so that what it says of a frame rests on both sides of it; weights and frames stay those of transformers
    where it is 0, as it is in published models.

    Args:
        source: A preset of :data:`PRESETS`, a local folder, a hub id, or a configuration as a mapping with
            ``model_type``.
        config: Changes to the encoder's configuration, such as ``mask_time_prob`` (SpecAugment), ``layerdrop`` or
            ``hidden_dropout``. Unknown names are errors. Heads that read a layer by its number need a ``layerdrop``
            of 0: dropped layers are not there to be counted.
        freeze_features: Keep the convolutional wave front end fixed, as is usual in fine-tuning.
        gradient_checkpointing: Compute hidden states again in the backward pass instead of keeping them: less memory, a
            third more time.
        pretrained: Load weights. False makes a new encoder of the same shape, with fresh weights.
        spec_augment: Options of :class:`isotone.model.spec_augment.SpecAugment`: in training the input features are
            masked, where ``mask_time_prob`` masks what the encoder makes of them. Default: not. They are no part of a
            saved model.
        mask_features: Whether heads that read ``features`` see these masks too. A head that sees one frame finds
            nothing in a masked one: the times of the recipes' ``joint`` do not survive it.

    Raises:
        ValueError: not a speech encoder, or a configuration it does not have.
        OSError: no such folder or hub id.
    """

    name = "transformers"

    def __init__(
        self,
        source: str | Mapping[str, Any] = "wav2vec2-bert-tiny",
        *,
        config: Mapping[str, Any] | None = None,
        freeze_features: bool = False,
        gradient_checkpointing: bool = False,
        pretrained: bool = True,
        spec_augment: Mapping[str, Any] | None = None,
        mask_features: bool = True,
    ) -> None:
        super().__init__()
        from transformers import AutoModel

        settings, folder = _resolve(source)
        changes = dict(config or {})
        _check_names(settings, changes)
        for name, value in changes.items():
            setattr(settings, name, value)
        self.front_end = _front_end(settings, folder)
        self.model = (
            AutoModel.from_pretrained(folder, config=settings)
            if folder and pretrained
            else AutoModel.from_config(settings)
        )
        self.sample_rate = self.front_end.sample_rate
        self.mask_features = mask_features
        self.spec_augment = None
        if spec_augment is not None:
            mel = isinstance(self.front_end, LogMel)
            bands = self.front_end.get_buffer("filters").shape[1] if mel else settings.conv_dim[-1]
            self.spec_augment = build_spec_augment(spec_augment, self._grid().hop_s, bands)
        if gradient_checkpointing:
            self.model.gradient_checkpointing_enable()
        elif hasattr(self.model, "feature_extractor"):
            # for checkpointing alone transformers asks for the gradient of the audio, which nobody reads
            self.model.feature_extractor._requires_grad = False
        if freeze_features and hasattr(self.model, "feature_extractor"):
            # of the part, not of the model: not every class of transformers passes the call on
            self.model.feature_extractor._freeze_parameters()

    @property
    def exact_padding(self) -> bool:
        """Whether an utterance gives the same frames alone and in a padded batch (not with group normalisation)."""
        return getattr(self.model.config, "feat_extract_norm", "layer") != "group"

    def statistics(self, audio: Tensor) -> Statistics | None:
        """See :meth:`isotone.interfaces.Encoder.statistics`."""
        return self.front_end.statistics(audio)

    def forward(
        self, audio: Tensor, lengths: Tensor, hidden: bool = True, statistics: Statistics | None = None
    ) -> Encoded:
        """See :meth:`isotone.interfaces.Encoder.forward`."""
        values, lengths = self.front_end(audio, lengths, statistics)
        encode = self._from_log_mel if isinstance(self.front_end, LogMel) else self._from_wave
        features, output = encode(values, lengths, hidden)
        if output is None:
            return Encoded(features, ())
        states = [Frames(h, features.lengths, features.grid) for h in output.hidden_states]
        last = output.last_hidden_state
        if self._has_adapter:
            lengths = self._adapted(features.lengths).clamp(max=last.shape[1])
            return Encoded(features, (*states, Frames(last, lengths, self._adapted_grid(features.grid))))
        return Encoded(features, (*states[:-1], Frames(last, features.lengths, features.grid)))

    def _from_log_mel(self, values: Tensor, lengths: Tensor, hidden: bool) -> tuple[Frames, Any]:
        """The input features, and what the model says of them where hidden states are wanted."""
        features, read = self._augmented(Frames(values, lengths, self._grid()))
        if not hidden:
            return features, None
        mask = length_mask(lengths, values.shape[1])
        ahead = min(getattr(self.model.config, "lookahead_frames", 0), values.shape[1])
        # Wav2Vec2-BERT's convolutions see the past alone: advanced features give them some future
        advanced = F.pad(read.values[:, ahead:], (0, 0, 0, ahead))
        with self._masking(values.shape[1]):
            return features, self.model(advanced, attention_mask=mask.long(), output_hidden_states=True)

    def _wave_features(self, output: Tensor, lengths: Tensor) -> Frames:
        """What the convolutions give, ``(B, D, T)``, as frames."""
        features = output.transpose(1, 2)
        return Frames(features, self._conv_frames(lengths).clamp(max=features.shape[1]), self._grid())

    def _augmented(self, features: Frames) -> tuple[Frames, Frames]:
        """The input features as heads read them, and as the first layer does."""
        if self.spec_augment is None:
            return features, features
        masked = replace(features, values=self.spec_augment(features.values, features.lengths))
        return masked if self.mask_features else features, masked

    def _from_wave(self, values: Tensor, lengths: Tensor, hidden: bool) -> tuple[Frames, Any]:
        """As :meth:`_from_log_mel`."""
        field, _ = self._conv_field()
        # the convolutions refuse audio that is shorter than one frame
        values = F.pad(values, (0, max(0, field - values.shape[1])))
        if not hidden:
            convolved = self.model.feature_extractor(values)
            return self._augmented(self._wave_features(convolved, lengths))[0], None
        captured: list[Frames] = []

        def capture(_module: Any, _inputs: Any, output: Tensor) -> Tensor:
            features, read = self._augmented(self._wave_features(output, lengths))
            captured.append(features)
            return read.values.transpose(1, 2)

        hook = self.model.feature_extractor.register_forward_hook(capture)
        try:
            # models with group normalisation were trained without a mask and must be used so
            mask = (
                length_mask(lengths.clamp(min=field), values.shape[1]).long() if self.exact_padding else None
            )
            with self._masking(int(self._conv_frames(torch.tensor(values.shape[1])))):
                output = self.model(values, attention_mask=mask, output_hidden_states=True)
        finally:
            hook.remove()
        return captured[0], output

    @contextmanager
    def _masking(self, frames: int) -> Iterator[None]:
        """SpecAugment as configured, but none where a mask is longer than the batch: transformers refuses that."""
        config = self.model.config
        wanted = getattr(config, "apply_spec_augment", True)
        config.apply_spec_augment = wanted and frames >= getattr(config, "mask_time_length", 0)
        try:
            yield
        finally:
            config.apply_spec_augment = wanted

    def _conv_frames(self, samples: Tensor) -> Tensor:
        for kernel, stride in zip(self.model.config.conv_kernel, self.model.config.conv_stride):
            samples = (samples - kernel).div(stride, rounding_mode="floor") + 1
        return samples.clamp(min=0)

    def _conv_field(self) -> tuple[int, int]:
        """Samples that a frame sees, and samples from one frame to the next."""
        field, hop = 1, 1
        for kernel, stride in zip(self.model.config.conv_kernel, self.model.config.conv_stride):
            field += (kernel - 1) * hop
            hop *= stride
        return field, hop

    def _grid(self) -> Grid:
        """Where the input features lie in time."""
        if isinstance(self.front_end, LogMel):
            return self.front_end.grid
        field, hop = self._conv_field()
        return Grid(hop / self.sample_rate, (field - hop) / 2 / self.sample_rate)

    @property
    def _has_adapter(self) -> bool:
        return bool(getattr(self.model.config, "add_adapter", False))

    def _adapted(self, frames: Tensor) -> Tensor:
        """Frames of the adapter that are valid, where so many of the last layer are; 0 of 0."""
        config = self.model.config
        bert = config.model_type == "wav2vec2-bert"
        kernel = config.adapter_kernel_size if bert else 1
        left = frames
        for _ in range(config.num_adapter_layers):
            left = (left + 2 * (kernel // 2) - kernel).div(config.adapter_stride, rounding_mode="floor") + 1
        return torch.where(frames > 0, left.clamp(min=0), 0)

    def _adapted_grid(self, grid: Grid) -> Grid:
        """A frame of the adapter has its middle where the frames that its convolutions see have theirs."""
        config = self.model.config
        stride, kernel = config.adapter_stride, config.adapter_kernel_size
        padding = stride // 2 if config.model_type == "wav2vec2-bert" else 1
        hop, middle = grid.hop_s, grid.offset_s + grid.hop_s / 2
        for _ in range(config.num_adapter_layers):
            middle += ((kernel - 1) / 2 - padding) * hop
            hop *= stride
        return Grid(hop, middle - hop / 2)

    def size(self, source: str | int) -> int:
        """See :meth:`isotone.interfaces.Encoder.size`."""
        config = self.model.config
        if source == "features":
            return (
                config.feature_projection_input_dim
                if isinstance(self.front_end, LogMel)
                else config.conv_dim[-1]
            )
        # the adapter's output is one layer more
        if self._has_adapter and source in ("last", config.num_hidden_layers + 1):
            return config.output_hidden_size
        return config.hidden_size

    def frames(self, samples: int) -> int:
        """See :meth:`isotone.interfaces.Encoder.frames`."""
        count = torch.tensor(samples)
        front = (
            self.front_end.frames(count) if isinstance(self.front_end, LogMel) else self._conv_frames(count)
        )
        return int(self._adapted(front) if self._has_adapter else front)

    def save(self, folder: Path) -> None:
        """Write ``config.json`` and ``preprocessor_config.json``."""
        folder.mkdir(parents=True, exist_ok=True)
        self.model.config.save_pretrained(folder)
        if isinstance(self.front_end, LogMel):
            bands = self.front_end.get_buffer("filters").shape[1]
            processor = {
                "feature_extractor_type": "SeamlessM4TFeatureExtractor", "feature_size": bands,
                "num_mel_bins": bands, "stride": self.front_end.stack, "sampling_rate": self.sample_rate,
                "padding_value": 0.0, "return_attention_mask": True, "padding_side": "right",
            }  # fmt: skip
        else:
            processor = {
                "feature_extractor_type": "Wav2Vec2FeatureExtractor", "feature_size": 1, "padding_side": "right",
                "sampling_rate": self.sample_rate, "padding_value": 0.0, "do_normalize": self.front_end.normalize,
                "return_attention_mask": self.exact_padding,
            }  # fmt: skip
        (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """See :meth:`isotone.interfaces.Encoder.load`."""
        return cls(str(folder), pretrained=False)


def _resolve(source: str | Mapping[str, Any]) -> tuple[Any, str | None]:
    """The configuration, and where weights and the preprocessor lie (None for a new encoder)."""
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
    _check_names(AutoConfig.for_model(model_type), settings)
    return AutoConfig.for_model(model_type, **settings), None


def _check_names(config: Any, settings: Mapping[str, Any]) -> None:
    known = sorted(
        [*config.to_dict(), *(["lookahead_frames"] if config.model_type == "wav2vec2-bert" else [])]
    )
    for name in settings:
        if name not in known:
            raise ValueError(f"A {config.model_type} encoder has no setting {name!r}.{nearest(name, known)}")


def _front_end(config: Any, folder: str | None) -> Waveform | LogMel:
    processor: dict[str, Any] = {}
    if folder is not None:
        from transformers import AutoFeatureExtractor

        try:
            processor = AutoFeatureExtractor.from_pretrained(folder).to_dict()
        except (OSError, ValueError):  # weights without a preprocessor: the defaults of the class
            processor = {}
    rate = processor.get("sampling_rate", 16_000)
    if hasattr(config, "feature_projection_input_dim"):
        bands = processor.get("num_mel_bins", 80)
        return LogMel(rate, bands, processor.get("stride", config.feature_projection_input_dim // bands))
    if not hasattr(config, "conv_stride"):
        raise ValueError(f"{config.model_type!r} is not a speech encoder that isotone knows how to feed.")
    return Waveform(rate, processor.get("do_normalize", True))
