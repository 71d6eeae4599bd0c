"""Beam search with an n-gram language model, by flashlight-text, which reads the model with KenLM."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from isotone.text.ngram import arpa_words
from isotone.text.normalize import TextError
from isotone.text.tokenizer import Tokenizer

#: Unit of the language model.
ModelUnit = Literal["tokens", "words"]

# Log-probability of impossible labels: flashlight adds and compares scores, which fails with infinities.
_NEVER = -1e5
# With tokens, wider searches found nothing better and took ten times as long. The cost of a word is known only at its
# end, so words need a wider one.
_PRUNE: dict[ModelUnit, float] = {"tokens": 5.0, "words": 12.0}
_PER_LOG10 = math.log(10.0)


class MissingLibrary(ImportError):
    """A library that an option needs is not installed; the message says how to install it."""


class LanguageModelSearch:
    r"""A search for the label sequences y with the highest score under the emissions and an n-gram model together.

    .. math:: \log p(y | x) + \alpha \log p_{LM}(y) + \beta |y|_{LM}

    where :math:`|y|_{LM}` is the number of the language model's units (tokens or words) in y; natural logarithms.
    (Shallow fusion with an insertion bonus; Hannun et al., arXiv:1408.2873.)

    Args:
        tokenizer: Names of the labels, and the spelling of words.
        model: ARPA file, or KenLM binary.
        alpha: Weight of the language model.
        beta: Insertion bonus, nats per unit.
        beam: Hypotheses kept after every frame.
        prune: Nats. Hypotheses that score lower than the best by more than this are dropped, and so are labels that
            score lower than their frame's best. Default: 5 for a model of tokens, 12 for one of words.
        unit: ``"tokens"``: any sequence of tokens can be recognised. ``"words"``: only the model's words can. Default:
            words if the vocabulary has a word delimiter.
        words: File of the words that can be recognised, separated by white space. Default: all of the ARPA file.

    Raises:
        MissingLibrary: flashlight-text is not installed.
        FileNotFoundError: there is no such file.
        ValueError: a model of words for a vocabulary without delimiter, a binary one without ``words``, none of the
            words can be spelt, a model of words in place of one of tokens, or a file that is no language model.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        model: str | Path,
        alpha: float,
        beta: float,
        beam: int,
        prune: float | None = None,
        unit: ModelUnit | None = None,
        words: str | Path | None = None,
    ) -> None:
        if not Path(model).is_file():
            raise FileNotFoundError(
                f"No language model {model}: `isotone lm TEXT --out lm.arpa` makes one of text."
            )
        self.size, self.blank = len(tokenizer), tokenizer.blank
        self.delimiter: int | None = tokenizer.delimiter_number
        self.unit: ModelUnit = unit or ("tokens" if self.delimiter is None else "words")
        self.prune = _PRUNE[self.unit] if prune is None else prune
        self._library = _library("")
        self._kenlm = _library(".kenlm").KenLM
        self._options = {
            "beam_size": beam, "beam_threshold": min(self.prune, -_NEVER), "sil_score": 0.0, "log_add": True,
            "criterion_type": self._library.CriterionType.CTC,
        }  # fmt: skip
        if self.unit == "words":
            self._search = self._of_words(tokenizer, Path(model), alpha * _PER_LOG10, beta, words)
        else:
            self._search = self._of_tokens(tokenizer.labels, Path(model), alpha * _PER_LOG10, beta)

    def __call__(self, log_probs: np.ndarray, count: int) -> list[tuple[tuple[int, ...], float]]:
        """Search the best label sequences of one utterance; return them with scores in nats, the best first.

        Args:
            log_probs: ``(T, V)`` nats.
            count: Most sequences to return.

        Raises:
            ValueError: the tokenizer has another number of labels.
        """
        frames, vocab = log_probs.shape
        if vocab != self.size:
            raise ValueError(f"The decoder's tokenizer has {self.size} labels; the emissions have {vocab}.")
        scores = np.full((frames + (self.unit == "words"), vocab), _NEVER, np.float32)
        np.maximum(log_probs, _NEVER, out=scores[:frames])
        if self.unit == "words":
            # an extra frame for the delimiter that ends the last word, or for a blank if the delimiter is there already
            scores[frames, self.blank] = scores[frames, self.delimiter] = 0.0
        kept = (log_probs >= log_probs.max(1, keepdims=True) - self.prune).sum(1).max(initial=0)
        # flashlight wants a number of labels per frame: that of the frame with most labels above the threshold
        decoder = self._search(int(max(kept, 2)))
        found: dict[tuple[int, ...], float] = {}
        for result in decoder.decode(scores.ctypes.data, *scores.shape):
            # the first token is the state before the first frame
            labels = tuple(_collapsed(result.tokens[1 : frames + 1], self.blank))
            found.setdefault(labels, float(result.score))
        return list(found.items())[:count]

    def _of_tokens(self, labels: Sequence[str], model: Path, weight: float, beta: float) -> Any:
        lib = self._library
        language = self._read(model, labels)
        _check_units(model, labels)
        if beta:
            language, weight = _with_bonus(lib.LM, language, weight, beta), 1.0

        def decoder(tokens: int) -> Any:
            options = lib.LexiconFreeDecoderOptions(beam_size_token=tokens, lm_weight=weight, **self._options)
            return lib.LexiconFreeDecoder(options, language, -1, self.blank, [])

        return decoder

    def _of_words(
        self, tokenizer: Tokenizer, model: Path, weight: float, beta: float, file: str | Path | None
    ) -> Any:
        if self.delimiter is None:
            raise ValueError(
                "A language model of words needs a word delimiter among the labels; this vocabulary of "
                f"{tokenizer.unit} has none. Take a model of tokens: unit: tokens."
            )
        lib = self._library
        words = arpa_words(model) if file is None else Path(file).read_text(encoding="utf-8").split()
        spelt = list(_spellings(tokenizer, words))
        if not spelt:
            raise ValueError(
                f"None of the {len(words)} words of {file or model} can be spelt with the labels."
            )
        language = self._read(model, [word for word, _ in spelt])
        start = language.start(False)
        lexicon = lib.Trie(len(tokenizer), self.delimiter)
        for number, (_, labels) in enumerate(spelt):
            lexicon.insert([*labels, self.delimiter], number, language.score(start, number)[1])
        lexicon.smear(lib.SmearingMode.MAX)

        def decoder(tokens: int) -> Any:
            options = lib.LexiconDecoderOptions(
                beam_size_token=tokens,
                lm_weight=weight,
                word_score=beta,
                unk_score=-math.inf,
                **self._options,
            )
            return lib.LexiconDecoder(
                options, lexicon, language, self.delimiter, self.blank, len(spelt), [], False
            )

        return decoder

    def _read(self, model: Path, units: Sequence[str]) -> Any:
        dictionary = importlib.import_module("flashlight.lib.text.dictionary").Dictionary(list(units))
        try:
            return self._kenlm(str(model), dictionary)
        except RuntimeError as error:
            raise ValueError(f"{model} is no language model that KenLM reads: {error}") from error


def _check_units(model: Path, labels: Sequence[str]) -> None:
    """Raise ValueError if a language model does not know the labels: it would score all sequences alike."""
    try:
        words = arpa_words(model)
    except ValueError:  # a binary model has no list of its words
        return
    known = len(set(words) & set(labels))
    if 2 * known < len(words):
        raise ValueError(
            f"{model} is no model of the decoder's labels: of its {len(words)} words {known} are labels. "
            "`isotone lm TEXT --model MODEL --out lm.arpa` makes one of the labels of MODEL."
        )


def _library(module: str) -> Any:
    try:
        return importlib.import_module(f"flashlight.lib.text.decoder{module}")
    except ImportError as error:
        raise MissingLibrary(
            f"Decoding with a language model needs flashlight-text, which did not import ({error}): "
            'pip install "isotone[lm]"'
        ) from error


def _with_bonus(base: Any, language: Any, weight: float, bonus: float) -> Any:
    """Weigh a language model and add a bonus per token; flashlight itself has a bonus for words only."""

    class Bonus(base):
        def start(self, with_nothing: bool) -> Any:
            return language.start(with_nothing)

        def score(self, state: Any, token: int) -> tuple[Any, float]:
            after, score = language.score(state, token)
            return after, weight * score + bonus

        def finish(self, state: Any) -> tuple[Any, float]:
            after, score = language.finish(state)
            return after, weight * score

    return Bonus()


def _spellings(tokenizer: Tokenizer, words: Sequence[str]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Iterate over the words that can be spelt with the labels, and their labels."""
    for word in dict.fromkeys(words):
        try:
            transcript = tokenizer.encode(word)
        except TextError:
            continue
        if not transcript.unknown:
            yield word, transcript.tokens


def _collapsed(path: Sequence[int], blank: int) -> Iterator[int]:
    """Iterate over the labels of a path, repeats merged and blanks removed."""
    before = blank
    for label in path:
        if label not in (before, blank):
            yield label
        before = label
