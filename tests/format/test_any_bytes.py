"""Reading a file of any bytes gives an alignment, or a FormatError that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isotone import formats
from isotone.alignment import Alignment
from isotone.evaluation.files import evaluate_paths
from isotone.format import FormatError, read, read_folder
from isotone.format.textgrid import TextGridFormat
from tests.format.strategies import NASTY, alignments

SUFFIXES = {
    "textgrid": ".TextGrid", "ctm": ".ctm", "json": ".json", "csv": ".csv", "timit": ".phn", "audacity": ".txt",
}  # fmt: skip
NAMES = sorted(SUFFIXES)

#: Numbers and words that have broken somebody's reader.
HOSTILE = [
    b"nan", b"-nan", b"inf", b"-inf", b"1e999", b"-1e999", b"1e308", b"1" * 5000, b"-1", b"-0.0", b"1e-400", b"0x10",
    "\u0661".encode(), "\u00b2".encode(), b"1_000", b"null", b"true", b"[]", b"{}", b"[" * 3000, b'{"a":' * 3000,
    b'"', b'""', b"<exists>", b"<absent>", b"!", b"\0", b"\r", b"\r\n", b"\t", b"\xff", b"\xfe\xff", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\xed\xa0\x80", b"9" * 400, b"99999999999", b"1e5", b'"words"', b'"IntervalTier"', b",", b";;",
]  # fmt: skip

TOKENS = [*HOSTILE, *(n.encode() for n in NASTY), b"0", b"1", b"0.5", b" ", b"\n", b"\t", b"a"]

settings.register_profile(
    "bytes", deadline=5000, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
fuzz = settings(settings.get_profile("bytes"))


def check(folder: Path, name: str, data: bytes) -> None:
    path = folder / f"u{SUFFIXES[name]}"
    path.write_bytes(data)
    said = ""
    try:
        assert isinstance(read(path), Alignment)
    except FormatError as error:
        said = str(error)
    assert not said or said.startswith(f"{path}: ")
    found = read_folder(folder, "words")
    assert found.alignments or found.errors or found.foreign or name == "ctm", (
        "nothing is passed over in silence"
    )
    path.unlink()


@st.composite
def damaged(draw: st.DrawFn, name: str) -> bytes:
    """Draw a valid file of a format, in any encoding, with parts removed, doubled, swapped or replaced."""
    alignment = draw(alignments())
    options = {"style": draw(st.sampled_from(["long", "short"]))} if name == "textgrid" else {}
    text = formats.build(name, **options).dumps(alignment)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    data = text.encode(
        draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])), "replace"
    )
    for _ in range(draw(st.integers(0, 4))):
        start, end = sorted(draw(st.integers(0, len(data))) for _ in range(2))
        end = draw(st.sampled_from([end, start, min(len(data), start + 1), len(data)]))
        piece = draw(st.one_of(st.sampled_from(HOSTILE), st.binary(max_size=8), st.just(data[start:end] * 2)))
        data = data[:start] + piece + data[end:]
    return data


@pytest.mark.parametrize("name", NAMES)
@fuzz
@given(data=st.binary(max_size=200))
def test_any_bytes(tmp_path: Path, name: str, data: bytes) -> None:
    check(tmp_path, name, data)


@pytest.mark.parametrize("name", NAMES)
@fuzz
@given(data=st.data())
def test_damaged_files(tmp_path: Path, name: str, data: st.DataObject) -> None:
    check(tmp_path, name, data.draw(damaged(name)))


@pytest.mark.parametrize("name", NAMES)
@fuzz
@given(tokens=st.lists(st.sampled_from(TOKENS), max_size=20))
def test_hostile_tokens(tmp_path: Path, name: str, tokens: list[bytes]) -> None:
    for separator in (b" ", b"\n", b"\t", b","):
        check(tmp_path, name, separator.join(tokens))


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_a_file_can_be_hostile(tmp_path: Path, name: str) -> None:
    texts = {
        "textgrid": b'"ooTextFile" "TextGrid" 0 1 <exists> 1 "IntervalTier" "words" 0 1 1 0 1 "a"',
        "ctm": b"u 1 0 1 a 0.5",
        "json": b'{"format": "isotone-alignment", "version": 1, "id": "u", "duration": 1, "score": 0, "tiers": '
        b'[{"name": "words", "segments": [{"label": "a", "start": 0, "end": 1, "score": 0, "confidence": 1}]}]}',
        "csv": b"tier,label,start,end,score,confidence\nwords,a,0,1,0,1\n",
        "timit": b"0 1 a\n",
        "audacity": b"0\t1\ta\n",
    }
    data = texts[name]
    for place, byte in enumerate(data):
        for value in HOSTILE if byte in b"01" else ():
            check(tmp_path, name, data[:place] + value + data[place + 1 :])


def test_a_textgrid_that_promises_more_than_it_has_ends_at_once(tmp_path: Path) -> None:
    for count in ("999999999999", "1e300"):
        text = f'"ooTextFile" "TextGrid" 0 1 <exists> {count} "IntervalTier" "words" 0 1 {count} 0 1 "a"'
        with pytest.raises(FormatError, match="got the end of the file"):
            TextGridFormat().loads(text, "u")


def test_two_tiers_of_one_name_are_an_error_that_names_them(tmp_path: Path) -> None:
    tier = '"IntervalTier" "words" 0 1 1 0 1 "a" '
    (tmp_path / "u.TextGrid").write_text(f'"ooTextFile" "TextGrid" 0 1 <exists> 2 {tier * 2}')
    with pytest.raises(ValueError, match=r"u\.TextGrid: .*two tiers share a name: \['words', 'words'\]"):
        evaluate_paths(tmp_path, tmp_path)
