"""A stream and its text: against the alignment of the whole, with readers who do not keep to the text."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.live.ahead import SKIP_COST, UNREAD_COST, Part, Words
from isotone.pipeline.live.look import _strays
from isotone.pipeline.live.recent import HEARD_S, Recent
from isotone.pipeline.live.stream import Spoken, Stream, Timing
from tests.live import FIRST, RATE, SECOND, THIRD, Samples, fed, last, pipeline, say, stream
from tests.paths import DATA, ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "plugins/isotone_english/model").is_dir(), reason="the pack's weights are not built"
)


def ordered(given: list[tuple[Spoken, float]]) -> list[Spoken]:
    return [word for _, word in sorted(last(given).items())]


def unheard(text: str, samples: Samples) -> list[str]:
    return [word.text for word in last(fed(stream(text), samples)).values() if word.segment is None]


def test_words_come_in_order_soon_and_where_they_are_in_the_whole() -> None:
    text, samples = f"{FIRST} {SECOND}", np.concatenate([say(FIRST), say(SECOND)])
    whole = pipeline().align("", samples, pipeline().encode(text)).alignment.tier("words")
    given = fed(stream(text), samples)
    first = [word for word, _ in given if not word.corrects]
    assert [word.number for word in first] == list(range(17))
    assert [word.text for word in first] == text.split()
    assert [text[word.start_char : word.end_char] for word in first] == text.split()
    off = [
        abs(found - expected)
        for word, reference in zip(last(given).values(), whole)
        if word.start is not None and word.end is not None
        for found, expected in ((word.start, reference.start), (word.end, reference.end))
    ]
    assert np.mean(np.array(off) <= 0.02) >= 0.9
    late = [now_s - whole.segments[word.number].end for word, now_s in given if not word.corrects]
    assert 0.1 < np.median(late) < 0.3


def test_words_follow_each_other_with_their_phones() -> None:
    found = ordered(fed(stream(FIRST), say(FIRST)))
    segments = [word.segment for word in found if word.segment is not None]
    assert len(segments) == 9
    assert all(a.end <= b.start + 1e-9 for a, b in pairwise(segments))
    assert [unit.label for unit in found[1].units] == ["ow", "l", "d"]
    assert all(-5 < (s.score or 0) < 0 for s in segments)


def test_the_sizes_of_the_pieces_change_nothing() -> None:
    samples = say(FIRST)
    pieces = [fed(stream(FIRST), samples, size) for size in (317, 5_000, len(samples))]
    words = [[word for word, _ in given] for given in pieces]
    assert words[0] == words[1] == words[2]


def test_corrections_are_bounded_and_of_given_words() -> None:
    samples = np.concatenate([say(FIRST), say(SECOND), say(THIRD)])
    timing = Timing(lag_s=0.0)
    when: dict[int, float] = {}
    corrections = 0
    for word, now_s in fed(stream(f"{FIRST} {SECOND} {THIRD}", timing), samples):
        assert word.corrects == (word.number in when)
        assert (
            now_s - when.setdefault(word.number, now_s)
            <= timing.settle_s + timing.wide_s + timing.step_s + 0.05
        )
        corrections += word.corrects
    assert corrections > 2
    never = fed(stream(f"{FIRST} {SECOND} {THIRD}", Timing(lag_s=0.0, settle_s=0.0)), samples)
    assert not any(word.corrects for word, _ in never)


def test_a_sentence_that_is_left_out_gets_no_times_and_the_rest_does() -> None:
    lost = unheard(f"{FIRST} {SECOND} {THIRD}", np.concatenate([say(FIRST), say(THIRD)]))
    assert set(lost) <= {*SECOND.split(), "river.", "She"}
    assert len(set(SECOND.split()) - set(lost)) <= 1


def test_other_speech_takes_no_words() -> None:
    samples = np.concatenate(
        [say(FIRST), say("Just a moment please, the telephone is ringing again."), say(THIRD)]
    )
    found = last(fed(stream(f"{FIRST} {THIRD}"), samples))
    assert sum(word.segment is None for word in found.values()) <= 1
    end_s = (len(samples) - len(say(THIRD))) / RATE
    starts = [found[number].start for number in range(10, 18)]
    assert all(start is None or start > end_s - 0.1 for start in starts)


def test_a_reader_who_stops_leaves_the_rest_without_times() -> None:
    assert unheard(f"{FIRST} {SECOND}", say(FIRST)) == SECOND.split()


def test_a_stream_that_is_cut_off_has_the_words_that_were_said() -> None:
    text, samples = f"{FIRST} {SECOND}", np.concatenate([say(FIRST), say(SECOND)])
    whole = last(fed(stream(text), samples))
    cut_s = whole[13].start
    assert cut_s is not None
    cut = last(fed(stream(text), samples[: round((cut_s + 0.05) * RATE)]))
    assert [word.number for word in cut.values()] == list(range(17))
    assert all(word.segment is None for word in cut.values() if word.number > 13)
    ends = [(word.end, whole[number].end) for number, word in cut.items() if number < 12]
    assert all(a is not None and b is not None and abs(a - b) < 0.05 for a, b in ends)
    assert all(word.end is None or word.end <= cut_s + 0.05 for word in cut.values())


def test_samples_of_another_rate_than_was_said_fit_badly_and_their_words_are_in_order() -> None:
    import soxr

    text, samples = f"{FIRST} {SECOND}", np.concatenate([say(FIRST), say(SECOND)])
    slow = soxr.resample(samples, RATE, 3 * RATE)
    means = []
    for heard in (samples, slow):
        segments = [word.segment for word in ordered(fed(stream(text), heard, RATE)) if word.segment]
        assert all(a.end <= b.start + 1e-9 for a, b in pairwise(segments))
        means.append(np.mean([segment.score or 0.0 for segment in segments]))
    assert means[1] < -2 < means[0]


def test_nothing_is_heard_in_silence() -> None:
    noise = np.random.default_rng(0).normal(0, 1e-3, 8 * RATE).astype(np.float32)
    for silence in (np.zeros(8 * RATE, np.float32), noise):
        made = stream(FIRST)
        assert made.feed(silence) == []
        assert [word.segment for word in made.finish()] == [None] * 9


def test_speech_after_the_text_is_not_listened_to() -> None:
    made = stream(FIRST)
    made.feed(np.concatenate([say(FIRST), say(SECOND), say(SECOND)]))
    assert made.done
    kept = made.recent.heard
    assert made.feed(say(THIRD)) == []
    assert made.recent.heard == kept
    assert made.finish() == []


def test_a_long_silence_is_forgotten_and_the_words_after_it_are_found() -> None:
    noise = np.random.default_rng(0).normal(0, 1e-3, 40 * RATE).astype(np.float32)
    made = stream(f"{FIRST} {SECOND}")
    found = last(fed(made, np.concatenate([say(FIRST), noise, say(SECOND)]), RATE))
    assert len(made.recent.samples) < HEARD_S * RATE + made.recent.hop
    begin_s = len(say(FIRST)) / RATE + 40
    assert all(
        word.start is not None and (word.start > begin_s - 0.1) == (n > 8) for n, word in found.items()
    )


def test_emissions_are_those_of_the_whole() -> None:
    samples = say(FIRST)[: 2 * RATE]
    recent = Recent(pipeline().emitter, {"ottc", "ctc"})
    recent.add(samples)
    found = recent.emissions(7)
    statistics = recent._normalisation()
    whole = pipeline().emitter.part(samples, {"ottc", "ctc"}, statistics)
    for head, emissions in found.items():
        np.testing.assert_allclose(emissions.logits, whole[head].logits[:, 7:], atol=1e-5)


def test_ways_through_the_next_words() -> None:
    words = Words(pipeline(), pipeline().encode(SECOND))
    assert len(words) == 8
    plain = words.ahead(Part(2, 5, begun=False, ends=False, strays=False))
    owners = plain.text.transcript.token_words
    assert {owner for owner in owners if owner is not None} == {0, 1, 2}
    graph = plain.targets.graph
    assert graph is not None
    ways = graph.ways(0, len(owners))
    assert [p for p, _ in ways[-1]] == list(range(len(owners)))
    assert {cost for _, cost in ways[-1]} == {0.0}
    keen = words.ahead(Part(2, 5, begun=False, ends=False, strays=False, keen=True)).targets.graph
    assert keen is not None
    costs = [cost for _, cost in keen.ways(0, len(owners))[-1]]
    assert costs[-1] == 0.0 < costs[0] == max(costs) <= UNREAD_COST * len(owners)
    begun = words.ahead(Part(2, 5, begun=True, ends=True, strays=True))
    owners = begun.text.transcript.token_words
    assert begun.targets.graph is not None
    ways = begun.targets.graph.ways(0, len(owners))
    assert {owners[u] for u, some in enumerate(ways[:-1]) if any(p < 0 for p, _ in some)} == {0}
    skips = {
        (owners[p], owners[u]) for u, some in enumerate(ways[:-1]) for p, cost in some if cost >= SKIP_COST
    }
    assert {(star - 3, word) for star, word in skips if star in (3, 4, 5) and word in (0, 1, 2)} == {
        (0, 1),
        (0, 2),
        (1, 2),
    }
    assert len(ways[-1]) < len(owners)


@pytest.mark.parametrize(
    ("gains", "strays"),
    [((61, 61), True), ((59, 61), False), ((61, 59), False)],
    ids=["both", "with the cost alone", "without it alone"],
)
def test_straying_counts_where_it_gains_without_and_with_the_cost_of_unread_tokens(
    gains: tuple[float, float], strays: bool
) -> None:
    def aligned(part: Part) -> tuple[Any, Any]:
        score = torch.tensor([gains[part.keen] if part.strays else 0.0])
        return SimpleNamespace(guide=SimpleNamespace(score=score)), SimpleNamespace(score=score)

    assert _strays(aligned, Part(0, 5, begun=False, ends=False, strays=False, keen=True)) == strays
    plain = Part(0, 5, begun=False, ends=False, strays=False)
    assert _strays(aligned, plain) == (gains[False] > 60)


def test_what_cannot_be_streamed_is_refused() -> None:
    with pytest.raises(ValueError, match="open_s below 6"):
        Timing(open_s=6.0)
    with pytest.raises(ValueError, match="seconds of 0 or more"):
        Timing(lag_s=-0.1)
    deaf = Pipeline(Model.load("english"), aligner="ctc-torchaudio")
    with pytest.raises(ValueError, match="an aligner that takes graphs"):
        Stream(deaf, deaf.encode(FIRST), Timing())


def test_real_speech_is_aligned_as_in_the_whole() -> None:
    folder = DATA / "librivox"
    if not folder.is_dir():
        pytest.skip("needs recordings of LibriVox")
    from isotone import audio

    paths = sorted(folder.glob("*.wav"))
    samples = np.concatenate([audio.load(path, RATE) for path in paths])
    text = " ".join(path.with_suffix(".txt").read_text() for path in paths)
    whole = pipeline().align("", samples, pipeline().encode(text))
    expected = dict(zip(whole.words, whole.alignment.tier("words")))
    given = last(fed(stream(text), samples))
    near = [
        word.start is not None and word.end is not None
        and abs(word.start - expected[n].start) <= 0.02 and abs(word.end - expected[n].end) <= 0.02
        for n, word in given.items()
    ]  # fmt: skip
    assert np.mean(near) >= 0.95
