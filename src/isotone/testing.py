"""What every plugin keeps to, as functions that raise AssertionError: for the tests of any plugin.

from isotone.testing import check_loss

def test_focal_ctc() -> None:
    check_loss(FocalCTC(gamma=2.0))
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from isotone.alignment import SILENCE, Alignment, AlignmentError, Segment, Tier
from isotone.interfaces import Aligner, Decoder, Format, Head, Loss
from isotone.types import Coupling, Emissions, Frames, Grid, Targets, length_mask

Batch = TypeVar("Batch", Frames, Emissions, Targets)

#: Tolerances, relative and absolute, of two float32 computations of one value.
FLOAT32 = (2e-4, 2e-5)
#: Of a computation on half-precision input and one on the same numbers in float32.
HALF = (0.02, 0.02)


def sample_batch(
    *, vocab_size: int = 6, dtype: torch.dtype = torch.float32, seed: int = 0
) -> tuple[Emissions, Targets]:
    """Random emissions of 5 utterances and targets that fit them, of several lengths, padded.

    The targets hold repeats, a single token, and as many tokens as frames; they have durations and paths.
    Label 0 is the blank and no target.

    Args:
        vocab_size: V, at least 3.
        dtype: That of the logits.
        seed: Of the random numbers.

    Returns:
        Emissions with OT weights, ``(5, 12, V)``, and targets ``(5, 4)``.
    """
    rng = torch.Generator().manual_seed(seed)
    lengths, counts = torch.tensor([12, 9, 7, 4, 10]), torch.tensor([4, 3, 1, 4, 2])
    logits = torch.randn(5, 12, vocab_size, generator=rng, dtype=torch.float64).to(dtype)
    weights = torch.randn(5, 12, generator=rng, dtype=torch.float64).to(dtype)
    # from token to token the label moves by one, but for the repeats
    first = torch.randint(1, vocab_size, (5, 1), generator=rng)
    moves = torch.tensor([[0, 0, 1, 2], [0, 1, 1, 1], [0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]])
    labels = 1 + (first + moves) % (vocab_size - 1)
    durations = torch.rand(5, 4, generator=rng) + 0.1
    paths = torch.full((5, 12), -2)
    for row, (n, m) in enumerate(zip(lengths.tolist(), counts.tolist())):
        if n == m:
            paths[row, :n] = torch.arange(n)
        else:  # a blank frame before every token, the last token to the end
            frame = torch.arange(n)
            paths[row, :n] = torch.where(frame % 2 == 1, frame // 2, -1).clamp(max=m - 1)
            paths[row, 2 * m - 1 : n] = m - 1
    emissions = Emissions(logits, lengths, Grid(0.02), 0, weights)
    return emissions, Targets(labels, counts, durations, paths)


def sample_alignment() -> Alignment:
    """Words and phones over 2.5 s: gaps, touching segments, scores, labels that file formats trip over."""
    words = (
        Segment("it's", 0.1, 0.5, -0.25), Segment('"naïve"', 0.5, 0.9), Segment("a&b<c>", 1.0, 1.25, -1.5),
        Segment("one,two;", 1.5, 1.75), Segment("日本", 1.75, 2.25),
    )  # fmt: skip
    phones = (Segment("ih", 0.1, 0.3), Segment("t", 0.3, 0.5, -0.5), Segment("s", 1.0, 2.25))
    return Alignment("utt-1", 2.5, (Tier("words", words), Tier("phones", phones)))


def check_loss(loss: Loss) -> None:
    """Check a loss: shape, gradients, padding, independent rows, extremes, rows that cannot be aligned.

    A loss of several views may compare the rows with each other, need no alignment, and hold one view fixed to teach
    another: it is not asked for independent rows, rows that cannot be aligned, nor for the derivative of its value.
    """
    emissions, targets = _sample_views(loss.views)
    value, grads = _value_and_grads(loss, emissions, targets)
    _require(value.shape == (5,), f"a loss gives one value an utterance, (5,); got {tuple(value.shape)}")
    _require(value.is_floating_point(), f"a loss is floating; got {value.dtype}")
    _require(bool(torch.isfinite(value).all()), f"a loss of feasible rows is finite; got {value.tolist()}")
    _require(bool((grads[0] != 0).any()), "a loss has a gradient in the logits")
    _check_loss_padding(loss, emissions, targets, value, grads)
    for row in range(5) if loss.views == 1 else ():
        alone, _ = _value_and_grads(loss, _alone(emissions, row), _alone(targets, row))
        _close(alone[0], value[row], "a row is as it is alone")
    order = torch.tensor([3, 0, 4, 2, 1])
    places = torch.cat([order + 5 * view for view in range(loss.views)])
    shuffled, _ = _value_and_grads(loss, _rows(emissions, places), _rows(targets, places))
    _close(shuffled, value[order], "order within a batch is nothing")
    extreme, grads = _value_and_grads(loss, replace(emissions, logits=emissions.logits * 1e4), targets)
    _require(bool(torch.isfinite(extreme).all()), f"finite on logits of 1e4; got {extreme.tolist()}")
    _require(all(bool(torch.isfinite(g).all()) for g in grads), "finite gradients on logits of 1e4")
    for half in (torch.float16, torch.bfloat16):
        rough, _ = _sample_views(loss.views, half)
        rounded, _ = _value_and_grads(loss, rough, targets)
        _require(rounded.dtype == torch.float32, f"values of {half} logits are float32; got {rounded.dtype}")
        exact, _ = _value_and_grads(loss, _map_logits(rough, Tensor.float), targets)
        _close(rounded, exact, f"{half} logits are summed", HALF)
    if loss.views == 1:
        _check_infeasible_loss(loss)
        _check_gradient(loss)


def check_head(head: Head, input_size: int, vocab_size: int) -> None:
    """Check a head: what it gives, padding, independence of the rows, and that all its parameters learn."""
    head = copy.deepcopy(head).eval()
    rng = torch.Generator().manual_seed(0)
    lengths = torch.tensor([9, 5, 1])
    frames = Frames(torch.randn(3, 9, input_size, generator=rng), lengths, Grid(0.02, 0.01))
    out = head(frames)
    _require(
        out.logits.shape == (3, 9, vocab_size),
        f"logits are (3, 9, {vocab_size}); got {tuple(out.logits.shape)}",
    )
    _require(
        torch.equal(out.lengths, lengths) and out.grid == frames.grid, "lengths and grid are the frames' own"
    )
    _require(0 <= out.blank < vocab_size, f"the blank is a label; got {out.blank}")
    if out.weight_logits is not None:
        _require(
            out.weight_logits.shape == (3, 9),
            f"weight logits are (3, 9); got {tuple(out.weight_logits.shape)}",
        )
    _same_emissions(head(_poisoned(frames)), out, "padding is never read")
    for row in range(3):
        _same_emissions(head(_alone(frames, row)), _alone(out, row), "a row is as it is alone")
    order = torch.tensor([2, 0, 1])
    _same_emissions(head(_rows(frames, order)), _rows(out, order), "order within a batch is nothing")
    double = copy.deepcopy(head).double()(replace(frames, values=frames.values.double()))
    _require(double.logits.dtype == torch.float64, f"a double head gives doubles; got {double.logits.dtype}")
    head.zero_grad(set_to_none=True)
    _weigh(head(_poisoned(frames))).backward()
    for name, parameter in head.named_parameters():
        grad = parameter.grad
        _require(grad is not None, f"the parameter {name} takes part")
        _require(
            grad is None or bool(torch.isfinite(grad).all()), f"padding is never read: gradient of {name}"
        )


def check_aligner(aligner: Aligner) -> None:
    """Check an aligner: an ordered coupling within the lengths that reaches every token, and its errors."""
    emissions, targets = sample_batch()
    before = copy.deepcopy((emissions.logits, targets.labels))
    coupling = aligner(emissions, targets)
    unchanged = torch.equal(before[0], emissions.logits) and torch.equal(before[1], targets.labels)
    _require(unchanged, "the inputs are left as they are")
    check_coupling(coupling, emissions.lengths, targets.lengths)
    reached = coupling.dense().sum(1) > 0
    _require(torch.equal(reached, length_mask(targets.lengths, 4)), "every token gets mass, and padding none")
    poisoned = aligner(_poisoned(emissions), _poisoned(targets))
    _same_coupling(poisoned, coupling, "padding is never read")
    for row in range(5):
        alone = aligner(_alone(emissions, row), _alone(targets, row))
        n, m = int(emissions.lengths[row]), int(targets.lengths[row])
        expected = coupling.dense()[row, :n, :m]
        _close(alone.dense()[0], expected, "a row is as it is alone")
    order = torch.tensor([3, 0, 4, 2, 1])
    shuffled = aligner(_rows(emissions, order), _rows(targets, order))
    expected = coupling.dense()[order]
    _close(shuffled.dense(), expected, "order within a batch is nothing")
    short = replace(emissions, lengths=torch.tensor([12, 2, 7, 4, 10]))
    _check_raises(lambda: aligner(short, targets), "3 tokens in 2 frames")
    broken = replace(emissions, logits=emissions.logits.clone())
    broken.logits[1, 3] = torch.nan
    _check_raises(lambda: aligner(broken, targets), "NaN in a frame that counts")


def check_decoder(decoder: Decoder) -> None:
    """Check a decoder: tokens and coupling that fit, and the reading of emissions that leave no doubt."""
    emissions, _ = sample_batch()
    tokens, coupling = decoder(emissions)
    _check_tokens(tokens, emissions)
    check_coupling(coupling, emissions.lengths, tokens.lengths)
    again, same = decoder(_poisoned(emissions))
    _require(again.tolist() == tokens.tolist(), "padding is never read")
    _same_coupling(same, coupling, "padding is never read")
    for row, expected in enumerate(tokens.tolist()):
        alone, _ = decoder(_alone(emissions, row))
        _require(
            alone.tolist() == [expected], f"a row is as it is alone: {alone.tolist()[0]}, not {expected}"
        )
    path = torch.tensor([[0, 3, 3, 3, 3, 0, 0, 0, 3, 3, 3, 3, 1, 1, 1, 1, 0, 0, 0], [2] * 5 + [0] * 14])
    logits = 50.0 * torch.nn.functional.one_hot(path, 4)
    tokens, coupling = decoder(Emissions(logits, torch.tensor([19, 5]), Grid(0.02)))
    _require(
        tokens.tolist() == [[3, 3, 1], [2]],
        f"sure emissions are read: [[3, 3, 1], [2]], not {tokens.tolist()}",
    )
    seen = coupling.hard().dense()[0] > 0
    _require(bool(seen[2, 0] & seen[10, 1] & seen[14, 2]), "the middle of a token's frames is that token's")
    silent, _ = decoder(
        Emissions(-logits[:, :4].abs() * torch.tensor([0.0, 1, 1, 1]), torch.tensor([4, 4]), Grid(0.02))
    )
    _require(len(silent.tolist()) == 2, "rows that may hold no token are rows")


def check_format(format: Format, *, tolerance_s: float = 0.001) -> None:
    """Check a file format: what is written can be read, and stays what it is when written again.

    Args:
        format: The format.
        tolerance_s: Seconds by which a time may move.
    """
    alignment = sample_alignment()
    _require(format.suffix.startswith("."), f"a suffix begins with a dot; got {format.suffix!r}")
    text = format.dumps(alignment)
    _require(bool(text) and text == format.dumps(alignment), "equal alignments give equal files, not empty")
    silent = Alignment("silent", 1.0, tuple(Tier(t.name, ()) for t in alignment.tiers))
    _require(isinstance(format.dumps(silent), str), "tiers without segments can be written")
    try:
        back = format.loads(text, alignment.id)
    except NotImplementedError:
        return
    _require(len(back.tiers) > 0, "a tier at least is kept")
    _require(back.id == alignment.id, f"the id is {alignment.id!r}; got {back.id!r}")
    for tier in back.tiers:
        kept = [s for s in tier if s.label not in SILENCE]
        expected = alignment.tier(tier.name).segments
        labels = [s.label for s in kept]
        _require(
            labels == [s.label for s in expected], f"labels of tier {tier.name!r} are kept; got {labels}"
        )
        for got, want in zip(kept, expected):
            off = max(abs(got.start - want.start), abs(got.end - want.end))
            _require(off <= tolerance_s, f"times are kept to {tolerance_s} s: {want} came back as {got}")
    _require(format.dumps(back) == text, "written again, a file stays what it is")


def check_coupling(coupling: Coupling, source_lengths: Tensor, target_lengths: Tensor) -> None:
    """Check a coupling: ordered, within the lengths, masses finite and not negative."""
    c = coupling
    _require(c.source.shape == c.target.shape == c.mass.shape, "source, target and mass have one shape")
    _require(c.source.dtype == c.target.dtype == torch.int64, "source and target are int64")
    _require(torch.equal(c.source_lengths, source_lengths), "source lengths are those of the emissions")
    _require(torch.equal(c.target_lengths, target_lengths), "target lengths are those of the targets")
    _require(bool((torch.isfinite(c.mass) & (c.mass >= 0)).all()), "masses are finite and not negative")
    ordered = (c.source.diff(dim=1) >= 0).all() & (c.target.diff(dim=1) >= 0).all()
    _require(bool(ordered), "source and target never decrease")
    limits = ((c.source, source_lengths), (c.target, target_lengths))
    inside = [(position >= 0) & (position < size.clamp(min=1)[:, None]) for position, size in limits]
    _require(bool(torch.stack(inside).all()), "positions lie within the lengths")
    spans = c.hard().spans()
    _require(bool((spans.diff(dim=-1) >= 0).all()), "spans end after they start")


def _sample_views(views: int, dtype: torch.dtype = torch.float32) -> tuple[Emissions, Targets]:
    """:func:`sample_batch` in so many views, one after the other: other logits, the same targets."""
    batches = [sample_batch(dtype=dtype, seed=seed) for seed in range(views)]
    logits = torch.cat([emissions.logits for emissions, _ in batches])
    weights = torch.cat([e.weight_logits for e, _ in batches if e.weight_logits is not None])
    emissions, targets = batches[0]
    places = torch.arange(5).repeat(views)
    return replace(_rows(emissions, places), logits=logits, weight_logits=weights), _rows(targets, places)


def _value_and_grads(loss: Loss, emissions: Emissions, targets: Targets) -> tuple[Tensor, list[Tensor]]:
    leaves = [emissions.logits.detach().clone().requires_grad_()]
    if emissions.weight_logits is not None:
        leaves.append(emissions.weight_logits.detach().clone().requires_grad_())
    value = loss(
        replace(emissions, logits=leaves[0], weight_logits=leaves[1] if leaves[1:] else None), targets
    )
    if not value.requires_grad:
        return value.detach(), [torch.zeros_like(x) for x in leaves]
    grads = torch.autograd.grad(value.sum(), leaves, allow_unused=True)
    return value.detach(), [torch.zeros_like(x) if g is None else g for g, x in zip(grads, leaves)]


def _check_loss_padding(
    loss: Loss, emissions: Emissions, targets: Targets, value: Tensor, grads: list[Tensor]
) -> None:
    poisoned, poisoned_grads = _value_and_grads(loss, _poisoned(emissions), _poisoned(targets))
    _close(poisoned, value, "padding is never read")
    padding = ~length_mask(emissions.lengths, emissions.logits.shape[1])
    for got, expected in zip(poisoned_grads, grads):
        _close(got, expected, "padding is never read: gradient")
        _require(not bool(got[padding].any()), "padding has no gradient")


def _check_infeasible_loss(loss: Loss) -> None:
    emissions, targets = sample_batch()
    emissions = replace(emissions, lengths=torch.tensor([12, 2, 7, 4, 10]))
    if targets.paths is not None:  # a teacher has no path for it
        targets.paths[1] = -2
    value, grads = _value_and_grads(loss, emissions, targets)
    _require(value[1].item() == 0, f"3 tokens in 2 frames have loss 0; got {value[1].item()}")
    _require(not any(bool(g[1].any()) for g in grads), "3 tokens in 2 frames have no gradient")
    _require(bool((value[[0, 2, 3, 4]] != 0).all()), "the other rows have their loss")


def _check_gradient(loss: Loss) -> None:
    emissions, targets = sample_batch(vocab_size=4, dtype=torch.float64, seed=1)
    keep = torch.tensor([0, 2])
    emissions, targets = _rows(emissions, keep), _rows(targets, keep)

    def value(logits: Tensor, weights: Tensor) -> Tensor:
        return loss(replace(emissions, logits=logits, weight_logits=weights), targets)

    if emissions.weight_logits is not None:
        leaves = (emissions.logits.requires_grad_(), emissions.weight_logits.requires_grad_())
        torch.autograd.gradcheck(value, leaves, atol=1e-4, rtol=1e-3)


def _check_tokens(tokens: Targets, emissions: Emissions) -> None:
    vocab_size = emissions.logits.shape[2]
    _require(len(tokens.lengths) == len(emissions.lengths), "one sequence a row")
    _require(bool((tokens.lengths <= emissions.lengths).all()), "a token has a frame at least")
    labels = [label for row in tokens.tolist() for label in row]
    _require(
        all(0 <= x < vocab_size and x != emissions.blank for x in labels), "tokens are labels, not blanks"
    )


def _check_raises(align: Callable[[], object], case: str) -> None:
    try:
        align()
    except AlignmentError as error:
        _require(
            "row 1" in str(error).lower(), f"the AlignmentError of {case} names row 1; got {str(error)!r}"
        )
        return
    raise AssertionError(f"Expected an AlignmentError for {case}; there was none.")


def _require(holds: bool, law: str) -> None:
    if not holds:
        raise AssertionError(f"Expected: {law}.")


def _close(got: Tensor, expected: Tensor, law: str, tolerance: tuple[float, float] = FLOAT32) -> None:
    torch.testing.assert_close(
        got,
        expected,
        rtol=tolerance[0],
        atol=tolerance[1],
        msg=lambda message: f"Expected: {law}.\n{message}",
    )


def _same_coupling(got: Coupling, expected: Coupling, law: str) -> None:
    _close(got.dense(), expected.dense(), law)


def _same_emissions(got: Emissions, expected: Emissions, law: str) -> None:
    mask = length_mask(expected.lengths, expected.logits.shape[1])
    _close(got.logits[mask], expected.logits[mask], law)
    if expected.weight_logits is not None and got.weight_logits is not None:
        _close(got.weight_logits[mask], expected.weight_logits[mask], law)


def _weigh(emissions: Emissions) -> Tensor:
    """A scalar that depends on every valid output."""
    mask = length_mask(emissions.lengths, emissions.logits.shape[1])
    total = torch.where(mask[..., None], emissions.logits, 0.0).square().sum()
    if emissions.weight_logits is not None:
        total = total + torch.where(mask, emissions.weight_logits.exp(), 0.0).sum()
    return total


def _map_logits(emissions: Emissions, change: Callable[[Tensor], Tensor]) -> Emissions:
    weights = emissions.weight_logits
    return replace(
        emissions, logits=change(emissions.logits), weight_logits=None if weights is None else change(weights)
    )


def _rows(batch: Batch, index: Tensor) -> Batch:
    taken: dict[str, Any] = {
        f.name: v[index] for f in fields(batch) if isinstance(v := getattr(batch, f.name), Tensor)
    }
    return replace(batch, **taken)


def _alone(batch: Batch, row: int) -> Batch:
    """One row without its padding."""
    one = _rows(batch, torch.tensor([row]))
    size = int(one.lengths[0])
    along_time = {"values", "logits", "weight_logits", "labels", "durations", "optional"}
    cut: dict[str, Any] = {
        n: v[:, :size] for n in along_time if isinstance(v := getattr(one, n, None), Tensor)
    }
    if isinstance(paths := getattr(one, "paths", None), Tensor):
        cut["paths"] = paths[:, : int((paths > -2).sum())]
    return replace(one, **cut)


def _poisoned(batch: Batch) -> Batch:
    """The batch with NaN, or labels that no vocabulary has, in its padding."""
    changed: dict[str, Any] = {}
    for name in ("values", "logits", "weight_logits", "labels", "durations"):
        value = getattr(batch, name, None)
        if isinstance(value, Tensor):
            padding = ~length_mask(batch.lengths, value.shape[1])
            changed[name] = value.clone()
            changed[name][padding] = torch.nan if value.is_floating_point() else -(2**40)
    return replace(batch, **changed)
