"""Words of a stream that are taken back, or whose audio is forgotten, and when it is believed that a reader strays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from isotone import audio
from isotone.alignment import Segment
from isotone.pipeline import Pipeline
from isotone.pipeline.live.ahead import Part, Words
from isotone.pipeline.live.look import STRAY_COST, Heard, Looker, _reached
from isotone.pipeline.live.recent import Recent
from isotone.pipeline.live.stream import Spoken, Timing
from isotone.pipeline.stars import with_star
from tests.live import FIRST, RATE, SECOND, THIRD, Samples, fed, last, pipeline, say, stream
from tests.paths import DATA, ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "plugins/isotone_english/model").is_dir(), reason="the pack's weights are not built"
)


def test_read_words_of_short_sentences_are_not_lost() -> None:
    folder, ids = DATA / "ljspeech", ("LJ001-0125", "LJ001-0136")
    if not folder.is_dir():
        pytest.skip("needs recordings of LJSpeech")
    texts = dict(line.split("|")[:2] for line in (folder / "metadata.csv").read_text("utf-8").splitlines())
    text = " ".join(texts[id] for id in ids)
    samples = np.concatenate([audio.load(folder / f"{id}.flac", RATE) for id in ids])
    whole = Pipeline(pipeline().model, presence=False).align("", samples, pipeline().encode(text))
    expected = dict(zip(whole.words, whole.alignment.tier("words")))
    given = fed(stream(text), samples)
    ends = [word.end for _, word in sorted(last(given).items())]
    near = [end is not None and abs(end - expected[n].end) <= 0.02 for n, end in enumerate(ends)]
    assert None not in ends
    assert np.mean(near) >= 0.9
    first: dict[int, float] = {}
    late = [now_s - first.setdefault(word.number, now_s) for word, now_s in given]
    assert max(late) < Timing().settle_s + Timing().wide_s + 0.2


def test_the_cost_of_unread_tokens_is_not_compared() -> None:
    samples, text = say(FIRST), f"{FIRST} {SECOND} {THIRD}"
    recent = Recent(pipeline().emitter, {"ottc", "ctc"})
    recent.add(samples)
    starred = {head: with_star(e, STRAY_COST) for head, e in recent.emissions(0, wide=True).items()}
    look = Looker(Words(pipeline(), pipeline().encode(text)))
    placer = pipeline().placer_of(starred)
    keen = Part(0, 26, begun=False, ends=False, strays=False, keen=True)
    scores = [_reached(*look._aligned(placer, starred, part)) for part in (replace(keen, keen=False), keen)]
    # all that was said is read either way, so what is not read must not tell them apart
    assert len(scores[0]) == 2
    np.testing.assert_allclose(*scores, atol=5)


class Script:
    """Looks that hear words from their number to before another, from 0.1 s on, each 0.3 s long."""

    def __init__(self, heard: Callable[[float], tuple[int, int]], strays: Callable[[float], bool]) -> None:
        self.heard, self.stray, self.strays = heard, strays, False

    def __call__(
        self, emissions: Any, samples: Samples, start_s: float, *args: Any, **kwargs: Any
    ) -> list[Heard]:
        now_s = round(start_s + len(samples) / RATE, 2)
        self.strays = self.stray(now_s)
        return [
            Heard(n, Segment(str(n), 0.1 + 0.3 * n, 0.4 + 0.3 * n), (), True)
            for n in range(*self.heard(now_s))
        ]


def scripted(
    heard: Callable[[float], tuple[int, int]], strays: Callable[[float], bool]
) -> list[tuple[list[Spoken], int]]:
    """What a stream of 8 s gives by a script, look by look, and how many words are then final."""
    made = stream(f"{FIRST} {SECOND} {THIRD}")
    made.look = Script(heard, strays)  # type: ignore[assignment]
    noise = np.random.default_rng(0).normal(0, 0.1, (80, RATE // 10)).astype(np.float32)
    noise[::2] /= 50
    return [(made.feed(piece), made.settled) for piece in noise]


def test_words_that_were_taken_back_and_come_again_in_their_places_are_final_as_if_they_had_stayed() -> None:
    def heard(now_s: float) -> tuple[int, int]:
        return 0, 0 if 2.95 < now_s < 3.95 else int((now_s - 0.3) / 0.3)

    looks = scripted(heard, lambda now_s: 2.95 < now_s < 3.95)
    steady = scripted(lambda now_s: (0, int((now_s - 0.3) / 0.3)), lambda now_s: False)
    taken = [word.number for word in looks[29][0]]
    assert taken == list(range(8))
    assert all(word.segment is None and word.corrects for word in looks[29][0])
    assert {word.number for word in looks[39][0]} >= set(taken)
    assert [min(settled, 8) for _, settled in looks[40:]] == [min(settled, 8) for _, settled in steady[40:]]


def test_words_whose_audio_is_forgotten_are_final_as_they_were_given() -> None:
    # first heard late, so that they would be final only after their audio was forgotten
    looks = scripted(lambda now_s: (0, 0 if now_s < 3.95 else 6), lambda now_s: False)
    assert [word.number for word in looks[39][0]] == list(range(6))
    # the first begin at 0.1 s, 0.4 s, 0.7 s
    assert [settled for _, settled in looks][44:54] == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
    assert not any(given for given, _ in looks[40:])


def test_words_after_a_long_pause_are_not_final_at_once() -> None:
    looks = scripted(lambda now_s: (0, 0 if now_s < 6.35 else 20), lambda now_s: False)
    assert [word.number for word in looks[63][0]] == list(range(20))
    # it begins at 1.9 s, and is older than is aligned; the next one is not
    assert [settled for _, settled in looks][63:68] == [0, 7, 7, 7, 8]


def test_a_text_that_is_forgotten_is_done() -> None:
    made = stream(FIRST)
    made.look = Script(lambda now_s: (0, 0 if now_s < 3.95 else 9), lambda now_s: False)  # type: ignore[assignment]
    noise = np.random.default_rng(0).normal(0, 0.1, 4 * RATE).astype(np.float32)
    noise *= np.arange(len(noise)) // 1600 % 2
    assert len(made.feed(noise)) == 9
    assert not made.done
    made.recent.add(np.zeros(4 * RATE, np.float32))
    assert made.finish() == []
    assert made.done
