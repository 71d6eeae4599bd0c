"""Sums over all paths of a lattice, frame by frame: compiled, for :mod:`isotone.kernels.posteriors`.

A probability is a mantissa in [1, 2) and a whole exponent of 2 in float64, whose range is practically unlimited. Sums
round as float64 does, whatever the magnitude, and need neither exponential nor logarithm, so that they vectorise.
Zero is 2^-1e300: no number of frames reaches it, and adding exponents to it leaves it as it is.
"""

from __future__ import annotations

import math

import numpy as np

from isotone.kernels._lattice import Row, emit, gather
from isotone.kernels.arithmetic import fractional_power, nearest, split, whole_power
from isotone.kernels.native import compiled, read, write

_NOTHING = -1e300
_LOG2_E, _LN2 = 1 / math.log(2), math.log(2)


@compiled
def sum_paths(row: Row, blanks: bool, backward: bool, path: np.ndarray, record: np.ndarray) -> float:
    """Return the log-sum over all paths of a row, with blanks or without; NaN where the input was NaN or +inf.

    ``record[t]`` becomes that over the partial paths that are in token ``path[t]`` at frame t, with that frame. Partial
    paths begin at the start; where ``backward``, at the end: then the row has its labels in reverse, its frames not.
    """
    frames, cells, count = len(row.log_probs), len(row.symbol_of), len(row.labels)
    low, high, symbols, symbol_of = row.low, row.high, row.symbols, row.symbol_of
    # mantissas and exponents of tokens, then of blanks; cell u has index u + 1
    old, new = _nothing(cells), _nothing(cells)
    old[3 if blanks else 1, 1 if blanks else 0] = 0.0  # before the first frame
    emitted, score = np.empty((3, len(symbols))), np.empty((2, cells))
    ok = True
    was_low = 0
    for t in range(frames):
        at = frames - 1 - t if backward else t
        ok &= emit(row.log_probs[at], symbols, emitted[2])
        _powers(emitted[2], emitted[0], emitted[1])
        lo, end = low[t], high[t] + 1
        gather(emitted[0], symbol_of[lo:end], score[0])
        gather(emitted[1], symbol_of[lo:end], score[1])
        _to_tokens(
            old[0, lo:], old[1, lo:], old[2, lo:], old[3, lo:], row.floor[lo:], score[0], score[1],
            new[0, lo:], new[1, lo:], end - lo,
        )  # fmt: skip
        if blanks:
            _to_blanks(
                old[0, lo:], old[1, lo:], old[2, lo:], old[3, lo:], emitted[0, 0], emitted[1, 0],
                new[2, lo:], new[3, lo:], end - lo,
            )  # fmt: skip
        if len(row.after_free) > 0:
            _past_free(row, blanks, was_low, lo, end, old, new, score)
        # nothing before the first cell, should the next frame begin here as well
        new[1, lo] = new[3, lo] = _NOTHING
        old, new, was_low = new, old, lo
        u = count - 1 - path[at] if backward else path[at]
        record[at] = _log(old[0, u + 1], old[1, u + 1]) if path[at] >= 0 and lo <= u < end else -np.inf
    return _end(row, blanks, old) if ok else np.nan


@compiled
def _end(row: Row, blanks: bool, state: np.ndarray) -> float:
    count = len(row.labels)
    mantissa, exponent = 1.0, _NOTHING
    if blanks:
        mantissa, exponent = state[2, count + 1], state[3, count + 1]
    for u in range(count - 1, row.low[-1] - 1, -1):
        mantissa, exponent = _add(mantissa, exponent, state[0, u + 1], state[1, u + 1])
        if not row.free[u]:
            break
        if blanks:
            mantissa, exponent = _add(mantissa, exponent, state[2, u + 1], state[3, u + 1])
    return _log(mantissa, exponent)


@compiled
def _nothing(cells: int) -> np.ndarray:
    state = np.ones((4, cells + 1))
    state[1] = state[3] = _NOTHING
    return state


@compiled
def _log(mantissa: float, exponent: float) -> float:
    return np.log(mantissa) + exponent * _LN2 if exponent > _NOTHING / 2 else -np.inf


@compiled
def _add(a: float, a_exponent: float, b: float, b_exponent: float) -> tuple[float, float]:
    top = max(a_exponent, b_exponent)
    mantissa, exponent = split(a * whole_power(a_exponent - top) + b * whole_power(b_exponent - top))
    return mantissa, exponent + top


@compiled
def _powers(logs: np.ndarray, mantissas: np.ndarray, exponents: np.ndarray) -> None:
    """Fill the mantissas in [0.7, 1.5) and exponents of numbers, given their natural logarithms."""
    for k in range(len(logs)):
        x = logs[k] * _LOG2_E
        x = x if x > -1e15 else 0.0
        exponents[k] = nearest(x) if logs[k] > -1e15 else _NOTHING
        mantissas[k] = fractional_power(x - nearest(x))


@compiled
def _to_tokens(
    token: np.ndarray,
    token_exponent: np.ndarray,
    blank: np.ndarray,
    blank_exponent: np.ndarray,
    floor: np.ndarray,
    score: np.ndarray,
    score_exponent: np.ndarray,
    out: np.ndarray,
    out_exponent: np.ndarray,
    count: int,
) -> None:
    """Sum into tokens: from themselves, the blanks before them and, where no floor forbids it, the tokens before."""
    for u in range(count):
        stay, rest = read(token_exponent, u + 1), read(blank_exponent, u + 1)
        direct = read(token_exponent, u) + read(floor, u)
        # relative to the largest exponent no power overflows, and those that underflow are nothing beside it
        top = stay if stay > rest else rest
        top = top if top > direct else direct
        total = read(token, u + 1) * whole_power(stay - top) + read(blank, u + 1) * whole_power(rest - top)
        total += read(token, u) * whole_power(direct - top)
        mantissa, exponent = split(total * read(score, u))
        write(out, u + 1, mantissa)
        write(out_exponent, u + 1, top + read(score_exponent, u) + exponent)


@compiled
def _to_blanks(
    token: np.ndarray,
    token_exponent: np.ndarray,
    blank: np.ndarray,
    blank_exponent: np.ndarray,
    score: float,
    score_exponent: float,
    out: np.ndarray,
    out_exponent: np.ndarray,
    count: int,
) -> None:
    """Sum into blanks: from themselves and from the tokens before them."""
    for u in range(count):
        rest, before = read(blank_exponent, u + 1), read(token_exponent, u)
        top = rest if rest > before else before
        total = read(blank, u + 1) * whole_power(rest - top) + read(token, u) * whole_power(before - top)
        mantissa, exponent = split(total * score)
        write(out, u + 1, mantissa)
        write(out_exponent, u + 1, top + score_exponent + exponent)


@compiled
def _past_free(
    row: Row,
    blanks: bool,
    was_low: int,
    lo: int,
    end: int,
    old: np.ndarray,
    new: np.ndarray,
    score: np.ndarray,
) -> None:
    """Add to tokens the paths past optional ones: from the blanks before those, and from the tokens before these."""
    for i in range(np.searchsorted(row.after_free, lo), len(row.after_free)):
        u = row.after_free[i]
        if u >= end:
            break
        mantissa, exponent = 1.0, _NOTHING
        v = u - 1
        while v >= was_low and row.free[v]:
            if blanks:
                mantissa, exponent = _add(mantissa, exponent, old[2, v + 1], old[3, v + 1])
            if not blanks or (v > was_low and row.labels[u] != row.labels[v - 1]):
                mantissa, exponent = _add(mantissa, exponent, old[0, v], old[1, v])
            v -= 1
        mantissa, extra = split(mantissa * score[0, u - lo])
        exponent += extra + score[1, u - lo]
        new[0, u + 1], new[1, u + 1] = _add(new[0, u + 1], new[1, u + 1], mantissa, exponent)
