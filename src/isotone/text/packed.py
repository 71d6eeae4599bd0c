"""Many words with their pronunciations in one small file: sorted words, and a byte per phone, compressed by LZMA."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

#: First line of the file once it is decompressed.
_MAGIC = b"isotone words 1"
#: Bytes of phones; those before are the separators.
_FIRST = 33
_MOST = 256 - _FIRST

Symbols = tuple[str, ...]


class PackedWords:
    """Words with one or more pronunciations each, in the order in which they were given.

    Attributes:
        header: What the file says of itself, such as its source.
    """

    def __init__(self, header: dict[str, Any], symbols: Sequence[str], spoken: dict[bytes, bytes]) -> None:
        self.header = header
        self._symbols = dict(enumerate(symbols, _FIRST))
        self._spoken = spoken

    def __len__(self) -> int:
        return len(self._spoken)

    def __iter__(self) -> Iterator[str]:
        return (word.decode() for word in self._spoken)

    def __contains__(self, word: str) -> bool:
        return word.encode(errors="replace") in self._spoken

    def get(self, word: str) -> list[Symbols]:
        """Return the pronunciations of a word, the first one first; none for an unknown word."""
        codes = self._spoken.get(word.encode(errors="replace"), b"")
        return [tuple(self._symbols[code] for code in some) for some in codes.split()]


def pack(words: Mapping[str, Sequence[Sequence[str]]], **header: Any) -> bytes:
    """Return the content of a file with the pronunciations of words.

    Args:
        words: One or more pronunciations of one or more phones for every word.
        header: What the file is to say of itself; values of JSON.

    Raises:
        ValueError: a word that is empty or has a line break, a word without phones, or more than 223 kinds of phones.
    """
    symbols = sorted({symbol for found in words.values() for some in found for symbol in some})
    if len(symbols) > _MOST:
        raise ValueError(f"A file of words has at most {_MOST} kinds of phones; got {len(symbols)}.")
    codes = {symbol: code for code, symbol in enumerate(symbols, _FIRST)}
    for word, found in words.items():
        if not word or "\n" in word or not found or not all(found):
            raise ValueError(f"A word is one line, and has phones; got {word!r} with {list(found)}.")
    order = sorted(words)
    head = json.dumps({**header, "words": len(order), "symbols": symbols}, ensure_ascii=False)
    spoken = (b" ".join(bytes(codes[s] for s in some) for some in words[word]) for word in order)
    content = b"\n".join([_MAGIC, head.encode(), *(word.encode() for word in order), *spoken])
    return lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)


def unpack(data: bytes) -> PackedWords:
    """Return the words of a file that :func:`pack` made.

    Raises:
        ValueError: it is another file, or damaged.
    """
    try:
        magic, head, *lines = lzma.decompress(data).split(b"\n")
        header = json.loads(head)
        size, symbols = header.pop("words"), header.pop("symbols")
        if magic != _MAGIC or len(lines) != 2 * size:
            raise ValueError(f"{size} words in {len(lines)} lines")
        return PackedWords(header, symbols, dict(zip(lines[:size], lines[size:])))
    except (lzma.LZMAError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no packed words of isotone, or damaged ({error})") from None
