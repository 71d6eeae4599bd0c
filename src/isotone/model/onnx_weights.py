"""Weights of graphs of ONNX: stored with 16 bits where these hold them, or taken from a model's own file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

# Constants of fewer values stay in the graph as they are.
_FEW = 1000


def halve(proto: Any) -> None:
    """Store the constants that 16 bits hold exactly, as those of packs, with 16 bits; the runtime widens them."""
    from onnx import TensorProto, helper, numpy_helper

    inputs = {one.name for one in proto.graph.input}
    casts = []
    for tensor in proto.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if tensor.name in inputs or values.dtype != np.float32 or values.size < _FEW:
            continue
        half = values.astype(np.float16)
        if np.array_equal(half.astype(np.float32), values):
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(half, f"{name}.half"))
            casts.append(helper.make_node("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT))
    _begin_with(proto, casts)


def share(proto: Any, weights: Path) -> None:
    """Take the constants that a file of safetensors holds, as they are or transposed, from there.

    Remarks of the exporter are left out too: they are longer than the graph.
    """
    from onnx import helper, numpy_helper

    content = weights.read_bytes()
    places = _places(content)
    turned = []
    for tensor in proto.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.size < _FEW:
            continue
        if (at := places.get(_bytes(values))) is not None:
            _refer(tensor, tensor.name, values, at, weights.name)
        elif values.ndim == 2 and (at := places.get(_bytes(values.T))) is not None:
            name = tensor.name
            _refer(tensor, f"{name}.turned", values.T, at, weights.name)
            turned.append(helper.make_node("Transpose", [f"{name}.turned"], [name], perm=[1, 0]))
    _begin_with(proto, turned)
    for part in (*proto.graph.node, *proto.graph.value_info, *proto.graph.initializer, proto.graph, proto):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")


def _places(content: bytes) -> dict[bytes, int]:
    """Find where the tensors of a file of safetensors lie: offsets by contents."""
    start = 8 + int.from_bytes(content[:8], "little")
    found = {}
    for name, about in json.loads(content[8:start]).items():
        if name != "__metadata__":
            first, last = (start + offset for offset in about["data_offsets"])
            found[content[first:last]] = first
    return found


def _bytes(values: np.ndarray) -> bytes:
    return np.ascontiguousarray(values).tobytes()


def _refer(tensor: Any, name: str, values: np.ndarray, offset: int, file: str) -> None:
    """Make a constant of a graph refer to a part of a file."""
    from onnx import TensorProto, helper

    kind = helper.np_dtype_to_tensor_dtype(values.dtype)
    tensor.CopyFrom(TensorProto(name=name, dims=values.shape, data_type=kind))
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", file), ("offset", offset), ("length", values.nbytes)):
        tensor.external_data.add(key=key, value=str(value))


def _begin_with(proto: Any, nodes: list[Any]) -> None:
    rest = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend([*nodes, *rest])
