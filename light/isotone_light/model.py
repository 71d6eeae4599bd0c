"""Models as folders of ONNX, run by onnxruntime: what alignment asks of a model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from isotone_light import tensors
from numpy.typing import NDArray
from onnxruntime import InferenceSession, RunOptions, SessionOptions

from isotone.kernels.threads import thread_count
from isotone.model.check import Check
from isotone.model.decoding import DecodingConfig, ModelError
from isotone.text import tokenizer as tokenizers
from isotone.types import Emissions, Grid

#: Name of the graph in a folder, that of its description, and the format that is read.
GRAPH, CONFIG, FORMAT = "model.onnx", "isotone.json", "onnx 1"

# Samples of which log-mel energies are computed at once: limits the memory.
_BLOCK = 1 << 20

Statistics = tuple[NDArray[np.float64], NDArray[np.float64]]


class OnnxModel:
    """A model that ``isotone export --onnx`` wrote.

    Args:
        folder: Its folder.
        threads: Threads of a call. Default: those of ``OMP_NUM_THREADS``, or one per core.

    Attributes:
        encoder: Sample rate, numbers of frames, and statistics of recordings.
        heads: What the description says of every head.
        tokenizer, decoding, check: As those of ``isotone.model.Model``.

    Raises:
        FileNotFoundError: there is no such folder.
        ModelError: the folder holds no model of ONNX, or a part of it is damaged.
    """

    def __init__(self, folder: Path | str, threads: int = 0) -> None:
        folder = Path(folder)
        config = _description(folder)
        try:
            self.heads: dict[str, dict[str, Any]] = dict(config["heads"])
            self.decoding = DecodingConfig(**config["reading"])
            self.check = Check.from_dict(config["check"]) if "check" in config else None
            self.encoder = _Encoder(config, _Session(folder / GRAPH, threads))
        except (KeyError, TypeError) as error:
            raise ModelError(
                f"{folder / CONFIG} is damaged: {error}. Export the model again: isotone export MODEL --onnx {folder}."
            ) from error
        self.tokenizer = tokenizers.load(folder / "tokenizer")

    def to(self, device: object) -> OnnxModel:
        """Return the model: it runs on the processor."""
        return self

    def eval(self) -> OnnxModel:
        """Return the model: it is not trained."""
        return self

    def parameters(self) -> Iterator[Any]:
        """Iterate over one tensor, on the model's device."""
        yield tensors.zeros(1)

    def aligner_of(self, head: str) -> dict[str, Any]:
        """Return the specification of a head's aligner, as ``isotone.model.Model`` chooses it."""
        if head == self.decoding.guide != self.decoding.times:
            return self.decoding.guide_aligner
        kind = self.heads[head]["name"]
        if head == (self.decoding.times or self.decoding.text) or kind != "ctc":
            return self.decoding.aligner
        return {"name": kind}

    def __call__(
        self,
        audio: Any,
        lengths: Any,
        only: set[str] | None = None,
        statistics: Statistics | None = None,
    ) -> dict[str, Emissions]:
        """Compute the emissions of heads; see ``isotone.model.Model.forward``."""
        names = [name for name in self.heads if only is None or name in only]
        inputs = {"audio": np.asarray(audio), "lengths": np.asarray(lengths)}
        if statistics is not None:
            inputs |= {k: v.astype(np.float32) for k, v in zip(("mean", "variance"), statistics)}
        outputs = self.encoder.session([x for name in names for x in (name, f"{name}.lengths")], inputs)
        return {name: self._emissions(name, *outputs[2 * i : 2 * i + 2]) for i, name in enumerate(names)}

    def _emissions(self, name: str, logits: NDArray, lengths: NDArray) -> Emissions:
        spec = self.heads[name]
        prior: Any = None if spec["log_prior"] is None else tensors.tensor(spec["log_prior"])
        scores: Any = tensors.from_numpy(logits)
        frames: Any = tensors.from_numpy(lengths)
        return Emissions(
            scores, frames, Grid(spec["hop_s"], spec["offset_s"]), spec["blank"], log_prior=prior
        )


class _Session:
    """A graph that computes the outputs that it is asked for, and no others."""

    def __init__(self, path: Path, threads: int) -> None:
        options = SessionOptions()
        options.log_severity_level = 3  # it warns of inputs that may be left out
        options.intra_op_num_threads = threads or thread_count()
        # threads that wait sleep: on busy cores those that spin take the time of those that work
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a class for each kind of damage
            raise ModelError(f"{path} cannot be read: {error}. Export the model again.") from error
        self._options = RunOptions()
        self._options.only_execute_path_to_fetches = True

    def __call__(self, names: list[str], inputs: Mapping[str, NDArray]) -> list[NDArray]:
        return self._session.run(names, dict(inputs), self._options)


class _Encoder:
    """Sample rate, numbers of frames, and statistics of recordings."""

    def __init__(self, config: Mapping[str, Any], session: _Session) -> None:
        self.session = session
        self.sample_rate: int = config["sample_rate"]
        self._steps: list[tuple[int, int, int]] = config["frame_steps"]
        self._normalised: str = config["normalised"]

    def frames(self, samples: int) -> int:
        """Return the number of frames of the last layer that a number of samples gives."""
        for size, step, padding in self._steps:
            samples = max(0, (samples + 2 * padding - size) // step + 1)
        return samples

    def statistics(self, audio: NDArray[np.float32]) -> Statistics | None:
        """Compute mean and variance to normalise a part of a recording by, from samples ``(N,)`` around it."""
        audio = np.asarray(audio)
        if self._normalised == "samples":
            return np.array([audio.mean(dtype=float)]), np.array([audio.var(dtype=float)])
        size, hop, _ = self._steps[0]
        if self._normalised != "log-mel" or len(audio) < size:
            return None
        step = _BLOCK // hop * hop
        # windows overlap: a block has samples beyond the start of the next one
        starts = range(0, len(audio) - size + 1, step)
        values = np.concatenate([self._energies(audio[at : at + step - hop + size]) for at in starts])
        return values.mean(0, dtype=float), values.var(0, ddof=1 if len(values) > 1 else 0, dtype=float)

    def _energies(self, audio: NDArray[np.float32]) -> NDArray[np.float32]:
        lengths = np.array([len(audio)])
        return self.session(["energies"], {"audio": audio[None], "lengths": lengths})[0][0]


def _description(folder: Path) -> Mapping[str, Any]:
    """Read the description of a folder of ONNX."""
    if not folder.exists():
        raise FileNotFoundError(
            f"There is no folder {folder}: expected one that isotone export --onnx wrote."
        )
    make = f"isotone-light reads what this command writes: isotone export MODEL --onnx {folder.name or 'FOLDER'}."
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{folder} holds no model: it has no {CONFIG}. {make}") from error
    except ValueError as error:
        raise ModelError(f"{folder / CONFIG} is damaged: {error}. {make}") from error
    found = config.get("format") if isinstance(config, dict) else None
    if found != FORMAT:
        raise ModelError(f"{folder} has the format {found!r}, and not {FORMAT!r}. {make}")
    return config
