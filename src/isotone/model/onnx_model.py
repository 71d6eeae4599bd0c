"""Models run by onnxruntime, without torch: what alignment asks of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.kernels.threads import thread_count
from isotone.model.check import Check
from isotone.model.decoding import DecodingConfig, ModelError, set_language
from isotone.model.log_mel import WINDOW, LogMelEnergies
from isotone.model.onnx_form import GRAPH, description_of
from isotone.tensors import torch, without_torch
from isotone.text import tokenizer as tokenizers
from isotone.types import Emissions, Grid

Statistics = tuple[NDArray[np.float64], NDArray[np.float64]]

# Names of the inputs that a graph takes where a part of a recording is normalised as the whole.
_GIVEN = ("mean", "variance")


class OnnxModel:
    """A model in its form for onnxruntime, see :mod:`isotone.model.onnx_form`.

    Args:
        folder: Its folder.
        language: ISO 639 code of the spoken language. Default: the model's own.
        threads: Threads of a call. Default: those of ``OMP_NUM_THREADS``, or one per core.

    Attributes:
        encoder: Sample rate, numbers of frames, and statistics of recordings.
        heads: What the description says of every head.
        key: The key of the model, as that of the model that it was made of.
        tokenizer, decoding, check: As those of :class:`isotone.model.Model`.

    Raises:
        FileNotFoundError: there is no such folder.
        ModelError: the folder holds no form of a model, a part of it is damaged, or the language is not the model's.
    """

    engine = "onnx"

    def __init__(self, folder: Path | str, language: str = "", threads: int = 0) -> None:
        folder = Path(folder)
        config = description_of(folder)
        try:
            self.heads: dict[str, dict[str, Any]] = dict(config["heads"])
            self.key: str = config["key"]
            self.decoding = DecodingConfig(**config["reading"])
            self.check = Check.from_dict(config["check"]) if "check" in config else None
            self.encoder = _Encoder(config)
        except (KeyError, TypeError) as error:
            raise ModelError(
                f"The description of {folder} is damaged: {error}. Export the model again: "
                f"isotone export MODEL --onnx {folder}."
            ) from error
        self._session = _Session(folder / GRAPH, threads)
        self.tokenizer = tokenizers.load(folder / "tokenizer")
        if language:
            set_language(self.tokenizer, language)

    def tensors(self) -> AbstractContextManager[None]:
        """Return the context in which its emissions are computed with: numpy in place of torch."""
        return without_torch()

    def to(self, device: object) -> OnnxModel:
        """Return the model: it runs on the processor."""
        return self

    def eval(self) -> OnnxModel:
        """Return the model: it is not trained."""
        return self

    def parameters(self) -> Iterator[Any]:
        """Iterate over one tensor, on the model's device."""
        yield torch.zeros(1)

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
        wanted = [x for name in names for x in (name, f"{name}.lengths")]
        given = dict(zip(_GIVEN, (v.astype(np.float32) for v in statistics))) if statistics else {}
        rows = [
            self._session(
                wanted, {**self.encoder.inputs(row[:length]), "lengths": np.array([length]), **given}
            )
            for row, length in zip(np.asarray(audio), np.asarray(lengths).tolist())
        ]
        parts = list(zip(*rows))
        return {name: self._emissions(name, *parts[2 * i : 2 * i + 2]) for i, name in enumerate(names)}

    def _emissions(self, name: str, logits: Sequence[NDArray], lengths: Sequence[NDArray]) -> Emissions:
        spec = self.heads[name]
        prior = None if spec["log_prior"] is None else torch.tensor(spec["log_prior"])
        padded = torch.nn.utils.rnn.pad_sequence(
            [torch.from_numpy(one[0]) for one in logits], batch_first=True
        )
        grid = Grid(spec["hop_s"], spec["offset_s"])
        frames = torch.from_numpy(np.concatenate(lengths))
        return Emissions(padded, frames, grid, spec["blank"], log_prior=prior)


class _Session:
    """A graph that computes the outputs that it is asked for, and no others."""

    def __init__(self, path: Path, threads: int) -> None:
        from onnxruntime import GraphOptimizationLevel, InferenceSession, RunOptions, SessionOptions

        options = SessionOptions()
        options.log_severity_level = 3  # it warns of inputs that may be left out
        options.intra_op_num_threads = threads or thread_count()
        # fusions beyond the basic ones take longer to find than they save, and a twentieth of the time of a run
        options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_BASIC
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
    """Sample rate, numbers of frames, statistics of recordings, and the part of the front end that is no graph."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.sample_rate: int = config["sample_rate"]
        self._steps: list[tuple[int, int, int]] = config["frame_steps"]
        self._normalised: str = config["normalised"]
        self._energies: LogMelEnergies | None = None
        if self._normalised == "log-mel":
            self._energies = LogMelEnergies(self.sample_rate, config["bands"])

    def frames(self, samples: int) -> int:
        """Return the number of frames of the last layer that a number of samples gives."""
        for size, step, padding in self._steps:
            samples = max(0, (samples + 2 * padding - size) // step + 1)
        return samples

    def inputs(self, audio: NDArray[np.float32]) -> dict[str, NDArray]:
        """Return the input of the graph that is made of samples ``(N,)``."""
        if self._energies is None:
            return {"audio": audio[None]}
        # a stack of frames at least, as in torch, with silence after the end
        least = WINDOW + (self._steps[1][0] - 1) * self._steps[0][1]
        return {"energies": self._energies(np.pad(audio, (0, max(0, least - len(audio)))))[None]}

    def statistics(self, audio: NDArray[np.float32]) -> Statistics | None:
        """Compute mean and variance to normalise a part of a recording by, from samples ``(N,)`` around it."""
        audio = np.asarray(audio)
        if self._normalised == "samples":
            return np.array([audio.mean(dtype=float)]), np.array([audio.var(dtype=float)])
        if self._energies is None or len(audio) < WINDOW:
            return None
        count, mean, square = 0, np.zeros(()), np.zeros(())
        for values in self._energies.blocks(audio):  # of an hour they would take hundreds of megabytes
            own, total = values.mean(0), count + len(values)
            apart = np.square(own - mean) * (count * len(values) / total)
            square = square + np.square(values - own).sum(0) + apart
            mean = mean + (own - mean) * (len(values) / total)
            count = total
        return mean, square / max(1, count - 1)
