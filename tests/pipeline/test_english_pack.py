"""The English pack on speech with known times: espeak-ng's, and where they are to be had hand-labelled recordings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

import isotone
from isotone.alignment import SILENCE
from isotone.corpus.voices import SAMPLE_RATE, record, speakers
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.passages import align_passages
from isotone.pipeline.stars import OWN_COST, STAR_COST
from isotone.text.espeak import Engine
from isotone.transcripts import Passage
from tests.paths import DATA, ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "plugins/isotone_english/model").is_dir(), reason="the pack's weights are not built"
)
TEXTS = "She had your dark suit in greasy wash water all year", "Nobody heard the small bell ring at dawn"


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline(Model.load("english"))


def errors_ms(found: list[tuple[float, float]], expected: list[tuple[float, float]]) -> np.ndarray:
    assert len(found) == len(expected)
    return 1000 * np.abs(np.array(found) - np.array(expected)).ravel()


def words_of(pipeline: Pipeline, samples: np.ndarray, text: str) -> list[tuple[float, float]]:
    tier = pipeline.align("", samples, pipeline.encode(text)).alignment.tier("words")
    return [(word.start, word.end) for word in tier if word.label not in SILENCE]


def test_words_are_where_the_synthesiser_put_them(pipeline: Pipeline) -> None:
    pytest.importorskip("espeakng_loader", reason="espeak-ng is an extra")
    engine = Engine(5)
    errors = []
    for person in speakers(4, 4, 77)[1]:
        for number, text in enumerate(TEXTS):
            said = record(engine, person, number, text, np.random.default_rng(number))
            found = words_of(pipeline, said.samples.astype(np.float32) / 32768, text)
            expected = [(word.start / SAMPLE_RATE, word.end / SAMPLE_RATE) for word in said.words]
            errors.append(errors_ms(found, expected))
    assert np.mean(np.concatenate(errors)) < 25


def test_words_are_where_a_phonetician_put_them(pipeline: Pipeline) -> None:
    root = DATA / "timit_sample"
    if not root.is_dir():
        pytest.skip("needs the public sample of TIMIT")
    errors = []
    for path in sorted(root.glob("dr*/sx*.wav"))[::4]:
        rows = [line.split() for line in path.with_suffix(".wrd").read_text().splitlines()]
        samples = soundfile.read(path, dtype="float32")[0]
        found = words_of(pipeline, samples, " ".join(row[2] for row in rows))
        errors.append(errors_ms(found, [(int(a) / 16_000, int(b) / 16_000) for a, b, _ in rows]))
    assert np.mean(np.concatenate(errors)) < 30


def test_a_line_of_python_aligns_without_a_model(tmp_path: Path) -> None:
    """Words that are in no dictionary as well, and no espeak-ng."""
    rng = np.random.default_rng(0)
    soundfile.write(tmp_path / "talk.wav", 0.1 * rng.standard_normal(32_000), 16_000)
    found = isotone.align(tmp_path / "talk.wav", "Frobnicate the gloxinator")
    assert [word.label for word in found.words if word.label not in SILENCE] == [
        "Frobnicate",
        "the",
        "gloxinator",
    ]
    assert len(found.phones) > 12


def test_subtitles_off_by_half_a_second_do_as_well_as_plain_text(pipeline: Pipeline) -> None:
    """Six sentences in a row: the words are found in both ways, and their ends are as good."""
    root = DATA / "timit_sample" / "dr1-fvmh0"
    if not root.is_dir():
        pytest.skip("needs the public sample of TIMIT")
    rng = np.random.default_rng(0)
    parts, passages, expected, now = [], [], [], 0.0
    for path in sorted(root.glob("*.wav"))[:6]:
        samples = soundfile.read(path, dtype="float32")[0]
        rows = [line.split() for line in path.with_suffix(".wrd").read_text().splitlines()]
        times = [(now + int(start) / 16_000, now + int(end) / 16_000) for start, end, _ in rows]
        text = path.with_suffix(".txt").read_text().split(maxsplit=2)[2].strip()
        start, end = (max(0.0, time + rng.uniform(-0.5, 0.5)) for time in (times[0][0], times[-1][1]))
        passages.append(Passage(text, start, max(start, end), None, f"cue {len(passages) + 1}"))
        expected += times
        parts += [samples, rng.normal(0, 1e-4, 6_400).astype(np.float32)]
        now += len(samples) / 16_000 + 0.4
    audio = np.concatenate(parts)
    found = align_passages(pipeline, "u", audio, passages)
    assert found.warnings == ()
    rough = errors_ms([(s.start, s.end) for s in found.alignment.tier("words")], expected)
    timing = Pipeline(pipeline.model, presence=False)  # a star is no word, and has no time to compare
    plain = errors_ms(words_of(timing, audio, "\n".join(p.text for p in passages)), expected)
    assert rough.mean() < plain.mean() + 1.5
    assert (rough < 100).mean() > (plain < 100).mean() - 0.01


def test_an_unknown_word_has_its_time_and_leaves_its_neighbours_theirs() -> None:
    # the pause after it would have most of it: a star costs more than a pause
    aligned = isotone.align(ROOT / "docs/pictured/mary.flac", "Mary rolled the <unk>")
    words = [(word.start, word.end) for word in aligned.words]
    hand = [(0.315, 0.676), (0.676, 0.984), (0.984, 1.064), (1.064, 1.518)]
    assert aligned.words.labels == ["Mary", "rolled", "the", "<unk>"]
    assert errors_ms(words, hand).max() < 100


def test_stars_cost_more_where_they_may_be_anywhere() -> None:
    model = Model.load("english")
    costs = [Pipeline(model, extra_speech=extra).star_cost for extra in (False, True)]
    assert costs == [OWN_COST, STAR_COST]
    assert Pipeline(model, star_cost=2.5).star_cost == 2.5


@pytest.mark.skipif(not (DATA / "timit_sample").is_dir(), reason="TIMIT's sample is not here")
def test_no_phone_is_shorter_than_a_sound() -> None:
    folder = DATA / "timit_sample/dr1-fvmh0"
    text = " ".join((folder / "si1466.txt").read_text().split()[2:])
    aligned = isotone.align(folder / "si1466.wav", text)
    assert min(phone.duration for phone in aligned.phones) > 0.005
