"""Transcripts of audio files: finding them, reading them, and errors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from isotone.batch.inputs import find_transcript, read_text

SRT = "1\n00:00:01,000 --> 00:00:02,500\nHello.\n"


def test_another_transcript_beside_it_is_said(tmp_path: Path) -> None:
    for name in ("a.txt", "a.lab", "b.lab", "c.txt"):
        (tmp_path / name).write_text(name)
    found = find_transcript(tmp_path / "a.wav", None)
    assert (found.path, found.others) == (tmp_path / "a.txt", (tmp_path / "a.lab",))
    assert found.notes == ("its transcript is a.txt, not a.lab beside it",)
    for name in ("b", "c"):
        assert find_transcript(tmp_path / f"{name}.wav", None).notes == ()


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="this system has no links")
def test_two_names_of_one_file_are_one_transcript(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("so")
    (tmp_path / "a.lab").symlink_to(tmp_path / "a.txt")
    assert find_transcript(tmp_path / "a.wav", None).notes == ()


def test_a_transcript_with_times_is_found_after_plain_text(tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_text(SRT)
    for folder in (None, tmp_path):
        assert find_transcript(tmp_path / "a.wav", folder).path == tmp_path / "a.srt"
    (tmp_path / "a.lab").write_text("so")
    found = find_transcript(tmp_path / "a.wav", None)
    assert (found.path, found.notes) == (tmp_path / "a.lab", ())


def test_subtitles_may_have_their_language_in_their_name(tmp_path: Path) -> None:
    names = ("film.en.srt", "film.old.srt", "film.v2.srt", "a.pt-BR.sdh.vtt", "b.de.srt", "b.de.mp3")
    for name in names:
        (tmp_path / name).write_text(SRT)
    for folder in (None, tmp_path):
        assert find_transcript(tmp_path / "film.mkv", folder).path == tmp_path / "film.en.srt"
        assert find_transcript(tmp_path / "a.mkv", folder).path == tmp_path / "a.pt-BR.sdh.vtt"
        assert find_transcript(tmp_path / "b.de.mp3", folder).path == tmp_path / "b.de.srt"
        with pytest.raises(FileNotFoundError, match=r"expected b\.txt"):
            find_transcript(tmp_path / "b.mp3", folder)
    (tmp_path / "film.ger.ass").write_text(SRT)
    with pytest.raises(
        FileNotFoundError, match=r"film\.en\.srt and film\.ger\.ass may be it\. Name one of them film"
    ):
        find_transcript(tmp_path / "film.mkv", None)
    with pytest.raises(FileNotFoundError, match=r"expected film\.txt"):
        find_transcript(tmp_path / "film.mkv", None, lambda path: True)
    (tmp_path / "film.srt").write_text(SRT)
    assert find_transcript(tmp_path / "film.mkv", None).path == tmp_path / "film.srt"


def test_what_there_is_in_place_of_a_transcript_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(b"PK")
    message = r"expected a\.txt, \.lab or one with times .*There is a\.docx \(Word's .*: save its words"
    for folder in (None, tmp_path):
        with pytest.raises(FileNotFoundError, match=message):
            find_transcript(tmp_path / "a.wav", folder)
    with pytest.raises(FileNotFoundError) as error:
        find_transcript(tmp_path / "b.wav", None)
    assert "There is" not in str(error.value)


def test_a_data_folder_is_a_transcript_of_its_files(tmp_path: Path) -> None:
    for name, content in (("text", "u1 so it\n"), ("wav.scp", "u1 a.wav\n")):
        (tmp_path / name).write_text(content)
    found = find_transcript(tmp_path / "a.wav", tmp_path)
    assert found.files == {"text": tmp_path / "text", "wav.scp": tmp_path / "wav.scp"}
    assert read_text(found.path, 1.0, tmp_path / "a.wav") == "so it"


@pytest.mark.parametrize("name", ["a.srt", "a.txt"])
def test_the_text_of_subtitles_is_their_lines(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(SRT)
    assert read_text(tmp_path / name, 1.0) == "Hello."


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.docx", b"PK\x03\x04\x14", "a zip file, as documents (DOCX, ODT) are"),
        ("a.docx", b"no zip", "Word's (DOCX), a document with formatting"),
        ("a.txt", b"%PDF-1.7 \xff", "PDF"),
        ("a.html", b"<html>so</html>", "HTML"),
    ],
)
def test_files_of_other_kinds_are_refused_by_kind(
    tmp_path: Path, name: str, content: bytes, kind: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match="plain text or with times: save the words alone") as error:
        read_text(tmp_path / name, 1.0)
    assert f"{tmp_path / name} is {kind};" in str(error.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_that_say_what_they_are(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("Café\r\nnaïve\rso\n".encode(encoding))
    assert read_text(tmp_path / "a.txt", 1.0) == "Café\nnaïve\nso\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "so\nЖизнь".encode("cp1251"),
            "line 2: expected UTF-8, or UTF-16 with a byte order mark; got byte 0xc6",
        ),
        (b"so\0", "it has zero bytes: save it as UTF-8"),
        (b"\xff\xfes", "expected UTF-16"),
    ],
)
def test_encodings_that_do_not(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(ValueError, match="is not text that can be read") as error:
        read_text(tmp_path / "a.txt", 1.0)
    assert message in str(error.value)


def test_encodings_that_are_guessed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("so\ncafé".encode("latin-1"))
    notes: list[str] = []
    assert read_text(tmp_path / "a.txt", 1.0, note=notes.append) == "so\ncafé"
    assert notes == [
        "a.txt is not UTF-8, and is read as Windows-1252 (Latin-1), with 'é' in it: save it as UTF-8"
    ]
