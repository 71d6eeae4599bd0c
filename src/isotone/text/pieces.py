"""Tokenizer of word pieces by SentencePiece."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from isotone.files import atomic_write
from isotone.text.base import Tokenizer, Unit
from isotone.text.folding import fold
from isotone.text.normalize import Case, Word, normalize, split_words
from isotone.text.transcript import BLANK, CONFIG, Spelling, write_json

_SPACE = "\u2581"  # SentencePiece's mark for the space before a word
_SILENCE = "<sil>"


class PieceTokenizer(Tokenizer):
    """Tokenizer of word pieces from a SentencePiece model (Kudo & Richardson, 2018); number 0 is the blank.

    Args:
        model: A serialised SentencePiece model.
        case: Case of the text that the model was trained on.
        language: See :func:`isotone.text.normalize.split_words`.
        pauses: Put a silence (the last label) before, between and after the words; it needs no frames.
    """

    unit: Unit = "pieces"

    def __init__(
        self, model: bytes, case: Case = "lower", language: str = "en", pauses: bool = False
    ) -> None:
        import sentencepiece

        self._model = model
        self._pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
        pieces = [self._pieces.id_to_piece(i) for i in range(self._pieces.get_piece_size())]
        silence = [_SILENCE] if pauses else []
        labels = [BLANK, *(p if p not in (BLANK, *silence) else f"{p}0" for p in pieces), *silence]
        super().__init__(labels, 0, _SILENCE if pauses else None, pauses, language)
        self.case = case
        self._alphabet = {p for p in pieces if len(p) == 1}

    def split(self, text: str) -> tuple[Word, ...]:
        """See :meth:`Tokenizer.split`."""
        return split_words(text, case=self.case, language=self.language, rules=self.rules)

    def spell(self, words: Sequence[Word]) -> list[Spelling]:
        """Return the pieces of every word; characters in no piece are folded (:mod:`isotone.text.folding`)."""
        return [self._spelling(word.normal) for word in words]

    def _spelling(self, word: str) -> Spelling:
        pieces = self._pieces.encode(word, out_type=str)
        if strange := {c for piece in pieces if self._is_unknown(piece) for c in piece} - {_SPACE}:
            forms = {c: fold(c, self._alphabet) for c in strange}
            pieces = self._pieces.encode(
                "".join(c if (form := forms.get(c)) is None else form for c in word), out_type=str
            )
        unknown = [c for piece in pieces if self._is_unknown(piece) for c in piece.replace(_SPACE, "")]
        known = [piece for piece in pieces if not self._is_unknown(piece)]
        if all(piece == _SPACE for piece in known):  # a space alone is not spoken
            known = []
        return Spelling(tuple(self._numbers[piece] for piece in known), tuple(unknown))

    def _is_unknown(self, piece: str) -> bool:
        return bool(self._pieces.piece_to_id(piece) == self._pieces.unk_id())

    def decode(self, ids: Sequence[int]) -> str:
        """Return the words separated by spaces."""
        return " ".join(word for word, _, _ in self.words(ids))

    def words(self, ids: Sequence[int]) -> list[tuple[str, int, int]]:
        """Return the words; each begins with a piece that begins with a space."""
        out: list[tuple[str, int, int]] = []
        for i, number in enumerate(ids):
            piece = self.labels[number]
            # labels are shifted by one against SentencePiece's numbers: 0 is the blank
            if (
                number == self.blank
                or piece == self.silence
                or self._pieces.is_unknown(number - 1)
                or self._pieces.is_control(number - 1)
            ):
                continue
            if out and not piece.startswith(_SPACE):
                word, first, _ = out.pop()
                out.append((word + piece, first, i + 1))
            else:
                out.append((piece.removeprefix(_SPACE), i, i + 1))
        return [(word, first, end) for word, first, end in out if word]

    def save(self, folder: Path) -> None:
        """Write everything that :func:`isotone.text.tokenizer.load` needs."""
        with atomic_write(Path(folder) / "pieces.model", mode="wb") as file:
            file.write(self._model)
        own = {"kind": self.unit, "case": self.case, "language": self.language, "pauses": self.pauses}
        write_json(Path(folder) / CONFIG, own)


def train_pieces(
    texts: Iterable[str],
    size: int,
    kind: Literal["unigram", "bpe"] = "unigram",
    *,
    case: Case = "lower",
    language: str = "en",
    pauses: bool = False,
) -> PieceTokenizer:
    """Train a SentencePiece model on texts.

    Args:
        texts: Texts as written; they are normalised first.
        size: Number of pieces; fewer if the texts do not have so many.
        kind: ``"unigram"`` (Kudo, 2018) or ``"bpe"`` (Sennrich et al., 2016).
        case: Case of the pieces.
        language: See :func:`isotone.text.normalize.split_words`.
        pauses: See :class:`PieceTokenizer`.

    Raises:
        ValueError: the texts are empty, or have more characters than ``size``.
    """
    import sentencepiece

    lines = [line for text in texts if (line := normalize(text, case=case, language=language))]
    if not lines:
        raise ValueError("Training pieces of words needs texts; there are no words in these.")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            vocab_size=size,
            model_type=kind,
            character_coverage=1.0,
            normalization_rule_name="identity",
            hard_vocab_limit=False,
            num_threads=1,  # for results that do not depend on the machine
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            unk_id=0,
            minloglevel=2,
        )
    except (RuntimeError, OSError) as error:
        raise ValueError(f"SentencePiece could not make {size} {kind} pieces: {error}") from None
    return PieceTokenizer(model.getvalue(), case, language, pauses)
