"""Texts as lattices: their readings, the one that an aligner chooses, and what is shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import pytest
import torch

from isotone import aligners
from isotone.alignment import Tier
from isotone.model import DecodingConfig, Model
from isotone.model.encoder import SpeechEncoder
from isotone.pipeline import Pipeline
from isotone.pipeline.edges import choose_edges
from isotone.pipeline.lattices import chosen, unfold
from isotone.pipeline.placing import Placer
from isotone.pipeline.result import results
from isotone.pipeline.stars import with_extra_speech
from isotone.pipeline.texts import TextToAlign, with_pauses
from isotone.text.closures import ClosureRules
from isotone.text.phone_tokenizer import HESITATION_COST
from isotone.text.tokenizer import PhoneTokenizer
from isotone.types import Emissions, Grid
from tests.pipeline.parts import give, noise
from tests.text.test_closures import LABELS, Said
from tests.tiny_models import ENCODER

SAID = Said(
    a=[("ae", 0.0)],
    the=[("s ae", -0.1), ("s iy", -1.1)],
    cat=[("cl k ae cl t", 0.0)],
    dad=[("vcl d ae vcl d", 0.0)],
)
RULES = ClosureRules(
    longest_s=0.06, pause_s=0.1, paused=0.5, released=0.25, unreleased=2.0, joined=4.0, tapped=8.0
)
TOKENIZER = PhoneTokenizer(LABELS, SAID, "sil", closures=RULES)
HESITANT = PhoneTokenizer(
    [*LABELS, "ah", "eh"], Said(an=[("ae", 0.0)], at=[("ae cl t", 0.0)]), "sil", closures=RULES
)
SEGMENTAL = aligners.build("segmental")


def text_of(words: str, tokenizer: PhoneTokenizer = TOKENIZER) -> TextToAlign:
    return with_pauses(tokenizer, tokenizer.encode(words), SEGMENTAL)


def readings(text: TextToAlign, labels: Sequence[str] = LABELS) -> dict[str, float]:
    """Every reading of a text, with its lowest cost."""
    lattice = unfold(text)
    names = [*labels, "*"]
    found: dict[int, dict[str, float]] = {-1: {"": 0.0}}
    for u, ways in enumerate(lattice.ways):
        label = names[lattice.parts[u].label] if u < len(lattice.parts) else ""
        found[u] = {}
        for before, cost in ways:
            for said, paid in found[before].items():
                longer = f"{said} {label}".strip()
                found[u][longer] = min(found[u].get(longer, 1e9), paid + cost)
    return found[len(lattice.parts)]


def heard(frames: str, hop_s: float = 0.02, labels: Sequence[str] = LABELS) -> Emissions:
    """Emissions of labels, each with its number of frames: ``"sil 3 ae 2"``."""
    said = frames.split()
    numbers = [labels.index(x) for x, n in zip(said[::2], said[1::2]) for _ in range(int(n))]
    logits = torch.full((1, len(numbers), len(labels)), -6.0)
    logits[0, range(len(numbers)), numbers] = 3.0
    return Emissions(logits, torch.tensor([len(numbers)]), Grid(hop_s), 0)


def tiers(
    words: str,
    frames: str,
    closures: bool = False,
    guided: bool = False,
    tokenizer: PhoneTokenizer = TOKENIZER,
) -> tuple[Tier, Tier]:
    emissions = heard(frames, labels=tokenizer.labels)
    guide = {"guide": "ctc", "guide_aligner": aligners.build("ctc")} if guided else {}
    placer = Placer("times", SEGMENTAL, **guide).patient({"times": emissions})  # type: ignore[arg-type]
    unfolded, targets = placer.targets([text_of(words, tokenizer)])
    both = {"times": emissions, "ctc": emissions}
    texts, targets, coupling = chosen(unfolded, *placer(["x"], both, targets, 3.0))
    assert targets.lengths.tolist() == [len(texts[0].transcript.tokens)]
    seconds = emissions.grid.seconds(emissions.logits.shape[1])
    (found,) = results(
        ["x"],
        [seconds],
        [words],
        [texts[0].transcript],
        tokenizer,
        emissions,
        targets,
        coupling,
        3.0,
        closures,
    )
    return found.alignment.tier("words"), found.alignment.tier("phones")


def spans(tier: Tier, hop_s: float = 0.02) -> str:
    return ", ".join(f"{s.label} {round(s.start / hop_s)}-{round(s.end / hop_s)}" for s in tier if s.label)


def test_readings_of_a_text() -> None:
    found = readings(text_of("the cat"))
    expected = {}
    for the, said in ((0.0, "s ae"), (1.0, "s iy")):
        for cost in (0.25, 2.0):
            end = "t" if cost < 2 else ""
            for first in ("", "sil"):
                for last in ("", "sil"):
                    for between, more in (("cl k", 0.0), ("sil k", 0.5)):
                        key = " ".join(f"{first} {said} {between} ae cl {end} {last}".split())
                        expected[key] = the + cost + more
    assert found == pytest.approx(expected)


def test_pauses_before_a_bare_stop_are_long() -> None:
    lattice = unfold(text_of("a cat a"))
    long = [s for s, part in zip(lattice.shortest, lattice.parts) if LABELS[part.label] == "sil"]
    assert long == [0.0, 0.1, 0.0, 0.0]


def test_beside_a_star_a_stop_is_free() -> None:
    starred = readings(with_extra_speech(text_of("cat")))
    assert starred["sil * cl k ae cl t * sil"] == starred["sil * k ae cl t * sil"] == 0.0
    assert "sil cl k ae cl t sil" not in starred
    assert starred["sil k ae cl t sil"] == 0.25


def test_without_graphs_nothing_is_unfolded() -> None:
    text = text_of("a a")
    placer = Placer("times", SEGMENTAL)
    (same,), targets = placer.targets([text])
    assert same is text
    assert targets.graph is None
    blind = Placer("times", aligners.build("ottc"))
    (same,), targets = blind.targets([text_of("cat")])
    assert targets.graph is None
    assert same.transcript.tokens == text_of("cat").transcript.tokens


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize(
    ("words", "frames", "found"),
    [
        # after a pause a word begins with its burst, and a final stop may have no release: its closure is 70 ms long
        ("cat", "sil 10 k 2 ae 4 cl 3 t 2 sil 5", ("cat 10-21", "k 10-12, ae 12-16, t 16-21")),
        ("cat", "sil 10 k 2 ae 4 cl 3 sil 5", ("cat 10-20", "k 10-12, ae 12-16, t 16-20")),
        # within speech it begins with its closure
        ("a cat", "ae 4 cl 2 k 2 ae 4 cl 3 t 2", ("a 0-4, cat 4-17", "ae 0-4, k 4-8, ae 8-12, t 12-17")),
        ("a cat", "ae 4 sil 9 k 2 ae 4 cl 3 t 2", ("a 0-4, cat 13-24", "ae 0-4, k 13-15, ae 15-19, t 19-24")),
        # the pronunciation that is heard
        ("the a", "s 3 ae 4 sil 3 ae 4", ("the 0-7, a 10-14", "s 0-3, ae 3-7, ae 10-14")),
        ("the a", "s 3 iy 4 sil 3 ae 4", ("the 0-7, a 10-14", "s 0-3, iy 3-7, ae 10-14")),
    ],
)
def test_the_reading_that_is_heard(words: str, frames: str, found: tuple[str, str], guided: bool) -> None:
    assert tuple(map(spans, tiers(words, frames, guided=guided))) == found


@pytest.mark.parametrize("guided", [False, True])
@pytest.mark.parametrize(
    ("frames", "found"),
    [
        ("sil 3 ae 4 sil 9 ah 15 sil 6 ae 4 cl 3 t 2 sil 5", "an 3-7, at 37-46"),
        ("sil 3 ae 4 sil 9 eh 6 m 9 sil 6 ae 4 cl 3 t 2 sil 5", "an 3-7, at 37-46"),
        ("sil 3 ae 4 sil 9 m 15 sil 6 ae 4 cl 3 t 2 sil 5", "an 3-7, at 37-46"),
        ("sil 3 ae 4 sil 9 eh 3 ah 12 sil 6 ae 4 cl 3 t 2 sil 5", "an 3-7, at 37-46"),
        ("sil 3 ah 9 sil 9 ae 4 sil 6 ae 4 cl 3 t 2 sil 5", "an 21-25, at 31-40"),
        ("sil 3 ae 4 sil 9 ae 4 cl 3 t 2 sil 5", "an 3-7, at 16-25"),
    ],
)
def test_a_hesitation_is_a_pause(frames: str, found: str, guided: bool) -> None:
    words, phones = tiers("an at", frames, guided=guided, tokenizer=HESITANT)
    assert spans(words) == found
    assert phones.labels == ["ae", "ae", "t"]


def test_a_pause_between_words_may_hold_one_hesitation() -> None:
    found = readings(text_of("an at", HESITANT), HESITANT.labels)
    assert found["ae ae cl t"] == found["ae sil ae cl t"] == 0.25
    assert found["ae sil ah sil ae cl t"] == found["ae sil eh sil ae cl t"] == 0.25 + HESITATION_COST
    assert found["ae sil ah m sil ae cl t"] == found["ae sil m sil ae cl t"] == 0.25 + HESITATION_COST
    assert not any("ah sil eh" in said or "ah ae" in said for said in found)


def test_closures_of_their_own() -> None:
    words, phones = tiers("a cat", "ae 4 cl 2 k 2 ae 4 cl 3 sil 4", closures=True)
    assert spans(words) == "a 0-4, cat 4-16"
    assert spans(phones) == "ae 0-4, kcl 4-6, k 6-8, ae 8-12, tcl 12-16"


def test_a_closure_is_no_longer_than_its_limit() -> None:
    _, phones = tiers("a cat", "ae 4 cl 4 k 2 ae 4 cl 3 t 2", closures=True)
    assert "kcl 5-8, k 8-10" in spans(phones) or "kcl 4-7, k 7-10" in spans(phones)


def test_closure_and_release_share_the_least_duration_of_a_phone() -> None:
    _, phones = tiers("dad a", "sil 5 d 1 ae 3 vcl 1 d 1 ae 5", closures=True)
    assert spans(phones) == "d 5-6, ae 6-9, dcl 9-10, d 10-11, ae 11-16"


def test_texts_with_and_without_graphs_in_a_batch() -> None:
    placer = Placer("times", SEGMENTAL)
    emissions = heard("sil 5 ae 4 sil 5")
    other = heard("sil 3 k 2 ae 4 cl 3 t 2")
    both = Emissions(torch.cat([emissions.logits, other.logits]), torch.tensor([14, 14]), Grid(0.02), 0)
    texts = [text_of("a"), text_of("cat")]
    unfolded, targets = placer.targets(texts)
    read, _, coupling = chosen(unfolded, *placer(["x", "y"], {"times": both}, targets, 3.0))
    names = [[LABELS[t] for t in text.transcript.tokens] for text in read]
    assert names == [["sil", "ae", "sil"], ["sil", "k", "ae", "cl", "t"]]
    assert coupling.spans()[0, :3].tolist() == [[0, 5], [5, 9], [9, 14]]
    owners = [[w for w, _ in groupby(text.transcript.token_words)] for text in read]
    assert owners == [[None, 0, None], [None, 0]]


@pytest.mark.parametrize("closures", [False, True])
def test_from_audio_to_tiers(closures: bool) -> None:
    reading = DecodingConfig("ctc", {"name": "ctc-greedy"}, "ctc", {"name": "segmental"})
    model = Model(SpeechEncoder(ENCODER), {"ctc": {"name": "ctc"}}, TOKENIZER, reading)
    pipeline = Pipeline(model, closures=closures)
    emissions = heard("sil 10 s 3 iy 4 cl 2 k 2 ae 4 cl 3 t 2 sil 5")
    give(pipeline, emissions)
    result = pipeline.align("x", noise(0.7), pipeline.encode("the cat"))
    stops = "kcl 17-19, k 19-21, ae 21-25, tcl 25-28, t 28-30" if closures else "k 17-21, ae 21-25, t 25-30"
    assert spans(result.alignment.tier("phones")) == f"s 10-13, iy 13-17, {stops}"
    assert spans(result.alignment.tier("words")) == "the 10-17, cat 17-30"
    assert result.agreement is not None
    assert result.agreement > 0.8
    assert result.frameless == 0
    scores = [s.score for s in result.alignment.tier("phones") if s.label]
    assert min(scores) > -0.1, "a stop's score is that of its closure and its release"


def test_edges_of_a_text_with_graphs() -> None:
    placer = Placer("times", SEGMENTAL)
    text = text_of("a cat")
    around = "m 40 s 40 m 40"
    emissions = heard(f"{around} ae 4 cl 2 k 2 ae 4 cl 3 t 2 {around}")
    edged = placer.with_edges({"times": emissions}, text)
    assert edged.transcript.tokens.count(-1) == 2
    quiet = heard("sil 20 ae 4 cl 2 k 2 ae 4 cl 3 t 2 sil 20")
    assert placer.with_edges({"times": quiet}, text) == text
    assert choose_edges(edged, lambda text: 0.0) is edged


def test_a_word_that_the_guide_puts_before_a_long_pause_moves_behind_it() -> None:
    """The guide holds the word, at the cost of its own frames. It does not hold the pause, which has many."""
    frames, late = 120, range(110, 116)
    silence, ae, vcl, d = (LABELS.index(label) for label in ("sil", "ae", "vcl", "d"))
    dad = [vcl, vcl, d, d, ae, ae, ae, ae, vcl, vcl, d, d]
    times = torch.full((1, frames, len(LABELS)), -8.0)
    times[..., silence] = 0.0
    times[0, range(len(dad)), silence] = -8.0
    times[0, range(len(dad)), dad] = 0.0
    times[0, late, ae], times[0, late, silence] = 0.0, -4.0
    peaks = torch.full((1, frames, len(LABELS)), -8.0)
    peaks[..., 0] = 0.0
    for frame, label in {0: vcl, 2: d, 4: ae, 8: vcl, 10: d, 14: ae}.items():
        peaks[0, frame, 0], peaks[0, frame, label] = -8.0, 0.0
    heads = {
        name: Emissions(found, torch.tensor([frames]), Grid(0.02), 0)
        for name, found in (("times", times), ("ctc", peaks))
    }
    placer = Placer("times", SEGMENTAL, "ctc", aligners.build("ctc"))
    (text,), targets = placer.targets([text_of("dad a")])
    guided = placer.guided(["x"], heads, targets, 3.0)
    assert guided.guide is not None
    assert text.transcript.token_words[guided.guide.tokens[0, 14]] == 1
    _, coupling = placer(["x"], heads, targets, 3.0)
    spans = dict(zip(text.transcript.token_words, coupling.spans()[0].tolist()))
    assert spans[1] == [late.start, late.stop]
