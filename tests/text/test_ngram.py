"""N-gram estimation: probabilities that sum to 1, files that KenLM can read, and the textbook's formula."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from isotone.cli.lm import lm
from isotone.text.ngram import BEGIN, END, UNKNOWN, NGram, arpa_words, estimate
from tests.tiny_models import save_character_model, save_phone_model

sentences = st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=6), min_size=1, max_size=12)


def zipf_sentences(seed: int, count: int, words: int) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [[f"w{x}" for x in rng.zipf(1.5, rng.integers(1, 9)) if x <= words] for _ in range(count)]


def vocabulary(model: NGram) -> list[str]:
    return [words[0] for words in model.log10_probs if len(words) == 1 and words[0] != BEGIN]


@settings(max_examples=40, deadline=None)
@given(sentences, st.integers(2, 4), st.lists(st.sampled_from("abcdex"), max_size=4), st.booleans())
def test_probabilities_sum_to_one_in_any_context(
    said: list[list[str]], order: int, context: list[str], first: bool
) -> None:
    model = estimate(said, order)
    words = vocabulary(model)
    assert sorted(words) == sorted({*(w for s in said for w in s), END, UNKNOWN})
    before = [BEGIN, *context] if first else context
    assert sum(10 ** model.log10_prob(w, before) for w in words) == pytest.approx(1.0, abs=1e-9)


def test_the_formula_by_hand() -> None:
    # bigrams <s>a a</s> <s>b ba a</s>: counts 1 1 1 1 2-> a</s> twice; too few to estimate discounts: 0.5, 1, 1.5
    model = estimate([["a"], ["b", "a"]], 2)
    # words seen before: a after <s> and b, b after <s>, </s> after a: 2 1 1 of 4; below them 1 / |{a b </s> <unk>}|
    below = (1.0 + 0.5 + 0.5) / 4 / 4
    a, b, end = (2 - 1.0) / 4 + below, (1 - 0.5) / 4 + below, (1 - 0.5) / 4 + below
    expected = {
        ("a",): a, ("b",): b, (END,): end, (UNKNOWN,): below,
        (BEGIN, "a"): (1 - 0.5) / 2 + 1.0 / 2 * a,
        (BEGIN, "b"): (1 - 0.5) / 2 + 1.0 / 2 * b,
        ("b", "a"): (1 - 0.5) / 1 + 0.5 * a,
        ("a", END): (2 - 1.0) / 2 + 1.0 / 2 * end,
    }  # fmt: skip
    got = {words: 10**p for words, p in model.log10_probs.items() if words != (BEGIN,)}
    assert got == pytest.approx(expected)
    assert 10 ** model.log10_prob("b", ["x", "b"]) == pytest.approx(0.5 * b)


def test_discounts_come_from_the_counts_of_counts() -> None:
    # 4 words once, 3 twice, 2 three times, 1 four times, each in sentences of its own: raw bigram counts after <s>
    said = [[f"w{i}"] for i, times in enumerate([1] * 4 + [2] * 3 + [3] * 2 + [4]) for _ in range(times)]
    model = estimate(said, 2)
    # of the 20 bigrams 8, 6, 4 and 2 have counts 1 to 4
    share = 8 / (8 + 2 * 6)
    discounts = [1 - 2 * share * 6 / 8, 2 - 3 * share * 4 / 6, 3 - 4 * share * 2 / 4]
    total = len(said)
    left = (4 * discounts[0] + 3 * discounts[1] + 3 * discounts[2]) / total
    assert 10 ** model.log10_backoffs[BEGIN,] == pytest.approx(left)
    unigram = 10 ** model.log10_prob("w9", [])
    assert 10 ** model.log10_prob("w9", [BEGIN]) == pytest.approx((4 - discounts[2]) / total + left * unigram)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_kenlm_reads_the_file_and_has_the_same_perplexity(order: int, tmp_path: Path) -> None:
    decoder = pytest.importorskip(
        "flashlight.lib.text.decoder.kenlm", reason="flashlight-text is not installed"
    )
    from flashlight.lib.text.dictionary import Dictionary

    model = estimate(zipf_sentences(0, 300, 50), order)
    model.write(tmp_path / "lm.arpa")
    known = vocabulary(model)
    assert set(arpa_words(tmp_path / "lm.arpa")) == set(known) - {END, UNKNOWN}
    dictionary = Dictionary([*known, "unheard-of"])
    theirs = decoder.KenLM(str(tmp_path / "lm.arpa"), dictionary)
    held_out = zipf_sentences(1, 100, 70)
    total, count = 0.0, 0
    for sentence in held_out:
        state = theirs.start(False)
        for word in sentence:
            state, score = theirs.score(state, dictionary.get_index(word if word in known else "unheard-of"))
            total += score
        total += theirs.finish(state)[1]
        count += len(sentence) + 1
    assert any(word not in known for sentence in held_out for word in sentence)
    assert model.perplexity(held_out) == pytest.approx(10 ** (-total / count), rel=1e-5)


def test_more_context_helps_where_there_is_some() -> None:
    said = [list("abcabcabc"[i:]) for i in range(3)] * 5
    perplexities = [estimate(said, order).perplexity(said) for order in (2, 3)]
    assert perplexities[1] < perplexities[0] < 4


@pytest.mark.parametrize(
    ("said", "order", "message"),
    [
        ([["a"]], 1, "at least 2"),
        ([], 2, "there are none"),
        ([[]], 2, "there are none"),
        ([["a", "<s>"]], 2, "other than <s>"),
        ([["a b"]], 2, "without spaces.*got 'a b'"),
        ([[""]], 2, "got ''"),
    ],
)
def test_what_is_no_text_is_refused(said: list[list[str]], order: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimate(said, order)


def test_perplexity_needs_sentences() -> None:
    with pytest.raises(ValueError, match="expects sentences"):
        estimate([["a"]], 2).perplexity([])


@pytest.mark.parametrize(
    "data", [b"\x00\xff\xfe", b"hello\n", b"\\1-grams:\n-1 a\n", b"\\1-grams:\n-1\n\\end\\\n"]
)
def test_files_that_are_no_arpa_are_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ValueError, match="no ARPA file"):
        arpa_words(tmp_path / "x")


# The command


def run(*arguments: object, code: int = 0) -> str:
    app = typer.Typer()
    app.command()(lm)
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_the_command_writes_a_model_of_a_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat sat\n\nthe dog sat\n")
    said = run(
        tmp_path / "a.txt", "--order", 2, "--out", tmp_path / "lm.arpa", "--held-out", tmp_path / "a.txt"
    )
    model = estimate([["the", "cat", "sat"], ["the", "dog", "sat"]], 2)
    assert f"{len(model.log10_probs)} n-grams" in said
    assert f"{model.perplexity([['the', 'cat', 'sat'], ['the', 'dog', 'sat']]):.1f}" in said
    model.write(tmp_path / "expected.arpa")
    assert (tmp_path / "lm.arpa").read_text() == (tmp_path / "expected.arpa").read_text()
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfthe cat sat\r\nthe dog sat\r\n")  # as Windows writes it
    run(tmp_path / "a.txt", "--order", 2, "--out", tmp_path / "lm.arpa")
    assert (tmp_path / "lm.arpa").read_text() == (tmp_path / "expected.arpa").read_text()


def test_the_command_takes_a_models_words_or_labels(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The cat, 2 cats!\n!!!\n")
    characters = save_character_model(tmp_path / "characters")
    run(tmp_path / "a.txt", "--model", characters, "--out", tmp_path / "words.arpa")
    assert set(arpa_words(tmp_path / "words.arpa")) == {"the", "cat", "two", "cats"}
    run(tmp_path / "a.txt", "--model", characters, "--tokens", "--out", tmp_path / "tokens.arpa")
    assert set(arpa_words(tmp_path / "tokens.arpa")) == set("thecatwos|")
    (tmp_path / "b.txt").write_text("sil aa t sil\n")
    run(
        tmp_path / "b.txt",
        "--model",
        save_phone_model(tmp_path / "phones"),
        "--out",
        tmp_path / "phones.arpa",
    )
    assert set(arpa_words(tmp_path / "phones.arpa")) == {"sil", "aa", "t"}


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat sat\n")
    run(tmp_path / "a.txt", "--tokens", "--out", tmp_path / "lm.arpa", code=2)
    run(tmp_path / "a.txt", "--order", 1, "--out", tmp_path / "lm.arpa", code=2)
    run(tmp_path / "none.txt", "--out", tmp_path / "lm.arpa", code=2)
    (tmp_path / "latin.txt").write_bytes("café".encode("latin-1"))
    assert "latin.txt is not UTF-8" in run(tmp_path / "latin.txt", "--out", tmp_path / "lm.arpa", code=2)
    assert "is a folder" in run(tmp_path / "a.txt", "--out", tmp_path, code=2)
    assert not (tmp_path / "lm.arpa").exists()
