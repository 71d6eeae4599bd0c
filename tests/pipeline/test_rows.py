"""Batches in which some rows cannot be aligned: the others are aligned as they are alone."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.alignment import AlignmentError
from isotone.interfaces import Aligner
from isotone.pipeline import Pipeline
from isotone.pipeline.given import align_texts
from isotone.pipeline.rows import alignable
from isotone.transcripts import Passage
from isotone.types import Coupling, Emissions, Targets
from tests.pipeline.test_pipeline import model_of_characters, noise


@given(count=st.integers(0, 8), bad=st.sets(st.integers(0, 7)), named=st.booleans())
def test_the_rows_that_can_be_aligned_are(count: int, bad: set[int], named: bool) -> None:
    """Whether errors name the row of their call, or no row at all."""
    calls = []

    def run(rows: list[int]) -> list[int]:
        calls.append(rows)
        for position, row in enumerate(rows):
            if row in bad:
                raise AlignmentError(f"{row} is bad", row=position if named else None)
        return [10 * row for row in rows]

    rows, value, errors = alignable(run, count)
    assert rows == [row for row in range(count) if row not in bad]
    assert value == ([10 * row for row in rows] if rows else None)
    assert {row: error.reason for row, error in errors.items()} == {
        row: f"{row} is bad" for row in bad if row < count
    }
    if named:
        assert len(calls) <= len(errors) + 1


def test_an_error_of_the_whole_batch_is_raised() -> None:
    def run(rows: list[int]) -> None:
        if len(rows) > 1:
            raise AlignmentError("not together")

    with pytest.raises(AlignmentError, match="not together"):
        alignable(run, 2)


def test_other_errors_are_raised() -> None:
    def run(rows: list[int]) -> None:
        raise ValueError("an option")

    with pytest.raises(ValueError, match="an option"):
        alignable(run, 2)


class Picky(Aligner):
    """An aligner that refuses rows of less than a second."""

    def __init__(self, inner: Aligner) -> None:
        self.inner = inner
        self.skips_optional = inner.skips_optional

    def __call__(self, emissions: Emissions, targets: Targets) -> Coupling:
        if len(short := (emissions.lengths < 50).nonzero()):
            raise AlignmentError("too short for me.", row=int(short[0]))
        return self.inner(emissions, targets)


def test_one_recognised_text_that_cannot_be_aligned_leaves_the_others_their_times(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pipeline = Pipeline(model_of_characters())
    samples = {"long": noise(3.0, 1), "short": noise(0.6, 2), "longer": noise(4.0, 3)}
    aligned = {name: pipeline.transcribe(name, audio) for name, audio in samples.items()}
    placer = replace(pipeline.placer, aligner=Picky(pipeline.aligner))
    pipeline.recogniser = replace(pipeline.recogniser, placer=placer)
    with caplog.at_level(logging.WARNING):
        found = pipeline.transcribe_batch(list(samples), list(samples.values()))
    assert [r.getMessage() for r in caplog.records] == [
        "short: too short for me. The times are the decoder's own."
    ]
    for result, (name, before) in zip(found, aligned.items()):
        assert result.text == before.text
        starts, alone = ([s.start for s in r.alignment.tier("words")] for r in (result, before))
        assert (starts == pytest.approx(alone)) == (name != "short")


def test_texts_that_are_aligned_at_once_keep_their_passages(characters: Pipeline) -> None:
    """Lyrics are written by their lines."""
    texts = ["so it\nis on", "on it"]
    found = align_texts(characters, ["a", "b"], [noise(2.0), noise(2.0)], [[Passage(text)] for text in texts])
    assert [[p.text for p in one[0].alignment.passages] for one in found if one] == [[text] for text in texts]
