import json
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile

pytest.importorskip("espeakng_loader", reason="espeak-ng is not installed: isotone[synth]")

from typer.testing import CliRunner

from isotone import corpora
from isotone.cli import app
from isotone.corpus import reference, synth, voices
from isotone.corpus.ami import AMICorpus, split_of
from isotone.corpus.layouts import AMILayout
from isotone.corpus.librispeech import LibriSpeechCorpus
from isotone.corpus.synth import CorpusExists, generate, sentences
from isotone.corpus.timit import TimitCorpus
from isotone.corpus.voices import microphone, noisy, record, speakers
from isotone.text.espeak import SAMPLE_RATE as ESPEAK_RATE
from isotone.text.espeak import Engine, phonemize
from isotone.text.phones import PHONE_CLASSES, PHONES_39, PHONES_61

SMALL = {"hours": 0.03, "test_hours": 0.02, "train_speakers": 6, "test_speakers": 5}


def marks(path: Path) -> list[tuple[int, int, str]]:
    rows = [line.split() for line in path.read_text("utf-8").splitlines()]
    return [(int(a), int(b), c) for a, b, c in rows]


def recordings(root: Path, split: str) -> list[Path]:
    return sorted((root / split).rglob("*.WAV"))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return generate(tmp_path_factory.mktemp("synth") / "corpus", seed=5, **SMALL)


@pytest.fixture(scope="module")
def clean():
    # the sentences by speakers of every kind, without channel
    train, test = speakers(20, 8, 1)
    rng = np.random.default_rng(0)
    engine = Engine(0)
    lines = sentences()
    return [
        record(engine, speaker, i, lines[i * 17], rng, channel=False)
        for i, speaker in enumerate([*train, *test])
    ]


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
    # forced alignment of bare words looks for the phones that were said
    assert differ / total < 0.005


def test_speakers_differ_and_are_not_shared():
    for seed in range(3):
        train, test = speakers(24, 12, seed)
        assert len({s.name for s in train + test}) == 36
        assert not {s.variant for s in train} & {s.variant for s in test}
        assert len({s.variant for s in train}) == 24
        assert len({s.variant for s in test}) == 12
        assert {s.name[0] for s in train} == {s.name[0] for s in test} == {"F", "M"}
        assert all(s.variant in voices.VARIANTS[s.name[0]] for s in train + test)
    assert speakers(24, 12, 1) == speakers(24, 12, 1) != speakers(24, 12, 2)
    train, test = speakers(90, 30, 0)  # more than there are variants
    assert len({s.name for s in train + test}) == 120
    assert not {s.variant for s in train} & {s.variant for s in test}


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


def test_a_corpus_is_made_once(root, monkeypatch, tmp_path):
    def never(*args, **kwargs):
        raise RuntimeError("made again")

    monkeypatch.setattr(synth, "_write_splits", never)
    assert generate(root, seed=5, **SMALL) == root
    with pytest.raises(CorpusExists, match="Set overwrite or choose another folder"):
        generate(root, seed=6, **SMALL)
    with pytest.raises(RuntimeError, match="made again"):
        generate(root, seed=6, overwrite=True, **SMALL)
    assert recordings(root, "TRAIN")  # the old corpus stays until the new one is complete
    (tmp_path / "thesis.tex").write_text("precious")
    for overwrite in (False, True):
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


def test_sound_begins_and_ends_at_its_labels(clean):
    late = []
    for utterance in clean:
        head, tail = utterance.phones[0].end, utterance.phones[-1].start
        samples = np.abs(utterance.samples.astype(int))
        assert samples[:head].max() == samples[tail:].max() == 0
        late.append(np.flatnonzero(samples > 0.01 * samples.max())[0] - head)
    assert np.median(late) < 0.005 * 16000
    assert np.percentile(late, 90) < 0.02 * 16000


def test_labels_lie_on_their_sounds(clean):
    # an independent look at the finished recordings: sibilants hiss, vowels do not, pauses are silent
    hiss, vowel, pause = [], [], []
    for utterance in clean:
        x = utterance.samples.astype(float)
        for label, start, end in utterance.phones:
            middle = x[start + (end - start) // 4 : end - (end - start) // 4]
            crossings = np.mean(np.abs(np.diff(np.sign(middle))) > 0)
            if label in ("s", "sh", "ch"):
                hiss.append(crossings)
            elif label in ("iy", "ih", "eh", "ae", "aa", "ao", "er", "axr", "ax", "ow"):
                vowel.append(crossings)
            elif label == "pau":
                pause.append(np.abs(middle).mean() / np.abs(x).mean())
    assert min(len(hiss), len(vowel)) > 40
    assert np.percentile(hiss, 10) > 2 * np.percentile(vowel, 90)
    assert max(pause) < 0.02


def test_boundaries_lie_where_the_spectrum_changes(clean):
    # vowels and fricatives, vowels and nasals: the greatest change within 25 ms, measured without labels
    away = {"vf": [], "fv": [], "vn": [], "nv": []}
    kinds = {"f": "f", "th": "f", "s": "f", "sh": "f", "z": "f", "zh": "f", "m": "n", "n": "n"}
    kinds |= {phone: "v" for phone, name in PHONE_CLASSES.items() if name == "vowel"}
    for utterance in clean:
        frames = np.lib.stride_tricks.sliding_window_view(utterance.samples / 32768, 160)[::16]
        spectrum = np.abs(np.fft.rfft(frames * np.hanning(160), 512))[:, 4:]
        bands = np.log(
            np.add.reduceat(spectrum, np.unique(np.geomspace(1, 250, 25).astype(int)), axis=1) + 0.03
        )
        total = np.cumsum(np.vstack([np.zeros(bands.shape[1]), bands]), 0)
        mean = (total[10:] - total[:-10]) / 10  # of 10 ms from here on
        change = np.pad(np.linalg.norm(mean[10:] - mean[:-10], axis=1), (10, 0))
        for a, b in pairwise(utterance.phones):
            kind = kinds.get(a.label, "") + kinds.get(b.label, "")
            if kind in away and min(a.end - a.start, b.end - b.start) >= 640:
                at = (b.start - 80) // 16
                window = change[at - 25 : at + 26]
                if len(window) == 51:
                    away[kind].append(int(window.argmax()) - 25)
    for kind, ms in away.items():
        assert len(ms) >= 8, kind
        assert abs(np.median(ms)) <= 10, kind
        assert np.mean(np.abs(ms) <= 15) >= 0.7, kind


def test_size_scales_times_exactly():
    speaker = speakers(1, 2, 3)[0][0]
    speech = Engine(0).say(
        "Six thin fish.", voice=f"en-us+{speaker.variant}", rate=speaker.rate, pitch=speaker.pitch,
        pitch_range=speaker.pitch_range,
    )  # fmt: skip
    for size in (0.93, 1.0, 1.07):
        made = record(
            Engine(0),
            replace(speaker, size=size),
            1,
            "Six thin fish.",
            np.random.default_rng(0),
            channel=False,
        )
        assert len(made.phones) == len(speech.phones) + 2
        head = made.phones[0].end
        first = speech.phones[0].start
        for phone, mark in zip(speech.phones, made.phones[1:]):
            exact = (phone.start - first) / ESPEAK_RATE * size
            assert mark.start == pytest.approx(head + exact * 16000, abs=0.51)


def test_microphones_move_no_sound():
    impulse = np.zeros(4096)
    impulse[0] = 1
    time = np.arange(4096)
    band = slice(20, 1900)  # 80 Hz to 7.4 kHz
    train, test = speakers(24, 12, 4)
    for speaker in (*train, *test):
        response = microphone(impulse, speaker)
        spectrum = np.fft.rfft(response)
        delay = (np.fft.rfft(response * time) / spectrum).real[band]
        assert np.abs(delay).max() < 0.0005 * 16000
        level = 20 * np.log10(np.abs(spectrum[band]))
        assert 0.5 < np.ptp(level) < 16  # audible, and mild


def test_noise_has_the_level_that_was_asked_for():
    rng = np.random.default_rng(0)
    tone = np.sin(np.arange(32000) * 0.3)
    tone[:16000] = 0  # silence does not count
    for ratio, colour in ((10, 0.0), (30, 0.9)):
        noise = noisy(tone, ratio, colour, rng) - tone
        assert 10 * np.log10(0.5 / np.mean(noise**2)) == pytest.approx(ratio, abs=0.5)
        lag = np.corrcoef(noise[1:], noise[:-1])[0, 1]
        assert lag == pytest.approx(colour, abs=0.05)


def test_the_corpus_plugin_loads_what_it_generates(tmp_path):
    corpus = corpora.build("synth", root=tmp_path, seed=5, **SMALL)
    rows = {split: corpus.load(split) for split in ("train", "dev", "test")}
    people = {split: set(data["speaker"]) for split, data in rows.items()}
    assert {split: len(names) for split, names in people.items()} == {"train": 6, "dev": 2, "test": 3}
    assert not people["dev"] & people["test"]
    row = rows["test"][0]
    assert set(row["phones"]["label"]) <= set(PHONES_39)
    truth = reference(row)
    assert truth.duration == pytest.approx(soundfile.info(row["audio"]).duration)
    assert [s.label for s in truth.tier("words")] == re.sub(r"[^\w' ]", "", row["text"]).lower().split()
    with pytest.raises(ValueError, match="no split 'validation'"):
        corpus.load("validation")
    finer = corpora.build("synth", root=tmp_path, seed=5, phones=61, silence="drop", **SMALL)
    assert "ix" in {p for row in finer.load("train") for p in row["phones"]["label"]}
    assert len(list(tmp_path.iterdir())) == 1  # the phone set is no reason to synthesise again
    assert TimitCorpus(next(tmp_path.iterdir())).load("train").num_rows == rows["train"].num_rows


@pytest.fixture(scope="module")
def spoken():
    """What the synthetic speakers of SMALL say, with seed 5, sample by sample."""
    train, test = speakers(SMALL["train_speakers"], SMALL["test_speakers"], 5)
    return {
        "train": [s.name for s in train],
        "dev": [s.name for s in test[1::2]],
        "test": [s.name for s in test[::2]],
    }


def test_librispeech_layout(root, tmp_path, spoken):
    made = generate(tmp_path / "c", layout="librispeech", seed=5, **SMALL)
    corpus = LibriSpeechCorpus(made)
    rows = {split: corpus.load(split) for split in ("train-100", "dev-clean", "test-clean")}
    assert corpus.skipped == []
    assert {split: len(set(data["speaker"])) for split, data in rows.items()} == {
        "train-100": len(spoken["train"]), "dev-clean": len(spoken["dev"]), "test-clean": len(spoken["test"]),
    }  # fmt: skip
    # the same recordings and words as in TIMIT's files
    timit = {p: soundfile.read(p, dtype="int16")[0].tobytes() for p in recordings(root, "TRAIN")}
    words = {timit[p]: " ".join(w for _, _, w in marks(p.with_suffix(".WRD"))).upper() for p in timit}
    found = {soundfile.read(r["audio"], dtype="int16")[0].tobytes(): r["text"] for r in rows["train-100"]}
    assert found == words
    for row in rows["train-100"]:
        assert re.fullmatch(r"\d+-\d+-\d{4}", row["id"])
        assert re.fullmatch(r"[A-Z' ]+", row["text"])
        assert Path(row["audio"]).name == f"{row['id']}.flac"
        assert Path(row["audio"]).parts[-5:-3] == ("LibriSpeech", "train-clean-100")


def test_ami_layout(root, tmp_path, spoken, monkeypatch):
    monkeypatch.setattr(AMILayout, "_MEETING_S", 20)
    made = generate(tmp_path / "c", layout="ami", seed=5, **SMALL)
    corpus = AMICorpus(made)
    rows = {split: corpus.load(split) for split in ("train", "dev", "eval")}
    assert corpus.skipped == []
    for split, side in (("train", "train"), ("dev", "dev"), ("eval", "test")):
        assert set(rows[split]["speaker"]) == set(spoken[side])
    # segments are the recordings of TIMIT's files, and words lie where they do there, to a millisecond
    timit = {}
    for path in recordings(root, "TRAIN"):
        words = marks(path.with_suffix(".WRD"))
        timit[path.parent.name, " ".join(w for _, _, w in words)] = path, words
    assert len(rows["train"]) == len(timit)
    turns = {}
    for row in rows["train"]:
        path, words = timit.pop((row["speaker"], row["text"]))
        original = soundfile.read(path, dtype="int16")[0]
        at = round(row["start"] * 16000)
        samples = soundfile.read(row["audio"], start=at - 8, stop=at + len(original) + 8, dtype="int16")[0]
        assert any(np.array_equal(samples[i : i + len(original)], original) for i in range(17))
        assert [w for _, _, w in words] == row["words"]["label"]
        for side, column in enumerate(("start", "end")):
            exact = np.array([w[side] for w in words]) / 16000
            np.testing.assert_allclose(row["words"][column], exact, atol=1.1e-3)
        meeting, agent = row["id"].split("_")[:2]
        turns.setdefault(meeting, []).append((row["start"], row["end"], agent, Path(row["audio"]).stem[-1]))
    assert not timit
    for meeting, said in turns.items():
        said.sort()
        assert {split_of(meeting)} == {"train"}
        assert len({agent for *_, agent, _ in said}) == len({channel for *_, channel in said}) > 1
        assert any(b[0] < a[1] for a, b in pairwise(said)), (
            meeting
        )  # people interrupt each other, not themselves
        for agent in {turn[2] for turn in said}:
            assert all(b[0] >= a[1] for a, b in pairwise(t for t in said if t[2] == agent))
    assert {"ES2002a", "ES2002b"} <= set(turns)
    channels = {meeting: {t[2:] for t in said} for meeting, said in turns.items()}
    assert ("A", "0") in channels["ES2002a"]
    assert ("A", "0") not in channels["ES2002b"]  # only meetings.xml knows


def test_the_command_writes_every_layout(tmp_path):
    for layout, file in (("librispeech", "*.trans.txt"), ("ami", "*.words.xml"), ("timit", "*.PHN")):
        options = ["--layout", layout, "--hours", "0.001", "--test-hours", "0.001"]
        done = CliRunner().invoke(app, ["synth", str(tmp_path / layout), *options])
        assert done.exit_code == 0, done.output
        assert list((tmp_path / layout).rglob(file))


def test_the_corpus_plugin_has_every_layout(tmp_path):
    corpus = corpora.build("synth", root=tmp_path, layout="ami", seed=5, **SMALL)
    rows = corpus.load("test")
    assert corpus.counts["words"] == sum(len(r["words"]["label"]) for r in rows)
    assert corpus.skipped == []
    with pytest.raises(ValueError, match="no split 'train-100'"):
        corpus.load("train-100")
    with pytest.raises(ValueError, match="no corpus layout 'buckeye'"):
        corpora.build("synth", layout="buckeye")
