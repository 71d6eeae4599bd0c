from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_ottc.align import SegmentalViterbi, Transport
from isotone_ottc.decode import GreedyOTTC, SegmentalDecoder
from isotone_ottc.functional import (
    collapse_frames,
    insert_blanks,
    insert_silence,
    labels_from_paths,
    ottc_loss,
    share_repeats,
)
from isotone_ottc.head import OTTCHead
from isotone_ottc.loss import OTTCLoss
from isotone_ottc.weights import duration_weights, own_weights, uniform_weights
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.kernels.coupling import couple
from isotone.testing import (
    check_aligner,
    check_decoder,
    check_head,
    check_loss,
    sample_batch,
)
from isotone.types import Emissions, Frames, Grid, Targets
from tests.plugins.ottc.parts import best_path

EXACT = {"rtol": 0.0, "atol": 1e-12}
BLANK = 0

sequences = st.lists(st.lists(st.integers(1, 3), min_size=0, max_size=7), min_size=1, max_size=4)


def random_problem(seed: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(3, 9, 5, generator=rng, dtype=torch.float64).to(dtype)
    alpha = torch.rand(3, 9, generator=rng, dtype=torch.float64).to(dtype)
    beta = torch.rand(3, 4, generator=rng, dtype=torch.float64).to(dtype)
    labels = torch.randint(0, 5, (3, 4), generator=rng)
    return logits, alpha, labels, beta, torch.tensor([9, 6, 4]), torch.tensor([4, 2, 4])


def peaked(paths: list[list[int]], vocab_size: int = 5, sharpness: float = 10.0) -> Emissions:
    """Emissions sure of a label a frame."""
    lengths = torch.tensor([len(p) for p in paths])
    logits = torch.zeros(len(paths), int(lengths.max()), vocab_size)
    for row, path in enumerate(paths):
        logits[row, range(len(path)), path] = sharpness
    return Emissions(logits, lengths, Grid(0.02), BLANK)


# targets and paths


@settings(max_examples=40, deadline=None)
@given(rows=sequences)
def test_blanks_go_between_equal_neighbours_only(rows: list[list[int]]) -> None:
    targets = Targets.from_lists(rows)
    targets.labels[torch.arange(targets.labels.shape[1]) >= targets.lengths[:, None]] = -100
    labels, lengths, origin = insert_blanks(targets.labels, targets.lengths, BLANK)
    spread, spread_lengths, spread_origin = insert_silence(targets.labels, targets.lengths, BLANK, 4)
    for b, row in enumerate(rows):
        expected, where = [], []
        for j, label in enumerate(row):
            if j and row[j - 1] == label:
                expected, where = [*expected, BLANK], [*where, -1]
            expected, where = [*expected, label], [*where, j]
        assert labels[b, : lengths[b]].tolist() == expected
        assert origin[b, : lengths[b]].tolist() == where
        assert (origin[b, lengths[b] :] == -1).all()
        silences = [BLANK if j and row[j - 1 : j] == row[j : j + 1] else 4 for j in range(len(row) + 1)]
        interleaved = [x for pair in zip(silences, [*row, -1]) for x in pair][:-1]
        assert spread[b, : spread_lengths[b]].tolist() == interleaved
        numbers = [x for j in range(len(row)) for x in (-1, j)] + [-1]
        assert spread_origin[b, : spread_lengths[b]].tolist() == numbers


def test_the_papers_relabelling() -> None:
    # YES with the path (blank Y blank blank E E S)
    paths = torch.tensor([[-1, 0, -1, -1, 1, 1, 2], [0, 0, -2, -2, -2, -2, -2]])
    labels, lengths, frames = labels_from_paths(paths, torch.tensor([[3, 1, 2], [4, -100, -100]]), BLANK)
    assert labels[0, : lengths[0]].tolist() == [BLANK, 3, BLANK, 1, 2]
    assert frames[0, : lengths[0]].tolist() == [1, 1, 2, 2, 1]
    assert labels[1, : lengths[1]].tolist() == [4]
    assert frames[1, : lengths[1]].tolist() == [2]


@settings(max_examples=40, deadline=None)
@given(
    frame_labels=st.lists(st.integers(0, 3), min_size=1, max_size=10),
    kept=st.lists(st.booleans(), min_size=10, max_size=10),
)
def test_frames_collapse_after_pruning(frame_labels: list[int], kept: list[bool]) -> None:
    mask = kept[: len(frame_labels)]
    labels, counts, paths = collapse_frames(torch.tensor([frame_labels]), torch.tensor([mask]), BLANK)
    pruned = [x for x, keep in zip(frame_labels, mask) if keep]
    expected = [label for label, _ in itertools.groupby(pruned) if label != BLANK]
    assert labels[0, : counts[0]].tolist() == expected
    for t, token in enumerate(paths[0].tolist()):
        assert (token >= 0) == (mask[t] and frame_labels[t] != BLANK)
        assert token < 0 or expected[token] == frame_labels[t]
    carried = paths[paths >= 0]
    assert (carried.diff() >= 0).all()
    assert sorted(set(carried.tolist())) == list(range(len(expected)))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_touching_repeats_share_their_frames(seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    labels = torch.randint(1, 3, (1, 6), generator=rng)
    steps = torch.randint(0, 2, (1, 14), generator=rng)
    path = steps.cumsum(1).clamp(max=5)
    path[torch.rand(1, 14, generator=rng) < 0.1] = -1
    shared = share_repeats(path, labels)
    assert torch.equal(shared < 0, path < 0)
    carried = path >= 0
    spell = [labels[0, p[0][carried[0]]] for p in (path, shared)]
    assert torch.equal(*spell)
    assert sorted(set(shared.flatten().tolist())) == sorted(set(path.flatten().tolist()))
    assert (shared[carried].diff() >= 0).all()


def test_touching_repeats_share_evenly() -> None:
    labels = torch.tensor([[1, 2, 2, 2]])
    path = torch.tensor([[0, 1, 2, 2, 2, 2, 3, -1, 3]])
    assert share_repeats(path, labels).tolist() == [[0, 1, 1, 2, 2, 3, 3, -1, 3]]
    path = torch.tensor([[0, 0, 1, -1, 3, 3, 3]])
    assert torch.equal(share_repeats(path, labels), path)


# the loss


def test_loss_is_the_dense_formula() -> None:
    logits, alpha, labels, beta, n, m = random_problem(0)
    plan = couple(alpha, beta, n, m).dense()
    log_probs = logits.log_softmax(-1)
    chosen = torch.stack([log_probs[b][:, labels[b]] for b in range(3)])
    expected = -(plan * chosen).sum((1, 2))
    torch.testing.assert_close(ottc_loss(logits, alpha, labels, beta, n, m), expected, **EXACT)


def test_gradients_are_those_of_the_dense_formula() -> None:
    logits, alpha, labels, beta, n, m = random_problem(1)
    leaves = [x.requires_grad_() for x in (logits, alpha, beta)]
    assert torch.autograd.gradcheck(lambda x, a, b: ottc_loss(x, a, labels, b, n, m), leaves)


def test_half_precision_is_summed_in_float32() -> None:
    logits, alpha, labels, beta, n, m = random_problem(3, torch.bfloat16)
    x = logits.clone().requires_grad_()
    value = ottc_loss(x, alpha, labels, beta, n, m)
    exact_x = logits.double().requires_grad_()
    exact = ottc_loss(exact_x, alpha.double(), labels, beta.double(), n, m)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=1e-6)
    value.sum().backward()
    exact.sum().backward()
    assert x.grad is not None
    assert exact_x.grad is not None
    # rounded once, to 8 bits
    torch.testing.assert_close(x.grad.double(), exact_x.grad, rtol=2**-8, atol=1e-7)


def test_nothing_as_large_as_the_logits_is_kept_but_the_logits() -> None:
    logits, alpha, labels, beta, n, m = random_problem(4)
    x = logits.requires_grad_()
    kept: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        ottc_loss(x, alpha.requires_grad_(), labels, beta, n, m).sum().backward()
    assert [t.data_ptr() for t in kept if t.numel() >= x.numel()] == [x.data_ptr()]


def test_impossible_labels_cost_infinity_only_where_mass_goes() -> None:
    logits = torch.zeros(1, 4, 3)
    logits[0, 0, 2] = -torch.inf
    args = (torch.tensor([[1, 2]]), torch.tensor([[0.5, 0.5]]), torch.tensor([4]), torch.tensor([2]))
    assert torch.isfinite(ottc_loss(logits, torch.ones(1, 4), *args)).all()
    assert torch.isinf(ottc_loss(logits, torch.tensor([[4.0, 0.1, 0.1, 0.1]]), *args)).all()


def test_rows_that_cannot_be_aligned_give_nothing() -> None:
    logits, alpha, labels, beta, _, _ = random_problem(5)
    logits[1:] = torch.nan
    labels[1:] = -100
    x = logits.requires_grad_()
    lengths = torch.tensor([9, 2, 9]), torch.tensor([4, 3, 0])
    value = ottc_loss(x, alpha, labels, beta, *lengths)
    assert value[0] > 0
    assert value[1:].tolist() == [0, 0]
    value.sum().backward()
    assert x.grad is not None
    assert x.grad[0].any()
    assert not x.grad[1:].any()


def test_wrong_shapes_are_named() -> None:
    logits, alpha, labels, beta, n, m = random_problem(6)
    with pytest.raises(ValueError, match=r"expects logits \(B, T, V\).* got .*\(3, 8\)"):
        ottc_loss(logits, alpha[:, :8], labels, beta, n, m)


@pytest.mark.parametrize("beta", ["uniform", "durations", "path", "self"])
def test_every_choice_of_label_weights_keeps_the_laws(beta: str) -> None:
    check_loss(OTTCLoss(beta=beta))


def test_path_weights_and_uniform_alpha_are_framewise_cross_entropy() -> None:
    emissions, targets = sample_batch()
    emissions = replace(emissions, weight_logits=None)
    value = OTTCLoss(beta="path")(emissions, targets)
    log_probs = emissions.log_probs()
    assert targets.paths is not None
    for b, n in enumerate(emissions.lengths.tolist()):
        path = targets.paths.tokens[b, :n]
        labels = torch.where(path >= 0, targets.labels[b, path.clamp(min=0)], BLANK)
        expected = -log_probs[b, torch.arange(n), labels].mean()
        torch.testing.assert_close(value[b], expected, rtol=1e-5, atol=1e-6)


def test_self_weights_begin_uniform_and_then_follow_the_emissions() -> None:
    emissions = peaked([[1, 1, 1, 1, 1, 1, 2, 3, 3]])
    targets = Targets.from_lists([[1, 2, 3]])
    loss, uniform = OTTCLoss(beta="self", self_after=0.3, smoothing=1e-6), OTTCLoss()
    loss.progress = 0.29
    assert torch.equal(loss(emissions, targets), uniform(emissions, targets))
    loss.progress = 0.3
    assert loss(emissions, targets) < 0.01 < uniform(emissions, targets)
    weights = own_weights(emissions, targets.labels, targets.lengths, 0.5)
    torch.testing.assert_close(weights, torch.tensor([[6.5, 1.5, 2.5]]) / 10.5)


def test_duration_weights() -> None:
    durations = torch.tensor([[0.2, 0.0, 0.6], [5.0, torch.nan, torch.nan], [0.0, 0.0, 0.0]])
    weights = duration_weights(durations, torch.tensor([3, 1, 2]), torch.tensor([8, 4, 4]), 0.5)
    expected = torch.tensor([[2.5 / 9.5, 0.5 / 9.5, 6.5 / 9.5], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    torch.testing.assert_close(weights, expected)
    assert uniform_weights(torch.tensor([2, 0]), 3).tolist() == [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]


def test_optional_tokens_may_be_skipped_by_self_weights() -> None:
    emissions = peaked([[1, 1, 1, 3, 3, 3]])
    labels, lengths = torch.tensor([[1, 2, 3]]), torch.tensor([3])
    optional = torch.tensor([[False, True, False]])
    weights = own_weights(emissions, labels, lengths, 0.5, optional)
    torch.testing.assert_close(weights, torch.tensor([[3.5, 0.5, 3.5]]) / 7.5)
    # a pause that nobody makes has no share of the frames
    weights = own_weights(emissions, labels, lengths, 0.5, optional, pauses=optional)
    assert weights.tolist() == [[0.5, 0.0, 0.5]]
    kept = own_weights(peaked([[1, 1, 2, 3]]), labels, lengths, 0.5, optional, pauses=optional)
    torch.testing.assert_close(kept, torch.tensor([[2.5, 1.5, 1.5]]) / 5.5)


@pytest.mark.parametrize("states", [1, 2])
def test_a_pause_that_nobody_makes_is_no_target(states: int) -> None:
    emissions = peaked([[1, 1, 1, 3, 3, 3]])
    emissions = replace(emissions, logits=emissions.logits.repeat(1, 1, states))
    targets = Targets.from_lists([[1, 2, 3]])
    free = replace(targets, optional=torch.tensor([[False, True, False]]))
    loss = OTTCLoss(beta="self", self_after=0.3, states=states)
    loss.progress = 0.5
    assert loss(emissions, free) < loss(emissions, targets) - 0.3
    loss.progress = 0.1  # still uniform
    assert torch.equal(loss(emissions, free), loss(emissions, targets))
    # nor does it need a frame
    short = replace(emissions, lengths=torch.tensor([2]))
    assert loss(short, targets) == 0 < loss(short, free)


@pytest.mark.parametrize(
    "options", [{"beta": "oracle"}, {"smoothing": 0.0}, {"self_after": 1.5}], ids=lambda o: next(iter(o))
)
def test_options_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"OTTCLoss expects .*got"):
        OTTCLoss(**options)  # type: ignore[arg-type]


def test_missing_durations_and_paths_are_named() -> None:
    emissions, targets = sample_batch()
    bare = replace(targets, durations=None, paths=None)
    for beta, field in (("durations", "durations"), ("path", "paths")):
        with pytest.raises(ValueError, match=f"expects targets.*{field}"):
            OTTCLoss(beta=beta)(emissions, bare)  # type: ignore[arg-type]


# the head


@pytest.mark.parametrize(
    "options",
    [
        {"layers": 1},
        {"layers": 2, "dilation": 2, "width": 16},
        {"alpha": "uniform"},
        {"hidden": 3},
        {"track_prior": True},
    ],
    ids=str,
)
def test_every_head_keeps_the_laws(options: dict[str, object]) -> None:
    torch.manual_seed(0)
    check_head(OTTCHead(7, 5, **options), 7, 5)  # type: ignore[arg-type]


def test_alpha_begins_uniform_and_can_stay_so() -> None:
    frames = Frames(torch.randn(2, 4, 7), torch.tensor([4, 2]), Grid(0.02))
    uniform = [[0.25] * 4, [0.5, 0.5, 0.0, 0.0]]
    assert OTTCHead(7, 5)(frames).weights().tolist() == uniform
    fixed = OTTCHead(7, 5, alpha="uniform")
    assert fixed(frames).weight_logits is None
    assert fixed(frames).weights().tolist() == uniform


@pytest.mark.parametrize(
    ("layers", "kernel", "dilation", "reach"), [(0, 3, 1, 0), (1, 3, 1, 1), (2, 5, 1, 4), (2, 3, 3, 4)]
)
def test_receptive_field(layers: int, kernel: int, dilation: int, reach: int) -> None:
    torch.manual_seed(0)
    head = OTTCHead(4, 3, layers=layers, width=8, kernel=kernel, dilation=dilation).eval()
    values = torch.randn(1, 41, 4, requires_grad=True)
    head(Frames(values, torch.tensor([41]), Grid(0.02))).logits[0, 20].sum().backward()
    assert values.grad is not None
    read = values.grad[0].any(1).nonzero()[:, 0]
    assert (20 - int(read[0]), int(read[-1]) - 20) == (reach, reach)


def test_weights_freeze_late_in_training_only() -> None:
    torch.manual_seed(0)
    head = OTTCHead(4, 3, detach_after=0.75, dropout=0.0)
    values = torch.randn(1, 6, 4, requires_grad=True)
    frames = Frames(values, torch.tensor([6]), Grid(0.02))
    targets = Targets.from_lists([[1, 2]])
    assert head.weights is not None
    for progress, learns in ((0.7, True), (0.75, False)):
        head.progress = progress
        head.zero_grad(set_to_none=True)
        OTTCLoss()(head(frames), targets).sum().backward()
        grads = [p.grad is not None for p in head.weights.parameters()]
        assert grads == [learns] * 4
        assert head.labels[1].weight.grad is not None
    assert head.eval()(frames).weight_logits.requires_grad


@pytest.mark.parametrize(
    "options",
    [{"alpha": "fixed"}, {"layers": -1}, {"kernel": 4, "layers": 1}, {"blank": 5}],
    ids=lambda o: next(iter(o)),
)
def test_head_options_out_of_range_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"OTTCHead expects .*got"):
        OTTCHead(4, 5, **options)  # type: ignore[arg-type]


# alignment


@pytest.mark.parametrize(
    "aligner",
    [
        Transport(beta="durations"), Transport(beta="self"), SegmentalViterbi(silence=0),
    ],
    ids=["transport-durations", "transport-self", "segmental-silence"],
)  # fmt: skip
def test_every_aligner_keeps_the_laws(aligner: Transport | SegmentalViterbi) -> None:
    check_aligner(aligner)


def test_transport_follows_the_weights() -> None:
    # three tokens of 1/3; the last two frames are dropped
    weights = torch.tensor([[1 / 3, 1 / 6, 1 / 6, 1 / 9, 1 / 9, 1 / 9, 0.0, 0.0]]).log()
    emissions = Emissions(torch.zeros(1, 8, 4), torch.tensor([8]), Grid(0.02), BLANK, weights)
    coupling = Transport()(emissions, Targets.from_lists([[1, 2, 3]]))
    spans = coupling.spans()
    expected = torch.tensor([[[0.0, 1.0], [1.0, 3.0], [3.0, 6.0]]])
    torch.testing.assert_close(spans.float(), expected, rtol=0, atol=1e-4)
    assert coupling.score is not None
    torch.testing.assert_close(coupling.score, torch.tensor([4.0]).log().neg())


def test_transport_drops_the_mass_of_inserted_blanks_and_of_light_frames() -> None:
    emissions = Emissions(torch.zeros(1, 6, 4), torch.tensor([6]), Grid(0.02))
    coupling = Transport()(emissions, Targets.from_lists([[1, 1]]))
    dense = coupling.dense()[0]
    torch.testing.assert_close(dense.sum(0), torch.tensor([1 / 3, 1 / 3]))
    assert not dense[2:4].any()
    light = replace(emissions, weight_logits=torch.tensor([[0.0, -9.0, 0.0, 0.0, 0.0, 0.0]]))
    assert Transport()(light, Targets.from_lists([[1, 2]])).dense()[0, 1].any()
    assert not Transport(min_alpha=0.5)(light, Targets.from_lists([[1, 2]])).dense()[0, 1].any()


def test_transport_needs_a_frame_for_the_blank_between_repeats() -> None:
    emissions = Emissions(torch.zeros(2, 3, 4), torch.tensor([3, 2]), Grid(0.02))
    with pytest.raises(AlignmentError, match=r"Row 1: .*at least 3 frames, got 2"):
        Transport()(emissions, Targets.from_lists([[1, 2, 3], [1, 1]]))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("silence", [None, 0, 3])
def test_segmental_viterbi_is_the_best_of_all_paths(seed: int, silence: int | None) -> None:
    rng = torch.Generator().manual_seed(seed)
    emissions = Emissions(torch.randn(1, 6, 4, generator=rng), torch.tensor([6]), Grid(0.02))
    target = torch.randint(1, 3, (3,), generator=rng).tolist()
    skip = torch.rand(3, generator=rng) < 0.3
    skip[0] = False
    targets = replace(Targets.from_lists([target]), optional=skip[None])
    coupling = SegmentalViterbi(silence=silence)(emissions, targets)
    if silence is None:
        labels, _, origin = insert_blanks(targets.labels, targets.lengths, BLANK)
    else:
        labels, _, origin = insert_silence(targets.labels, targets.lengths, BLANK, silence)
    optional = [j < 0 or bool(skip[j]) for j in origin[0].tolist()]
    score, walk = best_path(emissions.log_probs()[0], labels[0].tolist(), optional)
    assert coupling.score is not None
    assert coupling.score.item() == pytest.approx(score, abs=1e-4)
    spelt = {t: target[origin[0, j]] for t, j in enumerate(walk) if origin[0, j] >= 0}
    got = {t: target[j] for t, j in zip(coupling.source[0].tolist(), coupling.target[0].tolist())}
    assert got == spelt


def test_segmental_viterbi_leaves_silence_out_and_shares_repeats() -> None:
    emissions = peaked([[0, 0, 1, 1, 0, 2, 2, 2], [3, 3, 3, 3, 3, 3]])
    targets = Targets.from_lists([[1, 2], [3, 3]])
    spans = SegmentalViterbi(silence=BLANK)(emissions, targets).spans()
    assert spans.tolist() == [[[2, 4], [5, 8]], [[0, 3], [3, 6]]]
    assert SegmentalViterbi()(emissions, targets).spans()[1].tolist() == [[0, 3], [3, 6]]


def test_segmental_viterbi_names_the_row_beside_an_empty_one() -> None:
    emissions = Emissions(torch.zeros(3, 4, 4), torch.tensor([4, 4, 2]), Grid(0.02))
    coupling = SegmentalViterbi()(emissions, Targets.from_lists([[], [1], [2, 3]]))
    assert coupling.mass.sum(1).tolist() == [0, 4, 2]
    with pytest.raises(AlignmentError, match="Row 2"):
        SegmentalViterbi()(emissions, Targets.from_lists([[], [1], [1, 2, 3]]))
    broken = replace(emissions, logits=emissions.logits.clone())
    broken.logits[1, :, 1] = -torch.inf
    with pytest.raises(AlignmentError, match="Row 1"):
        SegmentalViterbi()(broken, Targets.from_lists([[], [1], [2]]))
    with pytest.raises(ValueError, match="silence from 0 to 3; got 9"):
        SegmentalViterbi(silence=9)(emissions, Targets.from_lists([[1], [1], [2]]))


# decoding


@pytest.mark.parametrize("decoder", [GreedyOTTC(min_alpha=0.3), SegmentalDecoder(change_penalty=0.0)])
def test_every_decoder_keeps_the_laws(decoder: GreedyOTTC | SegmentalDecoder) -> None:
    check_decoder(decoder)


def test_greedy_leaves_out_frames_without_weight() -> None:
    emissions = peaked([[1, 1, 3, 1, 0, 2]])
    light = replace(emissions, weight_logits=torch.tensor([[0.0, 0.0, -9.0, 0.0, 0.0, 0.0]]))
    assert GreedyOTTC()(light)[0].tolist() == [[1, 3, 1, 2]]
    tokens, coupling = GreedyOTTC(min_alpha=0.1)(light)
    assert tokens.tolist() == [[1, 2]]
    assert coupling.source[0].tolist() == [0, 1, 3, 5]
    assert coupling.target[0].tolist() == [0, 0, 0, 1]


def test_segmental_decoding_suppresses_flicker() -> None:
    emissions = peaked([[1, 1, 2, 1, 1, 3, 3, 3]], sharpness=1.5)
    assert SegmentalDecoder(change_penalty=0.0)(emissions)[0].tolist() == [[1, 2, 1, 3]]
    assert SegmentalDecoder(change_penalty=1.0)(emissions)[0].tolist() == [[1, 3]]


# all together


def test_a_head_learns_labels_and_times_from_order_alone() -> None:
    rng = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    tokens, spans, values = [], [], []
    for _ in range(24):
        durations = torch.randint(2, 9, (5,), generator=rng)
        steps = torch.randint(1, 5, (5,), generator=rng)
        labels = 1 + steps.cumsum(0) % 5
        path = torch.repeat_interleave(labels, durations)
        noise = 0.3 * torch.randn(len(path), 6, generator=rng)
        values.append(torch.nn.functional.one_hot(path, 6) + noise)
        tokens.append(labels.tolist())
        spans.append(durations.cumsum(0))
    lengths = torch.tensor([len(v) for v in values])
    padded = torch.nn.utils.rnn.pad_sequence(values, batch_first=True)
    frames, targets = Frames(padded, lengths, Grid(0.02)), Targets.from_lists(tokens)
    head, loss = OTTCHead(6, 6, hidden=16, layers=1, width=32, dropout=0.0), OTTCLoss()
    optimizer = torch.optim.Adam(head.parameters(), lr=0.02)
    for _ in range(120):
        optimizer.zero_grad()
        loss(head(frames), targets).mean().backward()
        optimizer.step()
    emissions = head.eval()(frames)
    decoded = GreedyOTTC()(emissions)[0].tolist()
    assert sum(d == t for d, t in zip(decoded, tokens)) >= 22
    ends = torch.stack(spans).double()
    blind = (torch.arange(1, 6) / 5 * lengths[:, None] - ends).abs().mean().item()
    for aligner in (SegmentalViterbi(), Transport()):
        error = (aligner(emissions, targets).spans()[..., 1] - ends).abs().mean().item()
        assert error < 0.7 < blind, "frames, of the end of a token"
