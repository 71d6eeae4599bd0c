"""Label weights beta: the expected share of the frames of each label."""

from __future__ import annotations

from isotone.alignment import AlignmentError
from isotone.kernels.viterbi import monotone_path
from isotone.tensors import Tensor, no_grad, torch
from isotone.types import Emissions, length_mask

# Nats. An alignment must exist even through labels that the emissions rule out, with -inf.
_FLOOR = -1e4


def uniform_weights(lengths: Tensor, size: int) -> Tensor:
    """Give each of m labels the weight 1 / m: ``(B, size)`` float32, zero beyond the lengths ``(B,)``."""
    return length_mask(lengths, size).float() / lengths.clamp(min=1)[:, None]


def duration_weights(
    durations: Tensor, lengths: Tensor, frame_lengths: Tensor, smoothing: float | Tensor
) -> Tensor:
    r"""Turn durations into label weights, :math:`\beta_j \propto s + d_j`, with d scaled to sum to the row's frames.

    Args:
        durations: ``(B, m)`` non-negative, any unit; only ratios matter. Zero for inserted blanks.
        lengths: ``(B,)`` int64, labels.
        frame_lengths: ``(B,)`` int64, frames.
        smoothing: s, frames given to every label beyond its own: one number, or ``(B, m)``. A label with neither weighs
            nothing.

    Returns:
        ``(B, m)`` float32, rows sum to 1; uniform where a row's durations are all zero and s is not.
    """
    mask = length_mask(lengths, durations.shape[1])
    frames = torch.where(mask, durations, 0.0).double().clamp(min=0)
    frames = frames * (frame_lengths[:, None] / frames.sum(1, keepdim=True).clamp(min=1e-30))
    weights = torch.where(mask, frames + smoothing, 0.0)
    return (weights / weights.sum(1, keepdim=True).clamp(min=1e-30)).float()


def token_weights(
    durations: Tensor | None, origin: Tensor, lengths: Tensor, frame_lengths: Tensor, smoothing: float
) -> Tensor:
    """Compute :func:`duration_weights` from the durations of tokens; inserted blanks have duration 0.

    Args:
        durations: ``(B, U)``, as in :class:`~isotone.types.Targets`.
        origin: ``(B, m)`` int64, each label's token index, -1 for an inserted blank.
        lengths, frame_lengths, smoothing: As in :func:`duration_weights`.

    Raises:
        ValueError: there are no durations.
    """
    if durations is None:
        raise ValueError("beta='durations' expects targets with durations, one value a token; got None.")
    taken = torch.where(origin >= 0, durations.gather(1, origin.clamp(min=0)), 0.0)
    return duration_weights(taken, lengths, frame_lengths, smoothing)


def path_frames(paths: Tensor, size: int) -> Tensor:
    """Count the frames of each token in fixed paths.

    Args:
        paths: ``(B, T)`` int64, each frame's token index, negative where it has none.
        size: U.

    Returns:
        ``(B, U)`` float32.
    """
    frames = torch.zeros(len(paths), size, device=paths.device)
    return frames.scatter_add_(1, paths.clamp(min=0), (paths >= 0).to(frames.dtype))


def spread_weights(weights: Tensor, origin: Tensor) -> Tensor:
    """Divide the weights of labels evenly among the states that replaced them.

    Args:
        weights: ``(B, m)``.
        origin: ``(B, m')`` int64, the position of each state's label, 0 to m - 1, -1 in the padding.

    Returns:
        ``(B, m')``; the states of a label sum to its weight.
    """
    known = origin >= 0
    position = origin.clamp(min=0)
    parts = torch.zeros_like(weights).scatter_add_(1, position, known.to(weights.dtype))
    return torch.where(known, (weights / parts.clamp(min=1)).gather(1, position), 0.0)


@no_grad
def own_weights(
    emissions: Emissions,
    labels: Tensor,
    lengths: Tensor,
    smoothing: float,
    optional: Tensor | None = None,
    pauses: Tensor | None = None,
) -> Tensor:
    """Compute :func:`duration_weights` from the emissions' own best alignment without blanks; no gradient.

    Args:
        emissions: Logits ``(B, T, V)``.
        labels: ``(B, m)`` int64, blanks between repeats inserted.
        lengths: ``(B,)`` int64.
        smoothing: Frames given to every label beyond its own. With 0, labels that the alignment leaves out weigh
            nothing.
        optional: ``(B, m)`` bool, labels that the alignment may leave out.
        pauses: ``(B, m)`` bool, optional labels with no weight where the alignment leaves them out.

    Returns:
        ``(B, m)`` float32, rows sum to 1. Rows that cannot be aligned are uniform, or 0 without smoothing.
    """
    log_probs = emissions.log_probs().clamp(min=_FLOOR)
    read = length_mask(emissions.lengths, log_probs.shape[1])
    # clamp turns -inf into the floor and leaves NaN: rows with NaN among their frames are not aligned
    finite = ~(torch.isnan(log_probs.sum(-1)) & read).any(1)
    usable = (
        (lengths > 0) & (required_count(lengths, optional, labels.shape[1]) <= emissions.lengths) & finite
    )
    paths, _ = paths_where(usable, log_probs, labels, emissions.lengths, lengths, optional)
    frames = path_frames(paths, labels.shape[1])
    extra = smoothing if pauses is None else torch.where(pauses & (frames == 0), 0.0, smoothing)
    return duration_weights(frames, lengths, emissions.lengths, extra)


def required_count(lengths: Tensor, optional: Tensor | None, size: int) -> Tensor:
    """Count the labels of each row that an alignment may not leave out: ``(B,)``."""
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
    """Run :func:`isotone.kernels.viterbi.monotone_path` on the rows marked by ``usable (B,)``.

    The other rows are never read: their path is -2 in all frames, and their score 0.
    """
    if log_probs.shape[1] == 0:
        return labels.new_zeros(len(labels), 0), log_probs.new_zeros(len(labels))
    # each other row becomes one label on as few frames as it needs, so that row numbers in errors stay right
    if not usable.all():
        log_probs = torch.where(usable[:, None, None], log_probs, 0.0)
        labels = torch.where(usable[:, None], labels, 0)
        frame_lengths = torch.where(usable, frame_lengths, min_frames)
        label_lengths = torch.where(usable, label_lengths, 1)
    paths, scores = monotone_path(
        log_probs, labels, frame_lengths, label_lengths, optional, min_frames, near, far_cost
    )
    return torch.where(usable[:, None], paths, -2), torch.where(usable, scores, 0.0)


def spread_optional(optional: Tensor | None, origin: Tensor, inserted: bool) -> Tensor | None:
    """Mark the labels that an alignment may leave out, given the tokens that it may leave out.

    Args:
        optional: ``(B, U)`` bool, tokens that may be left out. Default: none.
        origin: ``(B, m)`` int64, each label's token index, -1 for inserted labels.
        inserted: True if inserted labels may be left out.

    Returns:
        ``(B, m)`` bool; None where all labels are required, for which a GPU has a kernel.
    """
    if optional is None and not inserted:
        return None
    of_tokens = torch.zeros_like(origin, dtype=torch.bool)
    if optional is not None:
        of_tokens = optional.gather(1, origin.clamp(min=0))
    return torch.where(origin < 0, inserted, of_tokens)


def check_rows(emissions: Emissions, needed: Tensor) -> None:
    """Raise AlignmentError for the first row with too few frames, or with NaN among its frames."""
    short = (needed > emissions.lengths).nonzero()[:, 0]
    if len(short):
        row = int(short[0])
        raise AlignmentError(
            f"its tokens (and blanks between repeats) need at least {int(needed[row])} frames, "
            f"got {int(emissions.lengths[row])}: the text is too long for the audio. If it is the right one, "
            "lower the model's stride, or leave the utterance out.",
            row=row,
        )
    bad = torch.isnan(torch.logsumexp(emissions.logits.float(), -1))
    if emissions.weight_logits is not None:
        bad |= torch.isnan(emissions.weight_logits)
    broken = (bad & length_mask(emissions.lengths, bad.shape[1])).any(1).nonzero()[:, 0]
    if len(broken):
        raise AlignmentError("its emissions hold NaN.", row=int(broken[0]))
