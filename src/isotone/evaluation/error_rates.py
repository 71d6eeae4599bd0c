"""Phone, word and character error rates, counted by jiwer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jiwer
import numpy as np

from isotone.evaluation.tracks import Ints


@dataclass(frozen=True)
class EditCounts:
    """Edits that turn references into hypotheses, summed.

    Attributes:
        substitutions, deletions, insertions: Edits.
        length: Labels in the reference.
    """

    substitutions: int
    deletions: int
    insertions: int
    length: int

    @property
    def rate(self) -> float | None:
        """Error rate in percent; ``None``, undefined, where the reference is empty."""
        if self.length == 0:
            return None
        return 100.0 * (self.substitutions + self.deletions + self.insertions) / self.length


def error_rate(pairs: Sequence[tuple[str, str]]) -> float:
    """Return the word (or phone) error rate of (reference, hypothesis) texts, 0 to 1 and above.

    Spaces separate the labels. Pairs with an empty reference are left out; NaN where none is left.
    """
    return _rate(jiwer.wer, pairs)


def character_error_rate(pairs: Sequence[tuple[str, str]]) -> float:
    """Return the character error rate of (reference, hypothesis) texts, as :func:`error_rate`; spaces count."""
    return _rate(jiwer.cer, pairs)


def count_edits(hyp: Sequence[Sequence[int]], ref: Sequence[Sequence[int]]) -> Ints:
    """Count the edits of every utterance over label codes.

    Codes, not labels, go to jiwer: a label may hold a space, and no transform may touch it.

    Args:
        hyp, ref: Label codes, one sequence per utterance.

    Returns:
        ``(U, 4)``: substitutions, deletions, insertions, reference length.

    Raises:
        ValueError: not as many hypotheses as references.
    """
    _check_lengths(hyp, ref)
    if not ref:
        return np.zeros((0, 4), dtype=np.int64)
    return _counts(jiwer.process_words([_join(r) for r in ref], [_join(h) for h in hyp]))


def count_character_edits(hyp: Sequence[str], ref: Sequence[str]) -> Ints:
    """Count the edits of every utterance over characters, spaces included; as :func:`count_edits`."""
    _check_lengths(hyp, ref)
    if not ref:
        return np.zeros((0, 4), dtype=np.int64)
    return _counts(jiwer.process_characters(list(ref), list(hyp)))


def _rate(rate: Callable[..., float], pairs: Sequence[tuple[str, str]]) -> float:
    pairs = [(reference, hypothesis) for reference, hypothesis in pairs if reference.strip()]
    return float(rate([r for r, _ in pairs], [h for _, h in pairs])) if pairs else float("nan")


def _join(codes: Sequence[int]) -> str:
    return " ".join(map(str, codes))


def _counts(output: jiwer.WordOutput | jiwer.CharacterOutput) -> Ints:
    columns = {"substitute": 0, "delete": 1, "insert": 2}
    out = np.zeros((len(output.references), 4), dtype=np.int64)
    for u, (chunks, reference) in enumerate(zip(output.alignments, output.references)):
        out[u, 3] = len(reference)
        for chunk in chunks:
            if chunk.type in columns:
                length = max(chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx)
                out[u, columns[chunk.type]] += length
    return out


def _check_lengths(hyp: Sequence[object], ref: Sequence[object]) -> None:
    if len(hyp) != len(ref):
        raise ValueError(f"Error rates need one hypothesis per reference; got {len(hyp)} and {len(ref)}.")
