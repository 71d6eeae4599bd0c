import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("espeakng_loader", reason="espeak-ng is not installed: isotone[synth]")

from isotone.text import espeak, espeak_library
from isotone.text.espeak import Engine, phonemize, synthesise, timit_speech
from isotone.text.espeak_timit import TIMIT, TWO_PHONES
from isotone.text.phones import PHONES_61

TEXT = "Sister Susan sees six ships, and Jack picks cheap shoes."


def zero_crossings(samples):
    return np.mean(np.abs(np.diff(np.sign(samples.astype(float)))) > 0)


def rms(samples):
    return float(np.sqrt(np.mean(samples.astype(float) ** 2)))


def of(speech, *labels):
    return [speech.samples[p.start : p.end] for p in speech.phones if p.label in labels]


@pytest.mark.parametrize("voice", ["en-us", "en-us+f1", "en-us+Andy"])
@pytest.mark.parametrize("rate", [120, 220])
def test_phones_lie_on_their_sounds(voice, rate):
    # events are in samples at 22050 Hz, without lag: sibilants have noise, vowels do not, pauses are silent
    speech = timit_speech(synthesise(TEXT, voice=voice, rate=rate))
    hiss = [zero_crossings(x[len(x) // 5 : -len(x) // 5]) for x in of(speech, "s", "sh")]
    vowels = [zero_crossings(x[len(x) // 5 : -len(x) // 5]) for x in of(speech, "ih", "iy", "uw", "ae")]
    assert len(hiss) >= 10
    assert len(vowels) >= 8
    assert min(hiss) > 0.3 > 0.25 > max(vowels)
    (pause,) = of(speech, "pau")
    assert len(pause) > 0.05 * espeak.SAMPLE_RATE
    assert rms(pause) < 0.02 * rms(speech.samples)


def test_the_first_phone_begins_with_the_first_sound_and_the_last_ends_with_the_last():
    for text in ("Sing.", "Apples.", "Many men."):
        speech = synthesise(text)
        loud = np.flatnonzero(np.abs(speech.samples.astype(int)) > 100)
        assert abs(loud[0] - speech.phones[0].start) < 0.005 * espeak.SAMPLE_RATE
        assert abs(loud[-1] - speech.phones[-1].end) < 0.02 * espeak.SAMPLE_RATE


def test_stops_begin_with_their_closure():
    speech = timit_speech(synthesise("A pack of cats take a top cake.", rate=150))
    stops = [p for p in speech.phones if p.label in "ptk"]
    assert len(stops) >= 9
    for stop in stops:
        sound = speech.samples[stop.start : stop.end]
        closure = sound[: int(0.02 * espeak.SAMPLE_RATE)]
        assert rms(closure) < 0.05 * rms(sound), stop
        before = speech.samples[stop.start - 200 : stop.start]
        assert rms(before) > 10 * rms(closure), stop


def test_phones_have_no_gaps_and_words_are_in_order():
    for text in ("The end of the early car trip.", "Well... old oil, cool all around us!", TEXT):
        for speech in (synthesise(text), timit_speech(synthesise(text))):
            for a, b in zip(speech.phones, speech.phones[1:]):
                assert a.start < a.end == b.start < b.end <= len(speech.samples)
            numbers = [p.word for p in speech.phones if p.word >= 0]
            assert numbers == sorted(numbers)
            assert set(numbers) == set(range(len(text.split())))


@pytest.mark.parametrize(
    "words, expected",
    [
        ("car", "k aa r"),
        ("four bears", "f ao r|b eh r z"),
        ("near", "n ih r"),
        ("tour", "t uh r"),
        ("fire", "f ay axr"),
        ("hurry", "hh er iy"),
        ("hero", "hh ih r ow"),
        ("around", "ax r aw n d"),
        ("better off", "b eh dx axr|ao f"),
        ("measure", "m eh zh axr"),
        ("singing", "s ih ng ix ng"),
        ("judge", "jh ah jh"),
        ("little church", "l ih dx el|ch er ch"),
        ("boys", "b oy z"),
        ("the thing", "dh ax|th ih ng"),
        ("the apple", "dh ix|ae p el"),
        ("useful cook", "y uw s f el|k uh k"),
        ("out of the way", "aw dx|ax v|dh ax|w ey"),
    ],
)
def test_pronunciations(words, expected):
    found = [" ".join(p).replace("ix ng", "ih ng") for p in phonemize(words.split())]
    assert "|".join(found) == expected.replace("ix ng", "ih ng")


def test_pronunciations_of_a_long_text_stay_with_their_words():
    words = ["apples", "of", "the", "sea", "don't", "fall"] * 300
    found = phonemize(words)
    assert len(found) == 1800
    first = {"apples": "ae", "sea": "s", "don't": "d", "fall": "f", "the": "dh"}
    for word, phones in zip(words, found):
        assert phones
        assert phones[0] == first.get(word, phones[0])
    # the next text is not affected by the long one
    assert phonemize(["cat", "sat"]) == [["k", "ae", "t"], ["s", "ae", "t"]]


def test_words_without_sound_and_beyond_ascii():
    found = phonemize(["café", "—", "naïve", "25"])
    assert [bool(p) for p in found] == [True, False, True, True]
    assert found[0][0] == "k"
    assert found[2][0] == "n"
    assert found[3][:3] == ["t", "w", "eh"]
    assert phonemize([]) == []
    assert synthesise("").phones == ()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("abcdefghijklmnopqrstuvwxyz'", min_size=1, max_size=9), min_size=1, max_size=6))
def test_any_spelling_has_timit_phones(words):
    found = phonemize(words)
    assert len(found) == len(words)
    assert {p for phones in found for p in phones} <= set(PHONES_61)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4), min_size=1, max_size=4))
def test_merged_words_are_cut_where_they_meet(words):
    merged = [p for word in words for p in word]
    sizes = espeak.divide_phones(merged, words)
    assert sum(sizes) == len(merged)
    assert all(s >= 1 for s in sizes)
    distinct = [[f"{i}{p}" for p in word] for i, word in enumerate(words)]
    assert espeak.divide_phones([p for word in distinct for p in word], distinct) == [len(w) for w in words]


def test_an_engine_repeats_itself_in_another_process():
    # f3 has breath noise and m1 flutter, which plain espeak-ng seeds by the clock
    code = (
        "import hashlib; from isotone.text.espeak import Engine; e = Engine(3); "
        "print(*(hashlib.sha256(e.say('Four thin fish.', voice=v).samples.tobytes()).hexdigest() "
        "for v in ('en-us+f3', 'en-us+m1', 'en-us+m1')))"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    engine = Engine(3)
    voices = ("en-us+f3", "en-us+m1", "en-us+m1")
    said = [engine.say("Four thin fish.", voice=v).samples.tobytes() for v in voices]
    assert other.stdout.split() == [hashlib.sha256(s).hexdigest() for s in said]
    assert said[1] != said[2]  # because of this state every engine needs its own library
    assert Engine(4).say("Four thin fish.", voice="en-us+f3").samples.tobytes() != said[0]


def test_threads_share_an_engine():
    texts = ["A dog.", "The end of the road.", "Bears hear.", "Five hundred fish swim."] * 4
    alone = [synthesise(t).pronunciations() for t in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda t: synthesise(t).pronunciations(), texts))
    assert together == alone


def test_speed_and_pitch_are_heard():
    slow, fast = synthesise(TEXT, rate=100), synthesise(TEXT, rate=200)
    assert len(slow.samples) > 1.5 * len(fast.samples)
    assert [p.label for p in slow.phones] == [p.label for p in fast.phones]

    def period(pitch):
        speech = synthesise("Ah.", pitch=pitch, pitch_range=0)
        vowel = speech.samples[speech.phones[0].start :][2000:5000].astype(float)
        tail = np.correlate(vowel, vowel, "full")[len(vowel) - 1 :]
        return 60 + tail[60:500].argmax()

    assert period(90) < period(50) < period(10)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"voice": "en-su"}, "no voice 'en-su'. Near it are .*en-us"),
        ({"voice": "en-us+Andi"}, "no voice variant 'Andi'. Near it are .*Andy"),
        ({"rate": 20}, "rate from 80 to 450; got 20"),
        ({"pitch": 100}, "pitch from 0 to 99; got 100"),
        ({"text": "a\x01b"}, "without control characters"),
    ],
)
def test_errors_say_what_was_expected(options, message):
    text = options.pop("text", "A dog.")
    with pytest.raises(ValueError, match=message):
        synthesise(text, **options)


def test_other_errors():
    with pytest.raises(ValueError, match="without white space; got 'a b'"):
        phonemize(["a b"])
    with pytest.raises(ValueError, match="without white space; got ''"):
        phonemize(["a", ""])
    with pytest.raises(espeak.UnmappedPhone, match="'y'"):
        phonemize(["rue"], voice="fr")
    with pytest.raises(espeak.UnknownVoice):
        synthesise("a", voice="klingon")


def test_without_the_wheel_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    with pytest.raises(ImportError, match=r"pip install \"isotone\[synth\]\"") as error:
        espeak_library.Library()
    assert isinstance(error.value, espeak.EspeakNotInstalled)


def test_every_mapped_phone_is_timits():
    for mnemonic in (*TIMIT, *TWO_PHONES):
        parts = espeak.to_timit(mnemonic)
        assert {label for label, _ in parts} <= set(PHONES_61)
        assert sum(share for _, share in parts) == pytest.approx(1)
    with pytest.raises(espeak.UnmappedPhone, match="'R'"):
        espeak.to_timit("R")
