"""Grids of frames in time, frames of features, and emissions: what encoders and heads give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from isotone.tensors import Tensor, torch
from isotone.types.batch import Batch, length_mask, widened


@dataclass(frozen=True)
class Grid:
    """Times of frames: frame t covers ``[offset_s + t * hop_s, offset_s + (t + 1) * hop_s)`` seconds."""

    hop_s: float
    offset_s: float = 0.0

    def seconds(self, frame: float) -> float:
        """Time in seconds of the left edge of a frame (frame may be fractional; never below zero)."""
        return max(0.0, self.offset_s + frame * self.hop_s)

    def frames(self, seconds: float) -> float:
        """Fractional frame number whose left edge lies at a time; the inverse of :meth:`seconds`."""
        return (seconds - self.offset_s) / self.hop_s


@dataclass(frozen=True)
class Frames(Batch):
    """A batch of feature sequences. ``values (B, T, D)``, ``lengths (B,)`` int64, frames."""

    values: Tensor
    lengths: Tensor
    grid: Grid


@dataclass(frozen=True)
class Encoded:
    """A batch of encoded audio: the input features and the hidden states of every layer asked for.

    Attributes:
        features: The encoder's input features (log-mel frames, or the output of the convolutional front end).
        hidden: Hidden states, one :class:`Frames` per layer; ``hidden[0]`` enters the first layer and ``hidden[-1]``
            is the last.
    """

    features: Frames
    hidden: tuple[Frames, ...]

    def read(self, source: str | int) -> Frames:
        """The frames of a source: ``"features"``, ``"last"`` or a layer number.

        Raises:
            ValueError: no such source; the message lists what there is.
        """
        if source == "features":
            return self.features
        if source == "last":
            return self.hidden[-1]
        try:
            return self.hidden[int(source)]
        except (ValueError, IndexError):
            raise ValueError(
                f"A head reads 'features', 'last' or a layer from 0 to {len(self.hidden) - 1}; got {source!r}."
            ) from None


# Frames that are mixed at once.
_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Emissions(Batch):
    """Scores that a head gives the labels of every frame.

    Attributes:
        logits: ``(B, T, V)`` unnormalised scores of the labels.
        lengths: ``(B,)`` int64, valid frames.
        grid: Where the frames lie in time.
        blank: Label number of the blank.
        weight_logits: ``(B, T)`` unnormalised logarithms of the OT weights alpha, where the head has them.
        log_prior: ``(V,)`` logarithms of the labels' priors, where the head tracks them.
    """

    logits: Tensor
    lengths: Tensor
    grid: Grid
    blank: int = 0
    weight_logits: Tensor | None = None
    log_prior: Tensor | None = None

    shared = frozenset({"log_prior"})

    def without_prior(self, weight: float) -> Emissions:
        """These emissions with the label posteriors divided by their priors to the power ``weight``.

        Posteriors favour frequent labels at every boundary; divided by the prior they are scaled likelihoods,
        ``p(x|v) ~ p(v|x) / p(v)`` (Bourlard & Morgan 1994), which do not. A weight of 0 changes nothing.

        Raises:
            ValueError: the head that made them keeps no prior.
        """
        if weight == 0:
            return self
        if self.log_prior is None:
            raise ValueError(
                f"Expected emissions of a head that keeps its labels' priors, to divide by their power {weight}; "
                "got one without. Train the head with track_prior: true, or set prior to 0."
            )
        return replace(self, logits=widened(self.logits) - weight * self.log_prior)

    def frames_at(self, grid: Grid, size: int) -> Tensor:
        """Return the frame at the middle of each frame of another grid, ``(B, size)``; after a row's end its last."""
        times = grid.offset_s + (torch.arange(size, device=self.lengths.device) + 0.5) * grid.hop_s
        frames = ((times - self.grid.offset_s) / self.grid.hop_s).floor().long()
        return (
            frames.clamp(min=0).expand(len(self.lengths), -1).minimum(self.lengths[:, None] - 1).clamp(min=0)
        )

    def mixed(self, other: Emissions, share: float) -> Emissions:
        """Mix another head's scores into these, on these frames: ``(1 - share) log p + share log q``.

        Priors are mixed alike, so that :meth:`without_prior` divides every head by its own.

        Args:
            other: Emissions of the same utterances and labels, on any grid.
            share: Weight of the other head, 0 to 1.

        Raises:
            ValueError: the heads have different numbers of labels.
        """
        if other.logits.shape[2] != self.logits.shape[2]:
            raise ValueError(
                "Heads can be mixed where they have the same labels; "
                f"got {self.logits.shape[2]} and {other.logits.shape[2]}."
            )
        size, labels = self.logits.shape[1:]
        places = other.frames_at(self.grid, size)[..., None].expand(-1, -1, labels)
        parts = []
        # in parts: an hour's intermediate values are many times its emissions
        for part in (slice(first, first + _AT_ONCE) for first in range(0, max(1, size), _AT_ONCE)):
            own = torch.log_softmax(widened(self.logits[:, part]), dim=-1)
            theirs = torch.log_softmax(widened(other.logits.gather(1, places[:, part])), dim=-1)
            parts.append((1 - share) * own + share * theirs)
        prior = None
        if self.log_prior is not None:
            prior = (1 - share) * self.log_prior
            if other.log_prior is not None:
                prior = prior + share * other.log_prior
        return replace(self, logits=torch.cat(parts, 1), log_prior=prior)

    def log_probs(self) -> Tensor:
        """Log-probabilities ``(B, T, V)``, float32 at least."""
        return torch.log_softmax(widened(self.logits), dim=-1)

    def hop_samples(self, rate: int) -> int:
        """Number of samples between frames at ``rate`` Hz; ValueError where that is no whole number."""
        hop = self.grid.hop_s * rate
        if abs(hop - round(hop)) > 1e-6:
            raise ValueError(f"Expected frames of whole samples; got a hop of {hop} samples: use --window 0.")
        return round(hop)

    def weights(self) -> Tensor:
        """OT weights alpha ``(B, T)``: softmax over the valid frames, 0 elsewhere; uniform where there are none."""
        mask = length_mask(self.lengths, self.logits.shape[1])
        logits = self.logits.new_zeros(mask.shape) if self.weight_logits is None else self.weight_logits
        return torch.softmax(widened(logits).masked_fill(~mask, -torch.inf), dim=-1)

    def frames(self, parts: Sequence[tuple[int, slice]]) -> Emissions:
        """Cut stretches of frames out of rows, each to a row of its own; the grid stays that of the whole rows.

        Args:
            parts: Pairs of a row's number and of its frames.
        """
        weights, pad = self.weight_logits, torch.nn.utils.rnn.pad_sequence
        return replace(
            self,
            logits=pad([self.logits[row, part] for row, part in parts], batch_first=True),
            lengths=torch.tensor([part.stop - part.start for _, part in parts], device=self.lengths.device),
            weight_logits=None if weights is None else pad([weights[i, p] for i, p in parts], True),
        )

    @classmethod
    def cat(cls, parts: Sequence[Emissions]) -> Emissions:
        """Join stretches of one utterance along time, on the grid of the first."""
        weights = [part.weight_logits for part in parts if part.weight_logits is not None]
        return replace(
            parts[0],
            logits=torch.cat([part.logits for part in parts], 1),
            lengths=torch.stack([part.lengths for part in parts]).sum(0),
            weight_logits=torch.cat(weights, 1) if weights else None,
        )
