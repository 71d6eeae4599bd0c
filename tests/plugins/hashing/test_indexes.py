"""Indexes against brute force; what removal, saving, mapping and damage do to them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from isotone.evaluation.ranking import recall_at
from isotone.registries import indexes

pytest.importorskip("faiss", reason="FAISS is not installed: pip install isotone[search]")
from isotone_hashing import engine as engines
from isotone_hashing.hashed import LSHTALR, LSHRandom, LSHTrained
from isotone_hashing.indexes import (
    FaissBinaryFlat,
    FaissBinaryHNSW,
    FaissBinaryIVF,
    FaissFlat,
    FaissHNSW,
    FaissIVF,
)

from isotone.search.folder import CorruptIndex, IndexMismatch

SIZE, ITEMS = 20, 300
QUICK = {"bits": 12, "steps": 3, "batch_items": 50, "batch_queries": 8}
# what each is built with; with probes of all lists and a wide search every one of them is exact
CASES = [
    (FaissFlat, {}),
    (FaissFlat, {"metric": "l2"}),
    (FaissIVF, {"lists": 5, "probes": 5}),
    (FaissIVF, {"metric": "l2", "lists": 5, "probes": 5}),
    (FaissHNSW, {"ef_search": 300, "ef_construction": 300}),
    (FaissHNSW, {"metric": "l2", "ef_search": 300, "ef_construction": 300}),
    (FaissBinaryFlat, {}),
    (FaissBinaryIVF, {"lists": 5, "probes": 5}),
    (FaissBinaryHNSW, {"ef_search": 300, "ef_construction": 300}),
    (LSHRandom, {"bits": 13}),
    (LSHRandom, {"bits": 24, "layout": {"kind": "ivf", "lists": 5, "probes": 5}}),
    (LSHRandom, {"bits": 22, "tables": 2, "min_shared": 5}),
    (LSHTrained, {**QUICK, "tables": 2}),
    (LSHTALR, QUICK),
]
NAMED = [pytest.param(*case, id=f"{case[0].name}-{n}") for n, case in enumerate(CASES)]


@pytest.fixture(scope="module")
def vectors():
    return torch.randn(ITEMS, SIZE, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def queries():
    return torch.randn(7, SIZE, generator=torch.Generator().manual_seed(1))


def ids(count=ITEMS):
    return [f"item/{n}" for n in range(count)]


def build(cls, options, vectors, add=True):
    index = cls(SIZE, fingerprint="model-1", **options)
    if "steps" in options or "ivf" in str(options.get("layout")) or "lists" in options:
        index.fit(vectors, positives=torch.tensor([[q, q + 1] for q in range(100)]))
    if add:
        index.add(ids(), vectors)
    return index


def brute_scores(index, vectors, queries):
    """Return each item's score ``(Q, N)``, from the definitions."""
    if isinstance(index, (LSHRandom, LSHTrained, LSHTALR)):
        bits = [torch.from_numpy(index.codes(x)) for x in (queries, vectors)]
        equal = bits[0][:, None] == bits[1]
        if index.min_shared is None:
            return equal.sum(2).float()
        shared = equal.unflatten(2, (-1, index.table_bits)).sum(3).amax(2)
        return torch.where(shared >= index.min_shared, shared.float(), -torch.inf)
    if "binary" in index.name:
        return ((queries > 0)[:, None] == (vectors > 0)).sum(2).float()
    if index.options["metric"] == "ip":
        return queries @ vectors.T
    return -(torch.cdist(queries, vectors) ** 2)


def check_search(index, kept, vectors, queries, top):
    """The best scores, in order, each of the item it stands beside; ties may be cut anywhere."""
    exact = brute_scores(index, vectors, queries)
    found, scores = index.search(queries, top)
    best = exact[:, kept].sort(1, descending=True).values[:, :top]
    best = torch.nn.functional.pad(best, (0, top - best.shape[1]), value=-torch.inf)
    torch.testing.assert_close(scores, best, rtol=1e-4, atol=1e-3)
    for row, of_one in enumerate(found):
        assert len({*of_one}) == len(of_one) == int((best[row] > -torch.inf).sum())
        numbers = [int(id.split("/")[1]) for id in of_one]
        assert {*numbers} <= {*kept}
        torch.testing.assert_close(exact[row, numbers], scores[row, : len(numbers)], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("cls, options", NAMED)
def test_search_is_that_of_brute_force(cls, options, vectors, queries):
    index = build(cls, options, vectors)
    assert len(index) == ITEMS
    check_search(index, list(range(ITEMS)), vectors, queries, 10)


@pytest.mark.parametrize("cls, options", NAMED)
def test_removed_items_are_gone_and_may_come_back(cls, options, vectors, queries):
    index = build(cls, options, vectors)
    first, _ = index.search(queries, 3)
    index.remove(sorted({id for of_one in first for id in of_one}))
    gone = {int(id.split("/")[1]) for of_one in first for id in of_one}
    kept = [n for n in range(ITEMS) if n not in gone]
    assert len(index) == len(kept)
    check_search(index, kept, vectors, queries, 10)
    index.remove([f"item/{n}" for n in kept[:80]])  # a graph is built anew
    check_search(index, kept[80:], vectors, queries, 10)
    back = kept[:80] + sorted(gone)
    index.add([f"item/{n}" for n in back], vectors[back])
    check_search(index, list(range(ITEMS)), vectors, queries, 10)


@pytest.mark.parametrize("memory_map", [False, True])
@pytest.mark.parametrize("cls, options", NAMED)
def test_a_saved_index_is_the_same(cls, options, memory_map, vectors, queries, tmp_path):
    index = build(cls, options, vectors)
    index.remove(["item/3", "item/8"])
    index.save(tmp_path / "index")
    loaded = cls.load(tmp_path / "index", fingerprint="model-1", memory_map=memory_map)
    assert len(loaded) == len(index)
    assert "item/4" in loaded
    assert "item/3" not in loaded
    for top in (1, 5, 400):
        before, after = index.search(queries, top), loaded.search(queries, top)
        assert after[0] == before[0]
        assert torch.equal(after[1], before[1])
    if memory_map:
        if sys.platform == "linux":
            assert str(tmp_path / "index" / "0.faiss") in Path("/proc/self/maps").read_text()
        with pytest.raises(ValueError, match="memory_map=False"):
            loaded.add(["new"], vectors[:1])
        with pytest.raises(ValueError, match="memory_map=False"):
            loaded.remove(["item/4"])
        with pytest.raises(ValueError, match="memory_map=False"):
            loaded.save(tmp_path / "again")
    else:
        loaded.add(["item/3", "item/8"], vectors[[3, 8]])
        check_search(loaded, list(range(ITEMS)), vectors, queries, 10)


def test_names_are_those_they_are_registered_under():
    if "faiss-flat" not in indexes.names():
        pytest.skip("the installed isotone is older than this plugin: install it again")
    for cls in {cls for cls, _ in CASES}:
        assert indexes.get(cls.name) is cls


def test_adding_goes_on_where_it_stopped(vectors, queries, tmp_path):
    index = FaissFlat(SIZE)
    index.add(ids()[:100], vectors[:100])
    index.save(tmp_path / "index")
    index = FaissFlat.load(tmp_path / "index")
    missing = [n for n, id in enumerate(ids()) if id not in index]
    assert missing == list(range(100, ITEMS))
    index.add([ids()[n] for n in missing], vectors[missing])
    index.save(tmp_path / "index")
    check_search(FaissFlat.load(tmp_path / "index"), list(range(ITEMS)), vectors, queries, 10)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("file", ["0.faiss", "ids.json", "index.json", "head.safetensors"])
def test_a_file_cut_short_is_found(file, verify, vectors, tmp_path):
    build(LSHRandom, {"bits": 16}, vectors).save(tmp_path / "index")
    path = tmp_path / "index" / file
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptIndex, match=f"{file}.* is damaged"):
        LSHRandom.load(tmp_path / "index", verify=verify)
    path.unlink()
    with pytest.raises((CorruptIndex, FileNotFoundError), match=file):
        LSHRandom.load(tmp_path / "index")


@pytest.mark.parametrize("memory_map", [False, True])
@pytest.mark.parametrize("file", ["0.faiss", "ids.json", "head.safetensors"])
def test_a_changed_byte_is_found(file, memory_map, vectors, tmp_path):
    build(LSHRandom, {"bits": 16}, vectors).save(tmp_path / "index")
    path = tmp_path / "index" / file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(CorruptIndex, match="SHA-256"):
        LSHRandom.load(tmp_path / "index", memory_map=memory_map)


def test_what_faiss_cannot_read_is_damage(vectors, tmp_path):
    build(FaissFlat, {}, vectors).save(tmp_path / "index")
    path = tmp_path / "index" / "0.faiss"
    path.write_bytes(b"\0" * path.stat().st_size)
    with pytest.raises(CorruptIndex, match="FAISS cannot read"):
        FaissFlat.load(tmp_path / "index", verify=False)


def test_an_index_of_another_kind_model_or_version_is_refused(vectors, tmp_path):
    build(FaissFlat, {}, vectors).save(tmp_path / "index")
    with pytest.raises(IndexMismatch, match=r"made by 'model-1'.* 'model-2'"):
        FaissFlat.load(tmp_path / "index", fingerprint="model-2")
    with pytest.raises(IndexMismatch, match="'faiss-flat'; expected 'faiss-hnsw'"):
        FaissHNSW.load(tmp_path / "index")
    path = tmp_path / "index" / "index.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps({**about, "version": 99}))
    with pytest.raises(IndexMismatch, match="version 99"):
        FaissFlat.load(tmp_path / "index")
    with pytest.raises(FileNotFoundError, match="no index"):
        FaissFlat.load(tmp_path / "nowhere")


def test_an_addition_is_whole_or_nothing(vectors):
    index = build(FaissFlat, {}, vectors)
    nan = vectors[:2].clone()
    nan[1, 3] = torch.nan
    for bad_ids, bad, message in (
        (["a", "a"], vectors[:2], "comes twice"),
        (["a", "item/0"], vectors[:2], "already"),
        (["a"], vectors[:2], "an id for each of the 2"),
        (["a", "b"], nan, "Vector 1 is not finite"),
        (["a", "b"], vectors[:2, 1:], rf"shape \(N, {SIZE}\)"),
    ):
        with pytest.raises(ValueError, match=message):
            index.add(bad_ids, bad)
    with pytest.raises(KeyError, match="no item 'a'"):
        index.remove(["item/1", "a"])
    assert len(index) == ITEMS
    assert "a" not in index
    assert "item/1" in index


def test_nothing_in_an_index_gives_nothing(queries):
    for cls, options in ((FaissFlat, {}), (FaissHNSW, {}), (LSHRandom, {"bits": 16, "min_shared": 3})):
        found, scores = cls(SIZE, **options).search(queries, 4)
        assert found == [[]] * 7
        assert torch.equal(scores, torch.empty(7, 0))


@pytest.mark.parametrize(
    "cls, options", [(FaissIVF, {}), (FaissBinaryIVF, {}), (LSHTrained, QUICK), (LSHTALR, QUICK)]
)
def test_what_learns_says_so(cls, options, vectors, tmp_path):
    index = cls(SIZE, **options)
    with pytest.raises(ValueError, match="fit"):
        index.add(ids(), vectors)
    with pytest.raises(ValueError, match="fit"):
        index.save(tmp_path / "index")
    assert not any(tmp_path.iterdir())
    assert len(index) == 0
    index = build(cls, {**options, **({"lists": 3} if not options else {})}, vectors)
    with pytest.raises(ValueError, match="fit before the first"):
        index.fit(vectors)


def test_random_hyperplanes_measure_angles(vectors):
    """Goemans and Williamson: two codes differ in a fraction of bits that is the angle over pi."""
    codes = LSHRandom(SIZE, bits=4096).codes(vectors[:20])
    differing = (codes[:, None] != codes).mean(2)
    cosine = torch.nn.functional.cosine_similarity(vectors[:20, None], vectors[None, :20], dim=2).clamp(-1, 1)
    assert np.abs(differing - (cosine.arccos() / torch.pi).numpy()).max() < 0.04


def test_fewer_shared_bits_find_more(vectors, queries):
    exact = build(LSHRandom, {"bits": 24}, vectors)
    sizes = []
    for shared in (12, 9, 6, 1):
        index = build(LSHRandom, {"bits": 24, "tables": 2, "min_shared": shared}, vectors)
        found = index.candidates(queries)
        equal = (exact.codes(queries)[:, None] == exact.codes(vectors)).reshape(7, ITEMS, 2, 12).sum(3)
        expected = [{f"item/{n}" for n in np.flatnonzero(row)} for row in (equal >= shared).any(2)]
        assert [{*of_one} for of_one in found] == expected
        sizes.append(sum(map(len, found)))
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_layouts_that_cannot_search_softly_are_refused():
    with pytest.raises(ValueError, match="needs layout 'flat' or 'ivf'"):
        LSHRandom(SIZE, bits=16, min_shared=4, layout="hnsw")
    with pytest.raises(ValueError, match="from 1 to 8 bits"):
        LSHRandom(SIZE, bits=16, tables=2, min_shared=9)
    with pytest.raises(ValueError, match="16 bits evenly"):
        LSHRandom(SIZE, bits=16, tables=3)
    with pytest.raises(ValueError, match="'flat', 'ivf' or 'hnsw'"):
        LSHRandom(SIZE, layout="tree")
    with pytest.raises(ValueError, match="min_shared"):
        LSHRandom(SIZE).candidates(torch.zeros(1, SIZE))
    with pytest.raises(ValueError, match="top >= 1"):
        FaissFlat(SIZE).search(torch.zeros(1, SIZE), 0)
    with pytest.raises(ValueError, match="metric 'ip' or 'l2'"):
        FaissFlat(SIZE, metric="cosine")
    with pytest.raises(ValueError, match="links of at least 1"):
        FaissHNSW(SIZE, links=0)


def test_a_missing_faiss_says_what_to_install(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    engines.faiss.cache_clear()
    monkeypatch.setattr(engines.importlib, "import_module", missing)
    try:
        with pytest.raises(ImportError, match=r"pip install isotone\[search\]"):
            FaissFlat(SIZE)
    finally:
        monkeypatch.undo()
        engines.faiss.cache_clear()


def test_learned_codes_find_more_relevant_items_than_random_ones():
    generator = torch.Generator().manual_seed(0)
    centre = torch.randn(60, SIZE, generator=generator) + 2
    corpus = centre.repeat_interleave(8, 0) + 0.5 * torch.randn(480, SIZE, generator=generator)
    chosen = torch.randint(0, 60, (80,), generator=generator)
    queries = centre[chosen] + 0.5 * torch.randn(80, SIZE, generator=generator)
    relevant = [[f"item/{8 * c + k}" for k in range(8)] for c in chosen.tolist()]
    pairs = torch.tensor([(q, 8 * int(chosen[q]) + k) for q in range(50) for k in range(8)])

    def recall(index):
        index.add(ids(480), corpus)
        return recall_at(index.search(queries[50:], 16)[0], relevant[50:], 16).mean()

    random = recall(LSHRandom(SIZE, bits=16))
    for cls in (LSHTrained, LSHTALR):
        index = cls(SIZE, bits=16, steps=120, batch_queries=32, batch_items=200)
        index.fit(corpus, queries[:50], pairs)
        assert index.losses[-1] < index.losses[0]
        assert recall(index) > random + 0.1


@pytest.mark.parametrize(("kind", "options"), NAMED)
def test_a_huge_top_takes_no_more_memory_than_the_items(kind, options, vectors, queries):
    index = kind(SIZE, **options)
    index.fit(vectors, queries, torch.tensor([[0, 1]]))
    index.add([f"v{n}" for n in range(ITEMS)], vectors)
    found, scores = index.search(
        queries[:2], 10**15
    )  # a table of so many numbers has no place in any machine
    assert scores.shape == (2, ITEMS)
    assert all(len(of_one) <= ITEMS for of_one in found)
    assert found == index.search(queries[:2], ITEMS)[0]
