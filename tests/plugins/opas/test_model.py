from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from isotone_opas import functional as F
from isotone_opas.embed import embeds
from isotone_opas.metrics import ordering_consistency
from isotone_opas.model import CONFIG, OPAS, SINKHORN, WEIGHTS, OPASError
from isotone_opas.scoring import compilable
from torch import Tensor

from isotone import relaxations
from isotone.evaluation.ranking import average_precision
from tests.plugins.opas.parts import Sinkhorn, collection, unit

EMBED = {"name": "lrl", "input_size": 24, "size": 16, "hidden": 32}
CONVOLUTIONAL = {"name": "convolutional", "rows": 4, "columns": 10}


def make(penalty: object = CONVOLUTIONAL, seed: int = 0, **options: object) -> OPAS:
    torch.manual_seed(seed)
    return OPAS(EMBED, penalty, Sinkhorn(), columns=10, **options).eval()  # type: ignore[arg-type]


@pytest.fixture
def data() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    q, c = unit(rng, 5, 4, 16), unit(rng, 9, 10, 16)
    c[2, 3] = 0
    return q, c, torch.tensor([4, 3, 1, 4, 2]), torch.tensor([10, 10, 9, 4, 8, 10, 5, 6, 10])


PENALTIES = [CONVOLUTIONAL, {"name": "linear", "rows": 4, "columns": 10, "size": 16}, {"name": "constant"}]


@pytest.mark.parametrize("options", [{}, {"hinge": True}, {"reward": "hinge"}], ids=str)
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: p["name"])
def test_compiled_scores_are_those_of_tensors(
    data: tuple[Tensor, ...], penalty: object, options: dict[str, Any]
) -> None:
    q, c, m, n = data
    model = make(penalty, **options)
    assert compilable(model, q) is False
    tensors = model.score_all(q, c, m, n)
    assert tensors.requires_grad
    pairs = [model.select(q[i : i + 1].expand(9, -1, -1), c, m[i].expand(9), n).score for i in range(5)]
    torch.testing.assert_close(tensors, torch.stack(pairs), rtol=0, atol=1e-6)
    with torch.no_grad():
        assert compilable(model, q)
        compiled = model.score_all(q, c, m, n)
        of_pairs = model.score(q, c[:5], m, n[:5])
        parts = model.parts_all(q, c, m, n)
        chosen = model.select(q[:1].expand(9, -1, -1), c, m[:1].expand(9), n)
    torch.testing.assert_close(parts[0][0], chosen.fit, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(parts[1][0], chosen.order, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(compiled, tensors.detach(), rtol=0, atol=1e-5)
    torch.testing.assert_close(of_pairs, tensors.detach().diagonal(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("reward", ["theorem1", "hinge"])
@pytest.mark.parametrize("temperature", [1.0, 0.02])
def test_blocks_change_nothing(data: tuple[Tensor, ...], reward: str, temperature: float) -> None:
    q, c, m, n = data
    model = make(reward=reward)
    model.relaxation.temperature = temperature  # at the lower one rewards range too far for single precision
    with torch.no_grad():
        whole, parts = (model.score_all(q, c, m, n, memory_mib=mib) for mib in (64.0, 0.001))
    torch.testing.assert_close(whole, parts, rtol=0, atol=1e-6)
    torch.testing.assert_close(
        whole, model.score_all(q, c, m, n, memory_mib=0.001).detach(), atol=1e-5, rtol=0
    )


def test_the_registry_has_this_sinkhorn() -> None:
    if "sinkhorn" not in relaxations.names():
        pytest.skip("the relaxation plugin is not installed")
    rng = torch.Generator().manual_seed(0)
    q, c = unit(rng, 6, 4, 16), unit(rng, 30, 10, 16)
    m, n = torch.randint(1, 5, (6,), generator=rng), torch.randint(4, 11, (30,), generator=rng)
    torch.manual_seed(0)
    model = OPAS(EMBED, CONVOLUTIONAL, SINKHORN, columns=10).eval()
    tensors = model.score_all(q, c, m, n).detach()
    with torch.no_grad():
        torch.testing.assert_close(model.score_all(q, c, m, n), tensors, rtol=0, atol=1e-5)
    torch.testing.assert_close(make().score_all(q, c, m, n).detach(), tensors, rtol=0, atol=1e-5)


def test_exact_selections_need_no_sinkhorn(data: tuple[Tensor, ...]) -> None:
    if "ordered" not in relaxations.names():
        pytest.skip("the relaxation plugin is not installed")
    q, c, m, n = data
    torch.manual_seed(0)
    model = OPAS(EMBED, {"name": "constant", "value": 0.0}, "ordered", columns=10).eval()
    tensors = model.score_all(q, c, m, n)
    with torch.no_grad():
        whole, parts = (model.score_all(q, c, m, n, memory_mib=mib) for mib in (64.0, 0.001))
        of_pairs = model.score(q, c[:5], m, n[:5])
    torch.testing.assert_close(whole, tensors.detach(), rtol=0, atol=1e-6)
    torch.testing.assert_close(parts, whole, rtol=0, atol=1e-6)
    torch.testing.assert_close(of_pairs, whole.diagonal(), rtol=0, atol=1e-6)
    # with penalties the best selection is another: tensors, then
    model = OPAS(EMBED, CONVOLUTIONAL, "ordered", columns=10, beta=(1.0, 1.0)).eval()
    with torch.no_grad():
        score = model.score_all(q, c, m, n)
    torch.testing.assert_close(score, model.score_all(q, c, m, n).detach(), rtol=0, atol=1e-6)


def test_padding_is_never_read(data: tuple[Tensor, ...]) -> None:
    q, c, m, n = data
    model = make()
    results = []
    for fill in (0.0, torch.nan):
        for rows, lengths in ((q, m), (c, n)):
            for row, size in zip(rows, lengths):
                row[size:] = fill
        with torch.no_grad():
            results += [model.score_all(q, c, m, n), model.align(q, c[:5], m, n[:5]).score]
        results.append(model.score_all(q, c, m, n).detach())
    for clean, filled in zip(results[:3], results[3:]):
        torch.testing.assert_close(clean, filled, rtol=0, atol=0)


def test_sizes_at_the_edge() -> None:
    rng = torch.Generator().manual_seed(0)
    for m, n in ((1, 1), (4, 4), (1, 10)):
        q, c = unit(rng, 2, m, 16), unit(rng, 3, n, 16)
        model = make()
        with torch.no_grad():
            scores = model.score_all(q, c)
        torch.testing.assert_close(scores, model.score_all(q, c).detach(), rtol=0, atol=1e-5)
        assert ((scores > 0) & (scores < 1)).all()
    # a single window of its own kind fits exactly
    with torch.no_grad():
        selection = make().select(q[:1, :1], q[:1, :1])
    torch.testing.assert_close(selection.fit, torch.zeros(1), rtol=0, atol=1e-5)
    assert model.score_all(q, c[:0]).shape == (2, 0)


def test_bad_input(data: tuple[Tensor, ...]) -> None:
    q, c, m, n = data
    model = make()
    with pytest.raises(ValueError, match="The query 0 has 4 elements, its corpus item 3: a query selects"):
        model.score_all(q, c[:, :3])
    with pytest.raises(ValueError, match="The query 3 has 4 elements, its corpus item 2"):
        model.score(q, c[:5], m, torch.tensor([10, 10, 10, 2, 10]))
    with pytest.raises(ValueError, match="query 1 holds NaN"):
        model.score_all(torch.where(torch.arange(5)[:, None, None] == 1, torch.nan, q), c)
    with pytest.raises(ValueError, match="corpus item 0: expected a length from 1 to 10; got 0"):
        model.score_all(q, c, m, n * 0)
    with pytest.raises(ValueError, match="of one d"):
        model.score_all(q[..., :3], c)
    with pytest.raises(ValueError, match="as many corpus items"):
        model.score(q, c)
    with torch.no_grad(), pytest.raises(ValueError, match="10 elements at most; got 12"):
        model.score_all(q, torch.cat([c, c[:, :2]], 1))
    with pytest.raises(ValueError, match="beta > 0"):
        make(beta=(1.0, 0.0))


def brute_force(q: Tensor, c: Tensor) -> tuple[int, ...]:
    def cost(choice: tuple[int, ...]) -> float:
        return float((q - c[list(choice)]).square().sum())

    return min(itertools.combinations(range(len(c)), len(q)), key=cost)


def test_alignment_is_the_best_ordered_selection(data: tuple[Tensor, ...]) -> None:
    q, c, m, n = data
    model = make()
    c = c[:5]
    hard, soft = model.align(q, c, m, n[:5]), model.align(q, c, m, n[:5], soft=True)
    plan = model.select(q, c, m, n[:5]).plan.detach()
    for row in range(5):
        best = brute_force(q[row, : m[row]], c[row, : n[row]])
        assert hard.source[row, : m[row]].tolist() == list(best)
        assert hard.target[row, : m[row]].tolist() == list(range(m[row]))
        assert hard.mass[row].tolist() == [1.0] * int(m[row]) + [0.0] * (4 - int(m[row]))
        torch.testing.assert_close(soft.mass[row, : m[row]], plan[row, range(m[row]), best])
        # a target's span is the window it lies in
        spans = hard.spans()[row, : m[row]]
        assert spans.tolist() == [[i, i + 1] for i in best]
    assert (hard.source.diff(dim=1) >= 0).all()
    assert (hard.target.diff(dim=1) >= 0).all()
    torch.testing.assert_close(hard.score, model.score(q, c, m, n[:5]).detach(), rtol=0, atol=1e-5)


def test_a_saved_model_scores_the_same(data: tuple[Tensor, ...], tmp_path: Path) -> None:
    q, c, m, n = data
    torch.manual_seed(4)
    model = OPAS(
        EMBED, CONVOLUTIONAL, {"name": "sinkhorn", "temperature": 0.5}, columns=10, growth=None, hinge=True
    ).eval()
    with torch.no_grad():
        model.log_beta += 0.3
    model.save(tmp_path / "model")
    again = OPAS.load(tmp_path / "model")
    torch.testing.assert_close(again.score_all(q, c, m, n), model.score_all(q, c, m, n), rtol=0, atol=0)
    windows = torch.randn(2, 10, 24)
    torch.testing.assert_close(again.embed(windows), model.embed(windows), rtol=0, atol=0)
    (tmp_path / "model" / WEIGHTS).write_bytes(b"no tensors")
    with pytest.raises(OPASError, match="damaged"):
        OPAS.load(tmp_path / "model")
    (tmp_path / "model" / CONFIG).write_text('{"format": 9}')
    with pytest.raises(OPASError, match="format 1"):
        OPAS.load(tmp_path / "model")
    with pytest.raises(OPASError, match="holds no OPAS model"):
        OPAS.load(tmp_path / "nowhere")
    with pytest.raises(OPASError, match="relaxation was given as an object"):
        make().save(tmp_path / "other")


def test_an_encoder_is_saved_with_the_model(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tiny = {
        "model_type": "wav2vec2-bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "conv_depthwise_kernel_size": 3, "feature_projection_input_dim": 160,
        "position_embeddings_type": None, "layerdrop": 0.0, "mask_time_prob": 0.0,
    }  # fmt: skip
    spec = {"name": "encoder", "encoder": {"name": "transformers", "source": tiny}, "size": 8}
    model = OPAS(spec, CONVOLUTIONAL, "sinkhorn", columns=10).eval()
    windows = torch.randn(2, 3, 3200)
    windows[1, 1] = 0
    before = model.embed(windows)
    torch.testing.assert_close(before.norm(dim=-1), torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]]))
    model.save(tmp_path / "model")
    torch.testing.assert_close(OPAS.load(tmp_path / "model").embed(windows), before)


EMBEDS = [
    {"name": "transformer", "input_size": 24, "size": 8},
    {"name": "transformer", "input_size": 24, "size": 8, "width": 12},
    {"name": "lrl", "input_size": 24, "size": 8},
    {"name": "conv1d", "size": 8, "hidden": 16},
]


@pytest.mark.parametrize("spec", EMBEDS, ids=lambda spec: "-".join(map(str, spec.values())))
def test_embeddings(spec: dict[str, object]) -> None:
    torch.manual_seed(0)
    model = embeds.create(spec).eval()
    windows = torch.randn(3, 5, 24)
    windows[0, 2] = 0.0
    windows[1, 1] = 0.25  # constant
    lengths = torch.tensor([5, 3, 1])
    out = model(windows, lengths)
    expected = (torch.arange(5) < lengths[:, None]).float()
    expected[0, 2] = 0
    torch.testing.assert_close(out.norm(dim=-1), expected)
    # loudness and padding do not matter, nor do neighbours in the batch
    louder = 7 * windows
    louder[1, 3:] = torch.nan
    torch.testing.assert_close(model(louder, lengths), out, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(windows[1:2, :3]), out[1:2, :3], rtol=1e-4, atol=1e-5)
    out.square().sum(-1).mul(torch.arange(5)).sum().backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())
    windows[2, 0, 0] = torch.inf
    with pytest.raises(ValueError, match="Sequence 2 of the batch holds NaN or infinity"):
        model(windows)
    with pytest.raises(ValueError, match=r"\(B, n, samples\)"):
        model(windows[0])


def test_embeddings_of_other_windows_are_refused() -> None:
    for spec in EMBEDS[:3]:
        with pytest.raises(ValueError, match="windows of 24 samples; got 7"):
            embeds.create(spec)(torch.ones(1, 2, 7))
    with pytest.raises(ValueError, match="4 heads divide"):
        embeds.build("transformer", input_size=30)


def test_training_finds_the_sequences() -> None:
    windows, corpus, relevant = collection(0)
    model = make(seed=1).train()
    model.relaxation = Sinkhorn(iterations=3)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(15):
        scores = model.score_all(model.embed(windows), model.embed(corpus))
        loss = F.margin_loss(scores, relevant, 0.3).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert all(p.grad is not None for p in model.parameters())
    model.eval()
    fresh, other, relevant = collection(1, noise=0.2)
    with torch.no_grad():
        scores = model.score_all(model.embed(fresh), model.embed(other))
    assert average_precision(scores, relevant).mean() > 0.9


def test_ordering_consistency() -> None:
    rng = torch.Generator().manual_seed(0)
    query, positives = unit(rng, 4, 16), unit(rng, 3, 10, 16)

    def places(queries: Tensor, items: Tensor) -> Tensor:
        """Largest for the query's own order."""
        distance = (queries - query).square().sum((1, 2))
        return -distance[:, None].expand(-1, len(items))

    def blind(queries: Tensor, items: Tensor) -> Tensor:
        return (queries[:, None] @ items.mT).amax(-1).sum(-1)

    assert ordering_consistency(places, query, positives) == 1.0
    assert ordering_consistency(places, query, positives, 50, rng) == 1.0
    assert ordering_consistency(lambda q, c: -places(q, c), query, positives) == 0.0
    assert ordering_consistency(blind, query, positives) == 0.5
    with pytest.raises(ValueError, match="two elements"):
        ordering_consistency(places, query[:1], positives)
    with pytest.raises(ValueError, match="give a number"):
        ordering_consistency(places, unit(rng, 9, 16), positives)


def test_opas_sees_the_order() -> None:
    rng = torch.Generator().manual_seed(2)
    corpus = unit(rng, 3, 10, 16)
    query = corpus[0, [1, 4, 6, 9]]
    model = make({"name": "constant", "value": 0.5}, beta=(1.0, 0.3))
    with torch.no_grad():
        share = ordering_consistency(model.score_all, query, corpus[:1])
    assert share > 0.9
