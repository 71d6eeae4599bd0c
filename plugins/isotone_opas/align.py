"""Forced alignment by order-preserving selection: every token selects a frame, in order, then the frames around it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from math import ceil, inf, log, sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.interfaces import Aligner, Relaxation
from isotone.kernels.guide import near_labels
from isotone.kernels.paths import EdgeRule, check_blank_rules, coupling_from_paths, subframe_coupling
from isotone.kernels.threads import each_task
from isotone.registries import relaxations
from isotone.types import NO_TOKEN, PAST_END, Coupling, Emissions, Targets, length_mask
from isotone_opas.kernels._anchors import Guide, average_row, cut_row, score_path, select_row, take_row

# Cells (frames times tokens) up to which all back-pointers are kept: 64 MB.
_WHOLE = 2**26

# A plan of a relaxation has zeros; their logarithm stays finite, so that tokens that have no mass can be selected.
_LEAST_MASS = 1e-12


class OPASAligner(Aligner):
    r"""Order-preserving selection of frames, then spans around the selected ones.

    Token j selects the frame :math:`t_j`, with :math:`t_{j} - t_{j-1} \ge b`, so that

    .. math:: \sum_j R_{j, t_j} - \kappa \Bigl|\frac{t_j + 1/2}{T} - \frac{j + 1/2}{U}\Bigr|

    is largest, where :math:`R_{j,t}` is a weighted mean of :math:`\log p(y_j)` over the frames around t. This is the
    hard, right-monotone optimum of OPAS with the tokens as its query and the frames as its corpus sequence. Between
    two selected frames the border lies where the sums of both tokens' scores are best: where their scores cross.
    In a best path every frame counts. Here the best frames alone decide on the order, and the others on the borders,
    so frames that look like no token move nothing but the border beside them.

    Args:
        relaxation: ``"ordered"``: exact, O(T U). Or another relaxation, by its name or a mapping of its name and
            options: the exact selection is then of the logarithm of its plan, O(T U) memory.
        width: Frames on either side over which scores are averaged before the selection, by weights that fall to 0.
        spacing: b, least frames from one selected frame to the next; 1 in rows that are too short for it.
        slope: :math:`\kappa`, nats.
        threshold: Probability above which an optional token is selected, 0 to 1.
        edges: Frames before the first and after the last token that the blank fits better: ``"leave"`` keeps them
            blank, ``"fill"`` gives them to that token.
        prior: Power of the labels' priors by which the emissions are divided (the head must track them).
        subframe: Place borders between frames too, see :func:`isotone.kernels.paths.subframe_coupling`.
        guide_cost: Nats per frame of a token, selected or not, outside of the frames that ``targets.guide`` allows it,
            if there is a guide (:func:`isotone.kernels.guide.near_labels`). 0: guides are ignored.

    Raises:
        ValueError: an option outside its range.
        LookupError: no such relaxation.

    References: "Learning Right Monotone Permutation Matrices for Neural Subsequence Search".
    """

    skips_optional = True

    def __init__(
        self,
        *,
        relaxation: str | Mapping[str, Any] = "ordered",
        width: int = 1,
        spacing: int = 1,
        slope: float = 0.0,
        threshold: float = 0.5,
        edges: EdgeRule = "leave",
        prior: float = 0.0,
        subframe: bool = True,
        guide_cost: float = 2.0,
    ) -> None:
        check_blank_rules("leave", edges)
        if width < 0 or spacing < 1 or not slope >= 0 or not 0 < threshold < 1 or not prior >= 0:
            raise ValueError(
                "OPASAligner expects width >= 0, spacing >= 1, slope >= 0, a threshold between 0 and 1 and prior >= 0; "
                f"got {width}, {spacing}, {slope}, {threshold} and {prior}."
            )
        if not 0 <= guide_cost < inf:
            raise ValueError(f"OPASAligner expects a finite guide_cost >= 0; got {guide_cost}.")
        self.relaxation: Relaxation | None = None
        if relaxation != "ordered":
            self.relaxation = relaxations.create(relaxation)
        self.width = width
        self.spacing = spacing
        self.slope = slope
        self.threshold = threshold
        self.edges: EdgeRule = edges
        self.prior = prior
        self.subframe = subframe
        self.guide_cost = guide_cost
        self.takes_guide = guide_cost > 0

    def holding(self, frames: int) -> OPASAligner:
        """The same aligner with a least duration per token, in all rows that are long enough for it."""
        held = copy(self)
        held.spacing = max(self.spacing, frames)
        return held

    def leaning(self, share: float) -> OPASAligner:
        """The same aligner with another cost of frames that the guide does not allow."""
        leant = copy(self)
        leant.guide_cost = share * self.guide_cost
        return leant

    @torch.no_grad()
    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        """Align.

        Args:
            emissions: Logits ``(B, T, V)``, on any device.
            targets: Labels ``(B, U)`` without blanks; those that are optional may be left out.

        Returns:
            Frames to tokens, mass 1 per frame; ``score`` is the log-probability in nats of the labels that the frames
            have then, blanks included. A row without tokens has an empty coupling.

        Raises:
            AlignmentError: a row has fewer frames than its tokens need, or is not finite.
        """
        device = emissions.logits.device
        emissions, targets = emissions.without_prior(self.prior).to("cpu"), targets.to("cpu")
        log_probs = emissions.log_probs()
        spacing = self._spacing(emissions, targets)
        scores, rows = _by_label(log_probs, emissions.lengths, targets)
        averaged = _averaged(scores, emissions.lengths, self.width)
        bonus = torch.zeros(targets.labels.shape, dtype=torch.float64)
        optional = torch.zeros(targets.labels.shape, dtype=torch.bool)
        if targets.optional is not None:
            optional = targets.optional
            bonus = torch.where(optional, -log(self.threshold), 0.0)
        selected = averaged, rows
        if self.relaxation is not None:
            selected = self._plan(averaged, rows, emissions, targets)
        anchors = torch.full(targets.labels.shape, -1)
        values, totals = torch.zeros(2, len(log_probs), dtype=torch.float64)
        paths = torch.full(log_probs.shape[:2], PAST_END)
        work = (
            *(x.contiguous().numpy() for x in (*selected, scores, rows, bonus, optional, spacing, self._near(targets))),
            float(self.guide_cost), float(self.slope), emissions.lengths.numpy(), targets.lengths.numpy(),
            log_probs[..., emissions.blank].double().contiguous().numpy(), self.edges == "fill",
            anchors.numpy(), values.numpy(), totals.numpy(), paths.numpy(),
        )  # fmt: skip
        each_task(_align_row, len(log_probs), 4 * scores.shape[1] * rows.numel(), *work)
        _check_values(values, totals)
        sizes = emissions.lengths, targets.lengths
        if self.subframe:
            return subframe_coupling(paths, emissions.logits, targets.labels, *sizes, totals).to(device)
        return coupling_from_paths(paths, *sizes, totals).to(device)

    def _spacing(self, emissions: Emissions, targets: Targets) -> Tensor:
        """Spacing of every row.

        Raises:
            AlignmentError: a row has fewer frames than tokens.
        """
        needed = targets.required().lengths
        short = (needed > emissions.lengths).nonzero()
        if len(short):
            row = int(short[0])
            raise AlignmentError(
                f"{int(needed[row])} tokens need at least as many frames, got {int(emissions.lengths[row])}: the text "
                "is too long for the audio.",
                row=row,
            )
        return torch.where(needed * self.spacing <= emissions.lengths, self.spacing, 1)

    def _near(self, targets: Targets) -> Tensor:
        """The first and the last token ``(B, T, 2)`` that the guide allows in each frame; ``(B, 0, 2)``: no guide."""
        rows, tokens = targets.labels.shape
        if targets.guide is None or not self.takes_guide:
            return torch.zeros(rows, 0, 2, dtype=torch.int64)
        return near_labels(targets.guide, tokens, torch.arange(tokens).expand(rows, -1))

    def _plan(
        self, averaged: Tensor, rows: Tensor, emissions: Emissions, targets: Targets
    ) -> tuple[Tensor, Tensor]:
        """Scores ``(B, T, U)`` of tokens by the relaxation's plan, and the number of every token's column in them."""
        assert self.relaxation is not None
        reward = averaged.gather(2, rows[:, None].expand(-1, averaged.shape[1], -1)).mT
        plan = self.relaxation(reward, targets.lengths, emissions.lengths)
        numbers = torch.arange(rows.shape[1]).expand_as(rows)
        return plan.mT.double().clamp(min=_LEAST_MASS).log(), numbers


def _align_row(
    b: int,
    selected: np.ndarray,
    selected_rows: np.ndarray,
    scores: np.ndarray,
    rows: np.ndarray,
    bonus: np.ndarray,
    optional: np.ndarray,
    spacing: np.ndarray,
    near: np.ndarray,
    guide_cost: float,
    slope: float,
    frames: np.ndarray,
    tokens: np.ndarray,
    blank: np.ndarray,
    fill: bool,
    anchors: np.ndarray,
    values: np.ndarray,
    totals: np.ndarray,
    paths: np.ndarray,
) -> None:
    """Select and cut one row."""
    n, m = int(frames[b]), int(tokens[b])
    path = paths[b, :n]
    path[:] = NO_TOKEN
    if m > 0:
        guide, least = Guide(near[b, :n], guide_cost), int(spacing[b])
        # beyond, as many bytes for the sums before every block as for the back-pointers of one
        block = n if n * m <= _WHOLE else ceil(sqrt(8 * least * n))
        values[b] = select_row(
            selected[b, :n], selected_rows[b, :m], bonus[b, :m], optional[b, :m], least, slope, guide, block,
            anchors[b, :m],
        )  # fmt: skip
        cut_row(scores[b, :n], rows[b, :m], anchors[b, :m], blank[b, :n], least, fill, guide, path)
    totals[b] = score_path(scores[b, :n], rows[b, :m], blank[b, :n], path)


def _by_label(log_probs: Tensor, lengths: Tensor, targets: Targets) -> tuple[Tensor, Tensor]:
    """Scores ``(B, T, L)`` of the labels that a batch has, and the number of every token's label ``(B, U)``."""
    valid = length_mask(targets.lengths, targets.labels.shape[1])
    found, numbers = torch.unique(torch.where(valid, targets.labels, 0), return_inverse=True)
    scores = torch.zeros(*log_probs.shape[:2], len(found), dtype=torch.float64)
    arrays = [x.numpy() for x in (log_probs.contiguous(), found, lengths, scores)]
    each_task(take_row, len(scores), 2 * scores.numel(), *arrays)
    return scores, numbers


def _averaged(scores: Tensor, lengths: Tensor, width: int) -> Tensor:
    """Weighted means of scores ``(B, T, L)`` over the valid frames at most ``width`` away; 0 beyond the lengths."""
    if width == 0:
        return scores
    out = torch.zeros_like(scores)
    arrays = [x.numpy() for x in (scores, lengths, out)]
    each_task(average_row, len(scores), 4 * (2 * width + 1) * scores.numel(), width, *arrays)
    return out


def _check_values(values: Tensor, totals: Tensor) -> None:
    """Raise AlignmentError for the first row without a finite selection, or with NaN among its frames."""
    bad = (torch.isnan(totals) | ~torch.isfinite(values)).nonzero()
    if len(bad):
        row = int(bad[0])
        broken = bool(torch.isnan(totals[row]) | torch.isnan(values[row]))
        reason = "its emissions hold NaN or infinity" if broken else "every selection has probability 0"
        raise AlignmentError(f"{reason}.", row=row)
