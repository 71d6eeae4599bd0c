"""Passages with rough times are aligned, and what cannot be is reported."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isotone import audio
from isotone.alignment import AlignmentError, Segment
from isotone.format.json import JSONFormat
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.passage_times import timed
from isotone.pipeline.passage_words import Found, with_stars
from isotone.pipeline.passages import align_passages
from isotone.text.normalize import TextError
from isotone.transcripts import Passage
from tests.paths import DATA

NOISE = np.random.default_rng(0).normal(0, 0.1, 10 * 16_000).astype(np.float32)


def words(result, name: str = "words") -> list[str]:
    return result.alignment.tier(name).labels


def test_words_keep_their_order_and_their_passages(characters: Pipeline) -> None:
    given = [Passage("so it", 1.0, 2.0, None, "cue 1"), Passage("is on", 6.0, 7.0, None, "cue 2")]
    found = align_passages(characters, "u", NOISE, given)
    tier = found.alignment.tier("words")
    assert tier.labels == ["so", "it", "is", "on"]
    assert "".join(found.alignment.tiers[1].labels) == "soitison"
    assert tier.segments[0].start >= 0.0
    assert tier.segments[1].end <= 3.0
    assert tier.segments[2].start >= 5.0
    assert tier.segments[3].end <= 8.0
    assert (found.text, found.alignment.duration) == ("so it\nis on", 10.0)
    assert found.score <= 0


def test_words_have_their_places_in_the_text(characters: Pipeline) -> None:
    """In the text of their passage; or in the text that passages are from."""
    given = [Passage("So it,", 6.0, 7.0), Passage("is on.", 1.0, 2.0), Passage("on it", 2.0, 3.0, place=100)]
    segments = align_passages(characters, "u", NOISE, given).alignment.tier("words").segments
    origins = [s.origin for s in segments if s.origin]
    assert [(o.text, o.start, o.end) for o in origins] == [
        ("is", 0, 2), ("on.", 3, 6), ("on", 100, 102), ("it", 103, 105), ("So", 0, 2), ("it,", 3, 6),
    ]  # fmt: skip


def test_speakers_are_tiers_only_where_there_are_several(characters: Pipeline) -> None:
    one = [Passage("so", 1, 2, "Ann"), Passage("it", 3, 4, "Ann")]
    assert [t.name for t in align_passages(characters, "u", NOISE, one).alignment.tiers] == [
        "words",
        "characters",
    ]
    two = [*one, Passage("is", 1, 2, "Bob"), Passage("on", 5, 6)]
    found = align_passages(characters, "u", NOISE, two)
    assert [t.name for t in found.alignment.tiers] == [
        f"{speaker} - {kind}" for speaker in ("Ann", "Bob", "unknown") for kind in ("words", "characters")
    ]
    assert [words(found, f"{s} - words") for s in ("Ann", "Bob", "unknown")] == [["so", "it"], ["is"], ["on"]]


def test_passages_that_cannot_be_aligned_are_reported_and_the_others_are_there(characters: Pipeline) -> None:
    given = [
        Passage("so", 1, 2, None, "cue 1"),
        Passage("--", 2, 3, None, "cue 2"),
        Passage("far too many words for this little time " * 20, 4, 4.1, None, "cue 3"),
        Passage("it", 6, 7, None, "cue 4"),
        Passage("late", 20, 21, None, "cue 5"),
    ]
    found = align_passages(characters, "u", NOISE, given, slack_s=0.5)
    assert words(found) == ["so", "it"]
    notes = " | ".join(found.warnings)
    assert "left out, for there is nothing to align in it: cue 2" in notes
    assert "not aligned: cue 3: " in notes
    assert "left out, after the recording's end: cue 5" in notes


def test_unknown_speech_keeps_its_time(characters: Pipeline) -> None:
    """Beside words it competes with them; away from them it has the time that was given, as far as there is room."""
    given = [
        Passage("so it", 0.5, 1.5, "Ann", "cue 1"),
        Passage("*", 1.5, 3.0, "Ann", "cue 2"),
        Passage("<unk>", 3.0, 4.0, "Ben", "cue 3"),
        Passage("\u4f60", 6.5, 7.0, "Ben", "cue 4"),
        Passage("*", 9.0, 9.5, "Ann", "cue 5"),
    ]
    found = align_passages(characters, "u", NOISE, given, slack_s=0.5)
    assert words(found, "Ann - words") == ["so", "it", "*", "*"]
    assert words(found, "Ben - words") == ["<unk>", "*"]
    ann, ben = (found.alignment.tier(f"{name} - words") for name in ("Ann", "Ben"))
    assert (ann[-1].start, ann[-1].end) == (9.0, 9.5)
    assert (ben[-1].start, ben[-1].end) == (6.5, 7.0)
    assert ann[1].end <= ann[2].start < ann[2].end <= ben[0].start
    assert not any("left out" in note or "not aligned" in note for note in found.warnings)


def test_unknown_speech_takes_no_time_of_words() -> None:
    passages = {
        0: Passage("so", 1, 2),
        1: Passage("*", 1.5, 4),
        2: Passage("it", 3, 5),
        3: Passage("*", 3, 5),
    }
    found = {0: Found([Segment("so", 1.0, 2.0)]), 2: Found([Segment("it", 3.0, 5.0)])}
    stars = with_stars(found, passages, [3, 1])
    assert stars == {1: Found([Segment("*", 2.0, 3.0)]), 3: Found()}


def test_nothing_at_all_is_an_error(characters: Pipeline) -> None:
    with pytest.raises(TextError):
        align_passages(characters, "u", NOISE, [Passage("--", 1, 2)])
    with pytest.raises(AlignmentError, match=r"u: no passage is within the recording"):
        align_passages(characters, "u", NOISE, [Passage("so", 100, 200)])
    with pytest.raises(AlignmentError, match=r"u: .*frames"):
        align_passages(characters, "u", NOISE, [Passage("many words here " * 50, 1, 1)], slack_s=0.2)
    with pytest.raises(ValueError, match="slack is 0 s or more"):
        align_passages(characters, "u", NOISE, [Passage("so", 1, 2)], slack_s=-1)


def test_words_outside_of_their_passage_are_reported(characters: Pipeline) -> None:
    given = [Passage(word, start, start + 0.01, None, f"cue {i}") for i, (word, start) in enumerate(
        [("so", 1.0), ("it", 1.02), ("is", 1.04), ("on", 1.06), ("at", 4.0)], 1)]  # fmt: skip
    found = align_passages(characters, "u", NOISE, given, slack_s=2.0)
    off = [w for w in found.warnings if "outside of the time of their passage" in w]
    limits = {p.text: (p.start - 2, p.end + 2) for p in given if p.start is not None and p.end is not None}
    beyond = [
        s.label
        for s in found.alignment.tier("words")
        if s.start < limits[s.label][0] - 1e-6 or s.end > limits[s.label][1] + 1e-6
    ]
    assert bool(off) == bool(beyond)
    assert all(repr(word) in off[0] for word in beyond[:3])


@pytest.mark.skipif(not (DATA / "mfa_sample").is_dir(), reason="no sample data (ISOTONE_TEST_DATA)")
def test_words_stay_at_their_times_where_speech_around_is_not_written_down() -> None:
    pipeline = Pipeline(Model.load("english"))
    samples = audio.load(DATA / "mfa_sample" / "acoustic_corpus.wav", pipeline.model.encoder.sample_rate)
    given = [
        Passage("this is the acoustic corpus", 1.0, 2.5),
        Passage("going on we're just y'know there's some speech errors but who cares", 4.6, 7.6),
        Passage("and that should be all thanks", 24.1, 25.3),
    ]
    found = align_passages(pipeline, "talk", samples, given)
    spans = [
        (round(own[0].start, 1), round(own[-1].end, 1))
        for p in range(3)
        if (own := [w for w in found.alignment.tier("words") if w.origin and w.origin.passage == p])
    ]
    assert np.array(spans) == pytest.approx(np.array([(p.start, p.end) for p in given]), abs=0.15)
    assert all(word.presence is not None for word in found.alignment.tier("words"))
    assert found.warnings == ()


def test_phones_without_words_belong_to_their_passages(phones: Pipeline) -> None:
    found = align_passages(phones, "u", NOISE, [Passage("s iy", 1, 2, "A"), Passage("t aa", 1, 2, "B")])
    assert [(t.name, t.labels) for t in found.alignment.tiers] == [
        ("A - phones", ["s", "iy"]), ("B - phones", ["t", "aa"]),
    ]  # fmt: skip


def test_missing_times_are_between_those_of_the_neighbours() -> None:
    given = [
        Passage("a"),
        Passage("b", 2, 3),
        Passage("c", 4),
        Passage("d"),
        Passage("e", 8, 9),
        Passage("f"),
    ]
    found = [(p.text, p.start, p.end) for p in timed(given, 10.0)]
    assert found == [("a", 0, 2), ("b", 2, 3), ("c", 4, 8), ("d", 4, 8), ("e", 8, 9), ("f", 9, 10)]


PIECES = st.text(alphabet="so it\n -.'", max_size=12)


@given(
    st.lists(st.tuples(PIECES, st.integers(0, 8), st.sampled_from(["Ann", "Bob"])), min_size=1, max_size=5)
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_places_of_words_are_those_in_the_texts_of_their_passages(
    characters: Pipeline, rows: list[tuple[str, int, str]]
) -> None:
    passages = [Passage(text, start, start + 1.5, speaker) for text, start, speaker in rows]
    try:
        found = align_passages(characters, "u", NOISE, passages)
    except (AlignmentError, TextError):
        return
    placed = [s for tier in found.alignment.tiers if tier.name.endswith("words") for s in tier if s.origin]
    assert placed
    for segment in placed:
        origin = segment.origin
        assert origin is not None
        assert origin.passage is not None
        assert passages[origin.passage].text[origin.start : origin.end] == origin.text
        assert origin.text.startswith(segment.label.split()[0])
    assert JSONFormat().loads(JSONFormat().dumps(found.alignment), "u") == found.alignment
