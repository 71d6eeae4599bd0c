"""Export of models to ONNX: one folder that alignment needs neither torch nor transformers to read.

``model.onnx`` has front end, normalisation, encoder and heads. ``isotone.json`` describes it, and ``tokenizer`` is the
model's own.
"""

from __future__ import annotations

import json
import logging
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
from isotone.model.encoder import SpeechEncoder
from isotone.model.fetch import CONFIG
from isotone.model.frontend import LogMel
from isotone.model.model import Model, ModelError
from isotone.model.strides import has_adapter

#: Name of the graph in the folder, and the format in its description.
GRAPH, FORMAT = "model.onnx", "onnx 1"

#: Largest difference of logits from torch's that an export may have.
TOLERANCE = 1e-4

#: Of ONNX. The first with all that the graphs use; later ones have nothing for them, and need later runtimes.
OPSET = 18

# Names of the inputs. The last two are optional: NaN, their default, is for the statistics of the audio itself.
_INPUTS = ("audio", "lengths", "mean", "variance")
_ENERGIES = "energies"


def export_onnx(model: Model, folder: Path | str, audio: Sequence[NDArray[np.float32]] = ()) -> float:
    """Write a model as a folder with a graph of ONNX, checked against torch by onnxruntime.

    The graph takes ``audio (B, N)`` float32 and ``lengths (B,)`` int64, of any size. Per head it gives ``NAME``, logits
    ``(B, T, V)``, and ``NAME.lengths (B,)``. Optional inputs ``mean`` and ``variance`` are statistics to normalise a
    part of a recording by. ``energies`` are log-mel energies ``(B, T, bands)``, of which such statistics are made.

    The front end of the graph has 64 bits. With 32, rounding alone moves the logits of clean recordings by up to
    0.001: bands near digital silence lie far below the loudest. For the same reason torch has 64 bits in the check.

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
    if not isinstance(model.encoder, SpeechEncoder):
        raise ModelError(f"A {type(model.encoder).__name__} is no encoder that ONNX export knows.")
    check_replaceable(Path(folder), (GRAPH, CONFIG, "tokenizer"))
    graph = Graph(model).eval()
    with atomic_folder(folder) as target:
        _write_graph(graph, target / GRAPH)
        difference = largest_difference(graph, target / GRAPH, [*_noise(model.encoder.sample_rate), *audio])
        if not difference <= TOLERANCE:
            raise ModelError(
                f"The ONNX graph gives other logits than torch, by {difference:.1e}; at most {TOLERANCE:.0e} is right. "
                "Nothing was written. Please report this with the versions of torch, onnxscript and onnxruntime."
            )
        text = json.dumps(description(graph), indent=2, ensure_ascii=False)
        (target / CONFIG).write_text(text + "\n", encoding="utf-8")
        model.tokenizer.save(target / "tokenizer")
    return difference


class Graph(nn.Module):
    """A copy of a model as a function of tensors, with a front end of 64 bits.

    Args:
        model: The model.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = deepcopy(model).cpu()
        self.encoder: Any = self.model.encoder
        if self.log_mel:
            self.encoder.front_end.double()

    @property
    def log_mel(self) -> bool:
        """True where the front end is a log-mel filter bank."""
        return isinstance(self.encoder.front_end, LogMel)

    @property
    def statistics_size(self) -> int:
        """Number of means and of variances."""
        return self.encoder.front_end.get_buffer("filters").shape[1] if self.log_mel else 1

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs, in order."""
        heads = [part for name in self.model.heads for part in (name, f"{name}.lengths")]
        return [*heads, _ENERGIES] if self.log_mel else heads

    def forward(self, audio: Tensor, lengths: Tensor, mean: Tensor, variance: Tensor) -> tuple[Tensor, ...]:
        """Compute logits and lengths of all heads, and log-mel energies."""
        emissions = self.model(audio, lengths, statistics=(mean, variance))
        out: list[Tensor] = [part for e in emissions.values() for part in (e.logits, e.lengths)]
        if self.log_mel:
            front = self.encoder.front_end
            short = max(0, front.window_size - audio.shape[1])
            out.append(front.log_mel(nn.functional.pad(audio, (0, short))).float())
        return tuple(out)


def description(graph: Graph) -> dict[str, Any]:
    """Make what ``isotone.json`` says: heads with their frames and priors, decoding, and numbers of frames."""
    model, encoder = graph.model, graph.encoder
    with torch.inference_mode():
        found = model(torch.zeros(1, encoder.sample_rate), torch.tensor([encoder.sample_rate]))
    heads = {
        name: {
            "name": model.head_specs[name]["name"], "hop_s": e.grid.hop_s, "offset_s": e.grid.offset_s,
            "blank": e.blank, "log_prior": None if e.log_prior is None else e.log_prior.tolist(),
        }
        for name, e in found.items()
    }  # fmt: skip
    normalised = "log-mel" if graph.log_mel else "samples" if encoder.front_end.normalize else ""
    out = {
        "format": FORMAT, "sample_rate": encoder.sample_rate, "normalised": normalised,
        "exact_padding": encoder.exact_padding, "frame_steps": _frame_steps(encoder), "heads": heads,
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


def _write_graph(graph: Graph, path: Path) -> None:
    """Export a graph, and make the statistics' inputs optional."""
    import onnx
    from onnx import numpy_helper

    rate, size = graph.encoder.sample_rate, graph.statistics_size
    own = np.full(size, np.nan, np.float32)
    batch, time = torch.export.Dim.DYNAMIC, torch.export.Dim.DYNAMIC
    # a batch of one would be taken for a constant, and one tensor given twice for one input
    statistics = torch.from_numpy(own), torch.from_numpy(own.copy())
    example = torch.zeros(2, rate), torch.tensor([rate, rate // 2]), *statistics
    with _quiet():
        program = torch.onnx.export(
            graph, example, dynamo=True, opset_version=OPSET, input_names=_INPUTS, output_names=graph.outputs,
            dynamic_shapes=({0: batch, 1: time}, {0: batch}, None, None), verbose=False,
        )  # fmt: skip
    assert program is not None
    proto = program.model_proto
    for name in _INPUTS[2:]:
        proto.graph.initializer.append(numpy_helper.from_array(own, name))
    halve(proto)
    onnx.save(proto, path)


def halve(proto: Any) -> None:
    """Store the constants that 16 bits hold exactly, as those of packs, with 16 bits; the runtime widens them."""
    from onnx import TensorProto, helper, numpy_helper

    inputs = {one.name for one in proto.graph.input}
    casts = []
    for tensor in proto.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if tensor.name in inputs or values.dtype != np.float32 or values.size < 1000:
            continue
        half = values.astype(np.float16)
        if np.array_equal(half.astype(np.float32), values):
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(half, f"{name}.half"))
            casts.append(helper.make_node("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT))
    nodes = [*casts, *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)


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


def largest_difference(graph: Graph, path: Path, audio: Sequence[NDArray[np.float32]]) -> float:
    """Compute the largest difference of an exported graph's logits from torch's with 64 bits.

    Every recording runs alone, the longest also with the statistics of its first half, and the first ones in a padded
    batch, if padding does not change results in torch. A difference in the number of frames counts as infinite.
    """
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.log_severity_level = 3  # it warns of inputs that may be left out
    session = InferenceSession(path, options, providers=["CPUExecutionProvider"])
    runs: list[tuple[Sequence[NDArray], tuple]] = [([one], ()) for one in audio]
    if graph.encoder.exact_padding:
        runs.append((audio[:4], ()))
    longest = max(audio, key=len)
    statistics = graph.encoder.statistics(torch.from_numpy(longest[: len(longest) // 2]))
    if statistics is not None:
        runs.append(([longest], tuple(x.float().reshape(-1).numpy() for x in statistics)))
    exact = deepcopy(graph).double()
    worst = 0.0
    for some, given in runs:
        lengths = np.array([len(one) for one in some])
        batch = np.zeros((len(some), lengths.max()), np.float32)
        for row, one in zip(batch, some):
            row[: len(one)] = one
        found = session.run(graph.outputs, dict(zip(_INPUTS, (batch, lengths, *given))))
        own = np.full(graph.statistics_size, np.nan, np.float32)
        wave, *numbers = (torch.from_numpy(x).double() for x in (batch, *(given or (own, own))))
        with torch.inference_mode():
            expected = [part.numpy() for part in exact(wave, torch.from_numpy(lengths), *numbers)]
        heads = 2 * len(graph.model.heads)
        for got, right, frames, true in zip(
            found[:heads:2], expected[:heads:2], found[1:heads:2], expected[1:heads:2]
        ):
            if got.shape != right.shape or not np.array_equal(frames, true):
                return np.inf
            kept = np.arange(got.shape[1]) < true[:, None]
            worst = max(worst, float(np.abs(got - right)[kept].max(initial=0.0)))
    return worst
