"""Synthetic speakers: their sounds, times, microphones and noise."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("espeakng_loader", reason="espeak-ng is not installed: isotone[synth]")


from isotone.corpus import voices
from isotone.corpus.synth import sentences
from isotone.corpus.voices import microphone, noisy, record, speakers
from isotone.text.espeak import SAMPLE_RATE as ESPEAK_RATE
from isotone.text.espeak import Engine
from isotone.text.phones import PHONE_CLASSES


@pytest.fixture(scope="module")
def clean():
    # sentences by speakers of all kinds, without a microphone
    train, test = speakers(20, 8, 1)
    rng = np.random.default_rng(0)
    engine = Engine(0)
    lines = sentences()
    return [
        record(engine, speaker, i, lines[i * 17], rng, channel=False)
        for i, speaker in enumerate([*train, *test])
    ]


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
    # independent of the labels: sibilants have noise, vowels do not, pauses are silent
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
        mean = (total[10:] - total[:-10]) / 10  # over the next 10 ms
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
        assert 0.5 < np.ptp(level) < 16  # audible but mild


def test_noise_has_the_level_that_was_asked_for():
    rng = np.random.default_rng(0)
    tone = np.sin(np.arange(32000) * 0.3)
    tone[:16000] = 0  # silence does not count
    for ratio, colour in ((10, 0.0), (30, 0.9)):
        noise = noisy(tone, ratio, colour, rng) - tone
        assert 10 * np.log10(0.5 / np.mean(noise**2)) == pytest.approx(ratio, abs=0.5)
        lag = np.corrcoef(noise[1:], noise[:-1])[0, 1]
        assert lag == pytest.approx(colour, abs=0.05)
