"""The definition of every measure, in terms of counts and sums.

All functions take arrays of one shape (or numbers) and work element by element, so that the corpus and all of
its bootstrap resamples are computed at once. Rates are in percent. A measure whose denominator is zero is
undefined: NaN.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isotone.evaluation.tracks import Floats


def ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> Floats:
    """Compute ``part / whole``; NaN where ``whole`` is 0."""
    a, b = np.broadcast_arrays(np.asarray(part, float), np.asarray(whole, float))
    return np.divide(a, b, out=np.full(b.shape, np.nan), where=b != 0)


def percent(part: npt.ArrayLike, whole: npt.ArrayLike) -> Floats:
    """Compute ``100 part / whole``: precision TP / #hyp, recall TP / #ref, shares within a threshold."""
    return 100.0 * ratio(part, whole)


def f1(true_positives: npt.ArrayLike, hyp: npt.ArrayLike, ref: npt.ArrayLike) -> Floats:
    r"""F1, in percent: the harmonic mean of P = TP / #hyp and R = TP / #ref.

    .. math:: F_1 = \frac{2 P R}{P + R} = \frac{2\,TP}{\#hyp + \#ref}

    For the *start-boundary F1* of the OTTC paper (after the NeMo forced aligner's), TP is the size of the
    largest one-to-one matching in order of predicted and reference segments with equal labels whose starts
    differ by no more than a collar. The papers do not state their collar: a number without its collar means nothing.

    Args:
        true_positives: TP.
        hyp, ref: Number of predicted and of reference segments (or boundaries).
    """
    return 100.0 * ratio(2.0 * np.asarray(true_positives), np.asarray(hyp) + np.asarray(ref))


def idr(overlap: npt.ArrayLike, duration: npt.ArrayLike) -> Floats:
    r"""Intersection duration ratio, in percent, pooled over time (OTTC paper).

    .. math:: IDR = 100\, \frac{\sum_j |pred(j) \cap ref_j|}{\sum_j |ref_j|}

    over reference segments j, where pred(j) is the predicted segment paired with j by minimum edit distance
    over labels, ties broken by the largest overlap. A deletion adds its duration to the denominator alone; an
    insertion adds nothing. A substitution counts as a deletion when labels are strict, and with its overlap
    when only boundaries are compared. The mean over segments (``idr_mean``) averages the ratios of the single
    segments instead.

    Args:
        overlap: Summed overlap.
        duration: Summed duration of the reference segments, in the same unit.
    """
    return percent(overlap, duration)


def error_rate(edits: npt.ArrayLike, length: npt.ArrayLike) -> Floats:
    """Phone, word or character error rate, in percent: 100 (S + D + I) / N, pooled; undefined for N = 0.

    Args:
        edits: Substitutions + deletions + insertions of the minimum edit distance.
        length: N, labels in the reference.
    """
    return percent(edits, length)


def peakiness(blank: npt.ArrayLike, silence: npt.ArrayLike, utterances: npt.ArrayLike) -> Floats:
    r"""Peakiness, in percent (OTTC paper): the share of blank frames beyond the share of silent ones.

    .. math:: 100 \max\Bigl(0, \frac1U \sum_u \frac{blank_u - silent_u}{frames_u}\Bigr)

    Args:
        blank: Sum over utterances of the share of frames whose most likely label is blank or the word
            delimiter.
        silence: Sum over utterances of the share of frames that the reference says are silence; 0 for the raw
            value.
        utterances: U.
    """
    return np.maximum(0.0, percent(np.asarray(blank) - np.asarray(silence), utterances))


def over_segmentation(hyp: npt.ArrayLike, ref: npt.ArrayLike) -> Floats:
    """Over-segmentation of boundaries, in percent: 100 (#hyp / #ref - 1); negative for too few."""
    return percent(np.asarray(hyp, float) - np.asarray(ref), ref)


def r_value(hits: npt.ArrayLike, hyp: npt.ArrayLike, ref: npt.ArrayLike) -> Floats:
    r"""R-value, in percent: boundary detection that over-segmenting cannot raise.

    Räsänen, Laine & Altosaar, "An improved speech segmentation quality measure: the R-value", Interspeech
    2009.

    .. math::
        R = 1 - \tfrac12 (|r_1| + |r_2|),
        \quad r_1 = \sqrt{(1 - HR)^2 + OS^2},
        \quad r_2 = \frac{-OS + HR - 1}{\sqrt2}

    with hit rate HR = hits / #ref and over-segmentation OS = #hyp / #ref - 1.

    Args:
        hits: Boundaries found, one to one within a tolerance.
        hyp, ref: Number of predicted and of reference boundaries.
    """
    rate = ratio(hits, ref)
    over = ratio(hyp, ref) - 1.0
    r1 = np.sqrt((1.0 - rate) ** 2 + over**2)
    r2 = (-over + rate - 1.0) / np.sqrt(2.0)
    return 100.0 * (1.0 - (np.abs(r1) + np.abs(r2)) / 2.0)
