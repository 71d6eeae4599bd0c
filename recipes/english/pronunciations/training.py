"""Training of the letter network on the aligned words of a dictionary."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from isotone.text.letter_network import CHARACTERS, dump
from pronunciations.aligned import align
from pronunciations.network import Network
from pronunciations.source import Symbols

#: Words per batch of nine letters each; longer words come in smaller batches.
BATCH = 320
#: Learning rates of Muon (matrices) and AdamW (the rest), steps of their rise, and the share of training after which
#: they fall to zero.
MUON, ADAMW, WARMUP, FALL = 3e-3, 2e-3, 100, 0.2
#: Phones of a letter that are seen less often are no output.
SEEN = 3

#: Share of words without given phones.
WHOLE = 0.3

_IGNORED = -1
Example = tuple[list[int], list[int]]


def train(
    words: Mapping[str, Sequence[Symbols]],
    without: Collection[str] = (),
    *,
    epochs: int = 12,
    seed: int = 0,
    progress: Callable[[str], None] = print,
) -> tuple[Network, list[Symbols]]:
    """Train a network on one core; return it with the phones of its outputs.

    Args:
        words: Pronunciations of every word; words with other characters than letters and apostrophes are left out.
        without: Words held out.
        epochs: Passes over the pronunciations.
        seed: Seed of the weights, of the order of words and of dropout.
        progress: Takes a line about every hundredth step.
    """
    torch.manual_seed(seed)
    rng = random.Random(seed)
    examples, outputs = prepare(words, without)
    network = Network(len(outputs))
    muon = torch.optim.Muon(
        network.matrices(), lr=MUON, weight_decay=0.1, ns_steps=4, adjust_lr_fn="match_rms_adamw"
    )
    chosen = {id(p) for p in network.matrices()}
    rest = [p for p in network.parameters() if id(p) not in chosen]
    adamw = torch.optim.AdamW(rest, lr=ADAMW, betas=(0.9, 0.98), weight_decay=0.0)
    steps = epochs * sum(1 for _ in _batches(examples, random.Random(seed)))
    done, loss, begin = 0, 0.0, time.monotonic()
    for _ in range(epochs):
        for batch in _batches(examples, rng):
            # the number of batches per epoch varies a little
            rate = min(1.0, done / WARMUP, max(0.0, 1 - done / steps) / (1 - FALL))
            now = _step(network, batch, ((muon, MUON * rate), (adamw, ADAMW * rate)))
            done, loss = done + 1, 0.99 * loss + 0.01 * now if done else now
            if done % 100 == 0:
                progress(f"step {done} of {steps}: loss {loss:.3f}, {time.monotonic() - begin:.0f} s")
    return network.eval(), outputs


def prepare(
    words: Mapping[str, Sequence[Symbols]], without: Collection[str]
) -> tuple[list[Example], list[Symbols]]:
    """Align words; return numbers of letters with numbers of their phones, and the phones of every output."""
    entries = [
        (word, some)
        for word, found in words.items()
        if re.fullmatch(r"[a-z']+", word) and word not in without
        for some in found
    ]
    aligned = [(word, chunks) for (word, _), chunks in zip(entries, align(entries)) if chunks is not None]
    counts = Counter(chunk for _, chunks in aligned for chunk in chunks)
    outputs = [chunk for chunk, count in counts.most_common() if count >= SEEN]
    numbers = {chunk: number for number, chunk in enumerate(outputs)}
    letters = {character: number for number, character in enumerate(CHARACTERS)}
    examples = [
        (
            [0, *(letters[c] for c in word), 1],
            [_IGNORED, *(numbers[chunk] for chunk in chunks), _IGNORED],
        )
        for word, chunks in aligned
        if all(chunk in numbers for chunk in chunks)
    ]
    return examples, outputs


def packed(network: Network, outputs: Sequence[Symbols], **header: object) -> bytes:
    """Return the content of the file of a network; see :func:`isotone.text.letter_network.dump`."""
    tensors = {name: tensor.detach().float().numpy() for name, tensor in network.state_dict().items()}
    return dump(tensors, outputs, network.heads, **header)


def _batches(examples: Sequence[Example], rng: random.Random) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Iterate over batches of words of about the same length, in random order: letters, mask, outputs ``(B, T)``."""
    order = sorted(range(len(examples)), key=lambda i: len(examples[i][0]) + 0.9 * rng.random())
    cuts, now = [], 0
    while now < len(order):
        longest = len(examples[order[min(now + BATCH, len(order) - 1)]][0])
        cuts.append((now, now + max(16, min(BATCH, BATCH * 9 // longest))))
        now = cuts[-1][1]
    rng.shuffle(cuts)
    for start, end in cuts:
        some = [examples[i] for i in order[start:end]]
        size = max(len(letters) for letters, _ in some)
        letters = torch.tensor([x + [1] * (size - len(x)) for x, _ in some])
        mask = torch.tensor([[True] * len(x) + [False] * (size - len(x)) for x, _ in some])
        yield letters, mask, torch.tensor([y + [_IGNORED] * (size - len(y)) for _, y in some])


def hint(outputs: Tensor, mask: Tensor) -> Tensor:
    """Give the phones of the first letters of words, up to a random one: 1 + their output ``(B, T)``, or 0.

    For some words, and by chance for others, there are none.
    """
    words, size = outputs.shape
    letters = mask.sum(dim=1, keepdim=True) - 2
    first = (torch.rand(words, 1) * (letters + 1)).long() * (torch.rand(words, 1) >= WHOLE)
    return torch.where((torch.arange(size) <= first) & (outputs != _IGNORED), outputs + 1, 0)


def _step(
    network: Network,
    batch: tuple[Tensor, Tensor, Tensor],
    optimisers: Sequence[tuple[torch.optim.Optimizer, float]],
) -> float:
    letters, mask, outputs = batch
    given = hint(outputs, mask)
    with torch.autocast("cpu", torch.bfloat16):
        scores = network(letters, mask, given)
    wanted = outputs.masked_fill(given > 0, _IGNORED)
    loss = F.cross_entropy(scores.float().flatten(0, 1), wanted.flatten(), ignore_index=_IGNORED)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    for optimiser, rate in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    return loss.item()
