"""Triton kernels of :mod:`isotone.kernels.viterbi.cuda`: the trellis of a batch, and the way back through it."""

from __future__ import annotations

import triton
import triton.language as tl

#: Frames that are loaded together, ahead of their use; their decisions share one word, of 3 bits each.
GROUP = tl.constexpr(4)
# Cells among which the back-trace finds the path, up to the one it was in when the word was loaded. Until the word is
# no longer needed, four groups pass: the path moves by less.
_WINDOW = tl.constexpr(32)


@triton.jit
def load_frame(  # type: ignore[no-untyped-def]
    log_probs, columns, real, blank_column, handed, t, frames, frame_stride
):  # fmt: skip
    """Load the scores of tokens and blank in frame t, and that of the token on the block's left before it."""
    inside = t < frames
    row = log_probs + t * frame_stride
    scores = tl.load(row + columns, mask=real & inside, other=float("-inf"))
    blank_score = tl.load(row + blank_column, mask=inside, other=float("-inf"))
    return scores, blank_score, tl.load(handed + t, mask=inside, other=float("-inf"))


@triton.jit
def from_left(token, entering, offset):  # type: ignore[no-untyped-def]
    """Return the score of the token before each."""
    return tl.where(offset == 0, entering, tl.gather(token, tl.maximum(offset - 1, 0), 0))


@triton.jit
def load_group(  # type: ignore[no-untyped-def]
    log_probs, columns, real, blank_column, handed, t, frames, frame_stride
):  # fmt: skip
    """Load what :func:`load_frame` does for a group of frames."""
    s0, b0, h0 = load_frame(log_probs, columns, real, blank_column, handed, t, frames, frame_stride)
    s1, b1, h1 = load_frame(log_probs, columns, real, blank_column, handed, t + 1, frames, frame_stride)
    s2, b2, h2 = load_frame(log_probs, columns, real, blank_column, handed, t + 2, frames, frame_stride)
    s3, b3, h3 = load_frame(log_probs, columns, real, blank_column, handed, t + 3, frames, frame_stride)
    return s0, s1, s2, s3, b0, b1, b2, b3, h0, h1, h2, h3


@triton.jit
def above(bad, s0, s1, s2, s3):  # type: ignore[no-untyped-def]
    """Return 1 where it was 1 before, or a score is NaN or +inf."""
    # NaN is below nothing
    numbers = (s0 < float("inf")) & (s1 < float("inf")) & (s2 < float("inf")) & (s3 < float("inf"))
    return tl.where(numbers, bad, 1)


@triton.jit
def fitting(frames, tokens, most_frames, most_tokens):  # type: ignore[no-untyped-def]
    """Return the lengths of a row, 0 where they do not fit the batch, and whether they do."""
    fits = (frames >= 0) & (frames <= most_frames) & (tokens >= 0) & (tokens <= most_tokens)
    return tl.where(fits, frames, 0), tl.where(fits, tokens, 0), fits


@triton.jit
def read_labels(  # type: ignore[no-untyped-def]
    labels, lane, tokens, vocab, blank, BLANKS: tl.constexpr
):  # fmt: skip
    """Return the labels of a block, where they are real, where neighbours may follow directly, and where known."""
    real = lane < tokens
    label = tl.load(labels + lane, mask=real, other=0)
    left = tl.load(labels + lane - 1, mask=real & (lane > 0), other=-1)
    known = (label >= 0) & (label < vocab) & (label != blank)
    skips = real & known
    if BLANKS:
        skips &= label != left
    return label, real & known, skips, known | (lane >= tokens)


@triton.jit
def end_row(  # type: ignore[no-untyped-def]
    token, blanks, entering, last, offset, score_place, rest_place, BLANKS: tl.constexpr
):  # fmt: skip
    """Store the best score of the row, and 1 if it ends in a blank, where the given cell is in the block."""
    # it is the blank at the end, after the last token
    score = from_left(token, entering, offset)
    rest = tl.zeros(offset.shape, tl.int32)
    if BLANKS:
        rest = tl.where(score > blanks, 0, 1)
        score = tl.where(score > blanks, score, blanks)
    tl.store(score_place + offset * 0, score, mask=offset == last)
    tl.store(rest_place + offset * 0, rest, mask=offset == last)


@triton.jit
def step(  # type: ignore[no-untyped-def]
    token, blanks, word, scores, blank_score, entering, skips, offset, t, frames, passed,
    PLACE: tl.constexpr, BLANKS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Move the scores one frame on, unless there are no more, and add to the words where each came from.

    Bits 0-1 are for the token (0 itself, 1 its blank, 2 the token before), bit 2 for the blank (0 itself, 1 the token
    before).
    """
    inside = t < frames
    before = from_left(token, entering, offset)
    direct = tl.where(skips, before, float("-inf"))
    best = token
    came = tl.zeros_like(word)
    if BLANKS:
        best = tl.where(blanks > token, blanks, token)
        came = tl.where(blanks > token, 1, 0)
        entered = tl.where(before > blanks, 4, 0)
        rested = tl.where(before > blanks, before, blanks) + blank_score.to(tl.float64)
        blanks = tl.where(inside, rested, blanks)
        came = tl.where(direct > best, 2, came) + entered
    else:
        came = tl.where(direct > best, 2, came)
    token = tl.where(inside, tl.where(direct > best, direct, best) + scores.to(tl.float64), token)
    # for the block on the right
    tl.store(passed + t + 1 + offset * 0, token, mask=(offset == BLOCK - 1) & inside)
    return token, blanks, word | (came << (3 * PLACE))


@triton.jit
def forward_kernel(  # type: ignore[no-untyped-def]
    log_probs, labels, frames, tokens, handed, passed, trellis, scores, rests, wrong,
    row_stride, frame_stride, column_stride, most_frames, most_tokens, vocab, blank, first, width,
    BLANKS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Fill the trellis of a block of cells and, if the row ends in it, its best score; one programme per row.

    Args:
        handed: ``(B, T + 1)`` float64, the score of the token on the block's left after so many frames.
        passed: The same of the block's last token, to be filled.
        trellis: ``(B, groups, width)`` int16.
        scores: ``(B,)`` float64.
        rests: ``(B,)`` int32, 1 where the best path ends in a blank.
        wrong: ``(B,)`` int32, set to 1 where the row has NaN, +inf, or a label or length that is none.
        first: The block's first cell.
    """
    row = tl.program_id(0).to(tl.int64)
    n, m, fits = fitting(tl.load(frames + row), tl.load(tokens + row), most_frames, most_tokens)
    log_probs += row * row_stride
    handed, passed = handed + row * (most_frames + 1), passed + row * (most_frames + 1)
    trellis += row * tl.cdiv(most_frames, GROUP) * width
    offset = tl.arange(0, BLOCK)
    lane = first + offset
    label, real, skips, known = read_labels(labels + row * most_tokens, lane, m, vocab, blank, BLANKS)
    bad = tl.where(fits & known, 0, 1)
    bad_blank = tl.where((m == 0) & (blank < 0), 1, 0)  # a path without blanks needs a token
    columns, blank_column = label * column_stride, tl.maximum(blank, 0) * column_stride
    token = tl.full((BLOCK,), float("-inf"), tl.float64)
    blanks = tl.where(lane == 0, 0.0 if BLANKS else float("-inf"), token)
    tl.store(passed + offset, token, mask=offset == 0)
    t = tl.zeros((), tl.int64)
    s0, s1, s2, s3, b0, b1, b2, b3, h0, h1, h2, h3 = load_group(
        log_probs, columns, real, blank_column, handed, t, n, frame_stride
    )
    while t < n:
        # the next group, whose scores arrive while this one is computed
        x0, x1, x2, x3, c0, c1, c2, c3, g0, g1, g2, g3 = load_group(
            log_probs, columns, real, blank_column, handed, t + GROUP, n, frame_stride
        )
        word = tl.zeros((BLOCK,), tl.int32)
        token, blanks, word = step(
            token, blanks, word, s0, b0, h0, skips, offset, t, n, passed, 0, BLANKS, BLOCK
        )
        token, blanks, word = step(
            token, blanks, word, s1, b1, h1, skips, offset, t + 1, n, passed, 1, BLANKS, BLOCK
        )
        token, blanks, word = step(
            token, blanks, word, s2, b2, h2, skips, offset, t + 2, n, passed, 2, BLANKS, BLOCK
        )
        token, blanks, word = step(
            token, blanks, word, s3, b3, h3, skips, offset, t + 3, n, passed, 3, BLANKS, BLOCK
        )
        tl.store(trellis + t // GROUP * width + lane, word.to(tl.int16), mask=lane <= m)
        bad = above(bad, s0, s1, s2, s3)
        if BLANKS:
            bad_blank = above(bad_blank, b0, b1, b2, b3)
        s0, s1, s2, s3, b0, b1, b2, b3, h0, h1, h2, h3 = x0, x1, x2, x3, c0, c1, c2, c3, g0, g1, g2, g3
        t += GROUP
    end_row(token, blanks, tl.load(handed + n), m - first, offset, scores + row, rests + row, BLANKS)
    tl.store(wrong + row, 1, mask=tl.maximum(tl.max(bad, 0), bad_blank) > 0)


@triton.jit
def load_word(trellis, group, width, cell, offset):  # type: ignore[no-untyped-def]
    """Load the decisions of a group of frames for a window of cells up to the given one.

    Lane i has the cell that is i modulo the window length: a cell is found without the place of its window. (Places
    carried through the loop beside the words were taken for constants by the compiler, Triton 3.6.)
    """
    at = cell - ((cell - offset) & (_WINDOW - 1))
    return tl.load(trellis + group * width + at, mask=(at >= 0) & (group >= 0), other=0).to(tl.int32)


@triton.jit
def trace_kernel(  # type: ignore[no-untyped-def]
    frames, tokens, trellis, scores, rests, wrong, paths, most_frames, width
):  # fmt: skip
    """Fill the paths of rows that have one; the scores of wrong rows become NaN. One programme per row."""
    row = tl.program_id(0).to(tl.int64)
    bad = tl.load(wrong + row) > 0
    score = tl.load(scores + row)
    tl.store(scores + row, float("nan"), mask=bad)
    n = tl.where(bad | (score == float("-inf")), 0, tl.load(frames + row))
    rest = tl.load(rests + row)
    u = tl.load(tokens + row) - 1 + rest
    trellis += row * tl.cdiv(most_frames, GROUP) * width
    paths += row * most_frames
    offset = tl.arange(0, _WINDOW)
    group = tl.cdiv(n, GROUP) - 1
    # words of this group and, ahead of their use, of the three before it
    w0, w1 = load_word(trellis, group, width, u, offset), load_word(trellis, group - 1, width, u, offset)
    w2 = load_word(trellis, group - 2, width, u, offset)
    while group >= 0:
        w3 = load_word(trellis, group - 3, width, u, offset)
        for k in tl.static_range(GROUP):
            t = group * GROUP + GROUP - 1 - k
            inside = t < n
            tl.store(paths + t, tl.where(rest > 0, -1, u), mask=inside)
            word = tl.sum(tl.where(offset == (u & (_WINDOW - 1)), w0, 0), 0)
            came = tl.where(inside, word >> (3 * (GROUP - 1 - k)), 0)
            # in a blank, bit 2 leads to the token before; in a token bit 1 does, and bit 0 to its blank
            moves = tl.where(rest > 0, came >> 2, came >> 1) & 1
            to_blank = tl.where(rest > 0, 1 - moves, came & 1)
            rest = tl.where(inside, to_blank, rest)
            u -= moves
        w0, w1, w2 = w1, w2, w3
        group -= 1
