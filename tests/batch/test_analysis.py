"""Tables of a corpus: measures with known values, and columns as MFA has them."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from isotone.alignment import Alignment, Segment, Tier
from isotone.batch.analysis import ANALYSIS, OOVS, UTTERANCE_OOVS, measured, snr, speaker_of, tables
from isotone.batch.ledger import Entry
from tests.tiny_models import error_of, isotone, names_in, save_noise


def entry(id: str, phones: list[tuple[str, float]], *oovs: str, error: str = "") -> Entry:
    analysis = {"seconds": 2.0, "speech": -0.5, "snr": None, "phones": json.dumps(phones), "oovs": list(oovs)}
    return Entry(id, id, f"/corpus/{id}.wav", "align", score=-1.5, analysis=analysis, error=error)


def rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(content.decode().splitlines()))


def test_the_ratio_of_speech_to_the_rest_in_decibels() -> None:
    samples = np.full(16_000, 0.01, np.float32)
    samples[4000:8000] = -0.1
    assert snr(samples, [(0.25, 0.5)], 16_000) == pytest.approx(20.0, abs=1e-4)
    assert snr(samples, [(0.0, 0.99)], 16_000) is None, "too little silence"
    assert snr(samples, [], 16_000) is None
    assert snr(np.zeros(16_000), [(0.25, 0.5)], 16_000) is None


def test_log_likelihoods_are_means_over_time() -> None:
    phones = (Segment("a", 0.1, 0.4, -1.0), Segment("*", 0.4, 0.6), Segment("b", 0.6, 0.7, -3.0))
    words = Tier("words", (Segment("ab", 0.1, 0.7, -9.0),))
    found = measured(Alignment("u", 1.0, (words, Tier("phones", phones))), np.ones(100), 100, ["ab"])
    assert found["speech"] == pytest.approx((0.3 * -1 + 0.1 * -3) / 0.4)
    assert json.loads(found["phones"]) == [["a", 0.3], ["b", 0.1]]
    assert (found["seconds"], found["oovs"]) == (1.0, ["ab"])


def test_a_duration_deviates_from_those_of_its_phone_in_the_corpus() -> None:
    durations = {"u1": 0.05, "u2": 0.1, "u3": 0.2}
    found = tables([entry(id, [("a", seconds), ("once", 9.0)]) for id, seconds in durations.items()])
    logs = np.log(list(durations.values()))
    z = np.abs(logs - logs.mean()) / logs.std()
    assert [float(row["phone_duration_deviation"]) for row in rows(found[ANALYSIS])] == pytest.approx(
        z, abs=1e-4
    )
    assert math.isclose(z[1], 0, abs_tol=1e-9)


def test_columns_speakers_and_words_in_no_dictionary() -> None:
    entries = [
        entry("anna/a1", [], "zorb", "blax"),
        entry("ben/b1", [], "blax"),
        entry("ben/b2", [], error="bad"),
    ]
    found = tables(entries)
    assert list(rows(found[ANALYSIS])[0].items()) == [
        ("file", "anna/a1"), ("begin", "0.0"), ("end", "2.0000"), ("speaker", "anna"),
        ("overall_log_likelihood", "-1.5000"), ("speech_log_likelihood", "-0.5000"),
        ("phone_duration_deviation", ""), ("snr", ""),
    ]  # fmt: skip
    assert len(rows(found[ANALYSIS])) == 2
    assert found[OOVS] == b"blax\nzorb\n"
    assert found[UTTERANCE_OOVS] == b"anna/a1, anna: 0.0-2.0000: zorb, blax\nben/b1, ben: 0.0-2.0000: blax\n"
    assert speaker_of(entries[0], 1) == "a"
    assert tables([]) == {ANALYSIS: b"", OOVS: b"", UTTERANCE_OOVS: b""}


def test_the_tables_are_written_where_they_are_wanted(model: Path, tmp_path: Path) -> None:
    for name in ("anna/a1", "ben/b1"):
        save_noise(tmp_path / f"in/{name}.wav", text="go 日")
    command = ("align", tmp_path / "in", "-m", model, "-o", tmp_path / "out", "--no-check", "--no-edges")
    isotone(*command)
    assert ANALYSIS not in names_in(tmp_path / "out")
    # nothing is aligned again for them
    assert "2 of them there before" in isotone(*command, "--speaker-characters", "1").stdout
    found = rows((tmp_path / "out" / ANALYSIS).read_bytes())
    assert [(row["file"], row["speaker"]) for row in found] == [("anna/a1", "a"), ("ben/b1", "b")]
    assert all(float(row["speech_log_likelihood"]) < 0 for row in found)
    assert (tmp_path / "out" / OOVS).read_text() == "日\n"
    # somebody else's table is not replaced
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ANALYSIS).write_text("mine")
    message = error_of("align", tmp_path / "in", "-m", model, "-o", tmp_path / "other", "--analysis")
    assert message.startswith("1 file would be overwritten")
