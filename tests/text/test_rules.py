"""Readings of a user's own: they come first, and errors name the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotone.text.normalize import split_words
from isotone.text.options import TextOptions, adapted
from isotone.text.rules import Rules, RulesError
from tests.text.test_given import ENGLISH, UNKNOWN

TABLE = (
    "# readings of our own\n\nSQL\tsequel\ts q l\nkm\tklicks\nµm\tmicrons\napprox.\tabout\n№7\tnumber seven\n"
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "rules.tsv").write_text(TABLE, encoding="utf-8")
    return tmp_path / "rules.tsv"


@pytest.mark.parametrize("language", ["en", "de", ""])
def test_rules_come_before_the_language(table: Path, language: str) -> None:
    rules = Rules([table])
    assert len(rules) == 5
    words = split_words("(SQL), 5 KM; “µm” approx. (approx.), №7 sql", language=language, rules=rules)
    found = {word.text: word.readings for word in words}
    assert found["(SQL),"] == ("sequel", "s q l")
    assert found["KM;"] == ("klicks",)
    assert found["“µm”"] == ("microns",)
    assert found["approx."] == found["(approx.),"] == ("about",)
    assert found["№7"] == ("number seven",)
    assert found["sql"] == ("sql",), "a form with capitals counts as it is written"


def test_of_two_tables_the_first_counts(table: Path, tmp_path: Path) -> None:
    (tmp_path / "other.tsv").write_text("km\tkilos\nzz\tzed zed\n")
    rules = Rules([tmp_path / "other.tsv", table])
    assert [rules.readings(word) for word in ("km", "zz", "SQL", "x")] == [
        ["kilos"],
        ["zed zed"],
        ["sequel", "s q l"],
        [],
    ]


def test_tokenizers_take_them(table: Path) -> None:
    for tokenizer in (ENGLISH, UNKNOWN):
        changed = adapted(tokenizer, TextOptions(rules=(table,)))
        (word,) = changed.encode("SQL").words
        assert word.readings == ("sequel", "s q l")
        assert tokenizer.rules is None, "the model's own is as it was"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("SQL sequel", "line 2: expected a written form, a tab and its reading"),
        ("SQL\t", "line 2: expected a written form"),
        ("\tsequel", "line 2: expected a written form"),
        ("New York\tbig apple", "line 2: a written form has no spaces; got 'New York'"),
        ("x1\tx 1", "line 2: a reading has words in letters alone; got 'x 1'"),
        ("a\tb\na\tc", "line 3: 'a' is there twice; put all of its readings in one line"),
    ],
)
def test_broken_tables(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "rules.tsv").write_text(f"# ours\n{line}\n")
    with pytest.raises(RulesError, match=r"rules\.tsv, " + message):
        Rules([tmp_path / "rules.tsv"])


def test_a_missing_table(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No table of readings .*absent\.tsv"):
        Rules([tmp_path / "absent.tsv"])
