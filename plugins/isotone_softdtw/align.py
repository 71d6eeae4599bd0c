"""Forced alignment by dynamic time warping of frames and labels."""

from __future__ import annotations

from dataclasses import replace

import torch

from isotone.alignment import AlignmentError
from isotone.interfaces import Aligner
from isotone.kernels.softdtw import dtw
from isotone.types import Coupling, Emissions, Targets
from isotone_softdtw.costs import label_costs

# Least share of its frame that a token on the path has.
_LEAST_SHARE = 1e-6


class DTWAligner(Aligner):
    """The DTW path of frames and tokens under :math:`-\\log p_{y_j}(x_i)`: what :class:`SoftDTWLoss` trains.

    Unlike in CTC or a segmental alignment a frame may be matched with several tokens.

    Args:
        band: Half width of a Sakoe-Chiba band, in tokens. Default: none.
        prior: Power of the labels' priors that the emissions are divided by (the head must track them).

    Raises:
        ValueError: an option outside its range.
    """

    takes_device = True

    def __init__(self, *, band: int | None = None, prior: float = 0.0) -> None:
        if (band is not None and band < 0) or not prior >= 0:
            raise ValueError(
                f"DTWAligner expects a band >= 0 or none, and prior >= 0; got {band} and {prior}."
            )
        self.band = band
        self.prior = prior

    @torch.no_grad()
    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        """Align.

        Args:
            emissions: Logits ``(B, T, V)``, on any device.
            targets: Labels ``(B, U)``.

        Returns:
            Frames to tokens, mass 1 per frame. Tokens that share a frame divide it by their posteriors (no less than
            1e-6 each). ``score`` is minus the cost of the path, nats. A row without tokens has an empty coupling.

        Raises:
            AlignmentError: a row has fewer frames than tokens, holds NaN, or every path has probability 0; the
                message names it.
        """
        emissions = emissions.without_prior(self.prior)
        frames, tokens = emissions.lengths, targets.lengths
        short = (tokens > frames).nonzero()[:, 0]
        if len(short):
            row = int(short[0])
            raise AlignmentError(
                f"{int(tokens[row])} tokens need at least as many frames, got {int(frames[row])}.", row=row
            )
        some = tokens > 0
        if not some.any():
            empty = torch.zeros(len(tokens), 1, dtype=torch.long, device=tokens.device)
            return Coupling(empty, empty, empty.float(), frames, tokens, empty[:, 0].float())
        costs = label_costs(emissions.logits, targets.labels, frames, tokens)
        # a row without tokens is replaced by one pair without cost
        costs = torch.where(some[:, None, None], costs, 0.0)
        n, m = (torch.where(some, lengths, 1) for lengths in (frames, tokens))
        path = dtw(costs, n, m, band=self.band)
        of_pairs = costs.flatten(1).gather(1, path.source * costs.shape[2] + path.target)
        weight = torch.where(
            path.mass > 0, torch.exp(_least(of_pairs, path.source, costs.shape[1]) - of_pairs), 0.0
        )
        total = weight.new_zeros(costs.shape[:2]).scatter_add(1, path.source, weight).gather(1, path.source)
        share = (weight / total.clamp(min=torch.finfo(total.dtype).tiny)).clamp(min=_LEAST_SHARE)
        mass = torch.where((path.mass > 0) & some[:, None], share, 0.0)
        return replace(path, mass=mass, source_lengths=frames, target_lengths=tokens)


def _least(values: torch.Tensor, position: torch.Tensor, size: int) -> torch.Tensor:
    """Return for each entry the least value among those of its position."""
    least = values.new_full((len(values), size), torch.inf).scatter_reduce(1, position, values, "amin")
    return least.gather(1, position)
