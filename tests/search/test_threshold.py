"""Clips in an index match and other clips do not, for any contents of the index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotone import audio
from isotone.search import SearchIndex, bar, build_index, query_vectors, search, threshold
from isotone.search.searcher import LogMelSearcher
from isotone.search.store import Threshold
from tests.paths import DATA
from tests.search.parts import RATE, collection, sounds, write

LOG_MEL = LogMelSearcher()
COUNT, SECONDS = 16, 10.0


def build(folder: Path) -> SearchIndex:
    build_index([folder], LOG_MEL, folder.parent / f"{folder.name}.index")
    return SearchIndex.open(folder.parent / f"{folder.name}.index")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    return build(collection(tmp_path_factory.mktemp("threshold") / "many", (SECONDS,) * COUNT))


def clip_of(seed: int, start: float, seconds: float, snr_db: float | None = None) -> np.ndarray:
    clip = sounds(SECONDS, seed)[round(start * RATE) : round((start + seconds) * RATE)]
    if snr_db is not None:
        noise = np.random.default_rng(seed).standard_normal(len(clip)) * clip.std() * 10 ** (-snr_db / 20)
        clip = clip + noise.astype(np.float32)
    return clip


def matches(index: SearchIndex, clip: np.ndarray) -> str | None:
    """Return the id of the best match, if it reaches the threshold."""
    query = query_vectors(LOG_MEL, clip)
    best = search(index, LOG_MEL, query, top=1)[0]
    least = bar(index, LOG_MEL, query, best.item)
    assert least is not None
    return best.id if best.score >= least.score else None


@pytest.mark.parametrize("seconds", [1, 2, 3, 5])
def test_one_in_a_hundred_clips_that_are_not_there_matches(index: SearchIndex, seconds: int) -> None:
    """Of 50 clips of other recordings, at 1 %, more than four match with a probability below 1 in 1,000."""
    false = [matches(index, clip_of(seed, 2.3, seconds)) for seed in range(1000, 1050)]
    assert sum(id is not None for id in false) <= 4


@pytest.mark.parametrize("seconds, snr_db, least", [(2, None, 0.9), (3, 20, 0.9), (5, 10, 0.75)])
def test_clips_that_are_there_match(
    index: SearchIndex, seconds: int, snr_db: float | None, least: float
) -> None:
    right = [matches(index, clip_of(seed, 2.62, seconds, snr_db)) == f"sound{seed}" for seed in range(COUNT)]
    assert np.mean(right) >= least


def test_in_noise_less_is_asked_for(index: SearchIndex) -> None:
    """A noisy clip is less similar to everything, so the threshold falls with its scores."""

    def least(snr_db: float | None) -> float:
        query = query_vectors(LOG_MEL, clip_of(3, 2.62, 4, snr_db))
        found = bar(index, LOG_MEL, query, search(index, LOG_MEL, query, top=1)[0].item)
        assert found is not None
        return found.score

    assert least(0) < least(10) < least(None)


def test_twins_do_not_raise_the_threshold(index: SearchIndex, tmp_path: Path) -> None:
    """A collection with two copies of every recording finds clips as a collection with one copy does."""
    for seed in range(COUNT):
        whole = sounds(SECONDS, seed)
        noise = np.random.default_rng(seed).standard_normal(len(whole)).astype(np.float32)
        write(tmp_path / "twins" / f"sound{seed}.wav", whole)
        write(tmp_path / "twins" / f"sound{seed}-again.wav", 0.7 * whole + 0.001 * noise)
    twins = build(tmp_path / "twins")
    assert index.threshold is not None
    assert twins.threshold is not None
    np.testing.assert_allclose(twins.threshold.margins[2:], index.threshold.margins[2:], atol=0.08)
    assert matches(twins, clip_of(5, 2.62, 4)) in ("sound5", "sound5-again")
    assert matches(twins, clip_of(2000, 2.62, 4)) is None


def test_a_copy_matches_also_in_an_index_of_excerpts_of_each_other(tmp_path: Path) -> None:
    """Excerpts that are shorter than what they are of look like other recordings that are very much alike."""
    whole = sounds(7.0, 2)
    for second in range(3):
        write(tmp_path / "excerpts" / f"from{second}.wav", whole[second * RATE :])
    write(tmp_path / "excerpts" / "other.wav", sounds(7.0, 99))
    excerpts = build(tmp_path / "excerpts")
    query = query_vectors(LOG_MEL, whole)
    best = search(excerpts, LOG_MEL, query, top=1)[0]
    least = bar(excerpts, LOG_MEL, query, best.item)
    assert least is not None
    assert (best.id, best.score) == ("from0", pytest.approx(1, abs=1e-3))
    assert 0.9 < least.score < best.score
    assert least.rate is None
    assert matches(excerpts, clip_of(2000, 2.62, 5)) is None


def test_one_long_recording_is_enough(tmp_path: Path) -> None:
    write(tmp_path / "one" / "long.wav", sounds(90.0, 7))
    one = build(tmp_path / "one")
    assert matches(one, sounds(90.0, 7)[40 * RATE + 3000 : 44 * RATE + 3000]) == "long"
    assert matches(one, clip_of(2000, 3.0, 4)) is None


def test_silence_and_constant_sound_change_nothing(tmp_path: Path) -> None:
    folder = collection(tmp_path / "quiet", (12.0,) * 6)
    write(folder / "silent.wav", np.zeros(30 * RATE, np.float32))
    write(folder / "constant.wav", np.full(20 * RATE, 0.3, np.float32))
    quiet = build(folder)
    assert matches(quiet, sounds(12.0, 2)[3 * RATE : 6 * RATE]) == "sound2"
    assert matches(quiet, clip_of(2000, 3.0, 3)) is None


@pytest.mark.parametrize("what", ["one short recording", "silence"])
def test_an_index_too_small_or_silent_has_no_threshold(tmp_path: Path, what: str) -> None:
    samples = sounds(3.0, 1) if what == "one short recording" else np.zeros(60 * RATE, np.float32)
    write(tmp_path / "small" / "a.wav", samples)
    small = build(tmp_path / "small")
    assert small.threshold == Threshold(0.01)
    assert bar(small, LOG_MEL, query_vectors(LOG_MEL, sounds(2.0, 1)), 0) is None


@pytest.mark.skipif(not (DATA / "ljspeech").is_dir(), reason="no sample data (ISOTONE_TEST_DATA)")
def test_real_speech_of_the_same_reader_does_not_match(tmp_path: Path) -> None:
    paths = sorted((DATA / "ljspeech").glob("*.flac"))
    build_index(paths[:40], LOG_MEL, tmp_path / "index")
    read = SearchIndex.open(tmp_path / "index")

    def share(files: list[Path]) -> float:
        clips = [audio.load(path, RATE)[RATE + 1111 :][: 4 * RATE] for path in files]
        found = [matches(read, clip) for clip in clips if len(clip) == 4 * RATE]
        assert len(found) >= 20
        return sum(id is not None for id in found) / len(found)

    assert share(paths[:40]) >= 0.9
    assert share(paths[40:80]) <= 0.06


# The number


def test_the_bound_is_exceeded_at_the_rate_that_is_asked_for() -> None:
    """Over samples of n margins, another margin exceeds the bound with a probability of at most 1 %."""
    rng = np.random.default_rng(0)
    for count in (99, 299):
        bounds = [threshold.upper_margin(rng.normal(size=count).tolist(), 0.01) for _ in range(400)]
        # share of the normal distribution above each bound
        exceeded = np.mean([np.mean(rng.normal(size=4000) > bound) for bound in bounds])
        assert 0.003 < exceeded < 0.0125


def test_with_few_clips_it_is_the_largest_and_the_rate_says_so() -> None:
    margins = np.linspace(0.1, 0.3, 20).tolist()
    assert threshold.upper_margin(margins, 0.01) == pytest.approx(0.3)
    assert Threshold(0.01, (1,), (0.3,), (20,)).rate_of(1) == pytest.approx(1 / 21)
    assert Threshold(0.01, (1,), (0.3,), (299,)).rate_of(1) == 0.01


def test_a_tenth_of_copies_hardly_moves_it() -> None:
    rng = np.random.default_rng(0)
    clean = (0.2 + 0.03 * rng.gumbel(size=299)).tolist()
    spoilt = [0.8] * 30 + clean[30:]
    # without the bound by quartiles it would be 0.8
    assert threshold.upper_margin(spoilt, 0.01) < threshold.upper_margin(clean, 0.01) + 0.06


def test_margins_between_lengths_are_interpolated_and_constant_beyond() -> None:
    measured = Threshold(0.01, (2, 4), (0.5, 0.3), (299, 299))
    assert [measured.margin(m) for m in (1, 2, 3, 4, 9)] == pytest.approx([0.5, 0.5, 0.4, 0.3, 0.3])
