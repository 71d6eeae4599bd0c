"""Texts of some recordings, and the emissions that they are aligned with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from isotone.pipeline.texts import TextToAlign
from isotone.types import Emissions


class Emitted(NamedTuple):
    """Texts of some recordings, and what they are aligned with: emissions, also hushed ones (``heard``)."""

    ids: Sequence[str]
    audio: Sequence[np.ndarray]
    emissions: Mapping[str, Emissions]
    heard: Mapping[str, Emissions]
    texts: Sequence[TextToAlign]
    strings: Sequence[str]
    star_cost: float
    judged: bool

    def row(self, i: int) -> Emitted:
        """Return what is given of one recording."""
        return self._replace(
            ids=[self.ids[i]],
            audio=[self.audio[i]],
            emissions={head: e.rows([i]) for head, e in self.emissions.items()},
            heard={head: e.rows([i]) for head, e in self.heard.items()},
            texts=[self.texts[i]],
            strings=[self.strings[i]],
        )
