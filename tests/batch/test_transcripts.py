"""The command align with transcripts that have times, speakers, or the texts of several recordings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from isotone import format as files
from tests.paths import ROOT
from tests.tiny_models import error_of, isotone, lines_of, names_in, save_noise

FIXTURES = ROOT / "tests" / "fixtures" / "transcripts"
SAID = [["She", "had", "your", "dark", "suit."], ["Don't", "ask", "me", "to", "carry", "it."]]


def test_subtitles_beside_the_recording(model: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "talk.wav", 4.0)
    (tmp_path / "talk.srt").write_bytes((FIXTURES / "srt.srt").read_bytes())
    isotone("align", speech, "-m", model, "-f", "json", "-o", tmp_path / "out")
    words = files.read(tmp_path / "out/talk.json").tier("words")
    assert words.labels == SAID[0] + SAID[1]
    assert not (tmp_path / "out/errors.jsonl").exists()


@pytest.mark.parametrize("name", ["whisperx.json", "kaldi", "sclite.stm", "pympi.TextGrid"])
def test_speakers_are_tiers(model: Path, tmp_path: Path, name: str) -> None:
    speech = save_noise(tmp_path / "talk.wav", 4.0)
    isotone("align", speech, "--text", FIXTURES / name, "-m", model, "-o", tmp_path / "out")
    found = files.read(tmp_path / "out/talk.TextGrid")
    kinds = [f"{speaker} - {kind}" for speaker in ("Ann", "Bob") for kind in ("words", "characters")]
    assert [tier.name for tier in found.tiers] == kinds
    assert [found.tier(f"{s} - words").labels for s in ("Ann", "Bob")] == SAID


def test_every_format_takes_several_speakers(model: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "talk.wav", 4.0)
    groups = (
        ("textgrid", "json", "csv", "ctm", "audacity", "srt", "vtt", "ass", "ttml", "lrc", "elan", "lhotse",
         "rttm"),
        ("whisperx", "mfa-csv", "nemo-ctm"), ("mfa-json",),
    )  # fmt: skip
    for number, names in enumerate(groups):
        chosen = [part for name in names for part in ("-f", name)]
        out = tmp_path / f"out{number}"
        isotone("align", speech, "--text", FIXTURES / "whisperx.json", "-m", model, *chosen, "-o", out)
        assert len(names_in(out)) >= len(names)
    turns = (tmp_path / "out0/talk.rttm").read_text().splitlines()
    assert {line.split()[7] for line in turns} == {"Ann", "Bob"}
    segments = json.loads((tmp_path / "out1/talk.json").read_text())["segments"]
    assert [s["speaker"] for s in segments] == sorted(s["speaker"] for s in segments)
    assert [w["word"] for s in segments for w in s["words"]] == SAID[0] + SAID[1]


def test_speakers_on_their_channels(model: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(0, 1e-4, (4 * 16_000, 2))
    samples[: 2 * 16_000, 1] += rng.normal(0, 0.1, 2 * 16_000)
    samples[2 * 16_000 :, 0] += rng.normal(0, 0.1, 2 * 16_000)
    soundfile.write(tmp_path / "talk.wav", samples, 16_000)
    cues = [
        {"start": 2.0 * i, "end": 2.0 * i + 2, "text": "so it", "speaker": s}
        for i, s in enumerate(["A", "B"])
    ]
    (tmp_path / "talk.json").write_text(json.dumps({"segments": cues}))
    said = {"auto": "A 2, B 1, by their levels", "order": "A 1, B 2, by their order", "mix": ""}
    for way, words in said.items():
        isotone("align", tmp_path / "talk.wav", "-m", model, "--channels", way, "-o", tmp_path / way)
        names = {tier.name for tier in files.read(tmp_path / way / "talk.TextGrid").tiers}
        assert {"A - words", "B - words"} <= names
        warned = tmp_path / way / "warnings.jsonl"
        notes = warned.read_text() if warned.exists() else ""
        assert words in notes
        assert ("is on a channel" in notes) == bool(words)
    assert "the levels say otherwise: A 2, B 1" in (tmp_path / "order/warnings.jsonl").read_text()
    said = error_of("align", tmp_path / "talk.wav", "-m", model, "--channels", "left", "-o", tmp_path / "no")
    assert "--channels is auto, order or mix; got 'left'" in said


def test_a_manifest_has_the_texts_of_several_recordings(model: Path, tmp_path: Path) -> None:
    for name in "ab":
        save_noise(tmp_path / f"speech/{name}.wav")
    manifest = tmp_path / "m.jsonl"
    rows = [{"audio_filepath": f"{name}.wav", "duration": 1.5, "text": f"so {name}"} for name in "ab"]
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    isotone(
        "align", tmp_path / "speech", "--text", manifest, "-m", model, "-f", "json", "-o", tmp_path / "out"
    )
    for name in "ab":
        assert files.read(tmp_path / f"out/{name}.json").tier("words").labels == ["so", name]
    save_noise(tmp_path / "speech/c.wav")
    arguments = ("align", tmp_path / "speech", "--text", manifest, "-m", model, "-f", "json")
    isotone(*arguments, "-o", tmp_path / "out", code=1)
    (row,) = lines_of(tmp_path / "out/errors.jsonl")
    assert "none is named 'c'" in row["error"]


def test_passages_that_fail_are_warnings_and_a_bad_slack_is_an_error(model: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "u.wav", 4.0)
    (tmp_path / "u.srt").write_text(
        "1\n00:00:01,000 --> 00:00:02,000\nso\n\n2\n00:00:09,000 --> 00:00:10,000\nit\n"
    )
    isotone("align", speech, "-m", model, "-o", tmp_path / "out")
    (row,) = lines_of(tmp_path / "out/warnings.jsonl")
    assert "left out, after the recording's end: cue 2" in row["warning"]
    said = error_of("align", speech, "-m", model, "--slack", "-1", "-o", tmp_path / "other")
    assert "--slack expects seconds of 0 or more" in said


def test_lyrics_have_the_lines_of_their_texts(model: Path, tmp_path: Path) -> None:
    """Of a plain text, in one of several recordings that are aligned at once, and of a file of lyrics."""
    for name in "ab":
        save_noise(tmp_path / f"speech/{name}.wav", text="so it\nis on\n")
    save_noise(tmp_path / "speech/c.wav")
    (tmp_path / "speech/c.lrc").write_text("[ti:Song]\n[00:00.00]so it (is)\n[00:00.70]on\n")
    isotone(
        "align",
        tmp_path / "speech",
        "-m",
        model,
        "-f",
        "lrc",
        "-o",
        tmp_path / "out",
        "--no-check",
        "--no-edges",
    )
    lines = {n: (tmp_path / f"out/{n}.lrc").read_text().split("\n") for n in "abc"}
    assert (
        [line[10:] for line in lines["a"]] == [line[10:] for line in lines["b"]] == ["so it", "is on", "", ""]
    )
    assert lines["c"][0] == "[ti:Song]"
    assert [line[10:] for line in lines["c"][1:3]] == ["so it (is)", "on"]
