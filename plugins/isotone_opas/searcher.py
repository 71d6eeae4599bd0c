"""A trained OPAS model as a searcher for `isotone search`."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from isotone.interfaces import Searcher
from isotone.search.searcher import MOST_QUERY_WINDOWS
from isotone_opas.model import OPAS
from isotone_opas.storage import CONFIG, WEIGHTS, OPASError


class OPASSearcher(Searcher):
    """OPAS on consecutive windows without overlap, as in training.

    Args:
        model: The model, in evaluation mode. Its elements say what a window of audio is, and at which rate.
        sample_rate: Hz of the audio that a model without elements was trained with. A window then has as many samples
            as the model takes, or lasts 1 s where it takes any number.
        fingerprint, source: See :class:`isotone.interfaces.Searcher`.
    """

    name = "opas"
    contextual = True

    def __init__(
        self, model: OPAS, *, sample_rate: int = 16_000, fingerprint: str = "", source: str = ""
    ) -> None:
        self.model, elements = model, model.elements
        if elements is None:
            self.sample_rate, samples = sample_rate, getattr(model.embed, "input_size", sample_rate)
        else:
            self.sample_rate, samples = elements.sample_rate, elements.samples
        self.window_s = self.hop_s = samples / self.sample_rate
        self.item_windows = len(model.positions)
        self.query_windows = min(
            MOST_QUERY_WINDOWS, self.item_windows, getattr(model.penalty, "rows", MOST_QUERY_WINDOWS)
        )
        self.size = model.embed.size
        self.fingerprint, self.source = fingerprint, source

    @classmethod
    def load(cls, folder: Path, *, sample_rate: int) -> Self | None:
        """See :meth:`isotone.interfaces.Searcher.load`; a run folder stands for the model in it.

        Raises:
            OPASError: the model is damaged, or its elements are no audio.
        """
        if (folder / "model" / CONFIG).is_file():
            folder = folder / "model"
        if not (folder / CONFIG).is_file():
            return None
        model = OPAS.load(folder)
        if model.elements is not None and model.elements.kind == "values":
            raise OPASError(
                f"{folder} holds an OPAS model of sequences that are no audio (images ...), and recordings are "
                "searched with models of audio. Train one, or use it in Python: isotone_opas.model.OPAS.load."
            )
        rate = sample_rate if model.elements is None else model.elements.sample_rate
        digest = hashlib.sha256(str(rate).encode())
        for file in (CONFIG, WEIGHTS):
            digest.update((folder / file).read_bytes())
        found = f"opas-{digest.hexdigest()[:16]}"
        return cls(model, sample_rate=sample_rate, fingerprint=found, source=str(folder.resolve()))

    @torch.no_grad()
    def vectors(self, windows: Tensor, lengths: Tensor | None = None) -> Tensor:
        """See :meth:`isotone.interfaces.Searcher.vectors`."""
        elements = self.model.elements
        return self.model.embed(windows if elements is None else elements(windows), lengths)

    @torch.no_grad()
    def score(self, query: Tensor, items: Tensor, lengths: Tensor) -> Tensor:
        """See :meth:`isotone.interfaces.Searcher.score`; in (0, 1)."""
        return self.model.score_all(query[None], items, None, lengths)[0]
