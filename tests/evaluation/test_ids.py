"""Matching of the ids of two sides."""

from __future__ import annotations

import pytest

from isotone.evaluation.ids import match_ids

CASES = [
    (["a", "B"], ["b", "A", "c"], [("B", "b"), ("a", "A")]),
    # written flat, with another separator, or from a speaker's folder
    (["fvmh0_sa1", "marc0_sa1"], ["dr1-fvmh0/sa1", "dr2-marc0/sa1"],
     [("fvmh0_sa1", "dr1-fvmh0/sa1"), ("marc0_sa1", "dr2-marc0/sa1")]),
    (["x/dr1/sa1"], ["dr1-sa1", "sa2"], [("x/dr1/sa1", "dr1-sa1")]),
    # two speakers have sa1: neither is matched, in either direction
    (["sa1"], ["f/sa1", "g/sa1"], []),
    (["f/sa1", "g/sa1"], ["sa1"], []),
    # an exact match is not given away to an ending, and two endings of one id cancel out
    (["sa1", "f/sa1"], ["f/sa1"], [("f/sa1", "f/sa1")]),
    (["1", "a_1"], ["b_a_1"], []),
]  # fmt: skip


@pytest.mark.parametrize("hyp, ref, expected", CASES)
def test_ids_that_mean_the_same(hyp: list[str], ref: list[str], expected: list[tuple[str, str]]) -> None:
    assert match_ids(hyp, ref) == expected
    assert sorted((b, a) for a, b in match_ids(ref, hyp)) == expected


def test_ids_that_differ_only_in_case_are_refused() -> None:
    with pytest.raises(ValueError, match="'SA1' and 'sa1'"):
        match_ids(["SA1", "sa1"], ["sa1"])
