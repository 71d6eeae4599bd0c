"""Every registered plugin keeps the laws of its kind; tests/testing shows that each law can fail."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
import torch

from isotone import (
    aligners,
    corpora,
    decoders,
    encoders,
    formats,
    heads,
    indexes,
    losses,
    packs,
    relaxations,
    searchers,
    testing,
    warpers,
)
from isotone.interfaces import Corpus
from isotone.registries import ALL
from isotone.testing import (
    check_aligner,
    check_corpus,
    check_decoder,
    check_encoder,
    check_format,
    check_head,
    check_index,
    check_loss,
    check_pack,
    check_relaxation,
    check_searcher,
    check_warper,
)
from tests.corpus.miniatures import annotate, chapter, headset, hub_dataset, hub_rows, record, speak_digits
from tests.paths import ROOT
from tests.search.parts import save_opas


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("name", losses.names())
def test_loss(name: str) -> None:
    check_loss(losses.build(name))


@pytest.mark.parametrize("name", heads.names())
def test_head(name: str) -> None:
    check_head(heads.build(name, 7, 5), 7, 5)


@pytest.mark.parametrize("name", aligners.names())
def test_aligner(name: str) -> None:
    check_aligner(aligners.build(name))


@pytest.mark.parametrize("name", decoders.names())
def test_decoder(name: str) -> None:
    check_decoder(decoders.build(name))


@pytest.mark.parametrize("name", formats.names())
def test_format(name: str) -> None:
    check_format(formats.build(name))


#: Laws that some relaxations do not keep by design; any other relaxation keeps all of them.
WITHOUT: dict[str, Collection[str]] = {
    "single-step-exp": {"columns"},
    "single-step-sum": {"columns"},
    "gumbel-sinkhorn": {"alone", "equivariance"},  # noise is drawn for the shape of the batch
    "ordered": {"equivariance"},
    "ot4p": {"rows", "columns", "best", "equivariance"},  # its rewards are coordinates of rotations
}


@pytest.mark.parametrize("name", relaxations.names())
def test_relaxation(name: str) -> None:
    check_relaxation(relaxations.build(name), without=WITHOUT.get(name, ()))


def test_a_random_relaxation_without_noise_keeps_every_law() -> None:
    check_relaxation(relaxations.build("gumbel-sinkhorn", noise=0.0))


@pytest.mark.parametrize("name", warpers.names())
def test_warper(name: str) -> None:
    check_warper(warpers.build(name))


#: Indexes that learn do so in fewer steps here, and from the few vectors that the laws are tried on.
LITTLE: dict[str, dict[str, Any]] = {
    "lsh-trained": {"steps": 5}, "lsh-talr": {"steps": 5}, "centroids": {"points": 1},
}  # fmt: skip


@pytest.mark.parametrize("name", indexes.names())
def test_index(name: str) -> None:
    check_index(indexes.build(name, 16, fingerprint="model-1", **LITTLE.get(name, {})), 16)


@pytest.mark.parametrize("name", searchers.names())
def test_searcher(name: str, tmp_path: Path) -> None:
    if name == "opas":
        found = searchers.get(name).load(save_opas(tmp_path), sample_rate=16_000)  # type: ignore[attr-defined]
    else:
        found = searchers.build(name)
    check_searcher(found)


@pytest.mark.parametrize("name", packs.names())
def test_pack(name: str) -> None:
    if name == "english" and not (ROOT / "plugins/isotone_english/model").is_dir():
        pytest.skip("its weights are made by recipes/english/run.py")
    check_pack(packs.build(name))


@pytest.mark.parametrize("name", encoders.names())
@pytest.mark.parametrize("preset", ["wav2vec2-bert-tiny", "wav2vec2-tiny"])
def test_encoder(name: str, preset: str) -> None:
    check_encoder(encoders.build(name, preset) if name == "transformers" else encoders.build(name))


def _timit(folder: Path, root: Path) -> Corpus:
    return corpora.build("timit", root=root)


def _librispeech(folder: Path, root: Path) -> Corpus:
    chapter(folder, "train-clean-100", "26-495", {"26-495-0000": "DON'T ASK", "26-495-0001": "MORE"})
    chapter(folder, "dev-clean", "20-205", {"20-205-0000": "QUIET"})
    chapter(folder, "test-clean", "367-130", {"367-130-0000": "A TEST"})
    return corpora.build("librispeech", root=folder)


def _ami(folder: Path, root: Path) -> Corpus:
    for meeting in ("ES2002a", "ES2011a", "ES2004a"):
        headset(folder / "amicorpus", meeting, 0)
        annotate(folder / "ami_public_manual_1.6.2", f"{meeting}.A")
    return corpora.build("ami", root=folder)


def _hub(folder: Path, root: Path) -> Corpus:
    source = folder / "data"
    source.mkdir()
    for number, split in enumerate(("train", "test")):
        rows = [{**row, "id": f"{number}-{row['id']}"} for row in hub_rows()]
        hub_dataset(rows).to_parquet(source / f"{split}-00000-of-00001.parquet")
    return corpora.build("hub", source, root=folder / "cache")


def _folder(folder: Path, root: Path) -> Corpus:
    for split in ("train", "dev", "test"):
        record(folder / split / "a.wav", txt="some words")
    return corpora.build("folder", root=folder)


def _digits(folder: Path, root: Path) -> Corpus:
    speak_digits(folder / "fsdd")
    return corpora.build("digits", root=folder / "fsdd", cache=folder / "cache", train=4, dev=2, test=3)


def _synth(folder: Path, root: Path) -> Corpus:
    pytest.importorskip("espeakng_loader", reason="espeak-ng is not installed: isotone[synth]")
    few = {"hours": 0.002, "test_hours": 0.002, "train_speakers": 2, "test_speakers": 2}
    return corpora.build("synth", root=folder, **few)


#: A miniature of each corpus: how to build it in a folder, and splits that share nothing.
MINIATURES: dict[str, tuple[Callable[[Path, Path], Corpus], tuple[str, ...]]] = {
    "timit": (_timit, ("train", "dev", "test")),
    "librispeech": (_librispeech, ("train-100", "dev-clean", "test-clean")),
    "ami": (_ami, ("train", "dev", "eval")),
    "hub": (_hub, ("train", "test")),
    "folder": (_folder, ("train", "dev", "test")),
    "digits": (_digits, ("train", "dev", "test")),
    "synth": (_synth, ("train", "dev", "test")),
}


@pytest.mark.parametrize("name", corpora.names())
def test_corpus(name: str, tmp_path: Path, timit_root: Path) -> None:
    build, splits = MINIATURES[name]  # a new corpus needs a miniature
    check_corpus(build(tmp_path, timit_root), splits)


def test_every_kind_of_plugin_has_laws_and_is_held_to_them() -> None:
    for registry in ALL:
        assert f"check_{registry.kind}" in testing.__all__
        assert f"test_{registry.kind}" in globals()
