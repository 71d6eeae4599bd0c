"""Interfaces of what places tokens or frames in time: aligners, decoders, relaxations and warpers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from isotone.tensors import Tensor
from isotone.types import Coupling, Emissions, Targets, Warp, Window

if TYPE_CHECKING:
    from isotone.text.tokenizer import Tokenizer


class Aligner(ABC):
    """Forced alignment: the frames that carry each token of a known sequence.

    Attributes:
        skips_optional: True where it can leave out the tokens that ``Targets.optional`` marks. It is then given
            silences between words, marked so; others are given none.
        takes_guide: True where it keeps tokens near the frames of ``Targets.guide``. It is then given a guide, where
            the model has a head for that.
        takes_graph: True where it chooses a path through ``Targets.graph``. Others are given one reading of a text,
            the likeliest.
        takes_device: True where it aligns on the device of the emissions, and gives couplings there. Others are given
            emissions and targets on the CPU; with graphs, all are.
        takes_arrays: True where its module imports :mod:`isotone.tensors` in place of torch, so that it aligns what
            onnxruntime computes. With others, the model runs by torch.
    """

    skips_optional: bool = False
    takes_guide: bool = False
    takes_graph: bool = False
    takes_device: bool = False
    takes_arrays: bool = False

    @abstractmethod
    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        """Align frames to tokens.

        Raises:
            AlignmentError: a row's tokens need more frames than there are, or a row is not finite; the error has the
                row's number.
        """

    def frame_scores(self, emissions: Emissions) -> Tensor | None:
        """The scores of labels ``(B, T, V)`` whose sum along a path is the coupling's score, less costs of 0 or more.

        None where a score is something else.
        """
        return None

    def holding(self, frames: int) -> Aligner:
        """The same aligner with a least duration per token, in frames; itself where it knows no such limit.

        Phones of given texts are aligned by it (:data:`isotone.pipeline.placing.PHONE_S`).
        """
        return self

    def leaning(self, share: float) -> Aligner:
        """The same aligner with a guide that has a share, 0 to 1, of its weight; itself where it takes none.

        Guides are questioned with it (:data:`isotone.pipeline.placing.LEANING`).
        """
        return self


class Decoder(ABC):
    """Recognition: the tokens, and the frames that carry them.

    Attributes:
        ranks: True where :meth:`nbest` gives several hypotheses, which another head can rescore
            (:mod:`isotone.pipeline.rescoring`).
    """

    ranks: bool = False

    @abstractmethod
    def __call__(self, emissions: Emissions) -> tuple[Targets, Coupling]:
        """Decode."""

    def use_tokenizer(self, tokenizer: Tokenizer) -> None:
        """Take notice of the labels' meaning, before anything is decoded. Most decoders have no use for it."""
        return

    def nbest(self, emissions: Emissions, count: int) -> Sequence[Sequence[tuple[Sequence[int], float]]]:
        """For every row its best hypotheses, best first: labels and their score in nats.

        Raises:
            NotImplementedError: the decoder gives one hypothesis.
        """
        raise NotImplementedError(f"{type(self).__name__} gives one hypothesis.")


class Warper(ABC):
    """Time warping: the place of every vector of a sequence in another sequence, in order.

    Attributes:
        most_cells: Pairs of positions, about, that it compares in one call. Of longer sequences it is given a window
            around a coarse path (:func:`isotone.warping.align_sequences`).
    """

    most_cells: ClassVar[int] = 2**26

    @abstractmethod
    def __call__(self, x: Tensor, y: Tensor, window: Window | None = None, *, part: bool = False) -> Warp:
        """Warp x onto y.

        Args:
            x, y: ``(n, d)`` and ``(m, d)`` floating, each with a vector at least.
            window: The positions of y that those of x may be warped to. Default: all.
            part: Leave the ends of y free: x is a part of it. Otherwise the first positions match, and the last.

        Raises:
            AlignmentError: vectors that are not finite, or more of x than can have places in y.
            ValueError: shapes or a window that do not fit together.
        """


@runtime_checkable
class Relaxation(Protocol):
    """Rewards to a soft permutation or selection: m rows choose among n >= m columns."""

    def __call__(
        self, reward: Tensor, row_lengths: Tensor | None = None, column_lengths: Tensor | None = None
    ) -> Tensor:
        """``(B, m, n)`` rewards, higher is better, to ``(B, m, n)`` soft assignments, 0 beyond the lengths ``(B,)``.

        Differentiable in the rewards, unless the relaxation is a hard assignment.
        """
        ...
