"""Speech encoders by transformers: from a hub name, a local folder, a preset or a configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from isotone.interfaces import Encoder, Statistics
from isotone.model.conformer import Conformer, read_settings
from isotone.model.frontend import LogMel, Waveform
from isotone.model.sources import check_names, front_end, resolve
from isotone.model.spec_augment import SpecAugment, build_spec_augment
from isotone.model.strides import adapter_frames, adapter_grid, conv_field, conv_frames, has_adapter
from isotone.types import Encoded, Frames, Grid, length_mask


class SpeechEncoder(Encoder):
    """Any transformers speech encoder: Wav2Vec2, HuBERT, WavLM, Data2Vec, UniSpeech, Wav2Vec2-BERT ...

    The convolutions of a Wav2Vec2-BERT see only the past. A model trained from scratch learns to wait for context, so
    its times are late. ``lookahead_frames`` in its configuration advances the log-mel frames by that number, so that
    the scores of a frame depend on both sides of it. With 0, as in published models, it is the model of transformers.

    Args:
        source: A preset of :data:`isotone.model.sources.PRESETS`, a local folder, a hub id, or a configuration as a
            mapping with ``model_type``.
        config: Changes to the encoder's configuration, such as ``mask_time_prob`` (SpecAugment), ``layerdrop`` or
            ``hidden_dropout``. Unknown names are errors. Heads that read a layer by its number need a ``layerdrop``
            of 0: dropped layers are missing in the count.
        freeze_features: Do not train the convolutional wave front end, as is usual in fine-tuning.
        gradient_checkpointing: Compute hidden states again in the backward pass instead of keeping them: less memory,
            one third more time.
        pretrained: Load weights. False makes a new encoder of the same shape, with fresh weights.
        spec_augment: Options of :class:`isotone.model.spec_augment.SpecAugment`, which masks input features in
            training (``mask_time_prob`` masks the encoder's projection of them). Default: none. They are not saved.
        mask_features: Apply these masks also for heads that read ``features``. Not for heads that see a single frame,
            such as the timing head of the recipes' ``joint``: masked frames ruin their times.

    Raises:
        ValueError: not a speech encoder, or a setting that its configuration does not have.
        OSError: there is no such folder or hub id.
    """

    name = "transformers"
    spec_augment: SpecAugment | None

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

        settings, folder = resolve(source)
        changes = dict(config or {})
        check_names(settings, changes)
        for name, value in changes.items():
            setattr(settings, name, value)
        self._assemble(
            front_end(settings, folder),
            AutoModel.from_pretrained(folder, config=settings)
            if folder and pretrained
            else AutoModel.from_config(settings),
        )
        self.mask_features = mask_features
        if spec_augment is not None:
            mel = isinstance(self.front_end, LogMel)
            bands = self.front_end.get_buffer("filters").shape[1] if mel else settings.conv_dim[-1]
            self.spec_augment = build_spec_augment(spec_augment, self._grid().hop_s, bands)
        if gradient_checkpointing:
            self.model.gradient_checkpointing_enable()
        elif hasattr(self.model, "feature_extractor"):
            # transformers computes the gradient of the audio, which only checkpointing needs
            self.model.feature_extractor._requires_grad = False
        if freeze_features and hasattr(self.model, "feature_extractor"):
            # called on the part, not on the model: not every class of transformers passes the call on
            self.model.feature_extractor._freeze_parameters()

    def _assemble(self, front_end: Waveform | LogMel, model: Any) -> None:
        """Take a front end and a model of transformers, or of :mod:`isotone.model.conformer`."""
        self.front_end, self.model = front_end, model
        self.sample_rate = front_end.sample_rate
        self.mask_features = True
        self.spec_augment = None

    @property
    def exact_padding(self) -> bool:
        """True where an utterance has the same frames alone and in a padded batch; False with group normalisation."""
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
        if has_adapter(self.model.config):
            lengths = adapter_frames(self.model.config, features.lengths).clamp(max=last.shape[1])
            return Encoded(
                features, (*states, Frames(last, lengths, adapter_grid(self.model.config, features.grid)))
            )
        return Encoded(features, (*states[:-1], Frames(last, features.lengths, features.grid)))

    def _from_log_mel(self, values: Tensor, lengths: Tensor, hidden: bool) -> tuple[Frames, Any]:
        """Compute input features and, unless ``hidden`` is False, the model's output."""
        features, read = self._augmented(Frames(values, lengths, self._grid()))
        if not hidden:
            return features, None
        mask = length_mask(lengths, values.shape[1])
        ahead = min(getattr(self.model.config, "lookahead_frames", 0), values.shape[1])
        # Wav2Vec2-BERT's convolutions see only the past: advanced features give them some future
        advanced = F.pad(read.values[:, ahead:], (0, 0, 0, ahead))
        with self._masking(lambda: values.shape[1]):
            return features, self.model(advanced, attention_mask=mask.long(), output_hidden_states=True)

    def _wave_features(self, output: Tensor, lengths: Tensor) -> Frames:
        """Turn the output of the convolutions ``(B, D, T)`` into frames."""
        features = output.transpose(1, 2)
        return Frames(
            features, conv_frames(self.model.config, lengths).clamp(max=features.shape[1]), self._grid()
        )

    def _augmented(self, features: Frames) -> tuple[Frames, Frames]:
        """Return the input features for heads, and those for the first layer."""
        if self.spec_augment is None:
            return features, features
        masked = replace(features, values=self.spec_augment(features.values, features.lengths))
        return masked if self.mask_features else features, masked

    def _from_wave(self, values: Tensor, lengths: Tensor, hidden: bool) -> tuple[Frames, Any]:
        """Compute input features and output from samples, as :meth:`_from_log_mel` does from log-mel energies."""
        field, _ = conv_field(self.model.config)
        # the convolutions fail on audio shorter than one frame
        values = F.pad(values, (0, max(0, field - values.shape[1])))
        if not hidden:
            convolved = self.model.feature_extractor(values)
            return self._augmented(self._wave_features(convolved, lengths))[0], None
        captured: list[Frames] = []

        # a hook both keeps the features for heads and replaces them by masked ones for the first layer
        def capture(_module: Any, _inputs: Any, output: Tensor) -> Tensor:
            features, read = self._augmented(self._wave_features(output, lengths))
            captured.append(features)
            return read.values.transpose(1, 2)

        hook = self.model.feature_extractor.register_forward_hook(capture)
        try:
            # models with group normalisation were trained without an attention mask, and give other frames with one
            mask = (
                length_mask(lengths.clamp(min=field), values.shape[1]).long() if self.exact_padding else None
            )
            with self._masking(lambda: int(conv_frames(self.model.config, torch.tensor(values.shape[1])))):
                output = self.model(values, attention_mask=mask, output_hidden_states=True)
        finally:
            hook.remove()
        return captured[0], output

    @contextmanager
    def _masking(self, frames: Callable[[], int]) -> Iterator[None]:
        """Switch off transformers' SpecAugment where a mask is longer than the batch, which is an error there."""
        config = self.model.config
        configured = getattr(config, "apply_spec_augment", True)
        masks = configured and self.training and frames() >= getattr(config, "mask_time_length", 0)
        config.apply_spec_augment = masks
        try:
            yield
        finally:
            config.apply_spec_augment = configured

    def _grid(self) -> Grid:
        """Return the grid of the input features."""
        if isinstance(self.front_end, LogMel):
            return self.front_end.grid
        field, hop = conv_field(self.model.config)
        return Grid(hop / self.sample_rate, (field - hop) / 2 / self.sample_rate)

    def size(self, source: str | int) -> int:
        """See :meth:`isotone.interfaces.Encoder.size`."""
        config = self.model.config
        if source == "features":
            return (
                config.feature_projection_input_dim
                if isinstance(self.front_end, LogMel)
                else config.conv_dim[-1]
            )
        # the adapter's output counts as one more layer
        if has_adapter(self.model.config) and source in ("last", config.num_hidden_layers + 1):
            return config.output_hidden_size
        return config.hidden_size

    def frames(self, samples: int) -> int:
        """See :meth:`isotone.interfaces.Encoder.frames`."""
        config, count = self.model.config, torch.tensor(samples)
        front_end = self.front_end
        front = front_end.frames(count) if isinstance(front_end, LogMel) else conv_frames(config, count)
        return int(adapter_frames(config, front) if has_adapter(config) else front)

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
        """See :meth:`isotone.interfaces.Encoder.load`; encoders of isotone's presets load without transformers."""
        settings = read_settings(folder)
        if settings is None:
            return cls(str(folder), pretrained=False)
        encoder = cls.__new__(cls)
        super().__init__(encoder)
        encoder._assemble(front_end(settings, str(folder)), Conformer(settings))
        return encoder
