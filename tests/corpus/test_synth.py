"""Synthetic corpora: sentences, files, splits, options, and generating them once."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise

import pytest
import soundfile

pytest.importorskip("espeakng_loader", reason="espeak-ng is not installed: isotone[synth]")


from isotone import corpora
from isotone.corpus import reference, synth
from isotone.corpus.synth import CorpusExists, generate, sentences
from isotone.corpus.timit import TimitCorpus
from isotone.corpus.voices import speakers
from isotone.text.espeak import phonemize
from isotone.text.phones import PHONE_CLASSES, PHONES_39, PHONES_61
from tests.corpus.synthetic import SMALL, marks, recordings


@pytest.fixture(scope="module")
def root(synth_root):
    return synth_root


def test_sentences_are_varied_and_plain():
    lines = sentences()
    assert len(lines) >= 650
    assert len({re.sub(r"\W", "", line).lower() for line in lines}) == len(lines)
    for line in lines:
        assert re.fullmatch(r"[A-Z][A-Za-z,' ]*[.?]", line), line
        assert 4 <= len(line.split()) <= 12, line


def test_sentences_hold_every_phone_and_most_diphones():
    phones: Counter[str] = Counter()
    diphones: set[tuple[str, str]] = set()
    differ = total = 0
    for line in sentences():
        said = [p for word in phonemize(line.split()) for p in word]
        phones.update(said)
        diphones.update(pairwise(said))
        bare = [p for word in phonemize(re.sub(r"[^\w' ]", "", line).lower().split()) for p in word]
        differ += sum(a != b for a, b in zip(said, bare)) + abs(len(said) - len(bare))
        total += len(said)
    rare = {"q", "en", "nx", "em", "eng", "hv", "ux", "ax-h"}
    common = {
        p for p in PHONES_61 if PHONE_CLASSES[p] != "silence" and p not in rare and not p.endswith("cl")
    }
    assert {p for p in common if phones[p] < 60} == set()
    assert len(diphones) > 1100
    # pronunciations without punctuation are nearly always those in the recordings
    assert differ / total < 0.005


def test_files_are_timits(root):
    for split, count in (("TRAIN", 6), ("TEST", 5)):
        folders = [p.name for p in (root / split / "DR1").iterdir()]
        assert len(folders) == count
        assert all(re.fullmatch(r"[FM][A-Z]{3}\d", name) for name in folders)
        paths = recordings(root, split)
        assert len(paths) >= 15
        for path in paths:
            header = soundfile.info(path)
            assert (header.samplerate, header.channels, header.subtype) == (16000, 1, "PCM_16")
            phones, words = marks(path.with_suffix(".PHN")), marks(path.with_suffix(".WRD"))
            assert phones[0][0] == 0
            assert phones[-1][1] == header.frames
            assert phones[0][2] == phones[-1][2] == "h#"
            assert all(a[1] == b[0] and a[0] < a[1] for a, b in pairwise(phones))
            for start, end, _ in (phones[0], phones[-1]):
                assert 0.05 <= (end - start) / 16000 <= 0.3
            edges = {e for a, b, p in phones if p not in ("h#", "pau") for e in (a, b)}
            assert all(a in edges and b in edges for a, b, _ in words)
            assert all(a[1] <= b[0] for a, b in pairwise(words))
            first, last, text = path.with_suffix(".TXT").read_text("utf-8").rstrip("\n").split(" ", 2)
            assert (int(first), int(last)) == (0, header.frames)
            assert [w for _, _, w in words] == re.sub(r"[^\w' ]", "", text).lower().split()


def test_phones_are_those_of_the_words(root):
    for path in recordings(root, "TEST")[:10]:
        text = path.with_suffix(".TXT").read_text("utf-8").split(" ", 2)[2]
        said = [p for _, _, p in marks(path.with_suffix(".PHN")) if p not in ("h#", "pau")]
        assert said == [p for word in phonemize(text.split()) for p in word]


def test_train_and_test_share_nothing(root):
    said = {}
    for split in ("TRAIN", "TEST"):
        paths = [p.with_suffix(".TXT") for p in recordings(root, split)]
        said[split] = {p.read_text("utf-8").split(" ", 2)[2] for p in paths}
        said[split + " speakers"] = {p.parent.name for p in paths}
    assert not said["TRAIN"] & said["TEST"]
    assert not said["TRAIN speakers"] & said["TEST speakers"]


def test_manifest_counts_what_is_there(root):
    manifest = json.loads((root / "manifest.json").read_text("utf-8"))
    assert manifest["options"]["seed"] == 5
    for split, hours in (("train", 0.03), ("test", 0.02)):
        paths = recordings(root, split.upper())
        found = manifest["splits"][split]
        seconds = sum(soundfile.info(p).duration for p in paths)
        assert found["utterances"] == len(paths)
        assert found["seconds"] == pytest.approx(seconds, abs=0.01)
        assert hours * 3600 <= seconds < hours * 3600 + 8
        phones = Counter(p for path in paths for _, _, p in marks(path.with_suffix(".PHN")))
        assert found["phones"] == phones
        assert {s["name"] for s in found["speakers"]} == {p.parent.name for p in paths}


def test_a_seed_decides_on_everything(root, tmp_path):
    def content(folder):
        return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*.*") if p.is_file()}

    first = content(root)
    assert content(generate(tmp_path / "same", seed=5, **SMALL)) == first
    other = content(generate(tmp_path / "other", seed=6, **SMALL))
    assert not {v for k, v in first.items() if k.suffix == ".WAV"} & set(other.values())


@pytest.fixture
def never_made(monkeypatch):
    def never(*args, **kwargs):
        raise RuntimeError("made again")

    monkeypatch.setattr(synth, "_write_splits", never)


@pytest.mark.usefixtures("never_made")
def test_a_corpus_is_made_once(root):
    assert generate(root, seed=5, **SMALL) == root


@pytest.mark.usefixtures("never_made")
def test_a_corpus_of_other_options_is_replaced_only_with_overwrite(root):
    with pytest.raises(CorpusExists, match="Set overwrite or choose another folder"):
        generate(root, seed=6, **SMALL)
    with pytest.raises(RuntimeError, match="made again"):
        generate(root, seed=6, overwrite=True, **SMALL)
    assert recordings(root, "TRAIN")  # the old corpus stays until the new one is complete


@pytest.mark.parametrize("overwrite", [False, True])
def test_other_files_are_never_replaced(tmp_path, overwrite):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(CorpusExists, match="not a synthetic corpus"):
        generate(tmp_path, overwrite=overwrite, **SMALL)
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_overwriting_replaces_and_failing_leaves_nothing(tmp_path, monkeypatch):
    tiny = {"hours": 0.001, "test_hours": 0.001, "train_speakers": 1, "test_speakers": 2}
    root = generate(tmp_path / "c", seed=1, **tiny)
    before = [p.read_bytes() for p in recordings(root, "TRAIN")]
    assert generate(root, seed=2, overwrite=True, **tiny) == root
    after = [p.read_bytes() for p in recordings(root, "TRAIN")]
    assert after
    assert not set(before) & set(after)

    def full(*args):
        raise OSError("disk is full")

    monkeypatch.setitem(synth.LAYOUTS, "timit", full)
    with pytest.raises(OSError, match="disk is full"):
        generate(tmp_path / "d", **tiny)
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"layout": "buckeye"}, "no corpus layout 'buckeye'; there is timit, librispeech, ami"),
        ({"hours": 0}, "hours above 0"),
        ({"test_speakers": 1}, "2 test speakers or more; got .* 24 and 1 speakers"),
    ],
)
def test_impossible_options(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        generate(tmp_path / "c", **options)
    assert not list(tmp_path.iterdir())


def test_sentences_are_said_again_when_they_run_out():
    train, _ = speakers(1, 2, 0)
    found = synth.utterances(train, [(17, "A dog."), (700, "A cat.")], 1e9, [0], False)
    numbers = [next(found).number for _ in range(6)]
    assert [sorted(numbers[i : i + 2]) for i in (0, 2, 4)] == [[17, 700], [1017, 1700], [2017, 2700]]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def plugin(cache):
    return corpora.build("synth", root=cache, seed=5, **SMALL)


def test_the_corpus_plugin_has_the_splits_of_timit(plugin):
    people = {split: set(plugin.load(split)["speaker"]) for split in ("train", "dev", "test")}
    assert {split: len(names) for split, names in people.items()} == {"train": 6, "dev": 2, "test": 3}
    assert not people["dev"] & people["test"]
    with pytest.raises(ValueError, match="no split 'validation'"):
        plugin.load("validation")


def test_rows_of_the_corpus_plugin_have_words_and_phones(plugin):
    row = plugin.load("test")[0]
    assert set(row["phones"]["label"]) <= set(PHONES_39)
    truth = reference(row)
    assert truth.duration == pytest.approx(soundfile.info(row["audio"]).duration)
    assert [s.label for s in truth.tier("words")] == re.sub(r"[^\w' ]", "", row["text"]).lower().split()


def test_another_phone_set_does_not_synthesise_again(plugin, cache):
    rows = plugin.load("train")
    finer = corpora.build("synth", root=cache, seed=5, phones=61, silence="drop", **SMALL)
    assert "ix" in {p for row in finer.load("train") for p in row["phones"]["label"]}
    assert len(list(cache.iterdir())) == 1
    assert TimitCorpus(next(cache.iterdir())).load("train").num_rows == rows.num_rows
