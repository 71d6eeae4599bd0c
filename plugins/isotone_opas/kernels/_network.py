"""The compiled penalty network, sixteen corpus items at once: see :class:`isotone_opas.kernels.PenaltyNetwork`."""

from __future__ import annotations

import numpy as np

from isotone.kernels.native import compiled
from isotone.kernels.native.lanes import (
    LANES,
    add,
    divide,
    exponential,
    larger,
    load,
    multiply,
    repeat,
    smaller,
    splat,
    store,
    subtract,
)

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_FAR = np.float32(1e30)


@compiled
def scratch_size(layers: np.ndarray, width: int) -> int:
    """Return :func:`network`'s number of scratch vectors: two channel buffers, the rows' mean, and its convolution."""
    if len(layers) == 0:
        return 3
    channels = 1
    for layer in range(len(layers) - 2):
        channels = max(channels, layers[layer, 0])
    return (3 * channels + layers[len(layers) - 2, 0]) * width + layers[len(layers) - 1, 1]


@compiled
def network(
    similar: np.ndarray,
    stride: int,
    row_mask: np.ndarray,
    m: int,
    layers: np.ndarray,
    weights: np.ndarray,
    scratch: np.ndarray,
    lam: np.ndarray,
) -> None:
    """Fill the penalties: convolutions along every row, their mean over the rows, pooling, two layers, sigmoid.

    A row of ``layers`` is (outputs, inputs, taps, pooled). The last row is that of the two layers at the end: (hidden,
    bins, -, -); the one before it is the convolution after the mean.
    """
    count = len(layers) - 2
    channels = 1
    for layer in range(count):
        channels = max(channels, layers[layer, 0])
    half = channels * stride * LANES
    mean = 2 * half
    width = stride
    rows = splat(_ZERO)
    for i in range(m):
        rows = add(rows, load(row_mask, i * LANES))
    for i in range(m):
        source, base, offset, width = similar, i * stride * LANES, 0, stride
        target = 0
        for layer in range(count):
            width = _convolve(source, base, width, scratch, target, weights, offset, layers[layer], True)
            offset += layers[layer, 0] * (layers[layer, 1] * layers[layer, 2] + 1)
            source, base, target = scratch, target, half - target
        share = divide(load(row_mask, i * LANES), larger(rows, splat(_ONE)))
        for x in range(layers[count - 1, 0] * width):
            value = multiply(share, load(scratch, base + x * LANES))
            if i > 0:
                value = add(value, load(scratch, mean + x * LANES))
            store(scratch, mean + x * LANES, value)
    offset = 0
    for layer in range(count):
        offset += layers[layer, 0] * (layers[layer, 1] * layers[layer, 2] + 1)
    last = layers[count]
    _penalties(scratch, mean, 3 * half, width, weights, offset, last, layers[count + 1], row_mask, m, lam)


@compiled
def _convolve(
    source: np.ndarray, base: int, width: int, out: np.ndarray, target: int, weights: np.ndarray, offset: int,
    layer: np.ndarray, rectify: bool,
) -> int:  # fmt: skip
    """Convolve along a row, and pool by two where the layer says so; return the new width."""
    outputs, inputs, taps = layer[0], layer[1], layer[2]
    pooled = layer[3] == 1
    width_before = width - taps + 1
    new = width_before // 2 if pooled else width_before
    size, biases, floor = inputs * taps, offset + outputs * inputs * taps, splat(_ZERO if rectify else -_FAR)
    # four outputs at two positions share what they read
    most = outputs // 4 * 4
    for o in range(0, most, 4):
        for t in range(0, width_before - 1, 2):
            left0, left1 = repeat(weights, biases + o), repeat(weights, biases + o + 1)
            left2, left3 = repeat(weights, biases + o + 2), repeat(weights, biases + o + 3)
            right0, right1, right2, right3 = left0, left1, left2, left3
            for channel in range(inputs):
                start = base + (channel * width + t) * LANES
                weight = offset + o * size + channel * taps
                x = load(source, start)
                for k in range(taps):
                    y = load(source, start + (k + 1) * LANES)
                    w0, w1 = repeat(weights, weight + k), repeat(weights, weight + size + k)
                    w2, w3 = repeat(weights, weight + 2 * size + k), repeat(weights, weight + 3 * size + k)
                    left0, right0 = add(left0, multiply(w0, x)), add(right0, multiply(w0, y))
                    left1, right1 = add(left1, multiply(w1, x)), add(right1, multiply(w1, y))
                    left2, right2 = add(left2, multiply(w2, x)), add(right2, multiply(w2, y))
                    left3, right3 = add(left3, multiply(w3, x)), add(right3, multiply(w3, y))
                    x = y
            step = target + (o * new + (t // 2 if pooled else t)) * LANES
            _keep(out, step, left0, right0, floor, pooled)
            _keep(out, step + new * LANES, left1, right1, floor, pooled)
            _keep(out, step + 2 * new * LANES, left2, right2, floor, pooled)
            _keep(out, step + 3 * new * LANES, left3, right3, floor, pooled)
    for o in range(outputs):
        # the rest: the last position of an odd number, and all positions of the last outputs
        for t in range(0 if o >= most else new if pooled else width_before // 2 * 2, new):
            best = floor
            for first in range(2 * t if pooled else t, 2 * t + 2 if pooled else t + 1):
                total = repeat(weights, biases + o)
                for channel in range(inputs):
                    start = base + (channel * width + first) * LANES
                    weight = offset + o * size + channel * taps
                    for k in range(taps):
                        x, y = repeat(weights, weight + k), load(source, start + k * LANES)
                        total = add(total, multiply(x, y))
                best = larger(best, total)
            store(out, target + (o * new + t) * LANES, best)
    return new


@compiled
def _keep(out: np.ndarray, index: int, left: object, right: object, floor: object, pooled: bool) -> None:
    """Store two neighbours, or if pooled the larger one; each at least ``floor``."""
    if pooled:
        store(out, index, larger(floor, larger(left, right)))
    else:
        store(out, index, larger(floor, left))
        store(out, index + LANES, larger(floor, right))


@compiled
def _penalties(
    scratch: np.ndarray,
    mean: int,
    free: int,
    width: int,
    weights: np.ndarray,
    offset: int,
    last: np.ndarray,
    dense: np.ndarray,
    row_mask: np.ndarray,
    m: int,
    lam: np.ndarray,
) -> None:
    """Fill one penalty per row from the mean over rows: a convolution, average pooling, two layers, a sigmoid."""
    new = _convolve(scratch, mean, width, scratch, free, weights, offset, last, False)
    offset += last[0] * (last[1] * last[2] + 1)
    hidden, bins = dense[0], dense[1]
    pooled = free + last[0] * new * LANES
    zero, one = splat(_ZERO), splat(_ONE)
    for i in range(1, m):
        for t in range(bins):
            start, stop = t * new // bins, ((t + 1) * new + bins - 1) // bins
            total = zero
            for x in range(start, stop):
                total = add(total, load(scratch, free + (i * new + x) * LANES))
            total = multiply(total, splat(np.float32(1.0 / (stop - start))))
            store(scratch, pooled + t * LANES, larger(total, zero))
        second = offset + hidden * (bins + 1)
        out = splat(weights[second + hidden])
        for u in range(hidden):
            total = splat(weights[offset + hidden * bins + u])
            for t in range(bins):
                total = add(
                    total, multiply(splat(weights[offset + u * bins + t]), load(scratch, pooled + t * LANES))
                )
            out = add(out, multiply(splat(weights[second + u]), larger(total, zero)))
        out = smaller(larger(out, splat(np.float32(-80.0))), splat(np.float32(80.0)))
        sigmoid = divide(one, add(one, exponential(subtract(zero, out))))
        store(lam, i * LANES, multiply(sigmoid, load(row_mask, i * LANES)))
    store(lam, 0, zero)
