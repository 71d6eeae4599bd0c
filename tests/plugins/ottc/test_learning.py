"""Head, loss, decoder and aligners together: training from the order of labels alone."""

from __future__ import annotations

import torch
from isotone_ottc.align import SegmentalViterbi
from isotone_ottc.decode import GreedyOTTC
from isotone_ottc.head import OTTCHead
from isotone_ottc.loss import OTTCLoss
from isotone_ottc.transport import Transport

from isotone.types import Frames, Grid, Targets


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
