"""Indexes of any kind as the first stage of a search."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isotone import indexes
from isotone.search import SearchIndex, open_searcher, query_vectors, store
from isotone.search.candidates import Candidates, build_stage
from isotone.search.centroids import CentroidIndex
from isotone.search.ids import Ids
from isotone.search.vectors import VectorIndex
from isotone.testing import check_index
from tests.search.parts import LOG_MEL, RATE, save_opas, sounds, write
from tests.tiny_models import error_of, isotone


class Plain(VectorIndex):
    """An index of somebody else: exact inner products, in numpy."""

    name = "plain"

    def __init__(self, size: int, *, scale: float = 1.0, fingerprint: str = "") -> None:
        super().__init__(size, fingerprint=fingerprint, options={"scale": scale})
        self._engines = [_Table(size, scale)]


class _Table:
    trained, mapped = True, False

    def __init__(self, size: int, scale: float) -> None:
        self.scale, self.gone = scale, set[int]()
        self.rows, self.data = np.zeros(0, np.int64), np.zeros((0, size), np.float32)

    def train(self, data: np.ndarray) -> None:
        pass

    def add(self, rows: np.ndarray, data: np.ndarray) -> None:
        self.rows, self.data = np.append(self.rows, rows), np.concatenate([self.data, data])

    def remove(self, rows: np.ndarray) -> None:
        kept = ~np.isin(self.rows, rows)
        self.rows, self.data = self.rows[kept], self.data[kept]

    def search(self, data: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
        scores = self.scale * data @ self.data.T
        order = np.argsort(-scores, axis=1)[:, :top]
        out = np.full((len(data), top), -np.inf, np.float32), np.full((len(data), top), -1)
        out[0][:, : order.shape[1]] = np.take_along_axis(scores, order, 1)
        out[1][:, : order.shape[1]] = self.rows[order]
        return out

    def write(self, folder: Path, number: int) -> None:
        np.savez(folder / "table.npz", rows=self.rows, data=self.data)

    def read(self, folder: Path, number: int, memory_map: bool) -> None:
        with np.load(folder / "table.npz") as table:
            self.rows, self.data = table["rows"], table["data"]
        self.mapped = memory_map


@pytest.fixture
def _plain() -> object:
    indexes.register("plain")(Plain)
    yield
    indexes.unregister("plain")


def _clip(recordings: Path, tmp_path: Path) -> Path:
    whole, _ = soundfile.read(recordings / "sound1.wav", dtype="float32")
    rng = np.random.default_rng(0)
    part = whole[round(11.1 * RATE) : round(15.1 * RATE)]
    return write(tmp_path / "clip.wav", part + 0.003 * rng.standard_normal(len(part)).astype(np.float32))


NAMED = [
    "faiss-hnsw",
    "faiss-ivf",
    "{name: faiss-binary-flat}",
    "{name: lsh-talr, bits: 128, steps: 30}",
    "centroids",
]


@pytest.mark.parametrize("stage", NAMED)
def test_every_kind_of_index_finds_a_clip(stage: str, recordings: Path, tmp_path: Path) -> None:
    if stage != "centroids":
        pytest.importorskip("faiss")
    clip, index = _clip(recordings, tmp_path), tmp_path / "index"
    isotone("search", "index", recordings, "--out", index, "--index", stage)
    isotone("search", "query", index, clip, "--out", tmp_path / "found", "--top", "1")
    best = json.loads((tmp_path / "found" / "results.json").read_text())["matches"][0]
    assert best["id"] == "sound1"
    assert best["start_s"] == pytest.approx(11.0, abs=0.3)
    assert SearchIndex.open(index).candidates.index.name == stage.strip("{}").split(",")[0].split()[-1]


@pytest.mark.usefixtures("_plain")
def test_an_index_of_somebody_else_stays_when_the_recordings_grow(recordings: Path, tmp_path: Path) -> None:
    check_index(Plain(16, fingerprint="model-1"), 16)
    index = tmp_path / "index"
    first = recordings / "sound1.wav"
    isotone("search", "index", first, "--out", index, "--index", "{name: plain, scale: 2}")
    isotone("search", "add", recordings, "--index", index)
    opened = SearchIndex.open(index)
    assert opened.spec == {"name": "plain", "scale": 2}
    assert isinstance(opened.candidates.index, Plain)
    assert opened.candidates.index.options == {"scale": 2}
    assert not (index / "stage").exists()  # the first generation is gone
    isotone("search", "query", index, _clip(recordings, tmp_path), "--top", "1")
    indexes.unregister("plain")
    said = error_of("search", "query", index, first, "--end", "2")
    assert "No index named 'plain'" in said
    indexes.register("plain")(Plain)


@pytest.mark.usefixtures("_plain")
@pytest.mark.parametrize("contextual", [False, True])
def test_windows_are_found_where_the_items_are(contextual: bool) -> None:
    """Against brute force: with exact inner products, an item's value is the sum of its best windows'."""
    rng = torch.Generator().manual_seed(3)
    n, d, spans = 6, 8, [(0, 6), (3, 6), (6, 5)]
    items = np.array([(r, *span) for r in range(9) for span in spans], np.int32)
    windows = torch.nn.functional.normalize(torch.randn(9, 12, d, generator=rng), dim=-1)
    windows[4, 2] = 0  # silence
    vectors = torch.zeros(len(items), n, d)
    for number, (r, first, count) in enumerate(items.tolist()):
        vectors[number, :count] = windows[r, first : first + count]
        if contextual:
            noise = 0.2 * torch.randn(count, d, generator=rng)
            vectors[number, :count] = torch.nn.functional.normalize(vectors[number, :count] + noise, dim=-1)
    half = vectors.half().numpy()
    *_, (share, stage) = build_stage("plain", half, items, contextual=contextual, fingerprint="x")
    assert share == 1.0
    found = Candidates(stage, items, contextual)
    query = torch.nn.functional.normalize(windows[2, 7:10] + 0.2 * torch.randn(3, d, generator=rng), dim=-1)
    exact = (query @ torch.from_numpy(half).float().mT).masked_fill(
        ~torch.from_numpy(half).any(-1)[:, None], -torch.inf
    )
    expected = exact.amax(2).sum(1)
    apart = np.ones(len(items), bool)
    apart[[5, 6, 7]] = False
    for left_out in (None, apart):
        allowed = torch.ones(len(items), dtype=torch.bool) if left_out is None else torch.from_numpy(left_out)
        # asked for all windows, so that none is missing
        all_found = found._by_windows(query, len(stage), allowed.numpy())
        np.testing.assert_allclose(all_found[1], expected[all_found[0]], atol=1e-5)
        few = found.find(query, 4, left_out)
        assert len(few) == 4
        assert int(expected.masked_fill(~allowed, -torch.inf).argmax()) in few
        assert left_out is None or not {5, 6, 7} & {*few.tolist()}
    assert len(found.find(torch.ones(7, d), 4)) == 0  # longer than any item


def test_centroids_rank_sequences_in_order() -> None:
    rng = torch.Generator().manual_seed(0)
    vectors = torch.nn.functional.normalize(torch.randn(30, 7, 8, generator=rng), dim=-1)
    lengths = torch.arange(30) % 5 + 3
    index = CentroidIndex(8, points=1, fingerprint="m")
    with pytest.raises(ValueError, match="learn first"):
        index.add_sequences(["a"], vectors[:1], lengths[:1])
    index.fit(vectors.flatten(0, 1))
    index.add_sequences([f"i{n}" for n in range(30)], vectors, lengths)
    query = vectors[11, [0, 1, 3]]
    assert index.search_sequences(query, 3)[0][0] == "i11"
    assert index.search_sequences(query, 3)[1][0] == pytest.approx(1.0, abs=1e-3)
    assert "i11" not in index.search_sequences(query, 30, without={"i11"})[0]
    backwards, scores = index.search_sequences(query.flip(0), 30)
    assert float(scores[backwards.index("i11")]) < 0.9
    index.remove(["i11"])
    assert "i11" not in index.search_sequences(query, 30)[0]
    with pytest.raises(ValueError, match="lengths"):
        index.add_sequences(["new"], vectors[:1], torch.tensor([8]))
    assert "new" not in index


def test_an_index_of_version_2_is_read(recordings: Path, index: SearchIndex, tmp_path: Path) -> None:
    """Its codes and centroids are files of their own."""
    old = tmp_path / "old"
    isotone("search", "index", recordings, "--out", old)
    about = json.loads((old / store.METADATA).read_text())
    codes, centroids = (np.load(old / "stage" / f"{name}.npy") for name in ("codes", "centroids"))
    codes.tofile(old / store.CODES)
    centroids.tofile(old / store.CENTROIDS)
    for file in (old / "stage").iterdir():
        file.unlink()
    (old / "stage").rmdir()
    about |= {"version": 2}
    del about["stage"], about["model"]["contextual"]
    (old / store.METADATA).write_text(json.dumps(about))
    opened = SearchIndex.open(old)
    query = query_vectors(LOG_MEL, sounds(30.0, 1)[4 * RATE : 8 * RATE])
    np.testing.assert_array_equal(opened.candidates.find(query, 9), index.candidates.find(query, 9))
    write(tmp_path / "more.wav", sounds(5.0, 77))
    isotone("search", "add", tmp_path / "more.wav", "--index", old)
    assert json.loads((old / store.METADATA).read_text())["version"] == store.VERSION
    assert not (old / store.CODES).exists()


def test_errors_in_words(recordings: Path, tmp_path: Path) -> None:
    one, out = recordings / "sound3.wav", tmp_path / "index"
    assert "Did you mean 'faiss-hnsw'" in error_of(
        "search", "index", one, "--out", out, "--index", "faiss-hnws"
    )
    assert "no option 'bist'" in error_of(
        "search", "index", one, "--out", out, "--index", "{name: lsh-random, bist: 3}"
    )
    assert "no YAML mapping" in error_of("search", "index", one, "--out", out, "--index", "{bits: 3}")
    assert not out.exists()
    assert not store.unfinished(out).exists()


class _Finding(Plain):
    def search(self, queries: Tensor, top: int) -> tuple[list[list[str]], Tensor]:
        return [[] for _ in queries], torch.full((len(queries), top), -torch.inf)


def test_a_first_stage_that_finds_nothing_is_no_match(recordings: Path, tmp_path: Path) -> None:
    indexes.register("finding")(_Finding)
    try:
        isotone("search", "index", recordings, "--out", tmp_path / "index", "--index", "finding")
        clip = _clip(recordings, tmp_path)
        assert "no candidates" in isotone("search", "query", tmp_path / "index", clip, code=3).stderr
    finally:
        indexes.unregister("finding")


def test_a_model_of_another_kind_is_named(tmp_path: Path) -> None:
    from tests.tiny_models import save_phone_model

    clip = write(tmp_path / "a.wav", sounds(2.0, 0))
    model = save_phone_model(tmp_path / "phones")
    said = error_of("search", "index", clip, "--out", tmp_path / "i", "--model", model)
    assert "a speech recognition model" in said
    assert "recipes/music_speech" in said
    opas = save_opas(tmp_path / "opas")
    isotone("search", "index", clip, "--out", tmp_path / "i", "--model", opas, "--sample-rate", "8000")
    assert open_searcher(opas, sample_rate=8000).window_s == 1000 / 8000


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=40))
def test_ids_are_those_of_a_dictionary(steps: list[tuple[bool, int]]) -> None:
    """Adding and removing ids, of which some are their rows' numbers."""
    ids, expected, following = Ids(), dict[str, int](), 0
    for adds, number in steps:
        id = str(number) if number < 10 else f"item{number}"
        if adds and id not in expected:
            ids.add([id], following)
            expected[id] = following
            following += 1
        elif not adds and id in expected:
            assert ids.pop(id) == expected.pop(id)
        assert len(ids) == len(expected)
        again = Ids.restored(json.loads(json.dumps(ids.state())))
        for one in (ids, again):
            assert [str(n) in one for n in range(11)] == [str(n) in expected for n in range(11)]
            assert all(one.row(id) == row and one.of(row) == id for id, row in expected.items())
    assert "00" not in ids
    with pytest.raises(KeyError):
        ids.row("item99")
