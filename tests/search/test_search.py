"""Queries: what is found, what is written, and clips that cannot be searched for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr
import torch

from isotone import format as files
from isotone.search import (
    SearchIndex,
    build_index,
    query_vectors,
    search,
)
from isotone.search.query import rank
from tests.paths import DATA
from tests.search.parts import LOG_MEL, RATE, sounds, write
from tests.tiny_models import error_of, isotone


@pytest.mark.parametrize("file, start", [(0, 2.1), (1, 0.0), (1, 17.37), (1, 25.9), (2, 1.55), (3, 0.7)])
@pytest.mark.parametrize("change", ["none", "noise", "louder"])
def test_a_clip_is_found_where_it_was_cut_from(
    index: SearchIndex, recordings: Path, file: int, start: float, change: str
) -> None:
    whole, _ = soundfile.read(recordings / f"sound{file}.wav", dtype="float32")
    clip = whole[round(start * RATE) : round((start + 3) * RATE)]
    if change == "noise":  # 15 dB
        rng = np.random.default_rng(1)
        clip = clip + rng.standard_normal(len(clip)).astype(np.float32) * clip.std() * 0.18
    if change == "louder":
        clip = clip * 3.3
    best, *_ = search(index, LOG_MEL, query_vectors(LOG_MEL, clip), top=3)
    assert Path(best.file).stem == best.id == f"sound{file}"
    assert best.start_s == pytest.approx(start, abs=0.26)
    assert best.end_s == pytest.approx(start + len(clip) / RATE, abs=0.26)
    assert len(best.windows) == 3
    assert best.score > (0.6 if change == "noise" else 0.75)


def test_matches_come_in_order_and_do_not_overlap(index: SearchIndex, recordings: Path) -> None:
    clip, _ = soundfile.read(recordings / "sound1.wav", dtype="float32", frames=2 * RATE)
    matches = search(index, LOG_MEL, query_vectors(LOG_MEL, clip), top=8)
    assert [m.rank for m in matches] == list(range(1, len(matches) + 1))
    assert 4 <= len(matches) <= 8
    assert [m.score for m in matches] == sorted((m.score for m in matches), reverse=True)
    for one in matches:
        assert 0 <= one.start_s < one.end_s <= one.duration
        for other in matches[: one.rank - 1]:
            assert one.file != other.file or one.start_s >= other.end_s or other.start_s >= one.end_s


def test_two_stages_give_what_scoring_everything_gives(index: SearchIndex) -> None:
    every, lengths = index.take(np.arange(len(index)))
    query = query_vectors(LOG_MEL, sounds(2.0, 77))
    fits = lengths >= len(query)
    expected = LOG_MEL.score(query, every[fits], lengths[fits]).sort(descending=True).values
    items, scores = rank(index, LOG_MEL, query)
    assert len(items) == int(fits.sum())
    torch.testing.assert_close(scores, expected)


def test_other_sample_rates_are_brought_to_the_models(index: SearchIndex, tmp_path: Path) -> None:
    whole = sounds(9.0, 0)[3 * RATE : 6 * RATE]
    resampled = soxr.resample(whole, RATE, 44_100).astype(np.float32)
    isotone(
        "search", "query", index.folder, write(tmp_path / "clip.wav", resampled, 44_100), "--out", tmp_path
    )
    best = json.loads((tmp_path / "results.json").read_text())["matches"][0]
    assert best["id"] == "sound0"
    assert best["start_s"] == pytest.approx(3.0, abs=0.13)


def test_what_a_query_writes(index: SearchIndex, tmp_path: Path) -> None:
    clip = write(tmp_path / "clip.wav", sounds(9.0, 0)[3 * RATE : 5 * RATE])
    done = isotone(
        "search", "query", index.folder, clip, "--top", "3", "--out", tmp_path / "found",
        "-f", "textgrid", "-f", "json", "-f", "audacity",
    )  # fmt: skip
    assert "written to" in done.output
    matches = json.loads((tmp_path / "found" / "results.json").read_text())["matches"]
    best = matches[0]
    for suffix in (".TextGrid", ".json", ".txt"):
        read = files.read(
            tmp_path / "found" / f"{best['id']}{suffix}", "audacity" if suffix == ".txt" else None
        )
        named = [s for tier in read.tiers for s in tier if s.label.startswith("clip #1 ")]
        assert [(s.start, s.end) for s in named] == [
            (pytest.approx(best["start_s"], abs=1e-3), pytest.approx(best["end_s"], abs=1e-3))
        ]


@pytest.mark.skipif(not (DATA / "ljspeech").is_dir(), reason="no sample data (ISOTONE_TEST_DATA)")
def test_clips_of_real_speech_are_found(tmp_path: Path) -> None:
    paths = sorted((DATA / "ljspeech").glob("*.flac"))[:25]
    build_index(paths, LOG_MEL, tmp_path / "index")
    opened = SearchIndex.open(tmp_path / "index")
    rng = np.random.default_rng(0)
    right = tried = 0
    for path in paths:
        audio, rate = soundfile.read(path, dtype="float32")
        if len(audio) / rate < 4:
            continue
        start = rng.uniform(0, len(audio) / rate - 3)
        part = soxr.resample(audio[round(start * rate) : round((start + 2.5) * rate)], rate, RATE)
        noise = rng.standard_normal(len(part)) * part.std() * 0.1  # 20 dB
        best, *_ = search(opened, LOG_MEL, query_vectors(LOG_MEL, (part + noise).astype(np.float32)), top=1)
        tried += 1
        right += best.file == str(path) and abs(best.start_s - start) < 0.3
    assert tried >= 15
    assert right / tried >= 0.9


def test_silent_and_constant_windows_are_zero_rows() -> None:
    windows = torch.zeros(1, 4, RATE)
    windows[0, 1] = 0.5  # constant
    windows[0, 2] = torch.from_numpy(sounds(1.0, 3))
    windows[0, 3] = 1e-6
    norms = LOG_MEL.vectors(windows).norm(dim=-1)[0]
    torch.testing.assert_close(norms, torch.tensor([0.0, 0, 1, 0]))


@pytest.mark.parametrize("level", [0.0, 0.25])
def test_a_silent_or_constant_clip_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="silent"):
        query_vectors(LOG_MEL, np.full(2 * RATE, level, np.float32))


def test_nan_in_a_clip_is_refused() -> None:
    clip = sounds(2.0, 0)
    clip[100] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        query_vectors(LOG_MEL, clip)


def test_files_of_one_window_and_of_silence_are_indexed(tmp_path: Path) -> None:
    write(tmp_path / "a" / "short.wav", sounds(0.3, 1))
    write(tmp_path / "a" / "silent.wav", np.zeros(19_200, np.float32))
    write(tmp_path / "a" / "one.wav", sounds(1.0, 2))
    assert build_index([tmp_path / "a"], LOG_MEL, tmp_path / "index").items == 3
    opened = SearchIndex.open(tmp_path / "index")
    assert sorted(opened.lengths.tolist()) == [1, 1, 2]
    best, *_ = search(opened, LOG_MEL, query_vectors(LOG_MEL, sounds(1.0, 2)))
    assert (best.id, best.start_s, best.end_s) == ("one", 0.0, 1.0)
    assert best.score == pytest.approx(1, abs=2e-3)
    with pytest.raises(ValueError, match=r"12 windows .* more than any recording"):
        search(opened, LOG_MEL, query_vectors(LOG_MEL, sounds(12.0, 1)))


def test_a_clip_longer_than_an_item_is_refused(index: SearchIndex, tmp_path: Path) -> None:
    clip = write(tmp_path / "long.wav", sounds(17.8, 0))
    said = error_of("search", "query", index.folder, clip)
    assert "17.8 s" in said
    assert "16.75 s" in said
    isotone("search", "query", index.folder, clip, "--start", "2", "--end", "5")


def test_a_threshold_that_is_no_number_is_refused(index: SearchIndex, recordings: Path) -> None:
    done = isotone("search", "query", index.folder, recordings / "sound3.wav", "--threshold", "nan", code=2)
    assert "not nan" in done.stderr
