"""Export of models to their form for onnxruntime, which alignment needs neither torch nor transformers to read.

The graph has normalisation, encoder and heads, and the front end of models on the wave form. Log-mel energies are made
by :mod:`isotone.kernels.spectra`, in a small share of the time of onnxruntime's spectra.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isotone.files import atomic_folder, check_replaceable
from isotone.interfaces import Statistics
from isotone.model.encoder import SpeechEncoder
from isotone.model.frontend import LogMel
from isotone.model.key import key_of
from isotone.model.model import WEIGHTS, Model, ModelError
from isotone.model.onnx_form import BESIDE, CONFIG, FORMAT, GRAPH, digest_of_model
from isotone.model.onnx_model import OnnxModel
from isotone.model.onnx_weights import halve, share
from isotone.model.strides import has_adapter
from isotone.types import mask_rows

#: Largest difference of logits from torch's that an export may have.
TOLERANCE = 1e-4

#: Of ONNX. The first with all that the graphs use; later ones have nothing for them, and need later runtimes.
OPSET = 18

# Names of the inputs after the first. The last two are optional: NaN, their default, is for the statistics of the audio
# itself.
_INPUTS = ("lengths", "mean", "variance")


def export_onnx(model: Model, folder: Path | str, audio: Sequence[NDArray[np.float32]] = ()) -> float:
    """Write a model's form for onnxruntime as a folder, checked against torch.

    The graph takes recordings of one length: ``audio (B, N)`` float32, or log-mel energies ``energies (B, T, bands)``
    float64; and ``lengths (B,)`` int64, their samples. Per head it gives ``NAME``, logits ``(B, T, V)``, and
    ``NAME.lengths (B,)``. Optional inputs ``mean`` and ``variance`` are statistics to normalise a part of a recording
    by. It has no masks, which take a sixth of its time: of a batch with padding every row runs alone.

    Energies have 64 bits. With 32, rounding alone moves the logits of clean recordings by up to 0.001: bands near
    digital silence lie far below the loudest. For the same reason torch has 64 bits in the check.

    Args:
        model: A model whose encoder is a :class:`isotone.model.encoder.SpeechEncoder`.
        folder: Written whole or not at all.
        audio: Recordings ``(N,)`` at the model's sample rate to check with, beside noise.

    Returns:
        The largest difference of logits, at most :data:`TOLERANCE`.

    Raises:
        ModelError: the encoder has no graph, or its results differ from torch's.
        FileExistsError: the folder holds other files.
        ImportError: ONNX is not installed.
    """
    check_replaceable(Path(folder), (GRAPH, CONFIG, "tokenizer"))
    with atomic_folder(folder) as target:
        model.tokenizer.save(target / "tokenizer")
        return _write(model, target, CONFIG, audio)


def add_onnx(model: Model, folder: Path, audio: Sequence[NDArray[np.float32]] = ()) -> float:
    """Write a model's form beside its weights, which the graph takes from there; see :func:`export_onnx`.

    Args:
        model: The model of the folder.
        folder: The model's folder.
        audio: Recordings to check with, beside noise.
    """
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        target = Path(name)
        # a graph finds its weights in its own folder
        for path in folder.iterdir():
            if path.name not in (GRAPH, BESIDE):
                (shutil.copytree if path.is_dir() else shutil.copy)(path, target / path.name)
        difference = _write(model, target, BESIDE, audio)
        for file in (GRAPH, BESIDE):
            (target / file).replace(folder / file)
    return difference


def _write(model: Model, folder: Path, config: str, audio: Sequence[NDArray[np.float32]]) -> float:
    """Write graph and description to a folder with a tokenizer; return the largest difference of logits."""
    if not isinstance(model.encoder, SpeechEncoder):
        raise ModelError(f"A {type(model.encoder).__name__} is no encoder that ONNX export knows.")
    graph = Graph(model).eval()
    _write_graph(graph, folder / GRAPH, folder / WEIGHTS if config == BESIDE else None)
    about = description(model) | ({"made_of": digest_of_model(folder)} if config == BESIDE else {})
    text = json.dumps(about, indent=2, ensure_ascii=False)
    (folder / config).write_text(text + "\n", encoding="utf-8")
    difference = largest_difference(model, folder, [*_noise(model.encoder.sample_rate), *audio])
    if not difference <= TOLERANCE:
        raise ModelError(
            f"The ONNX graph gives other logits than torch, by {difference:.1e}; at most {TOLERANCE:.0e} is right. "
            "Nothing was written. Please report this with the versions of torch, onnxscript and onnxruntime."
        )
    return difference


class _FromEnergies(LogMel):
    """A front end that is given log-mel energies ``(B, T, bands)`` in place of samples."""

    def forward(
        self, audio: Tensor, lengths: Tensor, statistics: Statistics | None = None
    ) -> tuple[Tensor, Tensor]:
        """Normalise and stack energies; ``lengths (B,)`` are samples."""
        values, frames = self.stacked(audio, lengths, statistics)
        return mask_rows(values.float(), frames), frames


class Graph(nn.Module):
    """A copy of a model as a function of whole recordings: of energies where the front end is a log-mel filter bank.

    Args:
        model: The model.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = deepcopy(model).cpu()
        self.encoder: Any = self.model.encoder
        if bands := _bands(model):
            front: Any = self.encoder.front_end
            self.encoder.front_end = _FromEnergies(front.sample_rate, bands, front.stack)
            inner: Any = self.encoder.model
            if hasattr(inner, "set_attn_implementation"):  # transformers' Wav2Vec2-BERT
                # torch.export cannot reshape what the fused attention gives where lengths are symbols
                inner.set_attn_implementation("eager")
        self.bands = bands
        for part in self.model.modules():
            if hasattr(part, "unpadded"):
                setattr(part, "unpadded", True)  # noqa: B010 - modules declare no such attribute

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs, in order."""
        return [part for name in self.model.heads for part in (name, f"{name}.lengths")]

    def forward(self, audio: Tensor, lengths: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, ...]:
        """Compute logits and lengths of all heads."""
        emissions = self.model(audio, lengths, statistics=(mean, variance))
        return tuple(part for e in emissions.values() for part in (e.logits, e.lengths))


def _bands(model: Model) -> int:
    """Return the number of mel bands of a model's front end; 0 where it takes samples."""
    front: Any = model.encoder.front_end
    return front.get_buffer("filters").shape[1] if isinstance(front, LogMel) else 0


def description(model: Model) -> dict[str, Any]:
    """Make the description of a form: heads with their frames and priors, decoding, and numbers of frames."""
    encoder: Any = model.encoder
    with torch.inference_mode():
        found = model(torch.zeros(1, encoder.sample_rate), torch.tensor([encoder.sample_rate]))
    heads = {
        name: {
            "name": model.head_specs[name]["name"], "hop_s": e.grid.hop_s, "offset_s": e.grid.offset_s,
            "blank": e.blank, "log_prior": None if e.log_prior is None else e.log_prior.tolist(),
        }
        for name, e in found.items()
    }  # fmt: skip
    bands = _bands(model)
    normalised = "log-mel" if bands else "samples" if encoder.front_end.normalize else ""
    out = {
        "format": FORMAT, "key": key_of(model), "sample_rate": encoder.sample_rate, "normalised": normalised,
        "bands": bands, "exact_padding": encoder.exact_padding, "frame_steps": _frame_steps(encoder), "heads": heads,
        "reading": asdict(model.decoding),
    }  # fmt: skip
    return out | ({"check": asdict(model.check)} if model.check else {})


def _frame_steps(encoder: SpeechEncoder) -> list[tuple[int, int, int]]:
    """List the windows that samples become frames by, one after the other: size, step, and padding on each side."""
    config, front = encoder.model.config, encoder.front_end
    if isinstance(front, LogMel):
        steps = [(front.window_size, front.hop, 0), (front.stack, front.stack, 0)]
    else:
        steps = [(kernel, stride, 0) for kernel, stride in zip(config.conv_kernel, config.conv_stride)]
    if has_adapter(config):
        kernel = config.adapter_kernel_size if config.model_type == "wav2vec2-bert" else 1
        steps += [(kernel, config.adapter_stride, kernel // 2)] * config.num_adapter_layers
    return steps


def _write_graph(graph: Graph, path: Path, weights: Path | None) -> None:
    """Export a graph, make the statistics' inputs optional, and make it small."""
    import onnx
    from onnx import numpy_helper

    rate, size = graph.encoder.sample_rate, graph.bands or 1
    own = np.full(size, np.nan, np.float32)
    batch, time = torch.export.Dim.DYNAMIC, torch.export.Dim.DYNAMIC
    # a batch of one would be taken for a constant, and one tensor given twice for one input
    statistics = torch.from_numpy(own), torch.from_numpy(own.copy())
    first = torch.zeros(2, 98, size, dtype=torch.float64) if graph.bands else torch.zeros(2, rate)
    names = ("energies" if graph.bands else "audio", *_INPUTS)
    with _quiet():
        program = torch.onnx.export(
            graph, (first, torch.tensor([rate, rate]), *statistics), dynamo=True, opset_version=OPSET,
            input_names=names, output_names=graph.outputs,
            dynamic_shapes=({0: batch, 1: time}, {0: batch}, None, None), verbose=False,
        )  # fmt: skip
    assert program is not None
    proto = program.model_proto
    for name in names[2:]:
        proto.graph.initializer.append(numpy_helper.from_array(own, name))
    halve(proto)
    if weights is not None:
        share(proto, weights)
    onnx.save(proto, path)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's remarks on what it lacks and leaves out."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before):
            logger.setLevel(level)


def _noise(rate: int) -> list[NDArray[np.float32]]:
    """Make noise of several lengths, from loud to quiet, and one too short for a frame."""
    rng = np.random.default_rng(0)
    sizes = {0.01: 0.1, 0.3: 0.5, 1.0: 0.1, 3.3: 1e-3}
    return [rng.normal(0, level, round(s * rate)).astype(np.float32) for s, level in sizes.items()]


def largest_difference(model: Model, folder: Path, audio: Sequence[NDArray[np.float32]]) -> float:
    """Compute the largest difference of a form's logits from torch's with 64 bits.

    Every recording runs alone, the longest also with the statistics of its first half, and the first ones in a padded
    batch, if padding does not change results in torch. A difference in the number of frames counts as infinite.
    """
    own: Any = OnnxModel(folder)
    exact: Any = deepcopy(model).cpu().double()
    runs: list[tuple[Sequence[NDArray], Any]] = [([one], None) for one in audio]
    if exact.encoder.exact_padding:
        runs.append((audio[:4], None))
    longest = max(audio, key=len)
    statistics = own.encoder.statistics(longest[: len(longest) // 2])
    if statistics is not None:
        runs.append(([longest], statistics))
    worst = 0.0
    for some, given in runs:
        lengths = np.array([len(one) for one in some])
        batch = np.zeros((len(some), lengths.max()), np.float32)
        for row, one in zip(batch, some):
            row[: len(one)] = one
        with own.tensors():
            found = own(batch, lengths, statistics=given)
        tensors = None if given is None else tuple(torch.from_numpy(x.reshape(-1)) for x in given)
        with torch.inference_mode():
            right = exact(torch.from_numpy(batch).double(), torch.from_numpy(lengths), statistics=tensors)
        worst = max(worst, *(_difference(found[name], right[name]) for name in right))
    return worst


def _difference(found: Any, right: Any) -> float:
    got, expected, frames = np.asarray(found.logits), right.logits.numpy(), right.lengths.numpy()
    if got.shape != expected.shape or not np.array_equal(np.asarray(found.lengths), frames):
        return np.inf
    kept = np.arange(got.shape[1]) < frames[:, None]
    return float(np.abs(got - expected)[kept].max(initial=0.0))
