"""Indexing and querying recordings: what is found, resuming, and everything that can be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import isotone_opas.searcher
import numpy as np
import pytest
import soundfile
import soxr
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone import format as files
from isotone import searchers
from isotone.search import (
    CorruptIndex,
    IndexMismatch,
    SearchIndex,
    build,
    build_index,
    open_searcher,
    query_vectors,
    saving,
    search,
    store,
)
from isotone.search.embedding import embed_items
from isotone.search.query import rank
from isotone.search.searcher import LogMelSearcher
from isotone.search.windows import cut_windows, item_spans, spread
from tests.paths import DATA
from tests.search.parts import RATE, collection, save_opas, sounds, write
from tests.tiny_models import error_of, isotone

LOG_MEL = LogMelSearcher()


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return collection(tmp_path_factory.mktemp("search") / "recordings")


@pytest.fixture(scope="module")
def index(recordings: Path) -> SearchIndex:
    out = recordings.parent / "recordings.index"
    built = build_index([recordings], LOG_MEL, out)
    assert (built.done, built.errors) == (4, [])
    assert built.seconds == pytest.approx(49.5)
    return SearchIndex.open(out)


# Windows and items


@settings(max_examples=60, deadline=None)
@given(samples=st.integers(1, 300), window=st.integers(1, 40), hop=st.integers(1, 40))
def test_windows_are_parts_of_the_audio(samples: int, window: int, hop: int) -> None:
    audio = np.arange(1, samples + 1, dtype=np.float32)
    windows = cut_windows(audio, window, hop)
    assert len(windows) >= 1
    padded = np.pad(audio, (0, len(windows) * hop + window))
    for number, one in enumerate(windows):
        np.testing.assert_array_equal(one, padded[number * hop : number * hop + window])
    # no more than half a hop is left out at the end, and no window begins after the audio
    assert (len(windows) - 1) * hop + window >= samples - -(-hop // 2)
    assert len(windows) == 1 or (len(windows) - 1) * hop < samples + hop


@settings(max_examples=60, deadline=None)
@given(windows=st.integers(1, 200), size=st.integers(1, 30))
def test_every_stretch_of_half_an_item_is_whole_in_one(windows: int, size: int) -> None:
    spans = item_spans(windows, size)
    assert all(1 <= length <= size and start + length <= windows for start, length in spans)
    assert spans[-1][0] + spans[-1][1] == windows
    stretch = min(windows, size - max(1, size // 2) + 1)
    for first in range(windows - stretch + 1):
        assert any(start <= first and first + stretch <= start + length for start, length in spans)


@given(count=st.integers(1, 100), most=st.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_spread_windows_are_in_order_and_begin_at_the_first(count: int, most: int) -> None:
    chosen = spread(count, most).tolist()
    assert chosen == sorted(set(chosen))
    assert chosen[0] == 0
    assert len(chosen) == min(count, most)
    assert most == 1 or chosen[-1] == count - 1


# What is found


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


# Silence, short files, long clips


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


# Bad files, interruptions


def test_one_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    folder = collection(tmp_path / "a", (3.0, 4.0))
    (folder / "damaged.wav").write_bytes(b"RIFF not audio")
    (folder / "empty.flac").write_bytes(b"")
    holes = sounds(2.0, 5)
    holes[7] = np.nan
    soundfile.write(folder / "holes.wav", holes, RATE, subtype="FLOAT")
    said = error_of("search", "index", folder, "--out", tmp_path / "index", code=1)
    assert "3 failed" in said
    rows = [json.loads(line) for line in (tmp_path / "index" / "errors.jsonl").read_text().splitlines()]
    assert {Path(row["file"]).name for row in rows} == {"damaged.wav", "empty.flac", "holes.wav"}
    assert all(row["error"] for row in rows)
    assert [r.id for r in SearchIndex.open(tmp_path / "index").recordings] == ["sound0", "sound1"]


def test_without_any_good_file_there_is_no_index(tmp_path: Path) -> None:
    write(tmp_path / "a.wav", sounds(1.0, 0)).write_bytes(b"x")
    assert "None of 1 files" in error_of("search", "index", tmp_path / "a.wav", "--out", tmp_path / "index")
    assert [p.name for p in tmp_path.iterdir()] == ["a.wav"]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("cut", ["clean", "half a line", "half a vector"])
def test_an_interrupted_run_goes_on(
    recordings: Path, index: SearchIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    embedded: list[int] = []

    def dying(searcher: LogMelSearcher, samples: np.ndarray) -> tuple:
        if len(embedded) == 2:
            raise Killed
        embedded.append(len(samples))
        return embed_items(searcher, samples)

    out = tmp_path / "index"
    monkeypatch.setattr(build, "embed_items", dying)
    with pytest.raises(Killed):
        build_index([recordings], LOG_MEL, out)
    assert not out.exists()
    assert "unfinished" in error_of("search", "query", out, recordings / "sound0.wav")
    partial = store.unfinished(out)
    if cut == "half a line":
        with (partial / "done.jsonl").open("a") as file:
            file.write('{"place": "/so')
    if cut == "half a vector":
        with (partial / "embedded.f16").open("ab") as file:
            file.write(b"abc")
    done: list[int] = []
    monkeypatch.setattr(build, "embed_items", lambda s, x: (done.append(len(x)), embed_items(s, x))[1])
    assert build_index([recordings], LOG_MEL, out).done == 4
    assert len(done) == 2  # the two that were not done
    resumed = SearchIndex.open(out)
    for name in ("items", "vectors", "codes"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(index, name))
    assert [r.id for r in resumed.recordings] == [r.id for r in index.recordings]
    assert not partial.exists()


def test_a_file_that_changed_meanwhile_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = collection(tmp_path / "a", (2.0, 3.0, 4.0))

    def dying(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(saving, "finish", dying)
        with pytest.raises(Killed):
            build_index([folder], LOG_MEL, tmp_path / "index")
    write(folder / "sound1.wav", sounds(5.0, 9))
    build_index([folder], LOG_MEL, tmp_path / "index")
    found = {r.id: r.duration for r in SearchIndex.open(tmp_path / "index").recordings}
    assert found == {"sound0": 2.0, "sound1": 5.0, "sound2": 4.0}


def test_an_index_is_replaced_only_when_told_to(tmp_path: Path) -> None:
    folder = collection(tmp_path / "a", (2.0,))
    isotone("search", "index", folder, "--out", tmp_path / "index")
    assert "--overwrite" in error_of("search", "index", folder, "--out", tmp_path / "index")
    write(folder / "more.wav", sounds(2.0, 4))
    isotone("search", "index", folder, "--out", tmp_path / "index", "--overwrite")
    assert len(SearchIndex.open(tmp_path / "index").recordings) == 2
    assert "is no index" in error_of("search", "index", folder, "--out", folder, "--overwrite")
    assert (folder / "more.wav").exists()


# Damage


def _cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2])


def _change(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def _remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    "name, harm",
    [
        *((name, harm) for name in (store.CODES, store.ITEMS, store.CENTROIDS, store.FILES) for harm in
          (_cut_short, _change, _remove)),
        (store.VECTORS, _cut_short),
        (store.VECTORS, _remove),
        (store.METADATA, _cut_short),
    ],
)  # fmt: skip
def test_a_damaged_index_is_refused(
    recordings: Path, tmp_path: Path, name: str, harm: Callable[[Path], None]
) -> None:
    build_index([recordings / "sound3.wav"], LOG_MEL, tmp_path / "index")
    harm(tmp_path / "index" / name)
    with pytest.raises(CorruptIndex, match=name):
        SearchIndex.open(tmp_path / "index")
    assert name in error_of("search", "query", tmp_path / "index", recordings / "sound3.wav")


def test_vectors_that_became_nan_are_noticed(recordings: Path, tmp_path: Path) -> None:
    build_index([recordings / "sound3.wav"], LOG_MEL, tmp_path / "index")
    np.memmap(tmp_path / "index" / store.VECTORS, np.float16, "r+")[5] = np.nan
    opened = SearchIndex.open(tmp_path / "index")
    with pytest.raises(CorruptIndex, match="NaN"):
        search(opened, LOG_MEL, query_vectors(LOG_MEL, sounds(2.0, 0)))


def test_an_index_of_another_version_is_refused(recordings: Path, tmp_path: Path) -> None:
    build_index([recordings / "sound3.wav"], LOG_MEL, tmp_path / "index")
    path = tmp_path / "index" / store.METADATA
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 99}))
    with pytest.raises(IndexMismatch, match="99"):
        SearchIndex.open(tmp_path / "index")


def test_no_index_at_all(recordings: Path, tmp_path: Path) -> None:
    assert "No index" in error_of("search", "query", tmp_path / "none", recordings / "sound0.wav")


# Trained models


def test_a_trained_model_is_found_by_what_its_folder_holds(recordings: Path, tmp_path: Path) -> None:
    assert searchers.get("opas") is isotone_opas.searcher.OPASSearcher
    model = save_opas(tmp_path / "model")
    isotone("search", "index", recordings, "--out", tmp_path / "index", "--model", model)
    opened = SearchIndex.open(tmp_path / "index")
    assert opened.model["name"] == "opas"
    assert opened.model["window_s"] == opened.model["hop_s"] == 1000 / 16_000
    whole, _ = soundfile.read(recordings / "sound2.wav", dtype="float32")
    clip = write(tmp_path / "clip.wav", whole[10_000:13_000])  # three windows on the grid
    isotone("search", "query", tmp_path / "index", clip, "--out", tmp_path / "found", "--top", "2")
    best = json.loads((tmp_path / "found" / "results.json").read_text())["matches"][0]
    assert (best["id"], best["start_s"], best["end_s"]) == ("sound2", 10_000 / 16_000, 13_000 / 16_000)
    assert 0 < best["score"] < 1


def test_vectors_are_those_of_the_model(recordings: Path, tmp_path: Path) -> None:
    searcher = open_searcher(save_opas(tmp_path / "model"))
    samples = sounds(2.0, 5)
    vectors, spans = embed_items(searcher, samples)
    windows = torch.from_numpy(samples[:32_000]).view(32, 1000)
    expected = searcher.vectors(windows[None])[0]  # each window by itself, for this model
    assert spans == [(start, 8) for start in range(0, 25, 4)]
    for item, (start, length) in zip(vectors, spans):
        torch.testing.assert_close(item, expected[start : start + length])


def test_an_index_made_by_another_model_is_refused(recordings: Path, tmp_path: Path) -> None:
    first, second = save_opas(tmp_path / "a", 0), save_opas(tmp_path / "b", 1)
    one = recordings / "sound0.wav"
    isotone("search", "index", one, "--out", tmp_path / "index", "--model", first)
    said = error_of("search", "query", tmp_path / "index", one, "--model", second, "--end", "0.2")
    assert "made with" in said
    opened = SearchIndex.open(tmp_path / "index")
    with pytest.raises(IndexMismatch):
        search(opened, LOG_MEL, query_vectors(LOG_MEL, sounds(1.0, 0)))
    moved = first.rename(tmp_path / "moved")
    assert "No folder" in error_of("search", "query", tmp_path / "index", one, "--end", "0.2")
    isotone("search", "query", tmp_path / "index", one, "--model", moved, "--end", "0.2", "--all")


def test_an_unfinished_index_of_another_model_is_not_mixed(
    recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(saving, "finish", dying)
        with pytest.raises(Killed):
            build_index([recordings / "sound0.wav"], LOG_MEL, tmp_path / "index")
    other = open_searcher(save_opas(tmp_path / "model"))
    with pytest.raises(ValueError, match="another model"):
        build_index([recordings / "sound0.wav"], other, tmp_path / "index")
    build_index([recordings / "sound0.wav"], LOG_MEL, tmp_path / "index")


def test_folders_that_hold_no_model_are_refused(recordings: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="opas"):
        open_searcher(recordings)
    with pytest.raises(FileNotFoundError):
        open_searcher(tmp_path / "none")
