"""English pronunciations in miniature: the dictionary read, aligned, held out, trained on and measured."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isotone.alignment import Segment
from isotone.text.letter_network import LetterNetwork
from isotone.text.packed import pack, unpack
from isotone.text.phones import PHONES_48
from isotone.text.pronounce import Chain, EnglishLexicon, load_pronouncer
from isotone.text.pronouncer import Pauses
from tests.paths import RECIPES

RECIPE = RECIPES / "english"
SHIPPED = RECIPE / "pronunciations" / "built"
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(RECIPE))
    import pronounce
    from pronunciations.aligned import align
    from pronunciations.held_out import held_out, stem
    from pronunciations.network import Network
    from pronunciations.pausing import LEAST, PauseCounts, read_pauses, write_pauses
    from pronunciations.source import read_cmudict, read_reductions, symbols
    from pronunciations.training import hint

CMUDICT = """a AH0
a(2) EY1
ad AE1 D # abbreviation
add AE1 D
cab K AE1 B
cabs K AE1 B Z
cadet K AH0 D EH1 T
taxi T AE1 K S IY0
bet B EH1 T
bets B EH1 T S
decade D EH1 K EY0 D
beta B EY1 T AH0
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "LICENSE").write_text("Copyright: yes\n")
    (tmp_path / "source" / "cmudict.dict").write_text(CMUDICT)
    return tmp_path / "source" / "cmudict.dict"


def test_the_dictionary(source: Path, tmp_path: Path) -> None:
    words = read_cmudict(source)
    assert words["a"] == [("ax",), ("ey",)]
    assert words["taxi"] == [("t", "ae", "k", "s", "iy0")]
    assert words["decade"] == [("d", "eh", "k", "ey0", "d")]
    (tmp_path / "x.dict").write_text("a AH\nb B IY\n")
    with pytest.raises(ValueError, match=r"x\.dict: no phone has a stress digit"):
        read_cmudict(tmp_path / "x.dict")
    with pytest.raises(ValueError, match="CMUdict has no phones"):
        symbols(["Ə"])


def test_the_table_of_reductions() -> None:
    table = read_reductions()
    assert len(table) > 50
    for word, found in table.items():
        assert 1 <= len(found) <= 6, word
        assert sum(found.values()) == pytest.approx(1), word
        assert next(iter(found.values())) >= 0.2


def test_counted_pauses_become_costs(tmp_path: Path) -> None:
    counts = PauseCounts()
    for i in range(3 * LEAST):  # "the cat" never pauses; "cat but" pauses in two of three
        gap = 0.5 if i % 3 else 0.05
        words = [("The", 0.0, 0.1), ("cat", 0.1, 0.4), ("but", 0.4 + gap, 1.0 + gap)]
        counts.add([Segment(*word) for word in words])
    counts.add([Segment("rare", 0.0, 0.1), Segment("cat", 0.2, 0.3)])
    assert (counts.places, counts.pauses) == (6 * LEAST + 1, 2 * LEAST + 1)
    write_pauses(tmp_path / "pauses.txt", counts)
    found = {word: Pauses(*costs) for word, costs in read_pauses(tmp_path / "pauses.txt").items()}
    assert set(found) == {"the", "cat", "but"}
    assert found["the"].to_speech == 0 < 4 < found["the"].to_pause
    assert found["cat"].to_pause == 0 < found["cat"].to_speech
    assert found["but"] == Pauses(from_speech=found["cat"].to_speech)
    assert found["the"].from_pause == 0, "nothing is known of it"

    # shares of 3 in 60 places, with 5 more of 1 in 4
    (tmp_path / "x.txt").write_text("# Of all words: 400 100\nthe\t55\t2\t0\t0\n")
    own = (2 + 5 / 4) / 60
    expected = 1.5 * (math.log(0.25 / own) + math.log((1 - own) / 0.75))
    assert read_pauses(tmp_path / "x.txt") == {"the": [0.0, pytest.approx(expected, abs=1e-3), 0.0, 0.0]}
    (tmp_path / "x.txt").write_text("# Of all words: 400 100\nthe\t60\t3\n")
    with pytest.raises(ValueError, match=r"x\.txt, line 2: a new word and four counts"):
        read_pauses(tmp_path / "x.txt")


def test_the_table_of_pauses_is_in_the_lexicon() -> None:
    table = read_pauses()
    assert unpack((SHIPPED / "english_words.xz").read_bytes()).header["pauses"] == table
    assert {word: Pauses(*table[word]).to_pause > 2 for word in ("the", "of", "him")} == {
        "the": True, "of": True, "him": False,
    }  # fmt: skip
    assert Pauses(*table["but"]).from_speech > 1


@given(st.data())
def test_alignments_lose_no_phone(data: st.DataObject) -> None:
    spoken = st.lists(st.sampled_from("pq"), min_size=1, max_size=5).map(tuple)
    entries = st.tuples(st.text("ab", min_size=1, max_size=4), spoken)
    words = data.draw(st.lists(entries, min_size=1, max_size=5))
    for (word, phones), chunks in zip(words, align(words, rounds=2)):
        assert (chunks is None) == (len(phones) > 2 * len(word))
        if chunks is not None:
            assert tuple(p for chunk in chunks for p in chunk) == phones
            assert len(chunks) == len(word)


def test_letters_find_their_phones() -> None:
    some = [
        ("".join(letters), tuple(c.upper() for c in letters)) for letters in itertools.permutations("abc")
    ]
    for (word, _), chunks in zip([*some, ("xa", ("K", "S", "A"))], align([*some, ("xa", ("K", "S", "A"))])):
        assert chunks == tuple(("K", "S") if c == "x" else (c.upper(),) for c in word)


def test_words_held_out() -> None:
    syllables = itertools.product("bdfk", "aou", "lmrt", "ko", ("", "s", "'s", "ing", "er"))
    words = ["".join(parts) for parts in syllables]
    families, others = held_out(words)
    assert families
    assert others
    assert not families & others
    rest = {*words} - families - others
    assert not {stem(word) for word in families} & {stem(word) for word in rest | others}
    bases = {re.sub("'s$", "", word) for word in others}
    assert not bases & {re.sub("'s$", "", word) for word in rest}
    assert held_out(words) == held_out(reversed(words))


def test_the_network_runs_in_numpy_as_in_torch() -> None:
    torch.manual_seed(0)
    network = Network(5, width=16, heads=4, layers=2, reach=3).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    tensors = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    numpy = LetterNetwork(tensors, [(str(i),) for i in range(5)], 4)
    # "cab" in a batch with a longer word
    letters = torch.tensor([[0, 4, 2, 3, 1, 1, 1], [0, 2, 2, 2, 2, 2, 1]])
    mask = torch.tensor([[True] * 5 + [False] * 2, [True] * 7])
    given = torch.tensor([[0, 3, 0, 0, 0, 0, 0]] * 2)
    with torch.no_grad():
        expected = network(letters, mask, given)[0, 1:4].log_softmax(-1)
    np.testing.assert_allclose(numpy.log_probs("cab", [[2]])[0], expected, atol=1e-4)


def test_hints_are_beginnings() -> None:
    torch.manual_seed(0)
    outputs = torch.tensor([[-1, 7, 8, 9, -1, -1]] * 400)
    mask = torch.tensor([[True] * 5 + [False]] * 400)
    found = {tuple(row) for row in hint(outputs, mask).tolist()}
    assert found == {(0, *[8, 9, 10][:k], *[0] * (5 - k)) for k in range(4)}


def test_everything_in_miniature(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pronunciations.training.SEEN", 1)
        patch.setattr("pronounce.held_out", lambda words: ({"cab", "cabs"}, {"beta"}))
        licence = source.with_name("LICENSE")
        pronounce.build(source, licence, out, epochs=1)
        pronounce.build(source, licence, out, ["words", "measure"])
    printed = capsys.readouterr().out
    assert "12 words with" not in printed
    assert "11 words with 12 pronunciations" in printed
    assert re.search(r"\| families \| 2 \| letters \| \d", printed)
    assert (out / "LICENSE.cmudict").read_text() == licence.read_text()
    chain = load_pronouncer(json.loads((out / "pronouncer.json").read_text()), out)
    assert isinstance(chain, Chain)
    assert [p.phones for p in chain.alternatives(["taxi"])[0]] == [("t", "ae", "k", "s", "iy")]
    assert chain.guessed(["taxi", "zabet"]) == ["zabet"]


def test_what_is_missing_or_in_the_way(source: Path, tmp_path: Path) -> None:
    out, licence = tmp_path / "out", source.with_name("LICENSE")
    with pytest.raises(FileNotFoundError, match=r"No licence .*gone: it travels with the pronunciations"):
        pronounce.build(source, source.with_name("gone"), out, ["words"])
    out.mkdir()
    (out / pronounce.WORDS).write_text("mine")
    with pytest.raises(FileExistsError, match="holds something else"):
        pronounce.build(source, licence, out, ["words"])
    assert (out / pronounce.WORDS).read_text() == "mine"


def test_the_built_lexicon() -> None:
    """Every entry round-trips, and the sizes are those that a wheel has room for."""
    path = SHIPPED / pronounce.WORDS
    assert path.stat().st_size < 2_000_000
    assert (SHIPPED / pronounce.LETTERS).stat().st_size < 1_000_000
    assert "Carnegie Mellon" in (SHIPPED / pronounce.LICENCE).read_text()
    read = unpack(path.read_bytes())
    assert len(read) > 100_000
    assert {s.removesuffix("0") for word in read for some in read.get(word) for s in some} <= {*PHONES_48}
    again = unpack(pack({word: read.get(word) for word in read}, **read.header))
    assert again.header == read.header
    assert all(again.get(word) == read.get(word) for word in read)
    lexicon = EnglishLexicon(path)
    assert lexicon(["NASA", "water", "the"]) == [
        ["n", "ae", "s", "ax"],
        ["w", "ao", "dx", "er"],
        ["dh", "ax"],
    ]
    assert lexicon.lookup(["qwrtk"]) == [None] or lexicon(["qwrtk"])
