"""Laws that every plugin keeps, as functions that raise AssertionError: for the tests of any plugin.

from isotone.testing import check_loss

def test_focal_ctc() -> None:
    check_loss(FocalCTC(gamma=2.0))
"""

from __future__ import annotations

from isotone.testing.aligners import check_aligner, check_coupling
from isotone.testing.batches import sample_batch
from isotone.testing.corpora import check_corpus
from isotone.testing.decoders import check_decoder
from isotone.testing.encoders import check_encoder
from isotone.testing.formats import check_format, sample_alignment
from isotone.testing.heads import check_head
from isotone.testing.indexes import check_index
from isotone.testing.laws import FLOAT32, HALF
from isotone.testing.losses import check_loss
from isotone.testing.packs import check_pack
from isotone.testing.relaxations import check_relaxation
from isotone.testing.searchers import check_searcher
from isotone.testing.warpers import check_warper

__all__ = [
    "FLOAT32", "HALF", "check_aligner", "check_corpus", "check_coupling", "check_decoder", "check_encoder",
    "check_format", "check_head", "check_index", "check_loss", "check_pack", "check_relaxation",
    "check_searcher", "check_warper", "sample_alignment", "sample_batch",
]  # fmt: skip
