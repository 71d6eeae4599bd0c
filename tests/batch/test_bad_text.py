"""Transcripts that cannot be read or aligned are explained; odd but readable ones work."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotone import format as files
from tests.batch.parts import only_error
from tests.tiny_models import error_of, isotone, lines_of, save_noise


def test_a_text_that_does_not_fit_the_audio(model: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "u.wav", 0.5, text="far too many words for half a second of audio")
    isotone("align", speech, "-m", model, "-o", tmp_path / "out", code=1)
    message = only_error(tmp_path / "out")
    assert message.startswith("u: ")
    assert "it has 10 words and the recording 0.5 s, more than anyone speaks" in message
    assert "--book" in message
    assert "Row" not in message, "the file is named, not its place in a batch of one"
    assert "too long for the audio" in message


@pytest.mark.parametrize("text", ["日本語", "!? --", "\u200b"])
def test_a_text_without_anything_to_align(model: Path, tmp_path: Path, text: str) -> None:
    isotone("align", save_noise(tmp_path / "u.wav", text=text), "-m", model, "-o", tmp_path / "out", code=1)
    assert "nothing to align" in only_error(tmp_path / "out")


def test_a_text_with_some_unknown_characters(model: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "u.wav", 2.0, text="Grüße aus 東京 now")
    result = isotone("align", speech, "-m", model, "-f", "json", "-o", tmp_path / "out")
    assert (
        "aligned as unknown speech: words without a character of the model's vocabulary: '東京'"
        in result.stderr
    )
    words = files.read(tmp_path / "out/u.json").tier("words")
    assert words.labels == ["Grüße", "aus", "東京", "now"]
    assert [s.score is None for s in words] == [False, False, True, False]
    assert "".join(files.read(tmp_path / "out/u.json").tier("characters").labels) == "grusseausnow"


def test_two_transcripts_of_one_file_are_a_warning(model: Path, tmp_path: Path) -> None:
    speech = save_noise(tmp_path / "u.wav", text="so [laughs]")
    speech.with_suffix(".lab").write_text("other")
    isotone("align", speech, "-m", model, "-f", "json", "-o", tmp_path / "out")
    (row,) = lines_of(tmp_path / "out/warnings.jsonl")
    assert "its transcript is u.txt, not u.lab beside it" in row["warning"]
    assert "left out as markup (--keep-markup reads it): '[laughs]'" in row["warning"]
    assert files.read(tmp_path / "out/u.json").tier("words").labels == ["so"]


def test_unknown_phones_are_named(phone_model: Path, tmp_path: Path) -> None:
    isotone(
        "align", save_noise(tmp_path / "u.wav", text="s iy t"), "-m", phone_model, "-o", tmp_path / "good"
    )
    assert files.read(tmp_path / "good/u.TextGrid").has("phones")
    speech = save_noise(tmp_path / "v.wav", text="see you")
    isotone("align", speech, "-m", phone_model, "-o", tmp_path / "out", code=1)
    message = only_error(tmp_path / "out")
    assert "['see', 'you'] are no phones of this model" in message
    assert "pronouncer" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: expected the transcript"),
        (b" \n\t\n", "is empty: expected the transcript"),
        (b"\xef\xbb\xbf", "is empty: expected the transcript"),
        (b"one\n\xef\xf0\xe8\xe2\xe5\xf2", "is not text that can be read: u.txt, line 2: expected UTF-8"),
        (b"a\0\0\0b", "it has zero bytes: save it as UTF-8"),
        (b"WEBVTT\n\n00:00.000 --> 00:01.000\n\n", "is empty: expected the transcript"),
        (b"{\\rtf1 hello}", "is RTF, a document with formatting; expected a transcript"),
        (None, "no transcript: expected u.txt, .lab or one with times"),
    ],
)
def test_transcripts_that_cannot_be_read(
    model: Path, tmp_path: Path, content: bytes | None, message: str
) -> None:
    speech = save_noise(tmp_path / "u.wav")
    if content is not None:
        (tmp_path / "u.txt").write_bytes(content)
    isotone("align", speech, "-m", model, "-o", tmp_path / "out", code=1)
    assert message in only_error(tmp_path / "out")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_byte_order_marks_and_windows_line_ends_are_fine(model: Path, tmp_path: Path, encoding: str) -> None:
    speech = save_noise(tmp_path / "u.wav")
    (tmp_path / "u.txt").write_bytes("\ufeffone\r\ntwo\r\n".encode(encoding))
    isotone("align", speech, "-m", model, "-f", "json", "-o", tmp_path / "out")
    assert files.read(tmp_path / "out/u.json").tier("words").labels == ["one", "two"]


def test_places_of_the_text_that_make_no_sense(model: Path, tmp_path: Path) -> None:
    for name in "ab":
        save_noise(tmp_path / f"speech/{name}.wav", text="so")
    text, end = tmp_path / "speech/a.txt", ("-m", model, "-o", tmp_path / "out")
    both = error_of("align", tmp_path / "speech", "--text", text, *end)
    assert "--text is the transcript of one file; for 2 files use --text-dir" in both
    speech = tmp_path / "speech/a.wav"
    assert "No transcript" in error_of("align", speech, "--text", tmp_path / "gone.txt", *end)
    assert "No folder" in error_of("align", speech, "--text-dir", tmp_path / "gone", *end)
    assert "No folder" in error_of("align", speech, "--text-dir", text, *end)
    assert "give one" in error_of("align", speech, "--text", text, "--text-dir", tmp_path / "speech", *end)
    assert not (tmp_path / "out").exists()
    isotone("align", tmp_path / "speech/b.wav", "--text", text, *end)
