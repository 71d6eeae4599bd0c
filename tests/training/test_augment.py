"""Augmentation of recordings: each one by measurements of its output."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.registry import OptionError, UnknownPlugin
from isotone.training.augment import Band, Chain, Codec, Gain, Mask, Noise, Speed, augmentations

RATE = 16_000
NAMES = ("gain", "noise", "speed", "band", "codec", "mask")


def tone(hz: float, seconds: float = 0.5) -> np.ndarray:
    return (0.3 * np.sin(2 * np.pi * hz * np.arange(round(seconds * RATE)) / RATE)).astype(np.float32)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def power(samples: np.ndarray) -> float:
    return float(np.mean(np.square(samples, dtype=np.float64)))


def decibels(ratio: float) -> float:
    return 10 * np.log10(ratio)


def test_all_have_names() -> None:
    assert set(NAMES) <= set(augmentations.names())


def test_gain() -> None:
    wave = tone(440)
    for seed in range(5):
        changed = Gain(gain_db=[-6, -3])(wave, rng(seed))
        np.testing.assert_allclose(changed / changed.max(), wave / wave.max(), atol=1e-6)
        assert -6 <= decibels(power(changed) / power(wave)) <= -3


def test_noise_has_the_ratio_and_the_colour() -> None:
    wave = tone(440)
    for ratio in (5, 20):
        noise = Noise(snr_db=[ratio, ratio])(wave, rng()) - wave
        assert decibels(power(wave) / power(noise)) == pytest.approx(ratio, abs=0.01)
    white = np.abs(np.fft.rfft(Noise(colour=[0, 0])(wave, rng()) - wave))
    low = np.abs(np.fft.rfft(Noise(colour=[0.9, 0.9])(wave, rng()) - wave))
    half = len(white) // 2
    assert 0.8 < power(white[:half]) / power(white[half:]) < 1.25
    assert power(low[:half]) > 20 * power(low[half:])
    assert not Noise()(np.zeros(100), rng()).any()


def test_speed_changes_length_and_pitch_alike() -> None:
    for factor in (0.8, 1.25):
        changed = Speed(factor=[factor, factor])(tone(1000, 1.0), rng())
        assert len(changed) == pytest.approx(RATE / factor, abs=2)
        peak = np.fft.rfftfreq(len(changed), 1 / RATE)[np.abs(np.fft.rfft(changed)).argmax()]
        assert peak == pytest.approx(1000 * factor, rel=2e-3)
    assert len(Speed(factor=[3, 3])(np.ones(1), rng())) == 1


def test_band_keeps_the_middle_alone() -> None:
    band = Band(low_hz=[300, 300], high_hz=[3000, 3000])
    inside, below, above = (decibels(power(band(tone(f), rng())) / power(tone(f))) for f in (1000, 50, 7000))
    assert abs(inside) < 0.5
    assert below < -20
    assert above < -20
    assert power(Band(low_hz=[20, 20], high_hz=[8000, 8000])(tone(7500), rng())) > 0.95 * power(tone(7500))


def test_codec_is_drawn_from_the_list() -> None:
    wave = tone(1000) + tone(6000)
    narrow = Codec(codecs=["gsm", "mu-law"])
    for seed in range(6):
        assert power(narrow(wave, rng(seed))) == pytest.approx(power(tone(1000)), rel=0.2)
    both = {round(power(Codec(codecs=["vorbis", "gsm"])(wave, rng(seed))), 2) for seed in range(8)}
    assert len(both) == 2
    rough, fine = (
        power(Codec(codecs=["opus"], level=[level, level])(wave, rng()) - wave) for level in (1.0, 0.5)
    )
    assert rough > 2 * fine


def test_mask_silences_places() -> None:
    changed = Mask(spans=2, share=[0.1, 0.1])(np.ones(1000), rng(1))
    assert 100 <= (changed == 0).sum() <= 200
    edges = np.flatnonzero(np.diff(np.r_[1, changed, 1]))
    assert len(edges) in (2, 4)
    assert not Mask(share=[1, 1])(np.ones(10), rng()).any()


@given(size=st.integers(0, 3000), seed=st.integers(0, 1000), name=st.sampled_from(NAMES))
@settings(max_examples=60, deadline=None)
def test_laws(size: int, seed: int, name: str) -> None:
    wave = rng(seed).normal(0, 0.1, size).astype(np.float32)
    before = wave.copy()
    part = augmentations.build(name)
    changed = part(wave, rng(seed))
    assert changed.dtype == np.float32
    assert changed.ndim == 1
    assert np.isfinite(changed).all()
    np.testing.assert_array_equal(wave, before)  # the input is left alone
    np.testing.assert_array_equal(changed, part(wave, rng(seed)))  # the generator decides
    assert (len(changed) == size) or name == "speed"
    never = augmentations.build(name, probability=0.0)(wave, rng(seed))
    np.testing.assert_array_equal(never, wave)
    assert never is not wave


def test_probability_is_a_share_of_calls() -> None:
    part, source = Gain(gain_db=[6, 6], probability=0.3), rng()
    changed = sum(part(np.ones(4), source)[0] > 1 for _ in range(500))
    assert 110 <= changed <= 190


def test_a_chain_from_configuration_makes_views() -> None:
    chain = Chain(["gain", {"name": "speed", "factor": [0.5, 0.5]}, Mask()])
    one, other, third = chain.views(tone(300), rng(), 3)
    assert len(one) == len(other) == len(third) == RATE
    assert not np.array_equal(one, other)
    np.testing.assert_array_equal(Chain([])(tone(300), rng()), tone(300))
    again = chain.views(tone(300), rng(), 3)
    np.testing.assert_array_equal(again[2], third)


@pytest.mark.parametrize(
    "name, options",
    [
        ("gain", {"gain_db": [3, 1]}),
        ("gain", {"gain_db": [3]}),
        ("gain", {"probability": 1.5}),
        ("noise", {"colour": [0.5, 1.0]}),
        ("noise", {"snr_db": [0, float("inf")]}),
        ("speed", {"factor": [0, 1]}),
        ("band", {"low_hz": [100, 3000]}),
        ("codec", {"level": [0.5, 1.1]}),
        ("codec", {"codecs": ["aac"]}),
        ("codec", {"codecs": []}),
        ("mask", {"share": [0.0, 1.1]}),
        ("mask", {"spans": 0}),
    ],
)
def test_options_outside_their_range(name: str, options: dict) -> None:
    with pytest.raises(ValueError, match="expects"):
        augmentations.build(name, **options)


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match="mono"):
        Gain()(np.ones((2, 10)), rng())
    with pytest.raises(UnknownPlugin, match="noise"):
        Chain(["nois"])
    with pytest.raises(OptionError, match="factor"):
        Chain([{"name": "speed", "factors": [1, 1]}])
