"""Edges of recordings before and after the text, and recordings without edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer import Typer
from typer.testing import CliRunner

from benchmarks import edges as bench
from isotone.pipeline import Pipeline, stars
from isotone.pipeline.edges import END_GAIN, LEAST_GAIN, choose_edges, with_edges
from isotone.pipeline.result import Result
from isotone.pipeline.texts import TextToAlign
from isotone.types import Emissions
from tests.pipeline.parts import SPELT, GivenEmissions, emissions_of, give, phone_model, shown
from tests.tiny_models import PHONES, save_character_model, save_noise

MUSIC = "sitattis"  # phones where there is none


def asked_for(text: str) -> TextToAlign:
    transcript = stars.encode(SPELT, text)
    return TextToAlign(*SPELT.with_pauses(transcript))


def in_words(text: TextToAlign) -> str:
    names = shown(text[0], PHONES).split()
    return " ".join(f"({n})" if o else n for n, o in zip(names, text[1]))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (True, True, "(*) (sil) s iy t (sil) aa t (sil) (*)"),
        (True, False, "(*) (sil) s iy t (sil) aa t sil"),
        (False, True, "sil s iy t (sil) aa t (sil) (*)"),
    ],
)
def test_stars_at_the_ends_are_of_no_word(left: bool, right: bool, expected: str) -> None:
    text = asked_for("sit at")
    inside = [o and 0 < i < len(text[1]) - 1 for i, o in enumerate(text[1])]
    edged = with_edges(TextToAlign(text[0], inside), left, right)  # silence at both ends
    assert in_words(edged) == expected
    found = edged.transcript
    assert found.words == text[0].words
    assert [w for t, w in zip(found.tokens, found.token_words) if t == stars.STAR_NUMBER] == [None] * (
        left + right
    )


@pytest.mark.parametrize(
    ("worth", "expected"),
    [((0, 0), ""), ((0, 50), "r"), ((50, 0), "l"), ((9, 50), "r"), ((50, 11), "lr"), ((19, 19), "")],
)
def test_an_end_has_a_star_where_that_is_worth_it(worth: tuple[float, float], expected: str) -> None:
    """Both together gain the least gain, and each of two what one star is worth at least."""
    assert (LEAST_GAIN, END_GAIN) == (40, 10)

    def score(some: TextToAlign) -> float:
        tokens = some[0].tokens
        sides = tokens[0] == stars.STAR_NUMBER, tokens[-1] == stars.STAR_NUMBER
        return sum(w for w, side in zip(worth, sides) if side)

    tokens = choose_edges(asked_for("sit"), score)[0].tokens
    found = "l" * (tokens[0] == stars.STAR_NUMBER) + "r" * (tokens[-1] == stars.STAR_NUMBER)
    assert found == expected
    assert choose_edges(asked_for("sit"), score, 101.0) == asked_for("sit")


def test_bounds_spare_a_search_and_change_no_choice() -> None:
    """Where even the best labels of all frames gain too little over the text nothing is scored."""
    text = asked_for("sit")
    assert choose_edges(text, lambda _: pytest.fail("nothing is to be scored"), least=-39.0, most=0.0) is text
    scored = []

    def score(some: TextToAlign) -> float:
        scored.append(some)
        return 0.0 if some != text else -45.0

    assert choose_edges(text, score, least=-39.0, most=1.0) is text
    assert len(scored) == 1, "both stars gain less than 40 over what the text reaches at least"
    assert choose_edges(text, score, least=-50.0, most=1.0) != text


def test_a_text_with_stars_says_itself_what_it_leaves_out() -> None:
    text = asked_for("* sit")
    assert choose_edges(text, lambda _: pytest.fail("nothing is to be scored")) is text


def align(
    pipeline: Pipeline, emissions: Sequence[Emissions], text: str, second: Emissions | None = None
) -> tuple[list[Result], list[str]]:
    """The results of recordings in one batch, and their words with frames."""
    size = max(int(e.lengths[0]) for e in emissions)
    logits = [torch.nn.functional.pad(e.logits, (0, 0, 0, size - e.logits.shape[1])) for e in emissions]
    batch = replace(emissions[0], logits=torch.cat(logits), lengths=torch.cat([e.lengths for e in emissions]))
    give(pipeline, batch, second)
    samples = [np.zeros(int(n) * 320, np.float32) for n in batch.lengths]
    ids = [f"u{i}" for i in range(len(samples))]
    found = pipeline.align_batch(ids, samples, [pipeline.encode(text)] * len(ids))
    return found, [
        " ".join(f"{s.label} {s.start / 0.02:.0f}-{s.end / 0.02:.0f}" for s in r.alignment.tier("words"))
        for r in found
    ]


@pytest.mark.parametrize("aligner", ["ctc", "segmental"])
@pytest.mark.parametrize(("before", "after"), [(60, 60), (60, 0), (0, 60)])
def test_the_text_is_found_between_edges_that_are_not_its(aligner: str, before: int, after: int) -> None:
    """Phones of other words before and after: no word is drawn over them, and the ends are empty."""
    middle = "...aaassstttiii..sssiiiaaa..." if aligner == "segmental" else "._a_s_t_i__._s_i_a__."
    sounds = emissions_of(MUSIC.replace("i", "t") * before + middle + MUSIC.replace("a", "s") * after)
    pipeline = Pipeline(phone_model(), aligner=aligner)
    text = "asti sia"
    (result,), (words,) = align(pipeline, [sounds], text)
    alone = align(Pipeline(phone_model(), aligner=aligner), [emissions_of(middle)], text)[1][0]
    moved = [
        part for word in alone.split() for part in ([word] if word.isalpha() else [shifted(word, 8 * before)])
    ]
    assert words == " ".join(moved)
    assert stars.STAR not in result.alignment.tier("phones").labels
    assert result.text == text
    (warning,) = result.warnings
    first, last = result.alignment.tier("words").segments[0], result.alignment.tier("words").segments[-1]
    left = result.alignment.duration - last.end
    assert warning.startswith(
        f"{first.start:.1f} s before the text and {left:.1f} s after it hold something else"
    )
    pipeline.finds_edges = False
    (smeared,), (their_words,) = align(pipeline, [sounds], text)
    assert their_words != words
    assert result.score == result.alignment.score == smeared.score, (
        "what the text is not in counts against it"
    )


def shifted(span: str, frames: int) -> str:
    start, end = span.split("-")
    return f"{int(start) + frames}-{int(end) + frames}"


@pytest.mark.parametrize("aligner", ["ctc", "segmental"])
def test_a_recording_of_its_text_alone_is_aligned_as_if_there_were_no_edges(aligner: str) -> None:
    """Also where the model errs in a few frames at the ends, and in a batch with a recording that has edges."""
    torch.manual_seed(1)
    sounds = emissions_of(".tt...aaassstttiii..sssiiiaaa..ss.")
    sounds = replace(sounds, logits=sounds.logits + torch.randn_like(sounds.logits))
    other = emissions_of("tstt" * 120 + "...aaassstttiii..sssiiiaaa..." + "s" * 480)
    finding, not_finding = (Pipeline(phone_model(), aligner=aligner) for _ in range(2))
    not_finding.finds_edges = False
    (expected, smeared), _ = align(not_finding, [sounds, other], "asti sia")
    (found, edged), _ = align(finding, [sounds, other], "asti sia")
    assert found == expected
    assert edged != smeared


def test_the_hearing_that_the_text_fits_better_is_taken() -> None:
    """A loud edge spoils the normalisation of the whole; short windows do not mind."""
    middle = "...aaassstttiii..sssiiiaaa..."
    edge = "tsst" * 30
    spoilt, right = emissions_of(edge + "t" * 12 + middle[12:] + edge), emissions_of(edge + middle + edge)
    expected = align(Pipeline(phone_model(), aligner="segmental"), [right], "asti sia")[1][0]
    for first, other in ((spoilt, right), (right, spoilt)):
        pipeline = Pipeline(phone_model(), aligner="segmental")
        assert align(pipeline, [first], "asti sia", other)[1][0] == expected
        assert isinstance(pipeline.emitter, GivenEmissions)
        (windows,) = pipeline.emitter.seen
        assert windows.alone
        assert windows.window_s < 5


def test_the_measure(tmp_path: Path) -> None:
    """Without edges nothing is off; a shift of half a second loses every word."""
    samples = np.random.default_rng(0).normal(0, 0.1, 16_000).astype(np.float32)
    whole = bench.between(samples, np.ones(10, np.float32), 800, 6.0)
    assert len(whole) == 17_600
    np.testing.assert_array_equal(whole[800:-800], samples)
    assert bench.level(whole[:800]) / bench.level(samples) == pytest.approx(10**0.3, rel=1e-3)
    model = save_character_model(tmp_path / "model")
    for name, text in (("a", "so it is"), ("b", "a few words more")):
        save_noise(tmp_path / f"speech/{name}.wav", 2.0, text=text, seed=ord(name))
    save_noise(tmp_path / "music/piece.wav", 0.5, seed=3)
    pipeline = Pipeline(bench.Model.load(model))
    some = list(bench.spoken(pipeline, tmp_path / "speech", 2))
    result = pipeline.align("a", some[0].samples, pipeline.encode(some[0].text))
    assert bench.errors(result, some[0], 0.0).max() == 0
    assert bench.errors(result, some[0], 0.5).min() == pytest.approx(0.5)
    app = Typer()
    app.command()(bench.main)
    arguments = [str(model), str(tmp_path / "speech"), str(tmp_path / "music"), "--seconds", "1"]
    lines = CliRunner().invoke(app, arguments, catch_exceptions=False).stdout.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == [
        "piece", "white noise", "applause", "babble", "silence", "other speech",
    ]  # fmt: skip
