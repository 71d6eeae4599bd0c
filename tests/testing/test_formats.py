"""Every law of formats can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isotone import formats
from isotone.alignment import Alignment
from isotone.interfaces import Format
from isotone.testing import check_format


@pytest.mark.parametrize(("shift_s", "law"), [(0.01, "times are kept"), (0.0, "stays the same")])
def test_a_format_that_loses_something_is_caught(shift_s: float, law: str) -> None:
    json = formats.build("json")

    class Broken(Format):
        suffix = ".json"

        def dumps(self, alignment: Alignment) -> str:
            return json.dumps(alignment)

        def loads(self, text: str, id: str) -> Alignment:
            tiers = []
            for tier in json.loads(text, id).tiers:
                moved = [replace(s, start=s.start + shift_s, end=s.end + shift_s, score=None) for s in tier]
                tiers.append(replace(tier, segments=tuple(moved)))
            return Alignment(id, 2.5, tuple(tiers))

    with pytest.raises(AssertionError, match=law):
        check_format(Broken())


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ("suffix", "a suffix begins with a dot"),
        ("empty", "not empty"),
        ("random", "equal alignments give equal files"),
        ("silence", "tiers without segments can be written"),
        ("tiers", "at least one tier is kept"),
        ("id", "the id is 'utt-1'"),
        ("label", "labels of tier 'words' are kept"),
    ],
)
def test_a_format_that_breaks_a_law_is_caught(fault: str, law: str) -> None:
    json = formats.build("json")

    class Broken(Format):
        suffix = "json" if fault == "suffix" else ".json"
        calls = 0

        def dumps(self, alignment: Alignment) -> str:
            self.calls += 1
            if fault == "silence" and not any(map(len, alignment.tiers)):
                return None  # type: ignore[return-value]
            return "" if fault == "empty" else json.dumps(alignment) + " " * (fault == "random") * self.calls

        def loads(self, text: str, id: str) -> Alignment:
            found = json.loads(text, id)
            if fault == "tiers":
                return replace(found, tiers=())
            if fault == "id":
                return replace(found, id="another")
            words = found.tier("words")
            return replace(found, tiers=(replace(words, segments=words.segments[1:]),))

    with pytest.raises(AssertionError, match=law):
        check_format(Broken())
