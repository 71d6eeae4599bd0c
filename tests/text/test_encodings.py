"""Encodings of texts: those that say what they are, those that can be told, and those that are refused."""

# ruff: noqa: RUF001
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.text.encodings import EncodingError, decode_text

LATIN = [
    "Ça va ? Je n'ai pas encore mangé, à vrai dire. Où es-tu, mon frère ? « Là-bas », près de l'église.",
    "Über den Wolken muß die Freiheit wohl grenzenlos sein; die Straßen sind größer.",
    "¿Qué pasó ayer? El niño corrió mañana y tarde.",
    "Þórður á að fara út í búð og kaupa sér mjólk.",
    "She said “no” – and left.",
    "so\ncafé",
]
OTHERS = [
    ("Привет, как твои дела сегодня? Всё хорошо, спасибо.", "cp1251"),
    ("Привет, как твои дела сегодня?", "koi8-r"),
    ("Καλημέρα, τι κάνεις σήμερα;", "iso-8859-7"),
    ("こんにちは、元気ですか。今日はいい天気です。", "shift_jis"),
    ("你好，今天的天气怎么样？我们去公园吧。", "gbk"),
    ("안녕하세요 오늘 날씨가 좋네요", "euc-kr"),
]


@given(
    text=st.text(st.characters(exclude_categories=["Cs"])), encoding=st.sampled_from(["utf-8-sig", "utf-16"])
)
def test_marked_encodings_are_read_without_a_warning(text: str, encoding: str) -> None:
    assert decode_text(text.encode(encoding), "a.txt") == (text, "")


@pytest.mark.parametrize("text", LATIN)
def test_what_can_be_told(text: str) -> None:
    assert decode_text(text.encode(), "a.txt") == (text, "")
    found, warning = decode_text(text.encode("cp1252"), "a.txt")
    assert found == text
    assert warning.startswith("a.txt is not UTF-8, and is read as Windows-1252 (Latin-1), with ")
    for encoding in ("utf-16-le", "utf-16-be"):
        found, warning = decode_text(text.encode(encoding), "a.txt")
        assert found == text
        assert f"is read as {encoding.upper()}" in warning


@pytest.mark.parametrize(("text", "encoding"), OTHERS)
def test_what_cannot_is_refused(text: str, encoding: str) -> None:
    with pytest.raises(
        EncodingError, match=r"a\.txt, line 2: expected UTF-8, or UTF-16 with a byte order mark; got byte"
    ):
        decode_text(b"# a\n" + text.encode(encoding), "a.txt")


def test_damaged_utf16() -> None:
    with pytest.raises(EncodingError, match=r"expected UTF-16; got a damaged character at byte"):
        decode_text(b"\xff\xfes", "a.txt")


@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    try:
        text, _ = decode_text(data, "a")
    except EncodingError:
        return
    assert isinstance(text, str)
