"""One encoder, any number of heads by name, a tokenizer, and how text and times are read from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from isotone.files import atomic_folder
from isotone.interfaces import Encoder, Head, Statistics
from isotone.model.fetch import CONFIG, check_source, fetch, model_folder
from isotone.model.pretrained import load_ctc
from isotone.pipeline.doubt import Check
from isotone.registries import aligners, encoders, heads
from isotone.text import tokenizer as tokenizers
from isotone.text.tokenizer import Tokenizer
from isotone.types import Emissions

WEIGHTS = "model.safetensors"


class ModelError(ValueError):
    """A model folder cannot be used; the message says what is missing or does not fit."""


@dataclass(frozen=True)
class Reading:
    """Where text and times come from.

    Attributes:
        text: Name of the head that text is decoded from.
        decoder: Decoder of the text: name and options.
        times: Name of the head whose forced alignment of the decoded text gives the times. Empty: the decoder's own.
        aligner: Aligner of the times: name and options; also used when the text is given.
        guide: Name of a head that says where, about, each token is, for an aligner that can be guided: where text and
            recording differ, a head of narrow view gets lost sooner than one that hears the whole. Empty: none.
        guide_aligner: Aligner of the guide: name and options.
        rescore: Weight of the timing head in the choice of the text: among the decoder's hypotheses (it must give
            several) the one that the text head finds likely and the timing head can place well, see
            :func:`isotone.pipeline.rescoring.rescored`. 0: the decoder alone.
        hypotheses: How many there are to choose from, at most.
    """

    text: str
    decoder: dict[str, Any]
    times: str = ""
    aligner: dict[str, Any] = field(default_factory=dict)
    guide: str = ""
    guide_aligner: dict[str, Any] = field(default_factory=dict)
    rescore: float = 0.0
    hypotheses: int = 32


class Model(nn.Module):
    """An encoder with heads.

    Args:
        encoder: Audio to frames.
        head_specs: Head name to its configuration (``name`` and options).
        tokenizer: Text to labels.
        reading: Which heads give text and times.

    Attributes:
        check: When a transcript is doubtful (:mod:`isotone.pipeline.doubt`), as measured where the model was trained;
            None where it was not.

    Raises:
        ModelError: ``reading`` names a head that is not there, or a head has no ``name``.
    """

    def __init__(
        self,
        encoder: Encoder,
        head_specs: Mapping[str, Mapping[str, Any]],
        tokenizer: Tokenizer,
        reading: Reading,
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
        self.reading = reading
        self.check: Check | None = None
        self.heads = nn.ModuleDict(
            {name: _head(spec, encoder, tokenizer) for name, spec in head_specs.items()}
        )
        for name in (reading.text, reading.times, reading.guide):
            if name and name not in self.heads:
                raise ModelError(
                    f"Text or times are read from a head {name!r}; the model has {list(self.heads)}."
                )
        if reading.rescore < 0 or reading.hypotheses < 1:
            raise ModelError(
                f"reading.rescore is a weight of 0 or more; got {reading.rescore}. It chooses among one of "
                f"reading.hypotheses or more; got {reading.hypotheses}."
            )
        if reading.rescore and not reading.times:
            raise ModelError("reading.rescore is the weight of another head, and reading.times names none.")
        if reading.guide and not reading.guide_aligner:
            raise ModelError(f"The guide {reading.guide!r} needs an aligner: guide_aligner: {{name: ctc}}.")

    def aligner_of(self, head: str) -> dict[str, Any]:
        """The specification of the aligner that fits a head.

        It is the reading's own for the head that the times are read from, and for the guide the guide's. For others it
        is the aligner that has the name of the head's kind, where there is one.
        """
        reading = self.reading
        if head == reading.guide != reading.times:
            return reading.guide_aligner
        kind = self.head_specs[head]["name"]
        if head == (reading.times or reading.text) or kind not in aligners.names():
            return reading.aligner
        return {"name": kind}

    def forward(
        self,
        audio: Tensor,
        lengths: Tensor,
        only: set[str] | None = None,
        statistics: Statistics | None = None,
    ) -> dict[str, Emissions]:
        """Emissions of every head (or of those named), by name.

        In training every head but the first has random numbers of its own: one head more changes nothing of those
        before it, unless they learn something together.

        Args:
            audio: ``(B, N)`` float32 at ``encoder.sample_rate``.
            lengths: ``(B,)`` int64, samples.
            only: Heads to run; all by default.
            statistics: ``encoder.statistics`` of what lies around the audio, where it is a part of a recording.
        """
        wanted: dict[str, Any] = {
            name: head for name, head in self.heads.items() if only is None or name in only
        }
        hidden = any(head.reads != "features" for head in wanted.values())
        options = {} if statistics is None else {"statistics": statistics}
        encoded = self.encoder(audio, lengths, hidden, **options)
        emissions: dict[str, Emissions] = {}
        for name, head in wanted.items():
            apart = self.training and bool(emissions)
            with _own_randomness(audio.device, head.progress) if apart else nullcontext():
                emissions[name] = head(encoded.read(head.reads))
        return emissions

    def save(self, folder: Path | str) -> None:
        """Write the model as a folder (configuration, tokenizer, weights as safetensors), whole or not at all."""
        with atomic_folder(folder) as target:
            config = {
                "format": 1,
                "encoder": self.encoder.name,
                "heads": self.head_specs,
                "reading": asdict(self.reading),
            }
            if self.check:
                config["check"] = asdict(self.check)
            (target / CONFIG).write_text(
                json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
            )
            self.encoder.save(target / "encoder")
            self.tokenizer.save(target / "tokenizer")
            state = {k: v.detach().cpu().contiguous().clone() for k, v in self.state_dict().items()}
            save_file(state, target / WEIGHTS, metadata={"format": "pt"})

    @classmethod
    def load(cls, source: Path | str, language: str = "") -> Model:
        """Load what :meth:`save` wrote, a run folder, or a ``*ForCTC`` model of transformers.

        Args:
            source: Folder, or hub id, of either kind.
            language: ISO 639 code of the language that is spoken: of a model of many languages (MMS) it chooses the
                adapter, of one that is pronounced by espeak-ng the voice, and numbers are read in it. Default: what the
                model's files say.

        Raises:
            ModelError: the folder is not a model, its weights do not fit, or it is not of this language.
            FileNotFoundError: no such folder or hub id.
            ConnectionError: no such folder, and the hub does not answer.
        """
        check_source(source)
        folder = model_folder(source)
        if not folder.exists():
            folder = fetch(str(source), language)
        if (folder / CONFIG).is_file():
            model = cls._load_own(folder)
            if language:
                _set_language(model.tokenizer, language)
            return model
        if not (folder / "config.json").is_file():
            raise ModelError(
                f"{folder} holds no model: expected {CONFIG} (isotone) or config.json (transformers)."
            )
        return _from_transformers(folder, str(source), language)

    # as transformers calls them
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
            raise ModelError(f"{folder / CONFIG}: format {found!r} is not one this version reads (1).")
        try:
            name, head_specs = config.get("encoder", "transformers"), dict(config["heads"])
            reading = Reading(**config["reading"])
            check = Check(**config["check"]) if "check" in config else None
        except (KeyError, TypeError, ValueError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else error
            raise ModelError(f"{folder / CONFIG} is damaged: {what}. Get the model again.") from error
        encoder = encoders.get(name).load(folder / "encoder")  # type: ignore[attr-defined]
        model = cls(encoder, head_specs, tokenizers.load(folder / "tokenizer"), reading)
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
    """Random numbers that follow from the stream's state and the progress, and take none from the stream."""
    # what every device has by these names, with no device to name: the one in use is meant
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
    reading = Reading("ctc", {"name": "ctc-greedy"}, "ctc", {"name": "ctc"})
    model = Model(parts.encoder, {"ctc": parts.head}, parts.tokenizer, reading)
    model.heads["ctc"].get_submodule("lm_head").load_state_dict(parts.weights)
    return model.eval()


def _set_language(tokenizer: Tokenizer, language: str) -> None:
    """Have texts read in another language than the tokenizer was saved with."""
    try:
        tokenizer.use_language(language)
    except ValueError as error:
        raise ModelError(f"The model does not read the language {language!r}: {error}") from error
