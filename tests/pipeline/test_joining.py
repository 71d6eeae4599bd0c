"""Results of sections, joined: times, words and warnings are those of the recording."""

from __future__ import annotations

from isotone.alignment import Absent, Alignment, Segment, Tier
from isotone.pipeline.result import Result
from isotone.pipeline.sections.cutting import Section
from isotone.pipeline.sections.joining import Part, join
from isotone.pipeline.verdict import PARTLY
from isotone.text.normalize import Word
from isotone.text.tokenizer import Transcript
from isotone.types import Grid


def part(section: Section, labels: list[str], unlikely: int, warning: str) -> Part:
    spans = tuple(Segment(label, i, i + 0.5) for i, label in enumerate(labels))
    tiers = (Tier("words", spans), Tier("phones", spans))
    alignment = Alignment("a", 10.0, tiers, -1.0, verdict=PARTLY)
    warnings = (f"1 word may not have been said: {labels[unlikely]!r} at 1.00 s", warning)
    result = Result(
        alignment, " ".join(labels), 500, (), Grid(0.02), -1.0, words=tuple(range(len(labels))),
        unlikely=frozenset({unlikely}), warnings=warnings,
    )  # fmt: skip
    return Part(section, (section.start, section.end), result, 0)


def test_words_that_may_not_have_been_said_are_told_with_the_times_of_the_recording() -> None:
    words = [Word(label, label, 2 * i, 2 * i + 1) for i, label in enumerate("abcde")]
    transcript = Transcript(tuple(words), (0, 1, 2, 3, 4), (0, 1, 2, 3, 4))
    parts = [
        part(Section(0, 2, 0.0, 10.0, False), ["a", "b"], 1, "of the first"),
        part(Section(2, 4, 10.0, 20.0, False), ["c", "d"], 1, "of the second"),
    ]
    found = join("a", 20.0, transcript, parts, [(4, 5)], [])
    assert found.unlikely == {1, 3}
    assert found.words == (0, 1, 2, 3)
    assert found.alignment.absent == (Absent("e", 4, 0.0, None),)
    assert found.alignment.verdict == PARTLY
    assert found.warnings == (
        "of the first",
        "of the second",
        "1 word was not said and has no times: 'e' after 11.50 s",
        "2 words may not have been said: 'b' at 1.00 s, 'd' at 11.00 s",
    )
