"""Label sequences of OTTC: blanks between repeats, silences, and paths over them."""

from __future__ import annotations

from isotone.tensors import Tensor, torch
from isotone.types import length_mask


def insert_blanks(labels: Tensor, lengths: Tensor, blank: int) -> tuple[Tensor, Tensor, Tensor]:
    """Put a blank between equal neighbours, and nowhere else: GOOD becomes G O blank O D.

    Args:
        labels: ``(B, U)`` int64; padding is never read.
        lengths: ``(B,)`` int64.
        blank: Label number of the blank.

    Returns:
        The new labels ``(B, U')`` int64, padded with blanks; their lengths ``(B,)``; and the origin ``(B, U')`` of
        each: the index of its token, -1 for inserted blanks and padding.
    """
    size = labels.shape[1]
    valid = length_mask(lengths, size)
    repeats = torch.zeros_like(valid)
    repeats[:, 1:] = (labels[:, 1:] == labels[:, :-1]) & valid[:, 1:]
    shift = torch.cumsum(repeats, 1)  # blanks inserted up to and including each token
    new_lengths = lengths + (shift[:, -1] if size else 0)
    new_size = _width(new_lengths, 2 * size - 1)
    # padding is written to an extra column, which is cut off
    column = torch.where(valid, torch.arange(size, device=labels.device) + shift, new_size)
    out = labels.new_full((len(labels), new_size + 1), blank).scatter_(1, column, labels)
    origin = torch.full_like(out, -1)
    origin.scatter_(1, column, torch.arange(size, device=labels.device).expand_as(column))
    return out[:, :new_size], new_lengths, origin[:, :new_size]


def insert_silence(
    labels: Tensor, lengths: Tensor, blank: int, silence: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Put a silence before, between and after the tokens; between equal neighbours it is the blank.

    Args:
        labels: ``(B, U)`` int64; padding is never read.
        lengths: ``(B,)`` int64.
        blank: Label number of the blank.
        silence: Label number of the silence (it may be the blank).

    Returns:
        As :func:`insert_blanks`: labels ``(B, 2 U + 1)``, lengths ``2 n + 1`` and origins.
    """
    valid = length_mask(lengths, labels.shape[1])
    repeats = torch.zeros_like(valid)
    repeats[:, 1:] = labels[:, 1:] == labels[:, :-1]
    # even columns are silences, odd columns tokens
    out = labels.new_full((len(labels), 2 * labels.shape[1] + 1), silence)
    out[:, :-1:2] = torch.where(valid & repeats, blank, silence)
    out[:, 1::2] = torch.where(valid, labels, blank)
    origin = torch.full_like(out, -1)
    origin[:, 1::2] = torch.where(valid, torch.arange(labels.shape[1], device=labels.device), -1)
    return out, 2 * lengths + 1, origin


def collapse_frames(frame_labels: Tensor, kept: Tensor, blank: int) -> tuple[Tensor, Tensor, Tensor]:
    """Leave frames out, merge repeats among the rest, and remove blanks.

    Args:
        frame_labels: ``(B, T)`` int64.
        kept: ``(B, T)`` bool; the other frames are ignored.
        blank: Label number of the blank.

    Returns:
        The tokens' labels ``(B, U)`` padded with blanks, their number ``(B,)``, and each frame's token index
        ``(B, T)``, -1 where it has none.
    """
    size = frame_labels.shape[1]
    frame = torch.arange(size, device=frame_labels.device)
    # the label of the last kept frame before each frame; the blank where there is none
    last_kept = torch.cummax(torch.where(kept, frame, -1), 1).values
    before = torch.cat([torch.full_like(last_kept[:, :1], -1), last_kept[:, :-1]], 1)
    previous = torch.where(before >= 0, frame_labels.gather(1, before.clamp(min=0)), blank)
    carries = kept & (frame_labels != blank)
    starts = carries & (frame_labels != previous)
    number = torch.cumsum(starts, 1) - 1
    count = starts.sum(1)
    most = _width(count, size)
    labels = frame_labels.new_full((len(frame_labels), most + 1), blank)
    labels.scatter_(1, torch.where(starts, number, most), frame_labels)
    return labels[:, :most], count, torch.where(carries, number, -1)


def share_repeats(paths: Tensor, labels: Tensor) -> Tensor:
    """Divide frames evenly among equal neighbours without a gap: scores do not determine the border between them.

    Args:
        paths: ``(B, T)`` int64, each frame's token index, negative where it has none.
        labels: ``(B, U)`` int64.

    Returns:
        ``(B, T)`` int64, paths with the same label in every frame.
    """
    size = paths.shape[1]
    if size == 0:
        return paths
    carries = paths >= 0
    spelt = torch.where(carries, labels.gather(1, paths.clamp(min=0)), -1)
    # enters: the first frame of a token; begins: the first frame of a run of one label, which may be several tokens
    enters, begins = carries.clone(), torch.ones_like(carries)
    enters[:, 1:] &= paths[:, 1:] != paths[:, :-1]
    begins[:, 1:] = (spelt[:, 1:] != spelt[:, :-1]) | (carries[:, 1:] != carries[:, :-1])
    # the visited tokens in order; then each run's number of frames and of tokens, and its first frame
    visit = (torch.cumsum(enters, 1) - 1).clamp(min=0)
    visited = paths.new_zeros(len(paths), size + 1).scatter_(1, torch.where(carries, visit, size), paths)
    run = torch.cumsum(begins, 1) - 1
    frames = torch.zeros_like(run).scatter_add_(1, run, torch.ones_like(run))
    tokens = torch.zeros_like(run).scatter_add_(1, run, enters.long())
    frame = torch.arange(size, device=paths.device)
    first = torch.cummax(torch.where(begins, frame, 0), 1).values
    # frame k of a run of F frames and N tokens goes to token k N // F of the run
    step = (frame - first) * tokens.gather(1, run) // frames.gather(1, run)
    return torch.where(carries, visited.gather(1, visit.gather(1, first) + step), paths)


def labels_from_paths(paths: Tensor, labels: Tensor, blank: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the label sequence of a fixed path, blanks included, and the number of frames of each label.

    For YES, the path (blank Y blank blank E E S) gives (blank Y blank E S) with frames (1, 1, 2, 2, 1).

    Args:
        paths: ``(B, T)`` int64, each frame's token index, -1 for blank, -2 for padding at the end.
        labels: ``(B, U)`` int64.
        blank: Label number of the blank.

    Returns:
        Labels ``(B, R)``, lengths ``(B,)`` and frames ``(B, R)`` float, one per run of equal entries in the path.
    """
    valid = paths > -2
    starts = valid.clone()
    starts[:, 1:] &= paths[:, 1:] != paths[:, :-1]
    lengths = starts.sum(1)
    size = _width(lengths, paths.shape[1])
    run = torch.where(valid, torch.cumsum(starts, 1) - 1, size)
    frames = torch.zeros(len(paths), size + 1, device=paths.device)
    frames.scatter_add_(1, run, torch.ones_like(run, dtype=frames.dtype))
    frame_labels = torch.where(paths >= 0, labels.gather(1, paths.clamp(min=0)), blank)
    out = labels.new_full((len(labels), size + 1), blank).scatter_(1, run, frame_labels)
    return out[:, :size], lengths, frames[:, :size]


def _width(lengths: Tensor, most: int) -> int:
    """Return a number of columns for rows of these lengths: the longest row on the CPU, ``most`` elsewhere.

    Reading the lengths would make other devices wait, and torch.compile break its graph.
    """
    if lengths.device.type != "cpu" or torch.compiler.is_compiling():
        return max(1, most)
    return max(1, int(lengths.max()) if len(lengths) else 1)
