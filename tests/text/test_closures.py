"""Words that are said in several ways: their pronunciations side by side, and their stops with and without closures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from isotone.text.closures import WEAK_S, ClosureRules
from isotone.text.phone_tokenizer import MOST_PRONUNCIATIONS
from isotone.text.pronouncer import Pronouncer, Pronunciation
from isotone.text.tokenizer import PhoneTokenizer, build_tokenizer, load
from isotone.text.word_graph import WordGraph

LABELS = ["<pad>", "sil", "cl", "vcl", "t", "d", "k", "ch", "ae", "iy", "s", "m", "f", "dx"]
RULES = ClosureRules(
    longest_s=0.1, pause_s=0.2, paused=1.0, released=1.0, unreleased=2.0, joined=4.0, tapped=8.0
)


class Said(Pronouncer):
    """Pronunciations that are given, with their log-probabilities."""

    def __init__(self, **words: Sequence[tuple[str, float]]) -> None:
        self.words = words

    def lookup(self, words: Sequence[str]) -> list[list[str] | None]:
        return [list(said[0].phones) if said else None for said in self.alternatives(words)]

    def alternatives(self, words: Sequence[str]) -> list[list[Pronunciation]]:
        return [[Pronunciation(tuple(p.split()), q) for p, q in self.words.get(w, ())] for w in words]

    def save(self, folder: Path) -> dict[str, Any]:
        return {"kind": "espeak", "phones": 48, "closures": "sil"}


def ways(graph: WordGraph, context: str) -> dict[str, float]:
    """Every way of saying a word, with its cost, after and before speech or pauses: ``"sp"`` is speech, pause."""
    found: dict[str, float] = {}

    def extend(i: int, said: list[int], cost: float) -> None:
        part = graph[i]
        said = [*said, part.label]
        end = part.to_speech if context[1] == "s" else part.to_pause
        if end is not None:
            key = " ".join(LABELS[x] for x in said)
            assert key not in found
            found[key] = cost + end
        for j, after in enumerate(graph):
            for before, more in after.before:
                if before == i:
                    extend(j, said, cost + more)

    for i, part in enumerate(graph):
        begin = part.from_speech if context[0] == "s" else part.from_pause
        if begin is not None:
            extend(i, [], begin)
    return found


def spread(phones: str) -> WordGraph:
    return RULES.spread([LABELS.index(p) for p in phones.split()], LABELS)


def test_a_stop_that_begins_a_word_has_no_closure_after_a_pause() -> None:
    assert ways(spread("cl k ae"), "ss") == {"cl k ae": 0.0}
    assert ways(spread("cl k ae"), "ps") == {"k ae": 0.0}
    release = spread("cl k ae")[1]
    assert (release.pause_s, release.pause_cost) == (0.2, 1.0)


def test_a_stop_that_ends_a_word_may_have_no_release() -> None:
    assert ways(spread("ae cl k"), "sp") == {"ae cl k": 1.0, "ae cl": 2.0}
    assert ways(spread("ae cl k"), "ss") == {"ae cl k": 0.0, "ae cl": 4.0}
    assert ways(spread("ae cl ch"), "sp") == {"ae cl ch": 0.0}, "an affricate is released"


def test_a_closure_may_follow_another() -> None:
    assert ways(spread("ae cl k cl t s"), "ss") == {"ae cl k cl t s": 0.0, "ae cl cl t s": 4.0}


def test_t_and_d_between_vowels_may_have_no_closure() -> None:
    assert ways(spread("ae cl t iy"), "ss") == {"ae cl t iy": 0.0, "ae t iy": 8.0}
    assert ways(spread("ae cl k iy"), "ss") == {"ae cl k iy": 0.0}
    assert ways(spread("s cl t iy"), "ss") == {"s cl t iy": 0.0}
    assert ways(spread("vcl d iy"), "ss") == {"vcl d iy": 0.0, "d iy": 8.0}


def test_a_silence_before_a_weak_fricative_is_the_fricative_unless_it_is_long() -> None:
    assert (spread("f ae")[0].pause_s, spread("f ae")[0].pause_cost) == (WEAK_S, 1.0)
    assert (spread("s ae")[0].pause_s, spread("s ae")[0].pause_cost) == (0.0, 0.0)
    assert spread("ae f")[1].pause_s == 0.0


def test_a_flap_is_hardly_ever_before_a_pause() -> None:
    assert ways(spread("ae dx"), "sp") == {"ae dx": 2.0}
    assert ways(spread("ae dx"), "ss") == {"ae dx": 0.0}
    assert ways(spread("ae dx iy"), "sp") == {"ae dx iy": 0.0}


def test_closures_are_short_and_halves_of_their_stops() -> None:
    parts = spread("ae cl k iy sil t")
    assert [part.longest_s for part in parts] == [0.0, 0.1, 0.0, 0.0, 0.1, 0.0]
    assert [part.half for part in parts] == [False, True, True, False, True, True]
    assert [part.stop and LABELS[part.stop] for part in parts] == [None, "k", None, None, "t", None]


def test_pronunciations_of_a_word() -> None:
    said = Said(a=[("ae", -0.1), ("iy", -2.1), ("ae", -3.0)], b=[("s iy", 0.0)])
    transcript = PhoneTokenizer(LABELS, said, "sil").encode("a b")
    assert [LABELS[t] for t in transcript.tokens] == ["sil", "ae", "s", "iy", "sil"]
    graph, none = transcript.graphs
    assert none is None
    assert ways(graph, "ss") == pytest.approx({"ae": 0.0, "iy": 2.0})  # type: ignore[arg-type]


def test_pronunciations_of_the_parts_of_a_word() -> None:
    said = Said(a=[("ae", -0.1), ("iy", -1.1)], s=[("s", -0.2), ("m", -2.2)])
    (graph,) = PhoneTokenizer(LABELS, said).encode("a-s").graphs
    assert ways(graph, "ss") == pytest.approx({"ae s": 0.0, "iy s": 1.0, "ae m": 2.0, "iy m": 3.0})  # type: ignore[arg-type]


def test_of_many_pronunciations_the_likeliest_are_kept() -> None:
    many = [(" ".join(["ae"] * n), -float(n)) for n in range(1, 40)]
    (graph,) = PhoneTokenizer(LABELS, Said(a=many)).encode("a").graphs
    assert len(ways(graph, "ss")) == MOST_PRONUNCIATIONS  # type: ignore[arg-type]
    assert max(ways(graph, "ss").values()) == MOST_PRONUNCIATIONS - 1  # type: ignore[arg-type]


def test_one_pronunciation_without_closures_has_no_graph() -> None:
    said = Said(a=[("ae s", 0.0)], cat=[("cl k ae cl t", 0.0)])
    assert PhoneTokenizer(LABELS, said, "sil").encode("a cat").graphs == ()
    assert PhoneTokenizer(LABELS, said, "sil", closures=RULES).encode("a").graphs == ()
    first, second = PhoneTokenizer(LABELS, said, "sil", closures=RULES).encode("a cat").graphs
    assert first is None
    assert second == spread("cl k ae cl t")


def test_a_closure_that_is_the_silence_is_one_word_by_word() -> None:
    """The likeliest reading leaves it out where a word begins; the graph has it."""
    tokenizer = PhoneTokenizer(LABELS, Said(cat=[("sil k ae sil t", 0.0)]), "sil", closures=RULES)
    transcript = tokenizer.encode("cat")
    assert [LABELS[t] for t in transcript.tokens] == ["sil", "k", "ae", "sil", "t", "sil"]
    assert ways(transcript.graphs[0], "ss") == {"sil k ae sil t": 0.0, "sil k ae sil": 4.0}  # type: ignore[arg-type]


def test_rules_are_saved_and_read(tmp_path: Path) -> None:
    tokenizer = PhoneTokenizer(LABELS, Said(), "sil", closures=RULES)
    tokenizer.save(tmp_path)
    assert load(tmp_path).closures == RULES  # type: ignore[attr-defined]
    PhoneTokenizer(LABELS, Said(), "sil").save(tmp_path)
    assert load(tmp_path).closures is None  # type: ignore[attr-defined]
    assert "closures" not in (tmp_path / "isotone_tokenizer.json").read_text().split("lexicon")[1]


def test_rules_of_a_recipe() -> None:
    rows = [{"phones": {"label": ["ae", "cl", "t"]}, "text": ""}]
    built = [build_tokenizer("phones", rows, closures=c) for c in ("line", "lattice", {"longest_s": 0.1})]  # type: ignore[arg-type]
    rules = [tokenizer.closures for tokenizer in built]  # type: ignore[attr-defined]
    assert rules == [None, ClosureRules(), ClosureRules(longest_s=0.1)]
    with pytest.raises(ValueError, match="'line' or 'lattice'; got 'graph'"):
        build_tokenizer("phones", rows, closures="graph")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"no values such as .'longest': 1."):
        build_tokenizer("phones", rows, closures={"longest": 1})
    for wrong in (
        {"longest_s": 0.0},
        {"longest_s": float("inf")},
        {"tapped": -1.0},
        {"pause_s": float("nan")},
    ):
        with pytest.raises(ValueError, match="Closures last at most"):
            ClosureRules(**wrong)
