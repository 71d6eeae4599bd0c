"""Files that commands write by name are never written over something else, their own input above all."""

from __future__ import annotations

from pathlib import Path

from tests.tiny_models import error_of, isotone


def test_a_language_model_does_not_replace_its_text(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("hello world\nhello you\n")
    assert "holds something else, which would be lost" in error_of("lm", text, "--out", text)
    assert text.read_text() == "hello world\nhello you\n"
    for _ in range(2):
        isotone("lm", text, "--out", tmp_path / "lm.arpa")
    assert "is a folder" in error_of("lm", tmp_path, "--out", tmp_path / "other.arpa")


def test_scores_do_not_replace_an_alignment(tmp_path: Path) -> None:
    phones = tmp_path / "a.phn"
    phones.write_text("0 1600 s\n1600 3200 iy\n")
    command = "evaluate", phones, phones
    assert "would be lost" in error_of(*command, "--json", phones)
    assert phones.read_text().startswith("0 1600 s")
    for _ in range(2):
        isotone(*command, "--json", tmp_path / "scores.json")
