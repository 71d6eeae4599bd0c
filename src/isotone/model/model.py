"""One encoder, any number of heads by name, a tokenizer, and the configuration of decoding."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from isotone.files import atomic_folder
from isotone.interfaces import Encoder, Head, Statistics
from isotone.model.check import Check
from isotone.model.decoding import DecodingConfig, ModelError, set_language
from isotone.model.fetch import CONFIG, check_source, fetch, model_folder
from isotone.model.onnx_form import BESIDE, GRAPH
from isotone.model.pretrained import load_ctc
from isotone.registries import aligners, encoders, heads
from isotone.text import tokenizer as tokenizers
from isotone.text.tokenizer import Tokenizer
from isotone.types import Emissions

WEIGHTS = "model.safetensors"


class Model(nn.Module):
    """An encoder with heads.

    Args:
        encoder: Audio to frames.
        head_specs: Head name to its configuration (``name`` and options).
        tokenizer: Text to labels.
        decoding: The heads that text and times are decoded from, and their decoder and aligners.

    Attributes:
        check: Threshold of doubtful transcripts (:mod:`isotone.pipeline.doubt`), measured in training. None: not
            measured.

    Raises:
        ModelError: ``decoding`` names a head that the model lacks, or a head has no ``name``.
    """

    engine = "torch"

    def __init__(
        self,
        encoder: Encoder,
        head_specs: Mapping[str, Mapping[str, Any]],
        tokenizer: Tokenizer,
        decoding: DecodingConfig,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        for name, spec in head_specs.items():
            if not isinstance(spec, Mapping) or "name" not in spec:
                raise ModelError(
                    f"The head {name!r} needs a mapping with a 'name', such as ctc; got {spec!r}."
                )
        self.head_specs = {name: dict(spec) for name, spec in head_specs.items()}
        self.tokenizer = tokenizer
        self.decoding = decoding
        self.check: Check | None = None
        self.heads = nn.ModuleDict(
            {name: _head(spec, encoder, tokenizer) for name, spec in head_specs.items()}
        )
        decoding.check_heads(list(self.heads))

    def tensors(self) -> AbstractContextManager[None]:
        """Return the context in which its emissions are computed with: torch needs none."""
        return nullcontext()

    def aligner_of(self, head: str) -> dict[str, Any]:
        """Return the specification of a head's aligner.

        The timing head and the guide have the aligners of the decoding configuration. Any other head has the aligner of
        the same name as its own kind, or else the timing head's.
        """
        decoding = self.decoding
        if head == decoding.guide != decoding.times:
            return decoding.guide_aligner
        kind = self.head_specs[head]["name"]
        if head == (decoding.times or decoding.text) or kind not in aligners.names():
            return decoding.aligner
        return {"name": kind}

    def forward(
        self,
        audio: Tensor,
        lengths: Tensor,
        only: set[str] | None = None,
        statistics: Statistics | None = None,
    ) -> dict[str, Emissions]:
        """Compute the emissions of all heads, or of those named, by name.

        In training every head except the first has its own random numbers: adding a head does not change the others'
        dropout.

        Args:
            audio: ``(B, N)`` float32 at ``encoder.sample_rate``.
            lengths: ``(B,)`` int64, samples.
            only: Names of the heads to run. Default: all.
            statistics: ``encoder.statistics`` of the audio around a part of a recording. Default: of the audio itself.
        """
        chosen: dict[str, Any] = {
            name: head for name, head in self.heads.items() if only is None or name in only
        }
        hidden = any(head.reads != "features" for head in chosen.values())
        options = {} if statistics is None else {"statistics": statistics}
        encoded = self.encoder(audio, lengths, hidden, **options)
        emissions: dict[str, Emissions] = {}
        for name, head in chosen.items():
            apart = self.training and bool(emissions)
            with _own_randomness(audio.device, head.progress) if apart else nullcontext():
                emissions[name] = head(encoded.read(head.reads))
            if not isinstance(emissions[name], Emissions):
                found = f"{type(head).__name__} gave a {type(emissions[name]).__name__}"
                raise ModelError(f"The head {name!r} is broken: {found}; expected isotone.types.Emissions.")
        return emissions

    def save(self, folder: Path | str, *, half: bool = False) -> None:
        """Write the model as a folder (configuration, tokenizer, weights as safetensors), whole or not at all.

        Args:
            folder: Where.
            half: Write weights of 16 bits: half the size. They are loaded as 32 bits.

        Raises:
            FileExistsError: the folder holds other files than a model and its card, which would be lost.
        """
        with atomic_folder(folder, keep=["README.md"], drop=(GRAPH, BESIDE)) as target:
            config = {
                "format": 1,
                "encoder": self.encoder.name,
                "heads": self.head_specs,
                "reading": asdict(self.decoding),
            }
            if self.check:
                config["check"] = asdict(self.check)
            (target / CONFIG).write_text(
                json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
            )
            self.encoder.save(target / "encoder")
            self.tokenizer.save(target / "tokenizer")
            state = {k: v.detach().cpu().contiguous().clone() for k, v in self.state_dict().items()}
            if half:
                state = {k: v.half() if v.is_floating_point() else v for k, v in state.items()}
            save_file(state, target / WEIGHTS, metadata={"format": "pt"})

    @classmethod
    def load(cls, source: Path | str, language: str = "") -> Model:
        """Load a model that :meth:`save` wrote, a run folder, or a ``*ForCTC`` model of transformers.

        Args:
            source: Folder, or hub id, of either kind; or the name of a model pack.
            language: ISO 639 code of the spoken language. It determines the adapter of a model of many languages
                (MMS), the espeak-ng voice for a model of IPA phones, and the language of numbers. Default: the
                language in the model's files.

        Raises:
            ModelError: the folder is not a model, its weights do not match it, or it does not have this language.
            FileNotFoundError: there is no such folder, pack or hub id; or the pack is without its model.
            ConnectionError: there is no such folder, and the hub does not answer.
        """
        check_source(source)
        folder = model_folder(source)
        if not folder.exists():
            folder = fetch(str(source), language)
        if (folder / CONFIG).is_file():
            model = cls._load_own(folder)
            if language:
                set_language(model.tokenizer, language)
            return model
        if not (folder / "config.json").is_file():
            raise ModelError(
                f"{folder} holds no model: expected {CONFIG} (isotone) or config.json (transformers)."
            )
        return _from_transformers(folder, str(source), language)

    # the names that transformers has for them
    save_pretrained = save
    from_pretrained = load

    @classmethod
    def _load_own(cls, folder: Path) -> Model:
        try:
            config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ModelError(f"{folder / CONFIG} is damaged: {error}") from error
        if not isinstance(config, dict) or config.get("format") != 1:
            found = config.get("format") if isinstance(config, dict) else config
            if str(found).startswith("onnx"):
                raise ModelError(
                    f"{folder} is an export to ONNX, which aligns on the CPU and does nothing else: give the model "
                    "that it was made of."
                )
            raise ModelError(f"{folder / CONFIG}: format {found!r} is not one this version reads (1).")
        try:
            name, head_specs = config.get("encoder", "transformers"), dict(config["heads"])
            decoding = DecodingConfig(**config["reading"])
            check = Check.from_dict(config["check"]) if "check" in config else None
        except (KeyError, TypeError, ValueError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else error
            raise ModelError(f"{folder / CONFIG} is damaged: {what}. Get the model again.") from error
        encoder = encoders.get(name).load(folder / "encoder")  # type: ignore[attr-defined]
        model = cls(encoder, head_specs, tokenizers.load(folder / "tokenizer"), decoding)
        model.check = check
        try:
            model.load_state_dict(load_file(folder / WEIGHTS))
        except FileNotFoundError as error:
            raise ModelError(f"{folder} has no weights: {WEIGHTS} is not there.") from error
        except (RuntimeError, OSError, SafetensorError) as error:
            raise ModelError(
                f"{folder / WEIGHTS} is damaged, or does not fit the model's configuration: {error}"
            ) from error
        return model.eval()


@contextmanager
def _own_randomness(device: torch.device, progress: float) -> Iterator[None]:
    """Seed random numbers from the generator's state and the progress; restore the state afterwards."""
    # every device's torch module has these functions, for the device in use
    here: Any = torch if device.type == "cpu" else torch.get_device_module(device)
    seed = torch.default_generator.manual_seed if device.type == "cpu" else here.manual_seed
    state = here.get_rng_state()
    digest = hashlib.blake2b(state.numpy().tobytes() + repr(progress).encode(), digest_size=7)
    seed(int.from_bytes(digest.digest()))
    try:
        yield
    finally:
        here.set_rng_state(state)


def _head(spec: Mapping[str, Any], encoder: Encoder, tokenizer: Tokenizer) -> Head:
    reads = spec.get("reads", getattr(heads.get(spec["name"]), "reads", "last"))
    return heads.create(
        spec,
        input_size=encoder.size(reads),
        vocab_size=len(tokenizer),
        blank=tokenizer.blank,
    )


def _from_transformers(folder: Path, source: str, language: str) -> Model:
    try:
        parts = load_ctc(folder, language)
    except ValueError as error:
        raise ModelError(f"{source}: {error}") from error
    decoding = DecodingConfig("ctc", {"name": "ctc-greedy"}, "ctc", {"name": "ctc"})
    model = Model(parts.encoder, {"ctc": parts.head}, parts.tokenizer, decoding)
    model.heads["ctc"].get_submodule("lm_head").load_state_dict(parts.weights)
    return model.eval()
