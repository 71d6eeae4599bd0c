"""Encodings of text files: UTF-8 and UTF-16, and the Latin ones of older programs by detection."""

from __future__ import annotations

import codecs
import unicodedata

#: Largest share of a text's letters that are not ASCII, for it to be Latin: short texts of
#: Icelandic have up to a third.
_MOST_ACCENTED = 0.4
#: Least share of zeros among the even or odd bytes of UTF-16 in a language of Latin letters.
_LEAST_ZEROS = 0.6
_UNUSUAL = frozenset(
    "\u00a4\u00a6\u00a8\u00b8\u00bc\u00bd\u00be\u00b9\u00b2\u00b3\u00ac\u00af\u00b1\u00d7\u00f7"
)


class EncodingError(ValueError):
    """Bytes are not text in a known encoding; the message says what to do."""


def decode_text(data: bytes, name: str) -> tuple[str, str]:
    """Decode the text of a file.

    In this order: UTF-16 with a byte order mark, or with the zeros of Latin letters; UTF-8 with or without a mark;
    Windows-1252, which has Latin-1 in it, if the result looks like a language of Latin letters.

    Args:
        data: The file's bytes.
        name: Name of the file for messages.

    Returns:
        The text without a mark, its line breaks as they are; and a warning, empty for UTF-8 and marked UTF-16.

    Raises:
        EncodingError: none of these.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _strict(data, "utf-16", name), ""
    if guessed := _zeros(data):
        return _strict(
            data, guessed, name
        ), f"{name} is read as {guessed.upper()}, which it does not say: save it as UTF-8"
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as error:
        text = data.decode("cp1252", errors="replace")
        if not _is_latin(text):
            line = data.count(b"\n", 0, error.start) + 1
            raise EncodingError(
                f"{name}, line {line}: expected UTF-8, or UTF-16 with a byte order mark; got byte "
                f"0x{data[error.start]:02x}: save the file as UTF-8."
            ) from None
        strange = next(c for c in text if not c.isascii())
        return (
            text,
            f"{name} is not UTF-8, and is read as Windows-1252 (Latin-1), with {strange!r} in it: save it as UTF-8",
        )


def _strict(data: bytes, encoding: str, name: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise EncodingError(
            f"{name}: expected {encoding.upper()}; got a damaged character at byte {error.start}."
        ) from None


def _zeros(data: bytes) -> str:
    """Return the UTF-16 of bytes without a mark of which every other is zero; empty for anything else."""
    even, odd = data[0:4096:2], data[1:4096:2]
    if len(data) % 2 or not odd:
        return ""
    shares = even.count(0) / len(even), odd.count(0) / len(odd)
    if shares[1] > _LEAST_ZEROS and shares[0] < 0.1:
        return "utf-16-le"
    return "utf-16-be" if shares[0] > _LEAST_ZEROS and shares[1] < 0.1 else ""


def _is_latin(text: str) -> bool:
    """Judge by the characters beyond ASCII: they are few letters, beside other letters, and usual signs."""
    if "\ufffd" in text or any(unicodedata.category(c) == "Cc" and not c.isspace() for c in text):
        return False
    letters = [c for c in text if c.isalpha()]
    other = [c for c in text if not c.isascii()]
    accented = [c for c in letters if not c.isascii()]
    unusual = sum(c in _UNUSUAL for c in other)
    return len(accented) <= _MOST_ACCENTED * len(letters) and 4 * unusual <= len(other)
