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


def peakiness(quiet_speech: npt.ArrayLike, speech_frames: npt.ArrayLike) -> Floats:
    r"""Peakiness, in percent: the share of speech in which the model names no sound, pooled over frames.

    .. math:: 100\, \frac{|\{t : speech_t \wedge quiet_t\}|}{|\{t : speech_t\}|}

    A frame is *speech* where its centre lies in a segment of the reference that is no silence, and *quiet*
    where its most likely label is the blank, the word delimiter or a silence. A model that names the right label
    in every frame has 0, with or without a label for silence.

    Args:
        quiet_speech: Frames of speech that are quiet.
        speech_frames: Frames of speech.
    """
    return percent(quiet_speech, speech_frames)


def peakiness_paper(quiet: npt.ArrayLike, silence: npt.ArrayLike, utterances: npt.ArrayLike) -> Floats:
    r"""Peakiness of the OTTC paper, in percent: the share of quiet frames beyond the share of silent ones.

    .. math:: \frac{100}{U} \sum_u \frac{quiet_u - silent_u}{frames_u}

    The paper subtracts the reference's silence on TIMIT, and not on AMI (``silence`` 0). Its quiet frames are
    those of "blank or space symbols"; a label for silence is one of these here, because the silence that is
    subtracted would otherwise be counted on one side alone. The value is negative where a model has fewer quiet
    frames than the reference has silence. Quiet frames in speech and sounds named in silence cancel out, which
    they do not in :func:`peakiness`.

    Args:
        quiet: Sum over utterances of the share of quiet frames.
        silence: Sum over utterances of the share of frames that the reference says are silence.
        utterances: U.
    """
    return percent(np.asarray(quiet) - np.asarray(silence), utterances)


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
