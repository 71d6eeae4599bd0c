"""Self-supervision of an embedding before it is trained to rank."""

from __future__ import annotations

import torch
from isotone_contrastive.qare import build_loss
from isotone_opas.embed import Embed
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

from ordered_search.sets import SearchSet
from ordered_search.settings import Pretrain


def pretrain(
    embedding: Embed, data: SearchSet, options: Pretrain, seed: int, device: torch.device | None = None
) -> float:
    """Train an embedding on windows alone, without relevance.

    Args:
        embedding: Trained in place.
        data: The training set.
        options: The configuration's ``pretrain``; its ``task`` is ``denoise`` (:class:`Denoise`) or ``contrast``
            (:class:`Contrast`).
        seed: Of batches and noise.
        device: To train on. Default: where the embedding is.

    Returns:
        The last loss.

    Raises:
        ValueError: no such task.
    """
    tasks = {"denoise": Denoise, "contrast": Contrast}
    if options.task not in tasks:
        raise ValueError(f"Expected pretrain.task {' or '.join(tasks)}; got {options.task!r}.")
    torch.manual_seed(seed)
    task = tasks[options.task](embedding, data, options, torch.Generator().manual_seed(seed)).to(device)
    optimiser = torch.optim.AdamW(task.parameters(), options.lr)
    task.train()
    loss = torch.zeros(())
    for _ in track(range(options.steps), "Pretraining", console=Console(stderr=True)):
        loss = task()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return float(loss.detach())


class Denoise(nn.Module):
    """Reconstruction of windows, of level 1, from the vectors of noisy ones by a linear layer; mean squared error."""

    def __init__(
        self, embedding: Embed, data: SearchSet, options: Pretrain, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.embedding, self.data, self.options, self.generator = embedding, data, options, generator
        self.decoder = nn.Linear(embedding.size, data.corpus.shape[2])

    def forward(self) -> Tensor:
        """Compute the loss of a batch."""
        rows = torch.randint(len(self.data.corpus), (self.options.batch,), generator=self.generator)
        windows, lengths = self.data.corpus[rows], self.data.lengths[rows]
        level = windows.square().mean(-1, keepdim=True).sqrt()
        device = self.decoder.weight.device
        target = windows / torch.where(level > 0, level, 1.0)
        noise = torch.randn(target.shape, generator=self.generator)
        inside = (torch.arange(target.shape[1]) < lengths[:, None]).to(device)
        target, lengths = target.to(device), lengths.to(device)
        found = self.decoder(self.embedding(target + 0.5 * noise.to(device), lengths))
        return (found - target).square().mean(-1)[inside].mean()


class Contrast(nn.Module):
    """Contrast of a window and the same window in the corpus with the others of the batch.

    The two views are those that a search has to match: windows of a query, and the windows of an item with noise
    and samples set to zero. Options ``contrast`` are those of :func:`isotone_contrastive.qare.build_loss`.
    """

    def __init__(
        self, embedding: Embed, data: SearchSet, options: Pretrain, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.embedding, self.data, self.options, self.generator = embedding, data, options, generator
        self.loss = build_loss(**options.contrast)

    def forward(self) -> Tensor:
        """Compute the loss of a batch."""
        data = self.data
        queries, items = different(data, self.options.batch, self.options.recordings, self.generator)
        device = next(self.embedding.parameters()).device
        clean = self.embedding(data.queries[queries].to(device))
        noisy = self.embedding(data.corpus[items].to(device), data.lengths[items].to(device))
        same = noisy.gather(1, data.chosen[queries].to(device)[..., None].expand(-1, -1, noisy.shape[2]))
        sounding = clean.any(-1) & same.any(-1)  # a silent window is like any other
        return self.loss(clean[sounding], same[sounding])


def different(
    data: SearchSet, batch: int, recordings: int | None, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw queries and an item of each, ``(B,)``, so that no window is in two of them.

    Args:
        data: The training set.
        batch: Queries, at most.
        recordings: Number of recordings that all are from; None for any.
        generator: Of the draw.
    """
    known = data.query_recording.unique()
    here = known[torch.randperm(len(known), generator=generator)[:recordings]]
    pool = torch.isin(data.query_recording, here).nonzero()[:, 0]
    apart = data.counted & ~data.relevant
    queries: list[int] = []
    items: list[int] = []
    for query in pool[torch.randperm(len(pool), generator=generator)].tolist():
        if not apart[query, items].all():
            continue
        own = data.relevant[query].nonzero()[:, 0]
        queries.append(query)
        items.append(int(own[torch.randint(len(own), (), generator=generator)]))
        if len(queries) == batch:
            break
    return torch.tensor(queries), torch.tensor(items)
