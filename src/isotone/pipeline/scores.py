"""Scores of the fit between a text and its audio: per token, and of the whole text.

Scores are computed from the timing head's emissions and the alignment, so that aligners need not support them. Stars
count as the best label of each of their frames.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from isotone.kernels.posteriors import token_posteriors
from isotone.pipeline.rows import alignable
from isotone.pipeline.stars import STAR_COST, STAR_NUMBER, starred
from isotone.tensors import Tensor, torch
from isotone.types import Coupling, Emissions, FramePath, Targets, length_mask, row_index
from isotone.types.batch import Batch

# In frames. Confidences of longer rows than _LONG (one minute of 20 ms frames) are computed piece by piece, with
# context that is dropped: time then grows with the frames, not with frames times tokens.
_LONG, _PIECE, _CONTEXT = 3000, 1500, 500


@dataclass(frozen=True)
class Scores(Batch):
    r"""Scores of a batch of alignments.

    Attributes:
        weight: ``(B, U)`` frames of every token (in soft alignments, its mass): the weights of means over tokens.
        log_prob: ``(B, U)`` mean log-probability per frame of every token, nats, <= 0; 0 where it has no frames.
        confidence: ``(B, U)`` mean over a token's frames of the probability that the frame is the token's, given
            the text: the posterior among all CTC paths of the row's tokens (see
            :func:`isotone.kernels.posteriors.token_posteriors`). 0 to 1; NaN where a token has no frames, or the row
            is too short for a CTC path. In long rows, the alignment more than ten seconds away counts as certain.
        fit: ``(B,)`` nats per token, <= 0: the log-likelihood ratio of the text's labels and the best labels. With
            :math:`r_t = \log p_t(\text{label of } t) - \max_v \log p_t(v)`, where a frame without token has the
            better one of blank and silence,

            .. math:: fit = \frac1U \Bigl(\sum_u \frac1{|F_u|} \sum_{t \in F_u} r_t + \sum_{t \in F_-} r_t\Bigr)

            over the U tokens with frames :math:`F_u`, except stars, and the frames :math:`F_-` without token. It is the
            log-likelihood ratio of the text against a garbage model that accepts anything. Every token counts the
            same, and every frame of speech between tokens that is not in the text counts like one token.
        frameless: ``(B,)`` share of the tokens, except optional ones, that are not the main token of any frame, 0 to 1.
    """

    weight: Tensor
    log_prob: Tensor
    confidence: Tensor
    fit: Tensor
    frameless: Tensor


def score(
    emissions: Emissions,
    targets: Targets,
    coupling: Coupling,
    silence: int | None = None,
    star_cost: float = STAR_COST,
) -> Scores:
    """Score alignments, on the device that emissions, targets and coupling are on; confidences on the CPU.

    Args:
        emissions: Logits ``(B, T, V)``.
        targets: Labels ``(B, U)``; stars are -1.
        coupling: Coupling of frames and tokens, hard or soft.
        silence: Label number of silence, if there is one.
        star_cost: See :func:`isotone.pipeline.stars.with_star`.
    """
    size = emissions.logits.shape[2]
    stars = targets.labels == STAR_NUMBER
    emissions, targets = starred(emissions, targets, star_cost)
    # normalised without the star's column, which is no label of the model
    logits = emissions.logits.float()
    log_probs = logits - torch.logsumexp(logits[..., :size], -1, keepdim=True)
    paths = coupling.path(log_probs.shape[1])
    silent = log_probs[..., emissions.blank]
    if silence is not None:
        silent = torch.maximum(silent, log_probs[..., silence])
    return Scores(
        _token_mass(targets, coupling),
        token_scores(log_probs, targets, coupling),
        _confidence(*_read_by_confidence(log_probs, paths, targets, emissions.lengths, emissions.blank)),
        _fit(log_probs, silent, paths, targets, stars),
        coupling.hard().frameless_share(targets.optional),
    )


def token_scores(log_probs: Tensor, targets: Targets, coupling: Coupling) -> Tensor:
    """Compute the mean log-probability per frame of every token: ``(B, U)``; 0 where it has no frames."""
    batch = torch.arange(len(log_probs), device=log_probs.device)[:, None]
    labels = targets.labels.gather(1, coupling.target.clamp(max=targets.labels.shape[1] - 1))
    mass = coupling.mass.to(log_probs.dtype)
    summed = torch.zeros_like(targets.labels, dtype=log_probs.dtype)
    summed.scatter_add_(1, coupling.target, mass * log_probs[batch, coupling.source, labels])
    return summed / _token_mass(targets, coupling).to(log_probs.dtype).clamp(min=1e-12)


def _token_mass(targets: Targets, coupling: Coupling) -> Tensor:
    return coupling.mass.new_zeros(targets.labels.shape).scatter_add(1, coupling.target, coupling.mass)


def _read_by_confidence(
    log_probs: Tensor, paths: FramePath, targets: Targets, lengths: Tensor, blank: int
) -> tuple[Tensor, FramePath, Targets, Tensor, int]:
    """Bring to the CPU what confidences are computed from: of the log-probabilities the columns of these labels."""
    if log_probs.device.type == "cpu":
        return log_probs, paths, targets, lengths, blank
    valid = length_mask(targets.lengths, targets.labels.shape[1])
    labels = torch.where(valid, targets.labels, blank).flatten()
    columns, numbers = torch.cat([labels, labels.new_tensor([blank])]).unique(return_inverse=True)
    targets = replace(targets, labels=numbers[:-1].view_as(targets.labels))
    return log_probs[..., columns].cpu(), paths.to("cpu"), targets.to("cpu"), lengths.cpu(), int(numbers[-1])


def _confidence(log_probs: Tensor, paths: FramePath, targets: Targets, lengths: Tensor, blank: int) -> Tensor:
    """Compute the confidences of :class:`Scores`: ``(B, U)`` float64, NaN in rows without a CTC path."""
    if paths.tokens.shape[1] > _LONG:
        single = ([row] for row in range(len(log_probs)))
        parts = [
            _confidence_in_pieces(log_probs[r], paths.rows(r), targets.rows(r), int(lengths[r[0]]), blank)
            for r in single
        ]
        return torch.cat(parts)

    def posteriors(rows: list[int]) -> Tensor:
        some, index = targets.rows(rows), row_index(rows)
        return token_posteriors(
            log_probs[index], paths.tokens[index], some.labels, lengths[index], some.lengths, blank,
            optional=some.optional,
        )[0]  # fmt: skip

    out = torch.full(targets.labels.shape, torch.nan, dtype=torch.float64)
    rows, found, _ = alignable(posteriors, len(log_probs))
    if found is not None:
        out[rows] = found
    return out


def _confidence_in_pieces(
    log_probs: Tensor, paths: FramePath, targets: Targets, frames: int, blank: int
) -> Tensor:
    """Compute the confidences of the tokens of one long row, piece by piece.

    A piece is scored as a row of the tokens that its path has. Tokens that begin in the context on either side are
    dropped.
    """
    out = torch.full(targets.labels.shape, torch.nan, dtype=torch.float64)
    path = paths.tokens[0, :frames]
    # first frame of each token
    first = torch.full_like(targets.labels[0], frames)
    first.scatter_reduce_(0, path.clamp(min=0), torch.where(path >= 0, torch.arange(frames), frames), "amin")
    for start in range(0, frames, _PIECE):
        part = slice(max(0, start - _CONTEXT), min(frames, start + _PIECE + _CONTEXT))
        carried = path[part][path[part] >= 0]
        if not len(carried):
            continue
        low, high = int(carried[0]), int(carried[-1]) + 1
        own = (first[low:high] >= start) & (first[low:high] < start + _PIECE)
        found = _confidence(
            log_probs[:, part],
            FramePath(torch.where(path[part] >= 0, path[part] - low, path[part])[None]),
            Targets(
                targets.labels[:, low:high],
                torch.tensor([high - low]),
                optional=None if targets.optional is None else targets.optional[:, low:high],
            ),
            torch.tensor([part.stop - part.start]),
            blank,
        )
        out[0, low:high] = torch.where(own, found[0], out[0, low:high])
    return out


def _fit(log_probs: Tensor, silent: Tensor, paths: FramePath, targets: Targets, stars: Tensor) -> Tensor:
    """Compute the fit of :class:`Scores`: ``(B,)`` float64."""
    token = paths.tokens.clamp(min=0)
    own = log_probs.gather(2, targets.labels.gather(1, token)[..., None])[..., 0]
    ratio = torch.where(paths.carried, own, silent) - log_probs.amax(-1)
    ratio = ratio.double().masked_fill(~paths.valid, 0.0)
    carries = paths.carried.double()
    frames = carries.new_zeros(targets.labels.shape).scatter_add(1, token, carries)
    summed = torch.zeros_like(frames).scatter_add(1, token, ratio * carries)
    counted = (frames > 0) & ~stars
    of_tokens = (summed / frames.clamp(min=1)).masked_fill(~counted, 0.0)
    between = ratio * ~paths.carried
    # a running sum, for numbers added in pairs would round otherwise beside a longer row
    total = torch.cumsum(torch.cat([of_tokens, between], 1), 1)[:, -1]
    return total / counted.sum(1).clamp(min=1)
