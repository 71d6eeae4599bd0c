"""The English recipe: labels of synthesised phones, scenes, texts, real speech; and a run in miniature."""

from __future__ import annotations

import itertools
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from isotone.alignment import Segment
from isotone.corpus.timit import TimitCorpus
from isotone.corpus.voices import SAMPLE_RATE, Mark, Speaker
from tests.paths import RECIPES

RECIPE = RECIPES / "english"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(RECIPE))
    from spoken import scenes
    from spoken.corpus import write_scenes
    from spoken.marks import labelled
    from spoken.real import marks_of, recordings
    from spoken.scenes import breath, room, scene
    from spoken.sharing import share
    from spoken.speech import FLITE, Spoken, by_flite
    from spoken.texts import spoken_sentences

FLITE_HERE = shutil.which("flite") is not None
needs_flite = pytest.mark.skipif(not FLITE_HERE, reason="flite is not installed")
SPEAKER = Speaker("MXAA0", "m1", 160, 50, 50, 1.0, 0.0, 1000.0, 0.0, 60.0)


def marks(labels: str, length: int = 100) -> list[Mark]:
    return [Mark(label, i * length, (i + 1) * length) for i, label in enumerate(labels.split())]


@pytest.mark.parametrize(
    ("spoken", "expected"),
    [
        ("ae k t", "ae kcl k tcl t"),
        ("t uw", "t uw"),  # nothing tells the closure of the first stop from the silence before it
        ("ae pau d uw", "ae pau d uw"),
        ("ow jh", "ow dcl jh"),
        ("w ao t er", "w ao dx er"),  # a flap
        ("ax t ae k", "ax tcl t ae kcl k"),
        ("ix el axr", "ih l er"),
    ],
)
def test_labels_are_those_of_timit(spoken: str, expected: str) -> None:
    assert [mark.label for mark in labelled(marks(spoken))] == expected.split()


@given(
    st.lists(st.sampled_from(["aa", "t", "d", "k", "s", "pau", "l", "er", "jh"]), min_size=1),
    st.integers(2, 50),
)
def test_labels_cover_what_the_phones_cover(labels: list[str], length: int) -> None:
    given_marks = marks(" ".join(labels), length)
    made = labelled(given_marks)
    assert (made[0].start, made[-1].end) == (0, given_marks[-1].end)
    assert all(a.end == b.start for a, b in itertools.pairwise(made))
    assert all(m.end > m.start for m in made)


def tone(seconds: float) -> Spoken:
    samples = np.sin(2 * np.pi * 220 * np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE)
    half = len(samples) // 2
    return Spoken(samples, (Mark("aa", 0, half), Mark("iy", half, len(samples))))


@pytest.mark.parametrize("seed", range(6))
def test_scenes_keep_the_times(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenes, "_CUT", 0)
    samples, made = scene([tone(0.4), tone(0.3)], SPEAKER, np.random.default_rng(seed))
    assert [m.label for m in made] == ["h#", "aa", "iy", "h#", "aa", "iy", "h#"]
    assert made[-1].end == len(samples)
    assert np.abs(samples).max() < 1
    power = np.convolve(samples**2, np.ones(160) / 160, "same")
    onset = made[1].start
    # the tone begins where its label does, whatever the room, breaths and noise are
    assert power[onset + 400 : onset + 1600].mean() > 20 * power[max(0, onset - 700) : onset - 100].mean()


@pytest.mark.parametrize("seed", range(6))
def test_a_cut_scene_begins_and_ends_with_its_sounds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for share_cut in (0, 1):
        monkeypatch.setattr(scenes, "_CUT", share_cut)
        made.append(scene([tone(0.4), tone(0.3)], SPEAKER, np.random.default_rng(seed)))
    (whole, all_marks), (samples, cut_marks) = made
    sounds = [m for m in cut_marks if m.label != "h#"]
    shift = all_marks[1].start - sounds[0].start
    np.testing.assert_array_equal(samples, whole[shift : shift + len(samples)])
    moved = [m._replace(start=m.start + shift, end=m.end + shift) for m in sounds]
    assert moved == [m for m in all_marks if m.label != "h#"]
    assert max(sounds[0].start, len(samples) - sounds[-1].end) <= 0.04 * SAMPLE_RATE
    assert (cut_marks[0].start, cut_marks[-1].end) == (0, len(samples))
    assert all(a.end == b.start for a, b in itertools.pairwise(cut_marks))


def test_half_of_the_scenes_are_cut() -> None:
    made = [scene([tone(0.2)], SPEAKER, np.random.default_rng(seed))[1] for seed in range(60)]
    ends = [(m[1].start if m[0].label == "h#" else 0) / SAMPLE_RATE for m in made]
    assert 18 < sum(seconds <= 0.04 for seconds in ends) < 42


def test_a_room_passes_the_direct_sound_first_and_decays() -> None:
    response = room(np.random.default_rng(0))
    assert response[0] == 1
    assert not response[1:30].any()
    energies = [np.sum(part**2) for part in np.array_split(response[32:], 4)]
    assert energies == sorted(energies, reverse=True)


def test_a_breath_swells_and_fades() -> None:
    sound = breath(8000, np.random.default_rng(1))
    thirds = [np.mean(part**2) for part in np.array_split(sound, 5)]
    assert max(thirds) == max(thirds[1:4]) > 4 * max(thirds[0], thirds[-1])


def test_sentences_are_parts_of_the_transcripts(tmp_path: Path) -> None:
    table = tmp_path / "metadata.csv"
    table.write_text("a|In 1836, no.|\nb|The quick brown fox jumps over a lazy dog.\n", "utf-8")
    made = spoken_sentences([table], np.random.default_rng(0))
    some = [next(made) for _ in range(60)]
    cut = [s for s in some if s in "the quick brown fox jumps over a lazy dog"]
    assert len(cut) > 20
    assert not any("1836" in s for s in some)


def test_phones_of_a_model_become_labels_without_gaps() -> None:
    phones = (
        Segment("sil", 0.0, 0.1),
        Segment("t", 0.15, 0.2),
        Segment("uw", 0.2, 0.4),
        Segment("sil", 0.4, 0.5),
    )
    made = marks_of(phones, 16000)
    assert [m.label for m in made] == ["h#", "t", "uw", "h#"]
    assert made[0] == Mark("h#", 0, 2400)
    assert made[-1] == Mark("h#", 6400, 16000)


def test_recordings_of_the_three_layouts_are_found(tmp_path: Path) -> None:
    chapter = tmp_path / "dev-clean" / "84" / "121"
    chapter.mkdir(parents=True)
    (chapter / "84-121.trans.txt").write_text("84-121-0000 GO DO\n", "utf-8")
    (chapter / "84-121-0000.flac").touch()
    (tmp_path / "metadata.csv").write_text("LJ1|Printing\nLJ2|absent\n", "utf-8")
    (tmp_path / "LJ1.flac").touch()
    (tmp_path / "own.wav").touch()
    (tmp_path / "own.txt").write_text("My own.\n", "utf-8")
    found = {(r.speaker, r.path.name, r.text) for r in recordings(tmp_path)}
    assert {("84", "84-121-0000.flac", "go do"), (tmp_path.name, "own.wav", "My own.")} <= found
    assert {name for _, name, _ in found} == {"84-121-0000.flac", "LJ1.flac", "own.wav"}


@needs_flite
@pytest.mark.parametrize("voice", FLITE)
def test_flite_says_where_its_phones_are(voice: str) -> None:
    said = by_flite("She saw", voice, 1.1, 1.0, 120.0)
    assert [m.label for m in said.phones][:2] == ["sh", "iy"]
    assert said.phones[0].start == 0
    assert said.phones[-1].end == len(said.samples)
    sh, iy = (said.samples[m.start : m.end] for m in said.phones[:2])
    # many more zero crossings per sample in the fricative than in the vowel: the times and the sound agree
    crossings = [np.mean(np.diff(np.signbit(s[len(s) // 4 : -len(s) // 4])) != 0) for s in (sh, iy)]
    assert crossings[0] > 2 * crossings[1]


@needs_flite
def test_scenes_are_a_corpus_of_timit(tmp_path: Path) -> None:
    write_scenes(tmp_path, [], hours=0.004, test_hours=0.002, seed=3, people=4)
    rows = TimitCorpus(tmp_path, phones=48).load("train")
    assert len(rows) >= 1
    for row in rows:
        assert {"sil"} <= set(row["phones"]["label"])
        assert soundfile.info(row["audio"]).duration == pytest.approx(row["end"])
    again = tmp_path / "again"
    again.mkdir()
    write_scenes(again, [], hours=0.004, test_hours=0.002, seed=3, people=4)
    first, second = (
        sorted(p.read_bytes() for p in root.rglob("*.PHN")) for root in (tmp_path / "TRAIN", again / "TRAIN")
    )
    assert first == second


@needs_flite
def test_the_order_of_shards_does_not_change_the_scenes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spoken.corpus._SHARD_S", 5.0)
    found = []
    for name in ("forwards", "backwards"):
        root = tmp_path / name
        root.mkdir()
        if found:
            monkeypatch.setattr("spoken.corpus.share", lambda speak, shards, *_: [*map(speak, shards[::-1])])
        write_scenes(root, [], hours=0.003, test_hours=0.001, seed=3, people=4)
        found.append({path.relative_to(root): path.read_bytes() for path in root.rglob("*.*")})
    assert found[0] == found[1]
    assert {path.parts[0] for path in found[0]} == {"TRAIN", "TEST"}
    numbers = {int(path.stem[2:]) // 10_000 for path in found[0] if path.parts[0] == "TRAIN"}
    assert numbers == {0, 1, 2}, "there are several shards"


def test_shared_work_keeps_its_order() -> None:
    assert share(math.sqrt, [4.0, 9.0, 16.0], 2, "") == [2.0, 3.0, 4.0]
