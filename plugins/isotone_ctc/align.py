"""Forced alignment with CTC: the best path through the blanks and tokens of a known sequence."""

from __future__ import annotations

from isotone.alignment import AlignmentError
from isotone.interfaces import Aligner
from isotone.kernels.graphs import with_fillers
from isotone.kernels.paths import BlankRule, EdgeRule, check_blank_rules, coupling_from_paths, fill_blanks
from isotone.kernels.viterbi import check_ctc, ctc_path, graph_path
from isotone.tensors import Tensor, torch
from isotone.types import Coupling, Emissions, Targets


class CTCViterbi(Aligner):
    """The best CTC path, by isotone's own compiled Viterbi.

    Args:
        blanks: Rule for blank frames between tokens: ``"leave"`` (tokens have only the frames of their labels, with
            CTC few), ``"previous"`` or ``"split"``; see :func:`isotone.kernels.paths.fill_blanks`.
        edges: Rule for blanks before the first and after the last token, unless blanks are left: ``"fill"`` gives them
            to that token, ``"leave"`` keeps them blank.
    """

    skips_optional = True
    takes_graph = True
    takes_device = True
    takes_arrays = True

    def __init__(self, *, blanks: BlankRule = "leave", edges: EdgeRule = "fill") -> None:
        check_blank_rules(blanks, edges)
        self.blanks: BlankRule = blanks
        self.edges: EdgeRule = edges

    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        """Align.

        Args:
            emissions: Logits ``(B, T, V)``, on any device.
            targets: Labels ``(B, U)`` without blanks; those that are optional may be left out. The longest durations
                of a graph are not used: CTC's tokens are peaks.

        Returns:
            A coupling of frames and tokens, mass 1 per frame. ``score`` is the path's log-probability in nats, blanks
            included.

        Raises:
            AlignmentError: a row has too few frames or is not finite; the message names it.
        """
        log_probs, sizes = self.frame_scores(emissions), (emissions.lengths, targets.lengths)
        if targets.graph is None:
            paths, scores = ctc_path(log_probs, targets.labels, *sizes, emissions.blank, targets.optional)
        else:
            filled = with_fillers(targets, emissions.blank, "ctc")
            paths, scores = graph_path(
                log_probs, filled.labels, emissions.lengths, filled.lengths, filled.arcs
            )
            paths = filled.tokens(paths)
        paths = fill_blanks(paths, self.blanks, self.edges)
        return coupling_from_paths(paths, *sizes, scores)

    def frame_scores(self, emissions: Emissions) -> Tensor:
        """See :meth:`isotone.interfaces.Aligner.frame_scores`."""
        return emissions.log_probs()


class TorchaudioViterbi(Aligner):
    """The best CTC path, by ``torchaudio.functional.forced_align``: a second opinion, one row at a time.

    Args:
        blanks: As in :class:`CTCViterbi`.
        edges: As in :class:`CTCViterbi`.
    """

    takes_device = True

    def __init__(self, *, blanks: BlankRule = "leave", edges: EdgeRule = "fill") -> None:
        check_blank_rules(blanks, edges)
        self.blanks: BlankRule = blanks
        self.edges: EdgeRule = edges

    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        """Align, one utterance at a time; arguments, result and errors as in :class:`CTCViterbi`."""
        check_ctc(
            targets.labels.cpu().numpy(),
            emissions.lengths.cpu().numpy(),
            targets.lengths.cpu().numpy(),
            emissions.logits.shape[-1],
            emissions.blank,
        )
        log_probs = emissions.log_probs().detach()
        frame_labels = torch.full_like(log_probs[:, :, 0], emissions.blank, dtype=torch.long)
        scores = log_probs.new_zeros(len(log_probs))
        for row, (frames, tokens) in enumerate(zip(emissions.lengths.tolist(), targets.lengths.tolist())):
            best, score = _forced_align(
                log_probs[row, :frames], targets.labels[row, :tokens], emissions.blank
            )
            if not torch.isfinite(score):
                raise AlignmentError(f"its log-probabilities are not finite ({float(score)}).", row=row)
            frame_labels[row, :frames] = best
            scores[row] = score
        from isotone_ctc.functional import collapse  # with the losses, and only this aligner needs it

        _, _, paths = collapse(frame_labels, emissions.lengths, emissions.blank)
        paths = fill_blanks(paths, self.blanks, self.edges)
        return coupling_from_paths(paths, emissions.lengths, targets.lengths, scores)


def _forced_align(log_probs: Tensor, labels: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """Return labels ``(T,)`` and log-probability of the best path of one utterance ``(T, V)``."""
    if len(labels) == 0:  # torchaudio raises
        return labels.new_full((len(log_probs),), blank), log_probs[:, blank].sum()
    from torchaudio.functional import forced_align  # slow to import, and only this aligner needs it

    best, scores = forced_align(log_probs[None], labels[None].to(log_probs.device), blank=blank)
    return best[0].long(), scores[0].sum()
