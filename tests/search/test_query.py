"""Number and order of a query's matches, against an exhaustive search of all items."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from isotone.search import Match, SearchIndex, build_index, open_searcher, query_vectors, search
from isotone.search.query import overlap, rank
from isotone.search.searcher import LogMelSearcher, best_selection
from tests.search.parts import RATE, save_opas, sounds, write

LOG_MEL = LogMelSearcher()
CLIP = sounds(2.0, 77)


def with_clip(seconds: float, seed: int, *starts: float) -> np.ndarray:
    """Return sounds with the clip at some times, in noise that grows with the seed."""
    samples = sounds(seconds, seed)
    for start in starts:
        place = round(start * RATE)
        samples[place : place + len(CLIP)] = CLIP
    noise = np.random.default_rng(seed).standard_normal(len(samples)) * CLIP.std() * 0.03 * seed
    return (samples + noise).astype(np.float32)


def indexed(folder: Path) -> SearchIndex:
    build_index([folder / "recordings"], LOG_MEL, folder / "index")
    return SearchIndex.open(folder / "index")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    """Four recordings of one item each, and one of several items with the clip twice, each time in two items."""
    folder = tmp_path_factory.mktemp("query")
    for seed in range(2, 6):
        write(folder / "recordings" / f"short{seed}.wav", with_clip(4.0, seed, 0.5 * seed - 1))
    write(folder / "recordings" / "long.wav", with_clip(40.0, 1, 10.0, 25.0))
    return indexed(folder)


@pytest.fixture(scope="module")
def query() -> torch.Tensor:
    return query_vectors(LOG_MEL, CLIP)


def places(matches: list[Match]) -> list[tuple[str, float, float]]:
    return [(m.id, m.start_s, m.end_s) for m in matches]


def by_hand(index: SearchIndex, query: torch.Tensor) -> list[tuple[str, float, float]]:
    """Return all items in order of their scores, without those that overlap a better one."""
    found: list[tuple[str, float, float]] = []
    for item in rank(index, LOG_MEL, query)[0]:
        number, first, _ = index.items[item].tolist()
        path = best_selection(query, *index.take(np.array([item])))[0][0].tolist()
        id = index.recordings[number].id
        start = (first + path[0]) * LOG_MEL.hop_s
        end = (first + path[-1]) * LOG_MEL.hop_s + LOG_MEL.window_s
        if not any(id == other and start < e and s < end for other, s, e in found):
            found.append((id, start, end))
    return found


def test_as_many_places_are_found_as_are_asked_for(index: SearchIndex, query: torch.Tensor) -> None:
    everything = by_hand(index, query)
    assert 6 <= len(everything) < len(index)  # some overlap
    assert [id for id, *_ in everything[:6]] == ["long", "long", "short2", "short3", "short4", "short5"]
    for top in (1, 2, 3, 6):
        assert places(search(index, LOG_MEL, query, top=top)) == everything[:top]


@pytest.mark.parametrize("copies", [1, 2, 3, 4, 5, 9])
def test_items_of_one_place_do_not_hide_those_that_come_after(
    index: SearchIndex, query: torch.Tensor, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next match is found with its own score, however many items overlap the best match."""
    scores = torch.arange(copies + 1, 0, -1) / 10
    items = np.array([0] * copies + [len(index) - 1])
    monkeypatch.setattr("isotone.search.query.rank", lambda *_: (items, scores))
    found = search(index, LOG_MEL, query, top=2)
    assert [m.score for m in found] == pytest.approx([(copies + 1) / 10, 0.1])
    assert [m.rank for m in found] == [1, 2]
    assert found[0].id != found[1].id


@pytest.mark.parametrize(
    ("file", "start", "end", "expected"),
    [
        ("a", 1.0, 2.0, False),
        ("a", 1.99, 4.0, True),
        ("a", 2.5, 3.0, True),
        ("b", 2.5, 3.0, False),
        ("a", 4.0, 5.0, False),
    ],
)
def test_places_that_touch_do_not_overlap(file: str, start: float, end: float, expected: bool) -> None:
    one = Match(1, 0.9, "a", "a", 2.0, 4.0, (), 9.0, 0)
    other = Match(2, 0.8, file, file, start, end, (), 9.0, 1)
    assert overlap(one, other) == overlap(other, one) == expected


def test_the_longest_clip_has_as_many_windows_as_an_item(tmp_path: Path) -> None:
    searcher = open_searcher(save_opas(tmp_path))  # windows of 1000 samples, side by side, 8 to an item
    assert query_vectors(searcher, sounds(0.5, 0)).shape[0] == 3
    with pytest.raises(ValueError, match=r"lasts 0\.6 s; this index finds up to 0\.5 s"):
        query_vectors(searcher, sounds(9 / 16, 0))


def test_a_match_ends_with_its_recording(tmp_path: Path) -> None:
    """A window that reaches into the padding of a recording is cut at its end."""
    short = sounds(0.6, 5)
    write(tmp_path / "recordings" / "short.wav", short)
    (found,) = search(indexed(tmp_path), LOG_MEL, query_vectors(LOG_MEL, short))
    assert (found.start_s, found.end_s, found.windows) == (0.0, 0.6, ((0.0, 0.6),))


def test_candidates_are_no_fewer_than_the_places_asked_for(query: torch.Tensor, tmp_path: Path) -> None:
    for seed in range(5):
        write(tmp_path / "recordings" / f"short{seed}.wav", with_clip(4.0, seed, 0.5 * seed))
    index = indexed(tmp_path)
    assert len(index) == 5
    for top, candidates in ((3, 1), (5, 2), (1, 1), (2, 4)):
        found = search(index, LOG_MEL, query, top=top, candidates=candidates)
        assert len({m.id for m in found}) == len(found) == top


@pytest.mark.parametrize("wrong", [{"top": 0}, {"candidates": 0}, {"top": -1}])
def test_fewer_than_one_is_refused(index: SearchIndex, query: torch.Tensor, wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="top and candidates of 1 or more"):
        search(index, LOG_MEL, query, **wrong)


def test_silence_in_recordings_is_no_match(tmp_path: Path) -> None:
    """In strong noise a clip is like its recording by less than a half; silence is not like it at all."""
    for seed in range(3):
        gap = np.zeros(4 * RATE, np.float32)
        write(tmp_path / "recordings" / f"{seed}.wav", np.concatenate([gap, sounds(8.0, seed), gap]))
    index = indexed(tmp_path)
    clip = sounds(8.0, 1)[2 * RATE : 5 * RATE]
    clip = clip + np.random.default_rng(0).standard_normal(len(clip)).astype(np.float32) * clip.std() * 4
    best, *others = search(index, LOG_MEL, query_vectors(LOG_MEL, clip))
    assert best.score < 0.5
    assert (best.id, best.start_s) == ("1", pytest.approx(6.0, abs=0.26))
    assert all(m.start_s > 3.0 and m.end_s < 13.0 for m in others if m.score > 0.1)


def test_silence_around_a_clip_is_not_looked_for(index: SearchIndex, query: torch.Tensor) -> None:
    silence = np.zeros(RATE, np.float32)
    padded = query_vectors(LOG_MEL, np.concatenate([silence, silence, CLIP, silence]))
    assert torch.equal(padded, query)
    paused = query_vectors(LOG_MEL, np.concatenate([CLIP, silence, CLIP, silence]))
    assert len(paused) == 5
    assert not paused[2].any()
    assert places(search(index, LOG_MEL, padded)) == places(search(index, LOG_MEL, query))
