"""Doubtful transcripts: a text against its own tokens in another order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from isotone.kernels.paths import coupling_from_paths
from isotone.model import Model, ModelError
from isotone.model.check import DEFAULT, Check, usable
from isotone.pipeline import Pipeline, doubt
from isotone.pipeline.doubt import SHUFFLES, agreement, agreements, doubtful, strangers
from isotone.pipeline.stars import STAR_NUMBER
from isotone.pipeline.texts import TextToAlign
from isotone.text.normalize import Word
from isotone.text.tokenizer import Transcript
from isotone.types import Emissions, Grid
from tests.tiny_models import save_character_model


def emissions_of(
    labels: list[int], *, every: int = 4, strength: float = 4.0, noise: float = 1.0, seed: int = 0
) -> Emissions:
    """Make noisy emissions of labels, one per ``every`` frames of 20 ms, with blanks (0) between."""
    rng = np.random.default_rng(seed)
    logits = noise * rng.standard_normal((1, every * len(labels), 9))
    logits[0, :, 0] += strength * (np.arange(logits.shape[1]) % every != every // 4)
    logits[0, np.arange(len(labels)) * every + every // 4, labels] += strength
    return Emissions(torch.from_numpy(logits).float(), torch.tensor([logits.shape[1]]), Grid(0.02))


def text(labels: list[int]) -> Transcript:
    """Labels as a text of words of three tokens."""
    words = tuple(Word("w", "w", i, i + 1) for i in range(-(-len(labels) // 3)))
    return Transcript(words, tuple(labels), tuple(i // 3 for i in range(len(labels))))


def required(transcript: Transcript) -> TextToAlign:
    return TextToAlign(transcript, [False] * len(transcript.tokens))


def agreed(emissions: Emissions | list[Emissions], labels: list[int]) -> float:
    heads = emissions if isinstance(emissions, list) else [emissions]
    starts = [heads[0].grid.seconds(4 * i) for i in range(len(labels))]
    found = agreement(heads, required(text(labels)), starts)
    assert found is not None
    return found


def random_labels(count: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).integers(1, 9, count).tolist()


def best_path(log_probs: np.ndarray, labels: list[int]) -> float:
    """The score of the best CTC path, by the plain dynamic programme over labels with blanks between."""
    states = [0, *(x for label in labels for x in (label, 0))]
    best = np.full(len(states), -np.inf)
    best[:2] = log_probs[0, states[:2]]
    for frame in log_probs[1:]:
        new = np.full_like(best, -np.inf)
        for i, state in enumerate(states):
            skips = i > 1 and state != 0 and state != states[i - 2]
            new[i] = max(best[max(0, i - (2 if skips else 1)) : i + 1]) + frame[state]
        best = new
    return float(best[-2:].max())


def test_it_is_the_share_of_the_way_from_chance_to_the_best_labels() -> None:
    labels = random_labels(12, 1)
    emissions = emissions_of(random_labels(12, 2))
    log_probs = emissions.log_probs()[0].double().numpy()
    rng = np.random.default_rng(0)
    orders = [np.array(labels)[rng.permutation(12)].tolist() for _ in range(SHUFFLES)]
    chance = np.mean([best_path(log_probs, order) for order in orders])
    expected = (best_path(log_probs, labels) - chance) / (log_probs.max(1).sum() - chance)
    assert agreed(emissions, labels) == pytest.approx(expected, abs=1e-5)


def test_what_is_heard_clearly_agrees_wholly() -> None:
    labels = random_labels(20, 3)
    assert agreed(emissions_of(labels, strength=20), labels) == pytest.approx(1, abs=1e-5)


def test_wrong_texts_are_near_chance_and_right_ones_are_not() -> None:
    right = [agreed(emissions_of(random_labels(30, s), seed=s), random_labels(30, s)) for s in range(40)]
    wrong = [
        agreed(emissions_of(random_labels(30, s), seed=s), random_labels(30, s + 1000)) for s in range(40)
    ]
    assert abs(np.mean(wrong)) < 0.05
    assert max(wrong) < min(right)


@pytest.mark.parametrize("factor", [0.3, 3.0])
def test_how_sure_a_model_is_of_everything_does_not_matter(factor: float) -> None:
    """Overconfidence, as on speech unlike the training data, divides out."""
    labels = random_labels(15, 4)
    emissions = emissions_of(labels)
    scaled = replace(emissions, logits=factor * emissions.logits)
    assert agreed(scaled, random_labels(15, 5)) == pytest.approx(
        agreed(emissions, random_labels(15, 5)), abs=1e-4
    )


def test_a_text_with_one_order_says_nothing() -> None:
    emissions = emissions_of([1, 2, 3, 4, 5, 6])
    assert agreed(emissions, [3] * 6) == pytest.approx(0, abs=1e-6)
    assert agreement([emissions], required(text([1, 2])), [0.0, 0.08]) is None
    wordless = Transcript((), (1, 2, 3, 4, 5, 6), (None,) * 6)
    starts = [0.08 * i for i in range(6)]
    assert agreement([emissions], required(wordless), starts) == agreed(emissions, [1, 2, 3, 4, 5, 6])


def test_a_text_that_just_fits_is_compared_with_what_fits() -> None:
    """Orders with equal neighbours may need more frames than there are."""
    labels = [1, 2, 1, 2, 1, 3, 4, 5]
    emissions = emissions_of(labels, every=1)
    log_probs = emissions.log_probs()[0].double().numpy()
    rng = np.random.default_rng(0)
    orders = [np.array(labels)[rng.permutation(8)].tolist() for _ in range(SHUFFLES)]
    chance = [score for score in (best_path(log_probs, order) for order in orders) if np.isfinite(score)]
    assert 0 < len(chance) < SHUFFLES
    expected = (best_path(log_probs, labels) - np.mean(chance)) / (log_probs.max(1).sum() - np.mean(chance))
    assert agreed(emissions, labels) == pytest.approx(expected, abs=1e-5)


def test_stars_and_pauses_keep_their_places() -> None:
    """Beside a star for the words that were left out the rest is as right as it was."""
    labels = random_labels(40, 6)
    emissions = emissions_of(labels)
    tokens = (STAR_NUMBER, *labels[20:])
    words = (Word("*", "*", 0, 1), *text(labels[20:]).words)
    starred = Transcript(words, tokens, (0, *(i // 3 + 1 for i in range(20))))
    starts = [0.0, *(0.08 * i for i in range(20, 40))]
    right = agreement([emissions], required(starred), starts)
    wrong = agreement(
        [emissions], required(replace(starred, tokens=(STAR_NUMBER, *random_labels(20, 7)))), starts
    )
    assert right is not None
    assert wrong is not None
    assert wrong < 0.3 < 0.7 < right


def test_long_recordings_are_compared_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some stretches of a long recording give nearly the agreement of the whole."""
    labels = random_labels(3000, 8)
    emissions = emissions_of(labels)  # four minutes
    right, wrong = agreed(emissions, labels), agreed(emissions, random_labels(3000, 9))
    assert abs(wrong) < 0.05
    assert right > 0.6
    seen = []
    align = doubt.ctc_score  # once per stretch, for the text and its other orders
    monkeypatch.setattr(doubt, "ctc_score", lambda *a: seen.append(a[0].shape[1]) or align(*a))
    monkeypatch.setattr(doubt, "STRETCHES", 3)
    assert agreed(emissions, labels) == pytest.approx(right, abs=0.1)
    assert len(seen) == 3
    assert all(abs(frames - 1000) < 5 for frames in seen)


def test_a_batch_is_its_rows() -> None:
    texts = [random_labels(n, n) for n in (12, 20)]
    each = [emissions_of(labels) for labels in texts]
    logits = torch.full((2, 80, 9), torch.nan)
    for row, one in zip(logits, each):
        row[: one.logits.shape[1]] = one.logits[0]
    batch = Emissions(logits, torch.tensor([48, 80]), Grid(0.02))
    paths = torch.full((2, 80), -2)
    for row, labels in zip(paths, texts):
        row[: 4 * len(labels)] = torch.arange(len(labels)).repeat_interleave(4)
    coupling = coupling_from_paths(paths, batch.lengths, torch.tensor([12, 20]), torch.zeros(2))
    to_align = [required(text(labels)) for labels in texts]
    found = agreements([batch], batch.grid, to_align, coupling)
    assert found == [pytest.approx(agreed(one, labels)) for one, labels in zip(each, texts)]


# in a pipeline


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_model(tmp_path_factory.mktemp("models") / "guided", guide="ctc")


@pytest.mark.parametrize("extra_speech", [False, True])
def test_checking_changes_no_time_and_no_score(folder: Path, extra_speech: bool) -> None:
    model = Model.load(folder)
    audio = [np.random.default_rng(i).normal(0, 0.1, 40_000 + 900 * i).astype(np.float32) for i in range(2)]
    state = torch.get_rng_state()
    checked = Pipeline(model, extra_speech=extra_speech)
    plain = Pipeline(model, extra_speech=extra_speech, check=False)
    texts = [checked.encode(t) for t in ("it goes on * and on", "so it is as you like")]
    found, others = (p.align_batch(["a", "b"], audio, texts) for p in (checked, plain))
    assert [replace(r, agreement=None) for r in found] == others
    assert [r.agreement for r in others] == [None, None]
    assert all(r.agreement is not None and abs(r.agreement) < 1 for r in found)
    again = [checked.align(*one).agreement for one in zip("ab", audio, texts)]
    assert again == [pytest.approx(r.agreement, abs=1e-4) for r in found]
    assert torch.equal(state, torch.get_rng_state())


def test_a_model_keeps_its_threshold(folder: Path, tmp_path: Path) -> None:
    model = Model.load(folder)
    assert model.check is None
    assert usable(model.check) == DEFAULT
    model.check = Check(0.25, "dev", 100, 0.01, 0.99)
    model.save(tmp_path / "m")
    kept = Model.load(tmp_path / "m")
    assert usable(kept.check) == model.check
    kept.check = replace(model.check, statistic="another")
    assert usable(kept.check) == DEFAULT
    config = tmp_path / "m" / "isotone.json"
    config.write_text(config.read_text().replace('"files"', '"flies"'))
    with pytest.raises(ModelError, match=r"isotone\.json is damaged"):
        Model.load(tmp_path / "m")


def test_what_is_doubtful_is_said() -> None:
    check = Check(0.25, "dev", 100, 0.01, 0.99)
    low = "its agreement with the audio is 0.123, below 0.250: the transcript is likely not what is said"
    assert doubtful(0.1234, check) == low
    assert doubtful(0.25, check) == ""
    assert doubtful(None, check) == "", "nothing is said of what cannot be told"


def test_nobody_gets_their_own_words() -> None:
    spoken = dict(enumerate(["a b", "a b", "c", "a b", "d"]))
    seen = set()
    for seed in range(20):
        found = strangers(spoken, seed)
        assert found == strangers(spoken, seed)
        assert all(spoken[one] != spoken[other] for one, other in found.items())
        seen.add(tuple(found.values()))
    assert len(seen) > 3
    with pytest.raises(ValueError, match=r"5 files with 1 transcript"):
        strangers(dict.fromkeys(range(5), "same"), 0)
