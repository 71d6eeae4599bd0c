"""The CTC plugin: head, losses, aligners and decoder."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from isotone_ctc.align import CTCViterbi, TorchaudioViterbi
from isotone_ctc.decode import GreedyCTC
from isotone_ctc.functional import collapse, ctc
from isotone_ctc.head import CTCHead
from isotone_ctc.loss import CTCLoss, SinglePathLoss
from torch import Tensor

from isotone.alignment import AlignmentError
from isotone.types import Emissions, FramePath, Frames, Grid, Targets, length_mask

GRID = Grid(0.02)
FLOAT32 = {"rtol": 1e-5, "atol": 1e-5}
# torch's CTC sums in float32 over all frames: its gradient against an exact sum over the paths
FLOAT32_SUM = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def emissions_of(logits: Tensor, lengths: list[int], blank: int = 0) -> Emissions:
    return Emissions(logits, torch.tensor(lengths), GRID, blank)


def batch(rng: torch.Generator, blank: int = 0) -> tuple[Emissions, Targets]:
    """Three utterances of different lengths, the last too short for its three tokens."""
    logits = 2 * torch.randn(3, 30, 6, generator=rng)
    labels = [v for v in range(6) if v != blank]
    rows = [
        [labels[0], labels[0], labels[1], labels[3]],
        [labels[4], labels[2]],
        [labels[1], labels[1], labels[2]],
    ]
    return emissions_of(logits, [30, 17, 3], blank), Targets.from_lists(rows)


def value_and_gradient(
    loss: torch.nn.Module, emissions: Emissions, targets: Targets
) -> tuple[Tensor, Tensor]:
    logits = emissions.logits.clone().requires_grad_()
    value = loss(replace(emissions, logits=logits), targets)
    # unequal weights, so that rows cannot be exchanged unseen
    (value * torch.arange(1, len(value) + 1)).sum().backward()
    assert logits.grad is not None
    return value.detach(), logits.grad


def with_paths(emissions: Emissions, targets: Targets, rng: torch.Generator) -> Targets:
    size = emissions.logits.shape[1]
    paths = torch.stack([torch.randint(-1, int(m), (size,), generator=rng) for m in targets.lengths])
    return replace(targets, paths=FramePath(paths.masked_fill(~length_mask(emissions.lengths, size), -2)))


def test_head_has_the_state_of_transformers() -> None:
    from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

    config = Wav2Vec2Config(
        vocab_size=7, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        conv_dim=(8,), conv_stride=(5,), conv_kernel=(10,), num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2, final_dropout=0.0,
    )  # fmt: skip
    model = Wav2Vec2ForCTC(config).eval()
    head = CTCHead(16, 7, reads=3, dropout=0.2).eval()
    head.load_state_dict({k: v for k, v in model.state_dict().items() if k.startswith("lm_head")})
    with torch.no_grad():
        out = model(torch.randn(2, 400), output_hidden_states=True)
        emissions = head(Frames(out.hidden_states[-1], torch.tensor([79, 40]), GRID))
    valid = length_mask(emissions.lengths, 79)
    torch.testing.assert_close(emissions.logits[valid], out.logits[valid], **FLOAT32)
    assert (head.reads, head.blank, head.dropout.p) == (3, 0, 0.2)


def test_head_passes_lengths_grid_and_blank_on() -> None:
    head = CTCHead(5, 4, 3)
    frames = Frames(torch.randn(2, 9, 5), torch.tensor([9, 4]), Grid(0.01, 0.005))
    emissions = head(frames)
    assert emissions.logits.shape == (2, 9, 4)
    assert emissions.lengths is frames.lengths
    assert (emissions.grid, emissions.blank, emissions.weight_logits) == (frames.grid, 3, None)
    assert not torch.equal(head(frames).logits, emissions.logits)  # dropout, in training only
    head.eval()
    assert torch.equal(head(frames).logits, head(frames).logits)
    with pytest.raises(ValueError, match="blank from 0 to 3; got 4"):
        CTCHead(5, 4, 4)


@pytest.mark.parametrize("blank", [0, 3, 5])
def test_ctc_loss_is_the_sum_over_all_paths(rng: torch.Generator, blank: int) -> None:
    logits = 2 * torch.randn(2, 4, 6, generator=rng)
    labels = [v for v in range(6) if v != blank]
    targets = Targets.from_lists([[labels[0], labels[0]], [labels[4]]])
    lengths = [4, 3]
    value, gradient = value_and_gradient(
        CTCLoss(normalize="none"), emissions_of(logits, lengths, blank), targets
    )

    exact = logits.double().requires_grad_()
    log_probs = torch.log_softmax(exact, -1)
    expected = []
    for b, wanted in enumerate(targets.tolist()):
        paths = [
            path
            for path in itertools.product(range(6), repeat=lengths[b])
            if [v for v, _ in itertools.groupby(path) if v != blank] == wanted
        ]
        frame = torch.arange(lengths[b])
        expected.append(-torch.logsumexp(torch.stack([log_probs[b, frame, list(p)].sum() for p in paths]), 0))
    (expected[0] + 2 * expected[1]).backward()
    torch.testing.assert_close(value.double(), torch.stack(expected).detach(), **FLOAT32_SUM)
    torch.testing.assert_close(gradient.double(), exact.grad, **FLOAT32_SUM)


def test_ctc_gradient_agrees_with_finite_differences(rng: torch.Generator) -> None:
    logits = torch.randn(2, 5, 4, generator=rng, dtype=torch.float64, requires_grad=True)
    labels, frames, tokens = torch.tensor([[1, 1], [3, 0]]), torch.tensor([5, 4]), torch.tensor([2, 1])
    assert torch.autograd.gradcheck(lambda x: ctc(x, labels, frames, tokens, 0), (logits,))


def test_ctc_loss_normalises(rng: torch.Generator) -> None:
    emissions, targets = batch(rng)
    none = CTCLoss(normalize="none")(emissions, targets)
    torch.testing.assert_close(CTCLoss()(emissions, targets), none / targets.lengths)
    torch.testing.assert_close(CTCLoss(normalize="frames")(emissions, targets), none / emissions.lengths)
    with pytest.raises(ValueError, match="'words'"):
        CTCLoss(normalize="words")  # type: ignore[arg-type]


def test_pauses_may_be_left_to_the_blank(rng: torch.Generator) -> None:
    emissions = Emissions(torch.randn(2, 9, 5, generator=rng), torch.tensor([9, 7]), Grid(0.02))
    paused = Targets.from_lists([[4, 1, 4, 2, 4], [4, 3, 4]])
    paused = replace(paused, optional=paused.labels == 4)
    said = Targets.from_lists([[1, 2], [3]])
    expected = CTCLoss(normalize="none")(emissions, said)
    torch.testing.assert_close(CTCLoss(normalize="none", skip_optional=True)(emissions, paused), expected)
    assert (CTCLoss(normalize="none")(emissions, paused) != expected).all()
    torch.testing.assert_close(
        CTCLoss(skip_optional=True)(emissions, paused), expected / torch.tensor([2, 1])
    )


def test_an_infeasible_row_gives_zero_and_no_gradient(rng: torch.Generator) -> None:
    emissions, targets = batch(rng)
    value, gradient = value_and_gradient(CTCLoss(), emissions, targets)
    assert (value[:2] > 0).all()
    assert value[2] == 0
    assert (gradient[2] == 0).all()
    assert torch.isfinite(gradient).all()
    assert CTCLoss(zero_infinity=False)(emissions, targets)[2] == torch.inf


def test_an_empty_target_is_all_blank(rng: torch.Generator) -> None:
    emissions, _ = batch(rng, blank=2)
    targets = Targets.from_lists([[], [1], []])
    value = CTCLoss()(emissions, targets)
    expected = -emissions.log_probs()[0, :, 2].sum()
    torch.testing.assert_close(value[0], expected, **FLOAT32_SUM)


@pytest.mark.parametrize("name", ["ctc", "single-path"])
def test_padding_is_never_read(rng: torch.Generator, name: str) -> None:
    emissions, targets = batch(rng)
    targets = with_paths(emissions, targets, rng)
    loss = {"ctc": CTCLoss(), "single-path": SinglePathLoss(blank_weight=0.5)}[name]
    value, gradient = value_and_gradient(loss, emissions, targets)
    outside = ~length_mask(emissions.lengths, 30)
    spoilt = replace(emissions, logits=emissions.logits.masked_fill(outside[:, :, None], torch.nan))
    labels = targets.labels.masked_fill(~length_mask(targets.lengths, targets.labels.shape[1]), -100)
    again, gradient_again = value_and_gradient(loss, spoilt, replace(targets, labels=labels))
    assert torch.equal(value, again)
    assert torch.equal(gradient, gradient_again)
    assert (gradient[outside] == 0).all()


@pytest.mark.parametrize("name", ["ctc", "single-path"])
def test_a_batch_is_its_rows(rng: torch.Generator, name: str) -> None:
    emissions, targets = batch(rng)
    targets = with_paths(emissions, targets, rng)
    loss = {"ctc": CTCLoss(), "single-path": SinglePathLoss()}[name]
    together = loss(emissions, targets)
    for b, (frames, tokens) in enumerate(zip(emissions.lengths.tolist(), targets.lengths.tolist())):
        row = emissions_of(emissions.logits[b : b + 1, :frames], [frames])
        assert targets.paths is not None
        alone = Targets(
            targets.labels[b : b + 1, :tokens],
            targets.lengths[b : b + 1],
            paths=FramePath(targets.paths.tokens[b : b + 1, :frames]),
        )
        torch.testing.assert_close(loss(row, alone)[0], together[b], **FLOAT32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_float32(rng: torch.Generator, dtype: torch.dtype) -> None:
    emissions, targets = batch(rng)
    targets = with_paths(emissions, targets, rng)
    half = replace(emissions, logits=emissions.logits.to(dtype))
    for loss in (CTCLoss(), SinglePathLoss()):
        value, gradient = value_and_gradient(loss, half, targets)
        expected, expected_gradient = value_and_gradient(
            loss, replace(half, logits=half.logits.float()), targets
        )
        assert value.dtype == torch.float32
        torch.testing.assert_close(value, expected, **FLOAT32)
        torch.testing.assert_close(gradient, expected_gradient.to(dtype))


def test_single_path_loss_is_the_cross_entropy_of_the_path(rng: torch.Generator) -> None:
    emissions, targets = batch(rng, blank=2)
    targets = with_paths(emissions, targets, rng)
    assert targets.paths is not None
    for blank_weight in (1.0, 0.25, 0.0):
        loss = SinglePathLoss(blank_weight=blank_weight)
        value, gradient = value_and_gradient(loss, emissions, targets)
        logits = emissions.logits.clone().requires_grad_()
        expected = []
        for b, n in enumerate(emissions.lengths.tolist()):
            path = targets.paths.tokens[b, :n].tolist()
            labels = torch.tensor([2 if u < 0 else int(targets.labels[b, u]) for u in path])
            weight = torch.tensor([blank_weight if u < 0 else 1.0 for u in path])
            losses = torch.nn.functional.cross_entropy(logits[b, :n], labels, reduction="none")
            expected.append((losses * weight).sum() / weight.sum())
        torch.stack([(b + 1) * x for b, x in enumerate(expected)]).sum().backward()
        torch.testing.assert_close(value, torch.stack(expected).detach(), **FLOAT32)
        torch.testing.assert_close(gradient, logits.grad, **FLOAT32)


def test_single_path_loss_leaves_out_what_the_teacher_could_not_align(rng: torch.Generator) -> None:
    emissions, targets = batch(rng)
    targets = with_paths(emissions, targets, rng)
    assert targets.paths is not None
    targets.paths.tokens[1] = -2
    value, gradient = value_and_gradient(SinglePathLoss(), emissions, targets)
    assert value[1] == 0
    assert (gradient[1] == 0).all()
    assert (value[[0, 2]] > 0).all()


def test_frames_of_no_weight_may_hold_anything(rng: torch.Generator) -> None:
    emissions, targets = batch(rng)
    emissions.logits[:, :, 0] = -torch.inf
    targets = with_paths(emissions, targets, rng)
    value, gradient = value_and_gradient(SinglePathLoss(blank_weight=0.0), emissions, targets)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()
    assert SinglePathLoss()(emissions, targets)[0] == torch.inf


def test_single_path_loss_asks_for_paths(rng: torch.Generator) -> None:
    emissions, targets = batch(rng)
    with pytest.raises(ValueError, match="give training a teacher"):
        SinglePathLoss()(emissions, targets)
    with pytest.raises(ValueError, match=r"paths of shape \(3, 30\).* got \(3, 29\)"):
        SinglePathLoss()(emissions, replace(targets, paths=FramePath(torch.zeros(3, 29, dtype=torch.long))))
    with pytest.raises(ValueError, match="blank_weight >= 0"):
        SinglePathLoss(blank_weight=-1.0)


def test_aligners_agree() -> None:
    rng = torch.Generator().manual_seed(1)
    ours, theirs = CTCViterbi(), TorchaudioViterbi()
    for _ in range(50):
        blank = int(torch.randint(0, 5, (1,), generator=rng))
        rows = [
            [v + (v >= blank) for v in torch.randint(0, 4, (n,), generator=rng).tolist()]
            for n in torch.randint(0, 12, (4,), generator=rng).tolist()
        ]
        lengths = torch.randint(24, 60, (4,), generator=rng)
        emissions = emissions_of(2 * torch.randn(4, 60, 5, generator=rng), lengths.tolist(), blank)
        targets = Targets.from_lists(rows)
        a, b = ours(emissions, targets), theirs(emissions, targets)
        assert a.score is not None
        assert b.score is not None
        torch.testing.assert_close(a.score, b.score, **FLOAT32)
        # random scores have no ties: the paths are the same, too
        for field in ("source", "target", "mass", "source_lengths", "target_lengths"):
            assert torch.equal(getattr(a, field), getattr(b, field)), field


@pytest.mark.parametrize("aligner", [CTCViterbi, TorchaudioViterbi])
def test_alignments_are_monotone_and_fill_as_asked(rng: torch.Generator, aligner: type) -> None:
    emissions, targets = batch(rng)
    emissions = replace(emissions, lengths=torch.tensor([30, 17, 9]))
    spans = {
        blanks: aligner(blanks=blanks)(emissions, targets).spans()
        for blanks in ("leave", "previous", "split")
    }
    inner = aligner(blanks="split", edges="leave")(emissions, targets).spans()
    for b, (n, m) in enumerate(zip(emissions.lengths.tolist(), targets.lengths.tolist())):
        left = spans["leave"][b, :m]
        assert (left[:, 1] > left[:, 0]).all()
        assert (left[1:, 0] >= left[:-1, 1]).all()
        for name in ("previous", "split"):
            filled = spans[name][b, :m]
            assert (filled[0, 0], filled[-1, 1]) == (0, n)
            assert torch.equal(filled[1:, 0], filled[:-1, 1])
        assert torch.equal(spans["previous"][b, 1:m, 0], left[1:, 0])
        half = (left[1:, 0] - left[:-1, 1] + 1).floor_divide(2)
        assert torch.equal(spans["split"][b, 1:m, 0], left[:-1, 1] + half)
        assert (inner[b, 0, 0], inner[b, m - 1, 1]) == (left[0, 0], left[-1, 1])


@pytest.mark.parametrize("aligner", [CTCViterbi, TorchaudioViterbi])
def test_aligners_name_the_row_that_fails(rng: torch.Generator, aligner: type) -> None:
    emissions, targets = batch(rng)
    with pytest.raises(AlignmentError) as caught:
        aligner()(emissions, targets)
    assert str(caught.value) == "Row 2: 3 tokens (1 repeats) need at least 4 frames, got 3."
    emissions.logits[1, 16] = torch.nan
    targets = replace(targets, lengths=torch.tensor([4, 2, 0]))
    with pytest.raises(AlignmentError, match="Row 1: "):
        aligner()(emissions, targets)
    with pytest.raises(ValueError, match="rule for blanks"):
        aligner(blanks="next")


labels_of_frames = st.lists(st.integers(0, 2), max_size=9)


@settings(max_examples=60, deadline=None)
@given(st.lists(labels_of_frames, min_size=1, max_size=4), st.integers(0, 2))
def test_collapse_equals_collapsing_by_hand(rows: list[list[int]], blank: int) -> None:
    frames = Targets.from_lists(rows)
    labels, counts, paths = collapse(frames.labels, frames.lengths, blank)
    assert labels.shape == (len(rows), max(1, int(counts.max())))
    for b, row in enumerate(rows):
        expected, path = [], []
        for t, v in enumerate(row):
            if v != blank and (t == 0 or v != row[t - 1]):
                expected.append(v)
            path.append(-1 if v == blank else len(expected) - 1)
        assert labels[b, : counts[b]].tolist() == expected
        assert paths[b].tolist() == path + [-2] * (paths.shape[1] - len(row))


def test_greedy_decoding(rng: torch.Generator) -> None:
    best = [[0, 2, 2, 0, 2, 1, 1, 0], [1, 1, 3, 0, 3, 3, 2, 2]]
    logits = torch.rand(2, 8, 4, generator=rng)
    logits.scatter_(2, torch.tensor(best)[..., None], 3.0)
    logits[1, 5:] = torch.nan
    emissions = emissions_of(logits, [8, 5])
    targets, coupling = GreedyCTC()(emissions)
    assert targets.tolist() == [[2, 2, 1], [1, 3, 3]]
    assert coupling.spans().tolist() == [[[1, 3], [4, 5], [5, 7]], [[0, 2], [2, 3], [4, 5]]]
    assert coupling.score is not None
    expected = [emissions.log_probs()[b, :n].max(-1).values.sum() for b, n in ((0, 8), (1, 5))]
    torch.testing.assert_close(coupling.score, torch.stack(expected))
    _, coupling = GreedyCTC(blanks="previous")(emissions)
    assert coupling.spans().tolist() == [[[0, 4], [4, 5], [5, 8]], [[0, 2], [2, 4], [4, 5]]]
    silent = emissions_of(torch.tensor([[[9.0, 0.0]] * 3]), [3])
    targets, coupling = GreedyCTC(blanks="split")(silent)
    assert targets.tolist() == [[]]
    assert float(coupling.mass.sum()) == 0


def test_decoding_then_aligning_gives_the_same_path(rng: torch.Generator) -> None:
    emissions = emissions_of(3 * torch.randn(4, 50, 5, generator=rng), [50, 31, 8, 1], blank=4)
    targets, decoded = GreedyCTC()(emissions)
    aligned = CTCViterbi()(emissions, targets)
    assert torch.equal(aligned.dense(), decoded.dense())
    torch.testing.assert_close(aligned.score, decoded.score, **FLOAT32)


def test_plugins_are_found_by_name() -> None:
    import isotone

    if "ctc" not in isotone.losses.names():
        pytest.skip("isotone is not installed: its entry points are not there")
    assert isinstance(isotone.losses.build("ctc", normalize="frames"), CTCLoss)
    assert isinstance(isotone.losses.build("single-path"), SinglePathLoss)
    assert isinstance(isotone.heads.build("ctc", 4, 5, 1, reads="features"), CTCHead)
    assert isinstance(isotone.aligners.build("ctc", blanks="split"), CTCViterbi)
    assert isinstance(isotone.aligners.build("ctc-torchaudio"), TorchaudioViterbi)
    assert isinstance(isotone.decoders.build("ctc-greedy"), GreedyCTC)


def long_batch(rng: torch.Generator, frames: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    tokens = frames // 10
    labels = torch.randint(1, 8, (2, tokens), generator=rng)
    return (
        torch.randn(2, frames, 8, generator=rng),
        labels,
        torch.tensor([frames] * 2),
        torch.tensor([tokens, 5]),
    )


def test_gradients_of_long_utterances_in_single_precision(rng: torch.Generator) -> None:
    """Sums over paths are as large as the loss, thousands of nats; what they differ by is a probability."""
    logits, *rest = long_batch(rng, 2000)
    results = []
    for dtype in (torch.float32, torch.float64):
        leaf = logits.to(dtype).requires_grad_()
        value = ctc(leaf, *rest, 0)
        assert value.dtype == dtype
        results.append((value.detach().double(), torch.autograd.grad(value.sum(), leaf)[0].double()))
    (value, gradient), (exact, exact_gradient) = results
    torch.testing.assert_close(value, exact, rtol=1e-6, atol=0)
    torch.testing.assert_close(gradient, exact_gradient, rtol=0, atol=1e-5)


def test_priors_of_scores_that_have_much_in_common(rng: torch.Generator) -> None:
    logits, labels, frames, tokens = long_batch(rng, 100)
    prior = torch.randn(8, generator=rng).log_softmax(0)
    loss, targets = CTCLoss(prior=0.3, delay_penalty=0.01), Targets(labels, tokens)
    results = []
    for dtype in (torch.float32, torch.float64):
        leaf = (1e5 + logits).to(dtype).requires_grad_()
        emissions = Emissions(leaf, frames, GRID, log_prior=prior.to(dtype))
        value = loss(emissions, targets)
        results.append((value.detach().double(), torch.autograd.grad(value.sum(), leaf)[0].double()))
    for single, exact in zip(*results):
        torch.testing.assert_close(single, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("blank", [0, 17])
@pytest.mark.parametrize("widest", [6, 3, 0])
def test_a_large_vocabulary_changes_nothing(rng: torch.Generator, blank: int, widest: int) -> None:
    """Columns of labels that a row does not have count in the norm alone; torch has them all in the sums."""
    logits = (3 * torch.randn(5, 14, 40, generator=rng, dtype=torch.float64)).requires_grad_()
    rows = [[7, 7, 3, 9, 3, 39], [5, 5, 5], [], [30, 2, 30, 2], [8] * 6]  # the last needs 11 frames and has 9
    rows = [row[:widest] for row in rows]
    labels = torch.full((5, widest), -1)  # never read
    for out, row in zip(labels, rows):
        out[: len(row)] = torch.tensor(row)
    frames, tokens = torch.tensor([14, 12, 10, 13, 9]), torch.tensor([len(row) for row in rows])
    z = torch.randn(5, 14, generator=rng, dtype=torch.float64)
    weight = torch.rand(5, generator=rng, dtype=torch.float64)
    normal = logits.log_softmax(-1)
    expected = torch.nn.functional.ctc_loss(
        normal.transpose(0, 1),
        labels.clamp(min=1),
        frames,
        tokens,
        blank=blank,
        reduction="none",
        zero_infinity=True,
    )
    found = ctc(logits, labels, frames, tokens, blank)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
    wanted = torch.autograd.grad(expected @ weight, logits)[0]
    torch.testing.assert_close(torch.autograd.grad(found @ weight, logits)[0], wanted, rtol=0, atol=1e-9)
    # another norm moves the value by what it differs from the logits' own
    moved = ctc(logits, labels, frames, tokens, blank, log_norm=z)
    differs = ((torch.logsumexp(logits, -1) - z) * length_mask(frames, 14)).sum(1)
    fits = torch.tensor([True, True, True, True, widest < 6])
    torch.testing.assert_close(moved, found - torch.where(fits, differs, 0.0), rtol=0, atol=1e-9)


def test_long_utterances_of_a_large_vocabulary(rng: torch.Generator) -> None:
    logits = torch.randn(2, 1500, 500, generator=rng).requires_grad_()
    labels = torch.randint(1, 500, (2, 90), generator=rng)
    frames, tokens = torch.tensor([1500, 1200]), torch.tensor([90, 71])
    (found,) = torch.autograd.grad(ctc(logits, labels, frames, tokens, 0).sum(), logits)
    wide = logits.detach().double().requires_grad_()
    expected = torch.nn.functional.ctc_loss(
        wide.log_softmax(-1).transpose(0, 1), labels, frames, tokens, reduction="none"
    )
    (right,) = torch.autograd.grad(expected.sum(), wide)
    torch.testing.assert_close(found.double(), right, rtol=0, atol=1e-5)


@pytest.mark.parametrize("widest", [1, 12])
def test_impossible_labels_of_a_large_vocabulary(rng: torch.Generator, widest: int) -> None:
    """A row that has no path left is 0 without a gradient, whether the vocabulary is larger than the labels or not."""
    logits = torch.randn(2, 6, 12, generator=rng)
    logits[0, :, 4] = -torch.inf
    logits.requires_grad_()
    labels, sizes = torch.full((2, widest), 4), torch.tensor([1, 1])
    labels[1, 0] = 7
    loss = ctc(logits, labels, torch.tensor([6, 6]), sizes, 0)
    assert loss[0] == 0
    torch.testing.assert_close(loss[1], ctc(logits[1:], labels[1:], torch.tensor([6]), sizes[1:], 0)[0])
    loss.sum().backward()
    assert logits.grad is not None
    assert not logits.grad[0].any()
    assert logits.grad[1].abs().sum() > 0
