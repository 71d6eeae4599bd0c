"""Models for searching: any trained model, and one without training."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from isotone.interfaces import Searcher
from isotone.kernels.assignment import ordered_assignment
from isotone.model.frontend import LogMel
from isotone.registries import searchers
from isotone.search.windows import SILENT

#: Most windows of a query, limited by the scan of the first stage.
MOST_QUERY_WINDOWS = 16
# Energies further below a window's maximum are raised to this floor: nats of power, 35 dB.
_RANGE = 8.0
# Hz of models that do not say theirs.
_RATE = 16_000


def open_searcher(model: Path | str | None = None, *, sample_rate: int | None = None) -> Searcher:
    """Open the search model in a folder, of any kind; without a folder, :class:`LogMelSearcher`.

    Args:
        model: Folder of a trained model, or of the run that trained it.
        sample_rate: Hz of the audio that the model was trained with. Default: what the model says, or 16,000 where it
            does not.

    Raises:
        FileNotFoundError: no such folder.
        ValueError: the folder holds no search model, or one of another sample rate.
    """
    if model is None:
        return LogMelSearcher()
    folder = Path(model)
    if not folder.is_dir():
        raise FileNotFoundError(f"No folder {folder} of a search model.")
    for name in searchers.names():
        kind: Any = searchers.get(name)
        found: Searcher | None = kind.load(folder, sample_rate=sample_rate or _RATE)
        if found is None:
            continue
        if sample_rate is not None and found.sample_rate != sample_rate:
            raise ValueError(
                f"The model in {folder} takes audio at {found.sample_rate} Hz, not at {sample_rate} Hz: leave the "
                "sample rate out."
            )
        return found
    raise ValueError(
        f"{folder} holds {_content(folder)}; kinds of models that search: {', '.join(searchers.names())}. "
        "Give the folder that a training run of one saved (recipes/music_speech), or leave --model out to search "
        "without training."
    )


def _content(folder: Path) -> str:
    """Describe the model of another kind in a folder, or in the run that the folder is of."""
    there = {path.name for place in (folder, folder / "model") for path in place.glob("*.json")}
    if "isotone.json" in there:
        return "a speech recognition model, which aligns and transcribes and does not search"
    if "config.json" in there:
        return "a model of transformers, which does not search"
    if "index.json" in there:
        return "an index, which is searched by `isotone search query`"
    if (folder / "scores.json").is_file():
        return "a run that saved no search model (only OPAS models are)"
    return "no model of a kind that searches"


class LogMelSearcher(Searcher):
    """Searcher without training, by log-mel energies.

    A window of 1 s is described by its log energies in 33 mel bands: the differences of neighbouring bands, averaged
    over each quarter of the window. They are normalised to norm 1, so loudness does not matter, and constant filters
    matter little. Corpus windows begin every 0.25 s.

    The score is the mean over the query's windows of their cosines with corpus windows, as :func:`best_selection` has
    them: the exact best ordered selection, which OPAS relaxes.

    It finds recordings of the same sound event, re-recorded, filtered or in noise. It does not recognise the same words
    of another speaker.
    """

    name = "log-mel"
    sample_rate = 16_000
    window_s, hop_s = 1.0, 0.25
    item_windows, query_windows = 64, MOST_QUERY_WINDOWS
    contextual = False
    fingerprint = "log-mel-2"
    _BANDS, _PARTS = 33, 4
    size = (_BANDS - 1) * _PARTS

    def __init__(self) -> None:
        self._mel = LogMel(self.sample_rate, bands=self._BANDS, stack=1)

    @classmethod
    def load(cls, folder: Path, *, sample_rate: int) -> Self | None:
        """See :meth:`Searcher.load`; there is nothing to load, so the result is None."""
        return None

    @torch.inference_mode()
    def vectors(self, windows: Tensor, lengths: Tensor | None = None) -> Tensor:
        """See :meth:`Searcher.vectors`."""
        flat = windows.flatten(0, 1)
        audible = flat.square().mean(1).sqrt() >= SILENT
        samples = torch.full((len(flat),), flat.shape[1])
        plain = torch.zeros(self._BANDS), torch.ones(self._BANDS)
        energies, _ = self._mel(flat, samples, plain)
        energies = energies.maximum(energies.amax((1, 2), keepdim=True) - _RANGE)
        cells = F.adaptive_avg_pool1d(energies.diff(dim=2).mT, self._PARTS).flatten(1)
        values = F.normalize(cells, dim=1) * audible[:, None]
        return values.view(*windows.shape[:2], self.size)

    @torch.inference_mode()
    def score(self, query: Tensor, items: Tensor, lengths: Tensor) -> Tensor:
        """See :meth:`Searcher.score`; in [-1, 1]."""
        return best_selection(query, items, lengths)[1]


def best_selection(query: Tensor, items: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    r"""Select increasing windows whose agreement with the query's is greatest, and score it.

    The agreement of two windows is :math:`1 - ||x_i - c_j||^2 / 2`, their cosine. Silence, the zero vector, agrees with
    silence alone: 1, and 0 with sound. As half alike it would be the best match of every sound in noise.

    Args:
        query: ``(m, d)``.
        items: ``(C, n, d)``.
        lengths: ``(C,)`` int64, >= m.

    Returns:
        Windows ``(C, m)`` int64, and scores ``(C,)`` float32, 1 for equal vectors.
    """
    x, c = query.square().sum(-1)[:, None], items.square().sum(-1)[:, None]
    agreement = query @ items.mT + 1 - (x + c) / 2
    agreement.masked_fill_((x == 0) != (c == 0), 0)
    path, value = ordered_assignment(agreement, None, lengths)
    return path, (value / max(1, len(query))).float()
