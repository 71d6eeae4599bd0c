"""From corpus rows to batches: kept rows, padding, and order."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.audio import AudioError, load
from isotone.corpus.rows import to_dataset
from isotone.corpus.timit import TimitCorpus
from isotone.model.encoder import SpeechEncoder
from isotone.text.tokenizer import CharacterTokenizer, TextError, Tokenizer, Transcript, build_tokenizer
from isotone.training.augment import Chain
from isotone.training.batches import LengthBatches
from isotone.training.data import Augmented, Replaced, Utterances
from isotone.types import length_mask


@pytest.fixture(scope="module")
def rows(timit_root: Path) -> object:
    return TimitCorpus(timit_root).load("train")


@pytest.fixture(scope="module")
def tokenizer(rows: object) -> Tokenizer:
    return build_tokenizer("phones", rows)  # type: ignore[arg-type]


durations = st.lists(st.floats(0.1, 20.0), min_size=1, max_size=60)


@settings(max_examples=200, deadline=None)
@given(
    durations, st.integers(1, 9), st.sampled_from([0.0, 8.0, 30.0]), st.integers(0, 5), st.integers(1, 4),
    st.integers(1, 5),
)  # fmt: skip
def test_every_utterance_once_an_epoch(
    seconds: list[float], size: int, limit: float, seed: int, pool: int, world: int
) -> None:
    """On several processes at most one batch an epoch exceeds the limits; of longer utterances each process has one."""
    sampler = LengthBatches(seconds, size * world, limit * world, seed, pool, min_size=world)
    for epoch in (0, 1):
        sampler.epoch, sampler.start = epoch, 0
        batches = list(sampler)
        enough = len(seconds) >= world
        assert sorted(i for batch in batches for i in batch) == list(range(len(seconds) if enough else 0))
        assert len(sampler) == len(batches)
        exceed = []
        for batch in batches:
            assert len(batch) >= world
            too_long = limit and len(batch) * max(seconds[i] for i in batch) > limit * world
            if len(batch) > world and (len(batch) > size * world or too_long):
                exceed.append(len(batch))
        assert len(exceed) <= (len(seconds) % world > 0)
        assert all(count < 2 * world for count in exceed)
        sampler.start = len(batches) // 2
        assert list(sampler) == batches[sampler.start :]
        assert len(sampler) == len(batches) - sampler.start


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(1, 160), min_size=1, max_size=80), st.integers(1, 6), st.integers(8, 400), st.integers(0, 5),
    st.integers(1, 4), st.integers(1, 5),
)  # fmt: skip
def test_no_process_has_more_seconds_than_the_limit(
    eighths: list[int], size: int, limit: int, seed: int, pool: int, world: int
) -> None:
    """But for utterances that are longer by themselves, and for a rest that no way of sharing out could fit in."""
    seconds = [n / 8 for n in eighths]
    sampler = LengthBatches(seconds, size * world, limit / 8 * world, seed, pool, min_size=world)
    batches = sampler.batches()
    rest = len(seconds) % world
    # one share has two utterances, at best of the shortest
    possible = not rest or 2 * sorted(seconds)[min(len(seconds), world + rest) - 1] <= limit / 8
    exceed = 0
    for batch in batches:
        shares = [batch[rank::world] for rank in range(world)]
        assert all(shares), "every process has something to do in every step"
        several = [share for share in shares if len(share) > 1]
        exceed += any(len(share) * max(seconds[i] for i in share) > limit / 8 for share in several)
        assert len(batch) % world == 0 or len(batch) >= world + rest
    assert exceed <= (not possible)
    assert sum(len(batch) % world > 0 for batch in batches) <= 1


def test_order_depends_on_seed_and_epoch_alone() -> None:
    seconds = np.random.default_rng(0).uniform(0.5, 9.0, 100).tolist()

    def order(seed: int, epoch: int) -> list[list[int]]:
        sampler = LengthBatches(seconds, 4, 0.0, seed)
        sampler.epoch = epoch
        return list(sampler)

    assert order(3, 5) == order(3, 5)
    assert order(3, 5) != order(3, 6)
    assert order(3, 5) != order(4, 5)


def test_batches_are_of_similar_length() -> None:
    seconds = np.random.default_rng(0).uniform(1.0, 10.0, 256).tolist()

    def padding(batches: list[list[int]]) -> float:
        return sum(len(b) * max(seconds[i] for i in b) for b in batches) / sum(seconds) - 1

    assert padding(list(LengthBatches(seconds, 8))) < 0.1
    assert padding([list(range(i, i + 8)) for i in range(0, 256, 8)]) > 0.4


def test_a_rest_is_shared_out_among_processes() -> None:
    def batches(seconds: list[float], size: int, limit: float = 0.0) -> list[list[float]]:
        found = LengthBatches(seconds, size, limit, min_size=2).batches()
        return sorted([seconds[i] for i in batch] for batch in found)

    # the last batch takes from the one before, or the shortest utterances are one more
    assert batches([1, 2, 3, 4, 5], 4) == batches([1, 2, 3, 4, 5], 2) == [[1, 2, 3], [4, 5]]
    assert batches([1, 1, 1, 8, 8, 9], 4, 4.0) == [[1, 1], [1, 8], [8, 9]]
    assert batches([7, 8, 9], 4, 2.0) == [[7, 8, 9]]
    # a pool of one utterance joins the pool before
    assert len(LengthBatches([1.0] * 65, 2, pool=4, min_size=2)) == 32


def test_batch(rows: object, tokenizer: Tokenizer) -> None:
    data = Utterances(rows, tokenizer, 16_000)
    assert len(data) == 12
    assert data.skipped == []
    batch = data.collate([data[i] for i in (7, 2, 5)])
    assert batch.ids == [data.rows[i]["id"] for i in (7, 2, 5)]
    assert batch.rows == [7, 2, 5]
    assert batch.audio.shape == (3, int(batch.lengths.max()))
    assert batch.targets.durations is not None
    for k, i in enumerate((7, 2, 5)):
        row = data.rows[i]
        n = int(batch.lengths[k])
        np.testing.assert_array_equal(batch.audio[k, :n], load(row["audio"], 16_000))
        assert not batch.audio[k, n:].any()
        assert [tokenizer.labels[t] for t in batch.targets.tolist()[k]] == row["phones"]["label"]
        spans = np.array(row["phones"]["end"]) - np.array(row["phones"]["start"])
        np.testing.assert_allclose(batch.targets.durations[k, : len(spans)], spans, rtol=1e-6)
        assert not batch.targets.durations[k, len(spans) :].any()
        assert data.seconds[i] == pytest.approx(n / 16_000)
    assert batch.targets.paths is None


def test_tokens_without_times_have_no_durations(rows: object) -> None:
    data = Utterances(rows, CharacterTokenizer(["<pad>", "|", *"abehopst"]), 16_000)
    assert data.collate([data[0]]).targets.durations is None


def test_pauses_may_be_left_out(rows: object) -> None:
    labels = ["<pad>", "|", *"abehopst"]
    data = Utterances(rows, CharacterTokenizer(labels, pauses=True), 16_000)
    targets = data.collate([data[0], data[1]]).targets
    assert targets.optional is not None
    valid = length_mask(targets.lengths, targets.labels.shape[1])
    assert torch.equal(targets.optional, valid & (targets.labels == 1))
    assert targets.optional.sum(1).min() >= 2
    assert Utterances(rows, CharacterTokenizer(labels), 16_000).collate([data[0]]).targets.optional is None


def test_paths_of_a_teacher(rows: object, tokenizer: Tokenizer) -> None:
    data = Utterances(rows, tokenizer, 16_000)
    data.paths = {i: np.full(3 + i, i, np.int16) for i in range(12)}
    data.paths[2] = np.full(5, -2, np.int16)  # the teacher could not align it
    paths = data.collate([data[i] for i in (1, 2, 4)]).targets.paths
    assert paths is not None
    assert paths.tokens.dtype == torch.int64
    assert paths.tokens.tolist() == [[1] * 4 + [-2] * 3, [-2] * 7, [4] * 7]


def test_what_is_left_out_is_named(rows: object, tokenizer: Tokenizer) -> None:
    longest = max(r["end"] for r in rows)  # type: ignore[attr-defined]
    data = Utterances(rows, tokenizer, 16_000, max_seconds=longest - 1e-3)
    assert len(data) == 11
    ((name, reason),) = data.skipped
    assert name not in [data[i].id for i in range(11)]
    assert reason.startswith(f"{longest:.1f} s is longer than max_seconds")
    assert [data[i].row for i in range(11)] == list(range(11))

    short_row = {
        "id": "blip",
        "start": 0.0,
        "end": 0.02,
        "phones": rows[0]["phones"],
        "words": rows[0]["words"],
    }  # type: ignore[index]
    mute_row = {
        **short_row,
        "id": "mute",
        "end": 1.0,
        "phones": {"label": ["zz"], "start": [0.0], "end": [1.0]},
    }
    encoder = SpeechEncoder("wav2vec2-bert-tiny", config={"num_hidden_layers": 1})
    short = Utterances([short_row, mute_row], tokenizer, 16_000, frames=encoder.frames)
    assert len(short) == 0
    assert short.skipped[0] == ("blip", "0.020 s of audio is too short for a single frame")
    assert short.skipped[1][0] == "mute"
    assert "Utterance 'mute'" in short.skipped[1][1]


class Counting(CharacterTokenizer):
    """A tokenizer that counts the texts that it tokenises."""

    encoded = 0

    def encode(self, text: str) -> Transcript:
        self.encoded += 1
        return super().encode(text)


texts = st.lists(st.text(" aAbz1$.'\u00e9", max_size=12), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    texts,
    st.sets(st.sampled_from("abzfivot\u00e9"), min_size=1),
    st.lists(st.floats(0.0, 3.0), min_size=12, max_size=12),
)
def test_what_is_left_out_is_what_cannot_be_tokenised(
    texts: list[str], characters: set[str], seconds: list[float]
) -> None:
    """The quick check of a text's first word gives the same result as tokenising the whole text."""
    tokenizer = CharacterTokenizer(["<pad>", *sorted(characters)])
    tier: dict[str, list[str]] = {"label": [], "start": [], "end": []}
    rows = [
        {
            "id": str(i),
            "audio": "",
            "start": 0.0,
            "end": s,
            "text": t,
            "words": tier,
            "phones": tier,
            "speaker": "",
        }
        for i, (t, s) in enumerate(zip(texts, seconds))
    ]

    def frames(samples: int) -> int:
        return max(0, (samples - 400) // 320 + 1)

    expected = []
    for row in rows:
        try:
            tokenizer.encode_row(row)
        except TextError:
            continue
        if row["end"] <= 2.5 and frames(int(row["end"] * 16_000)) >= 1:
            expected.append(int(row["id"]))
    for given_rows in (rows, to_dataset(rows)):
        data = Utterances(given_rows, tokenizer, 16_000, 2.5, frames)
        assert data.kept.tolist() == expected
        assert data.seconds.tolist() == [rows[i]["end"] for i in expected]
        assert [id for id, _ in data.skipped] == [r["id"] for i, r in enumerate(rows) if i not in expected]


def test_texts_are_tokenised_when_they_are_asked_for(rows: object) -> None:
    tokenizer = Counting(["<pad>", "|", *"abehiopsty"])
    data = Utterances(rows, tokenizer, 16_000)
    first_words = {row["text"].split()[0] for row in rows}  # type: ignore[attr-defined]
    assert len(data) == 12
    assert tokenizer.encoded == len(first_words) < 12
    before = tokenizer.encoded
    example = data[3]
    assert tokenizer.encoded == before + 1
    assert example.transcript == tokenizer.encode(data.row(3)["text"])
    assert example.id == data.row(3)["id"]


def test_an_epoch_of_a_large_corpus_is_batched_quickly() -> None:
    seconds = np.random.default_rng(0).uniform(2.0, 16.0, 280_000)
    sampler = LengthBatches(seconds, 16, 160.0)
    started = time.perf_counter()
    batches = sampler.batches()
    assert time.perf_counter() - started < 10
    assert sorted(i for batch in batches for i in batch) == list(range(280_000))
    assert LengthBatches(seconds.tolist(), 16, 160.0).batches() == batches


def test_recordings_change_with_the_epoch_and_the_row_and_come_again(
    rows: object, tokenizer: Tokenizer
) -> None:
    data = Utterances(rows, tokenizer, 16_000)

    def epoch_audio(epoch: int, seed: int = 0) -> list[np.ndarray]:
        changed = Augmented(data, Chain([{"name": "noise", "snr_db": [10, 20]}]), seed, epoch)
        assert len(changed) == len(data)
        return [changed[i].audio for i in range(2)]

    first, again, later, other = epoch_audio(0), epoch_audio(0), epoch_audio(1), epoch_audio(0, seed=1)
    for a, b, c, d in zip(first, again, later, other):
        np.testing.assert_array_equal(a, b)
        assert len(a) == len(c) == len(d)
        assert not np.array_equal(a, c)
        assert not np.array_equal(a, d)
    noise = [samples - data[i].audio for i, samples in enumerate(first)]
    assert abs(np.corrcoef(noise[0][:4000], noise[1][:4000])[0, 1]) < 0.2


def test_durations_follow_the_speed(rows: object, tokenizer: Tokenizer) -> None:
    data = Utterances(rows, tokenizer, 16_000)
    before, after = data[0], Augmented(data, Chain([{"name": "speed", "factor": [0.8, 0.8]}]), 0, 0)[0]
    assert before.durations is not None
    assert after.durations is not None
    assert len(after.audio) == pytest.approx(len(before.audio) / 0.8, abs=2)
    assert after.durations == pytest.approx([d / 0.8 for d in before.durations], rel=1e-3)
    assert sum(after.durations) == pytest.approx(len(after.audio) / 16_000, abs=0.2)
    assert after.transcript == before.transcript


def test_a_split_without_a_recording_that_can_be_read(
    timit_root: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    rows = [{**row, "audio": str(tmp_path / "empty.wav")} for row in TimitCorpus(timit_root).load("train")]
    (tmp_path / "empty.wav").write_bytes(b"")
    data = Utterances(rows, tokenizer, 16_000)
    with pytest.raises(AudioError, match=r"No recording of the split can be read: .*empty\.wav"):
        Replaced(data, data)[1]
    assert list(data.readable([0, 1])) == []
    assert len(data.skipped) == len(data)
