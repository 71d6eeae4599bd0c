"""Manifests: made once for any corpus, made again after changes or damage, and small in memory."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from datasets import Dataset

from isotone import corpora
from isotone.corpus import features, manifest
from isotone.corpus.folder import FolderCorpus
from isotone.corpus.manifest import load_splits, prepare
from isotone.corpus.timit import TimitCorpus
from isotone.interfaces import Corpus
from tests.scripts import Script


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Write three recordings with texts, and one without."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for i, name in enumerate("abcd"):
        soundfile.write(folder / f"{name}.wav", np.zeros(8000 + 1000 * i), 16000)
        if name != "d":
            (folder / f"{name}.txt").write_text(f"text {name}")
    return folder


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the splits for which the folder corpus is really read."""
    read: list[str] = []
    load = FolderCorpus.load

    def noted(self: FolderCorpus, split: str) -> Dataset:
        read.append(split)
        return load(self, split)

    monkeypatch.setattr(FolderCorpus, "load", noted)
    return read


def spec(root: Path, **options: object) -> dict[str, object]:
    return {"name": "folder", "root": str(root), **options}


def test_a_corpus_is_read_once(root: Path, tmp_path: Path, loads: list[str]) -> None:
    first = prepare(spec(root), "all", tmp_path / "m")
    again = prepare(spec(root), "all", tmp_path / "m")
    assert loads == ["all"]
    assert first.rows.to_list() == again.rows.to_list() == FolderCorpus(root).load("all").to_list()
    assert again.rows.features == features()
    assert again.rows.cache_files  # memory-mapped
    assert first.skipped == again.skipped
    assert [id for id, _ in again.skipped] == ["d"]


def change_a_text(root: Path) -> None:
    (root / "b.txt").write_text("longer text")


def touch(root: Path) -> None:
    os.utime(root / "b.txt", ns=(1, 1))


def add(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "d.txt").write_text("now it has one")


def rename(root: Path) -> None:
    (root / "a.txt").rename(root / "A.txt")


@pytest.mark.parametrize("change", [change_a_text, touch, add, rename])
def test_what_makes_it_again(
    change: Callable[[Path], None], root: Path, tmp_path: Path, loads: list[str]
) -> None:
    prepare(spec(root), "all", tmp_path / "m")
    change(root)
    found = prepare(spec(root), "all", tmp_path / "m")
    assert loads == ["all", "all"]
    assert found.rows.to_list() == FolderCorpus(root).load("all").to_list()
    assert len(list((tmp_path / "m").iterdir())) == 1  # a file in the manifest's place


def test_options_and_splits_have_manifests_of_their_own(root: Path, tmp_path: Path, loads: list[str]) -> None:
    for options in ({}, {"test_share": 0.4}, {}):
        prepare(spec(root, **options), "all", tmp_path / "m")
    prepare(spec(root, test_share=0.5), "test", tmp_path / "m")
    assert loads == ["all", "all", "test"]
    assert len(list((tmp_path / "m").iterdir())) == 3


def test_a_manifest_inside_of_its_corpus_does_not_change_it(root: Path, loads: list[str]) -> None:
    for _ in range(3):
        prepare(spec(root), "all", root / "m")
    (root / ".hidden").write_text("")
    prepare(spec(root), "all", root / "m")
    assert loads == ["all"]


def test_other_versions_and_code_make_it_again(
    root: Path, tmp_path: Path, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(spec(root), "all", tmp_path / "m")
    monkeypatch.setattr(manifest, "__version__", "99")
    prepare(spec(root), "all", tmp_path / "m")
    assert len(loads) == 2
    (tmp_path / "other.py").write_text("# other code")
    monkeypatch.setattr(manifest.inspect, "getfile", lambda _: str(tmp_path / "other.py"))
    prepare(spec(root), "all", tmp_path / "m")
    assert len(loads) == 3


def cut(place: Path) -> None:
    path = next((place / "rows").glob("*.arrow"))
    path.write_bytes(path.read_bytes()[:-100])


def flip(place: Path) -> None:
    path = next((place / "rows").glob("*.arrow"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def lose(place: Path) -> None:
    next((place / "rows").glob("*.arrow")).unlink()


def lose_all(place: Path) -> None:
    for path in (place / "rows").iterdir():
        path.unlink()
    (place / "rows").rmdir()


def garble(place: Path) -> None:
    (place / "manifest.json").write_text('{"fingerprint": ')


def empty(place: Path) -> None:
    (place / "manifest.json").write_text("{}")


def other_kind(place: Path) -> None:
    head = json.loads((place / "manifest.json").read_text())
    (place / "manifest.json").write_text(json.dumps({**head, "skipped": [1, 2], "files": 3}))


@pytest.mark.parametrize("damage", [cut, flip, lose, lose_all, garble, empty, other_kind])
def test_damage_is_noticed_and_mended(
    damage: Callable[[Path], None],
    root: Path,
    tmp_path: Path,
    loads: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    expected = prepare(spec(root), "all", tmp_path / "m").rows.to_list()
    (place,) = (tmp_path / "m").iterdir()
    damage(place)
    with caplog.at_level(logging.WARNING, "isotone.corpus.manifest"):
        found = prepare(spec(root), "all", tmp_path / "m")
    assert found.rows.to_list() == expected
    assert len(loads) == 2
    ((_, level, message),) = [r for r in caplog.record_tuples if r[0] == "isotone.corpus.manifest"]
    assert level == logging.WARNING
    assert "is damaged and made again" in message
    prepare(spec(root), "all", tmp_path / "m")
    assert len(loads) == 2


def test_what_fails_leaves_nothing(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no split 'nope'"):
        prepare(spec(root), "nope", tmp_path / "m")
    with pytest.raises(FileNotFoundError, match="No folder"):
        prepare(spec(tmp_path / "absent"), "all", tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_readers_of_an_old_manifest_go_on(root: Path, tmp_path: Path) -> None:
    """Another run may replace a manifest while this one reads it."""
    old = prepare(spec(root), "all", tmp_path / "m").rows
    before = old.to_list()
    change_a_text(root)
    new = prepare(spec(root), "all", tmp_path / "m").rows
    assert old.to_list() == before != new.to_list()


def test_several_runs_may_make_it_at_once(root: Path, tmp_path: Path) -> None:
    for attempt in range(3):
        found: list[list[str]] = []
        together = threading.Barrier(4)

        def run(
            folder: Path = tmp_path / str(attempt),
            found: list = found,
            together: threading.Barrier = together,
        ) -> None:
            together.wait()
            found.append(prepare(spec(root), "all", folder).rows["id"][:])

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [["a", "b", "c"]] * 4
        assert len(list((tmp_path / str(attempt)).iterdir())) == 1


class Plain(Corpus):
    """A corpus without support for manifests, as in a notebook."""

    loaded = 0

    def __init__(self, root: str) -> None:
        self.root = root

    def load(self, split: str) -> Dataset:
        Plain.loaded += 1
        tier = {"label": [], "start": [], "end": []}
        row = {"id": "x", "audio": "x.wav", "start": 0.0, "end": 1.5, "text": Path(self.root).read_text()}
        rows = [{**row, "id": str(i), "words": tier, "phones": tier, "speaker": "s"} for i in range(4)]
        return Dataset.from_list(rows, features=features()).select([0, 2])


@pytest.fixture
def plain() -> Iterator[None]:
    corpora.register("plain")(Plain)
    Plain.loaded = 0
    yield
    corpora.unregister("plain")


@pytest.mark.usefixtures("plain")
def test_any_corpus_has_manifests(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    data = {"name": "plain", "root": str(tmp_path / "text")}
    for _ in range(2):
        found = prepare(data, "train", tmp_path / "m")
        assert found.rows["id"][:] == ["0", "2"]
        assert (found.skipped, found.counts) == ([], {})
    assert Plain.loaded == 1
    (tmp_path / "text").write_text("hello you")
    assert prepare(data, "train", tmp_path / "m").rows["text"][:] == ["hello you"] * 2
    assert Plain.loaded == 2


def test_splits_of_a_recipe(timit_root: Path, tmp_path: Path) -> None:
    data = {"name": "timit", "root": str(timit_root), "manifest": str(tmp_path / "shared")}
    splits = {"train": "train", "dev": "dev", "test": None}
    for run in ("one", "two"):
        found = load_splits(data, splits, tmp_path / run)
        assert list(found) == ["train", "dev"]
        for name, part in found.items():
            assert part.rows.to_list() == TimitCorpus(timit_root).load(name).to_list()
        said = json.loads((tmp_path / run / "corpus.json").read_text())
        assert said["train"]["utterances"] == 12
        assert said["train"]["speakers"] == 3
        seconds = sum(r["end"] - r["start"] for r in found["train"].rows)
        assert said["train"]["hours"] == pytest.approx(seconds / 3600, abs=1e-3)
        assert said["train"]["left_out"] == 0
        assert not (tmp_path / run / "manifests").exists()
    assert len(list((tmp_path / "shared").iterdir())) == 2
    del data["manifest"]
    load_splits(data, {"test": "test"}, tmp_path / "three")
    assert len(list((tmp_path / "three" / "manifests").iterdir())) == 1


MAKE = """
import random, sys
from pathlib import Path
import numpy as np, soundfile
from isotone.corpus.manifest import prepare
from isotone import corpora
from isotone.corpus import rows as parts
from isotone.corpus.synth import sentences

@corpora.register("large")
class Large(parts.RowCorpus):
    def parts(self, split):
        spoken = [w.upper().strip(".,?") for line in sentences() for w in line.split()]
        audio = self.root / ("as-long-as-a-path-to-librispeech-" * 2 + ".flac")
        rng = random.Random(0)
        nothing = {"label": [], "start": [], "end": []}
        def chapter(number):
            part = parts.Part()
            for i in range(1000):
                end = rng.uniform(2, 16)
                text = " ".join(rng.choices(spoken, k=int(end * 2.7)))
                part.rows.append(dict(id=f"{number}-{number}-{i:04d}", audio=str(audio), start=0.0, end=end,
                    text=text, words=nothing, phones=nothing, speaker=str(number)))
            return part
        return [(str(n), (lambda n=n: chapter(n))) for n in range(int(split) // 1000)]
"""

TRAIN = """
import json, sys, time
started = time.perf_counter()
split, folder = sys.argv[1], Path(sys.argv[2])
found = prepare({"name": "large", "root": str(folder)}, split, folder / "m")
loaded = time.perf_counter()
from torch.utils.data import DataLoader
from isotone.model.encoder import SpeechEncoder
from isotone.text.tokenizer import CharacterTokenizer
from isotone.training.batches import LengthBatches
from isotone.training.data import Utterances
tokenizer = CharacterTokenizer(["<pad>", "<unk>", "|", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ'"])
data = Utterances(found.rows, tokenizer, 16000, 15.0, SpeechEncoder("wav2vec2-bert-tiny").frames)
sampler = LengthBatches(data.seconds, 16, 160.0)
batches = list(sampler)
batch = next(iter(DataLoader(data, batch_sampler=batches, collate_fn=data.collate)))
status = dict(line.split(":") for line in open("/proc/self/status"))
peak, files = (int(status[name].split()[0]) / 1024 for name in ("VmHWM", "RssFile"))
print(json.dumps(dict(kept=len(data), skipped=len(data.skipped), batches=sum(map(len, batches)), rows=len(batch.rows),
    peak_mib=peak, files_mib=files, manifest_s=loaded - started, seconds=time.perf_counter() - started)))
"""


@pytest.mark.parametrize(
    ("count", "mib"), [(40_000, 40), pytest.param(280_000, 350, marks=pytest.mark.slow, id="LibriSpeech")]
)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_many_utterances(count: int, mib: int, tmp_path: Path) -> None:
    """The second load of 280,000 utterances takes seconds, and less than 1 GiB with torch.

    Mapped files, which are the code of the libraries and the manifest itself, are left out of it: how many of their
    pages are resident is up to the machine, and it may take them back at any time.
    """
    audio = tmp_path / ("as-long-as-a-path-to-librispeech-" * 2 + ".flac")
    soundfile.write(audio, np.random.default_rng(0).normal(0, 0.1, 16 * 16000), 16000)

    def read(rows: int) -> dict[str, float]:
        script = Script(MAKE + TRAIN, rows, tmp_path)
        assert script.wait() == 0, script.stderr
        return json.loads(script.stdout.splitlines()[-1])

    first, second, libraries = read(count), read(count), read(1000)
    for found in (first, second):
        assert found["kept"] + found["skipped"] == count
        assert found["batches"] == found["kept"]
        assert found["rows"] > 0
        assert found["skipped"] == pytest.approx(count / 14, rel=0.1)  # of 15 to 16 s
    assert first["peak_mib"] - first["files_mib"] < 1024
    assert second["peak_mib"] - second["files_mib"] < 1024
    assert second["peak_mib"] - libraries["peak_mib"] < mib  # all memory of the rows, mapped ones included
    assert second["manifest_s"] < 5
    assert second["seconds"] < 30
