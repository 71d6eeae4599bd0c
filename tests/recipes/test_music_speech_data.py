"""Data of the experiments on ordered search in audio, against their definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from isotone_opas.elements import Elements

from tests.paths import DATA
from tests.recipes.music import module, settings


def test_splits_share_no_recording_and_take_their_shares() -> None:
    sizes = [5, 9, 0, 3, 8, 2, 7, 6, 1, 9, 4]
    parts = module("sets").split(sizes, [0.6, 0.1, 0.3], 3)
    together = sorted(i for part in parts for i in part)
    assert together == [i for i, size in enumerate(sizes) if size]
    for part, share in zip(parts, (0.6, 0.1, 0.3)):
        assert sum(sizes[i] for i in part) == pytest.approx(share * sum(sizes), abs=max(sizes))
    assert sorted(module("sets").split([1, 1, 1], [0.9, 0.05, 0.05], 0)) == [[0], [1], [2]]
    with pytest.raises(ValueError, match="3 recordings or more"):
        module("sets").split([4, 0, 4], [0.6, 0.1, 0.3], 0)


def test_queries_are_sorted_choices_of_their_sequence() -> None:
    config = settings()
    clean = settings("opas", "data.snr_db=null").data
    _, sets = module("sets").prepare(clean)
    data = sets["train"]
    assert data.queries.shape[1:] == (6, 1000)
    assert (data.chosen.diff(dim=1) > 0).all()
    assert (data.relevant.sum(1) == config.data.copies).all()
    for query, chosen, relevant in zip(data.queries, data.chosen, data.relevant):
        first = int(relevant.nonzero()[0])  # the sequence itself
        assert torch.equal(data.corpus[first][chosen], query)


def test_copies_have_the_noise_and_the_gaps_that_are_asked_for() -> None:
    data = settings("opas", "data.masks=2", "data.mask_s=0.4", "data.copies=16").data
    windows = torch.randn(20, 1000, generator=torch.Generator().manual_seed(0))
    data.snr_db = None
    copies = module("sets").damaged(windows, data.copies, data, np.random.default_rng(0))
    assert torch.equal(copies[0], windows)
    for copy in copies[1:]:
        same = copy == windows
        assert ((copy == 0) | same).all()
        assert 0 < (~same).sum() <= 2 * 400
    data.snr_db = 6.0
    noisy = module("sets").damaged(windows, data.copies, data, np.random.default_rng(0))
    ratio = 10 * torch.log10(windows.square().mean() / (noisy - copies).square().mean((1, 2)))
    torch.testing.assert_close(ratio, torch.full((16,), 6.0), atol=0.2, rtol=0)


def test_overlapping_sequences_are_neither_positive_nor_negative() -> None:
    data = settings("opas", "data.phases=2", "data.copies=2", "data.queries=1").data
    audio = np.random.default_rng(0).standard_normal(60_000).astype(np.float32)
    sets = module("sets")
    sequences = sets.cut([(0, audio), (1, audio)], data, 2, np.random.default_rng(0))
    assert sequences.start.tolist() == [0, 20_000, 40_000, 10_000, 30_000] * 2
    built = sets.search_set(sequences, sets.build_elements(data), data.copies, data, np.random.default_rng(0))
    counted = built.counted[0].view(10, 2)[:, 0]
    # the sequence itself, those of its phase, and all of the other recording; not the one that begins inside
    assert counted.tolist() == [True, True, True, False, True] + [True] * 5
    allowed = module("training").pairs(built, 4, 0)
    assert not (allowed & ~built.counted).any()
    assert (allowed & ~built.relevant).sum(1).tolist() == [4] * 10


def test_mel_elements_are_normalised_and_silence_stays_silent() -> None:
    elements = Elements("mel", samples=4000, sample_rate=4000)
    windows = torch.randn(200, 4000, generator=torch.Generator().manual_seed(0)).cumsum(1)
    elements.fit(windows)
    values = elements(windows).view(200, 40, 10)
    torch.testing.assert_close(values.mean((0, 2)), torch.zeros(40), atol=1e-3, rtol=0)
    torch.testing.assert_close(values.std((0, 2)), torch.ones(40), atol=1e-2, rtol=0)
    torch.testing.assert_close(elements(windows * 7), elements(windows), atol=1e-3, rtol=0)  # loudness
    mixed = torch.stack([windows[:3], torch.zeros(3, 4000)])
    assert (elements(mixed)[1] == 0).all()
    torch.testing.assert_close(elements(mixed)[0], elements(windows[:3]))


@pytest.mark.parametrize("kind", ["speech", "music"])
def test_synthesis_is_what_the_seed_says(kind: str) -> None:
    if kind == "speech":
        pytest.importorskip("espeakng_loader")
    make = getattr(module("synthesis"), kind)
    first, again, other = ([audio for _, audio in make(2, 3.0, 4000, seed)] for seed in (0, 0, 1))
    for a, b, c in zip(first, again, other):
        assert a.dtype == np.float32
        assert a.shape == (12_000,)
        assert np.abs(a).max() <= 1
        np.testing.assert_array_equal(a, b)
        assert abs(np.corrcoef(a, c)[0, 1]) < 0.5
    assert abs(np.corrcoef(*first)[0, 1]) < 0.5


def test_tunes_have_the_pitches_of_their_notes() -> None:
    synthesis = module("synthesis")
    out, timbre = np.zeros(4000), np.array([1.0, 0, 0, 0, 0, 0, 0.01, 5.0])
    synthesis.add_note(out, timbre, synthesis.pitch_hz(69, (0, 2, 4, 5, 7, 9, 11), 0), 0.0, 1.0, 1.0, 4000)
    assert np.abs(np.fft.rfft(out)).argmax() == 440  # Hz: a second of samples
    assert synthesis.pitch_hz(69, (0, 2, 4, 5, 7, 9, 11), 7) == pytest.approx(880)
    assert synthesis.pitch_hz(69, (0, 2, 4, 5, 7, 9, 11), -1) == pytest.approx(440 * 2 ** (-1 / 12))


def test_prepared_data_are_kept_and_are_of_their_configuration(tmp_path: Path) -> None:
    load, data = (
        module("prepared").load_or_prepare,
        settings("opas", "data.elements=mel", "data.frames=4").data,
    )
    elements, sets = module("sets").prepare(data)
    load(data, tmp_path)
    (path,) = tmp_path.iterdir()
    before = path.stat().st_mtime_ns
    kept, found = load(data, tmp_path)
    assert path.stat().st_mtime_ns == before
    torch.testing.assert_close(kept.state_dict(), elements.state_dict())
    for name, part in sets.items():
        for key in ("chosen", "lengths", "relevant", "counted", "query_recording", "item_recording"):
            assert torch.equal(getattr(found[name], key), getattr(part, key))
        for key in ("queries", "corpus"):  # half precision
            torch.testing.assert_close(getattr(found[name], key), getattr(part, key), atol=2e-3, rtol=1e-3)
    data.snr_db = 20.0
    load(data, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_folders_of_audio(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(9):
        soundfile.write(tmp_path / f"{number}.wav", 0.1 * rng.standard_normal(16_000 * 7), 16_000)
    config = settings("opas", "data=speech", f"data.root={tmp_path}", "data.join_s=20", "data.phases=1")
    audio = module("sources").recordings(config.data)
    assert [name for name, _ in audio] == [f"{i}.wav+{i + 1}.wav+{i + 2}.wav" for i in (0, 3, 6)]
    assert all(len(samples) == pytest.approx(21_000, abs=3) for _, samples in audio)
    _, sets = module("sets").prepare(config.data)
    assert all(len(part.corpus) == config.data.copies for part in sets.values())
    with pytest.raises(FileNotFoundError, match="no audio files"):
        module("sources").recordings(settings("opas", "data=speech", f"data.root={tmp_path / 'no'}").data)
    with pytest.raises(ValueError, match=r"data\.root=FOLDER"):
        module("sources").recordings(settings("opas", "data=speech").data)


def test_real_music() -> None:
    if not (DATA / "music").is_dir():
        pytest.skip(f"no music in {DATA}")
    config = settings("opas", "data=music", f"data.root={DATA / 'music'}", "data.phases=1")
    _, sets = module("sets").prepare(config.data)
    assert all(len(part.corpus) >= config.data.copies for part in sets.values())
    # on samples, untrained vectors of windows find their noisy copies
    rows = {"MaxSim": {"scorer": {"name": "max-sim"}, "queries": 50}}
    assert module("evaluation").baselines(rows, sets["test"], 0)["MaxSim"]["MAP"] > 0.9
