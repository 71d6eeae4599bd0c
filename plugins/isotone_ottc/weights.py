"""Label weights beta: how much of the frames each label is expected to take."""

from __future__ import annotations

import torch
from torch import Tensor

from isotone.kernels.viterbi import monotone_path
from isotone.types import Emissions, length_mask

# Nats: a label that the emissions rule out still has its place in an alignment.
_FLOOR = -1e4


def uniform_weights(lengths: Tensor, size: int) -> Tensor:
    """Label weights 1 / m: ``(B, size)`` float32, zero beyond the lengths ``(B,)``."""
    return length_mask(lengths, size).float() / lengths.clamp(min=1)[:, None]


def duration_weights(
    durations: Tensor, lengths: Tensor, frame_lengths: Tensor, smoothing: float | Tensor
) -> Tensor:
    r"""Label weights from durations, :math:`\beta_j \propto s + d_j`, with d scaled to sum to the row's
    frames.

    Args:
        durations: ``(B, m)`` non-negative, any unit; only ratios matter. Zero for inserted blanks.
        lengths: ``(B,)`` int64, labels.
        frame_lengths: ``(B,)`` int64, frames.
        smoothing: s, frames given to every label beyond its own, or to each ``(B, m)``. A label with none of either
            weighs nothing.

    Returns:
        ``(B, m)`` float32, a row sums to 1; uniform where a row's durations are all zero and s is not.
    """
    mask = length_mask(lengths, durations.shape[1])
    frames = torch.where(mask, durations, 0.0).double().clamp(min=0)
    frames = frames * (frame_lengths[:, None] / frames.sum(1, keepdim=True).clamp(min=1e-30))
    weights = torch.where(mask, frames + smoothing, 0.0)
    return (weights / weights.sum(1, keepdim=True).clamp(min=1e-30)).float()


def token_weights(
    durations: Tensor | None, origin: Tensor, lengths: Tensor, frame_lengths: Tensor, smoothing: float
) -> Tensor:
    """:func:`duration_weights` from the durations of the tokens before blanks were inserted between repeats.

    Args:
        durations: ``(B, U)``, those of :class:`~isotone.types.Targets`.
        origin: ``(B, m)`` int64, the token that each label was, -1 for an inserted blank: its duration is 0.
        lengths, frame_lengths, smoothing: As in :func:`duration_weights`.

    Raises:
        ValueError: there are no durations.
    """
    if durations is None:
        raise ValueError("beta='durations' expects targets with durations, one value a token; got None.")
    taken = torch.where(origin >= 0, durations.gather(1, origin.clamp(min=0)), 0.0)
    return duration_weights(taken, lengths, frame_lengths, smoothing)


def path_frames(paths: Tensor, size: int) -> Tensor:
    """Frames that each token has in fixed paths.

    Args:
        paths: ``(B, T)`` int64, for every frame the number of its token, negative where it has none.
        size: U.

    Returns:
        ``(B, U)`` float32.
    """
    frames = torch.zeros(len(paths), size, device=paths.device)
    return frames.scatter_add_(1, paths.clamp(min=0), (paths >= 0).to(frames.dtype))


def spread_weights(weights: Tensor, origin: Tensor) -> Tensor:
    """Divide the weights of labels evenly among what each of them was replaced by.

    Args:
        weights: ``(B, m)``.
        origin: ``(B, m')`` int64, the position in 0 .. m - 1 that each had, -1 in the padding.

    Returns:
        ``(B, m')`` with the sums of ``weights``.
    """
    known = origin >= 0
    place = origin.clamp(min=0)
    parts = torch.zeros_like(weights).scatter_add_(1, place, known.to(weights.dtype))
    return torch.where(known, (weights / parts.clamp(min=1)).gather(1, place), 0.0)


@torch.no_grad()
def own_weights(
    emissions: Emissions,
    labels: Tensor,
    lengths: Tensor,
    smoothing: float,
    optional: Tensor | None = None,
    pauses: Tensor | None = None,
) -> Tensor:
    """:func:`duration_weights` from the emissions' own best alignment without blanks; no gradient.

    Args:
        emissions: Of B rows.
        labels: ``(B, m)`` int64, blanks between repeats inserted.
        lengths: ``(B,)`` int64.
        smoothing: Frames given to every label beyond its own. With 0, labels that were left out weigh nothing.
        optional: ``(B, m)`` bool, labels that the alignment may leave out.
        pauses: ``(B, m)`` bool, those of them that weigh nothing then.

    Returns:
        ``(B, m)`` float32, a row sums to 1; in rows that cannot be aligned uniform, or 0 without smoothing.
    """
    log_probs = emissions.log_probs().clamp(min=_FLOOR)
    read = length_mask(emissions.lengths, log_probs.shape[1])
    finite = ~(torch.isnan(log_probs.sum(-1)) & read).any(1)
    usable = (
        (lengths > 0) & (required_count(lengths, optional, labels.shape[1]) <= emissions.lengths) & finite
    )
    paths, _ = paths_where(usable, log_probs, labels, emissions.lengths, lengths, optional)
    frames = path_frames(paths, labels.shape[1])
    spared = smoothing if pauses is None else torch.where(pauses & (frames == 0), 0.0, smoothing)
    return duration_weights(frames, lengths, emissions.lengths, spared)


def required_count(lengths: Tensor, optional: Tensor | None, size: int) -> Tensor:
    """Labels of every row that an alignment may not leave out: ``(B,)``."""
    return lengths if optional is None else (~optional & length_mask(lengths, size)).sum(1)


def paths_where(
    usable: Tensor,
    log_probs: Tensor,
    labels: Tensor,
    frame_lengths: Tensor,
    label_lengths: Tensor,
    optional: Tensor | None = None,
    min_frames: int = 1,
    near: Tensor | None = None,
    far_cost: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """:func:`isotone.kernels.viterbi.monotone_path` of the rows that ``usable (B,)`` marks.

    The other rows are never read: their path is -2 throughout and their score 0.
    """
    if log_probs.shape[1] == 0:
        return labels.new_zeros(len(labels), 0), log_probs.new_zeros(len(labels))
    # in their places stands one label on one frame, so that errors name the right row
    if not usable.all():
        log_probs = torch.where(usable[:, None, None], log_probs, 0.0)
        labels = torch.where(usable[:, None], labels, 0)
        frame_lengths = torch.where(usable, frame_lengths, min_frames)
        label_lengths = torch.where(usable, label_lengths, 1)
    paths, scores = monotone_path(
        log_probs, labels, frame_lengths, label_lengths, optional, min_frames, near, far_cost
    )
    return torch.where(usable[:, None], paths, -2), torch.where(usable, scores, 0.0)


def spread_optional(optional: Tensor | None, origin: Tensor, inserted: bool) -> Tensor:
    """Which labels an alignment may leave out, when labels were inserted between tokens.

    Args:
        optional: ``(B, U)`` bool, tokens that may be left out. Default: none.
        origin: ``(B, m)`` int64, the token that each label was, -1 for those inserted.
        inserted: Whether those may be left out.

    Returns:
        ``(B, m)`` bool.
    """
    of_tokens = torch.zeros_like(origin, dtype=torch.bool)
    if optional is not None:
        of_tokens = optional.gather(1, origin.clamp(min=0))
    return torch.where(origin < 0, inserted, of_tokens)
