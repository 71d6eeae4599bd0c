"""Interface of model packs: trained models that come with an installed package."""

from __future__ import annotations

import inspect
from abc import ABC
from pathlib import Path
from typing import ClassVar


class ModelPack(ABC):
    """A trained model that ``pip install`` brings, found by its name wherever a model is named.

    A subclass states the attributes. Its model lies in the folder ``model`` beside its module, as package data;
    a pack that keeps it elsewhere overrides :meth:`folder`.

    Attributes:
        name: The name of its entry point, such as ``english``.
        title: The model in a few words, without the attributes below.
        languages: ISO 639 codes of the languages it was trained for, such as ``("en",)``.
        licence: SPDX identifier of the licence of the weights.
        size_mb: Size of the folder, in MB (10^6 bytes).
        trained_on: The data it was trained on, in one line.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    languages: ClassVar[tuple[str, ...]]
    licence: ClassVar[str]
    size_mb: ClassVar[float]
    trained_on: ClassVar[str]

    def folder(self) -> Path:
        """Return the folder that :meth:`isotone.model.Model.load` reads.

        Raises:
            FileNotFoundError: the model is not there; the message says what to do.
        """
        folder = Path(inspect.getfile(type(self))).parent / "model"
        if not folder.is_dir():
            raise FileNotFoundError(
                f"The model pack {self.name!r} holds no model: expected the folder {folder}. Install its package "
                "again, or name another model (--model)."
            )
        return folder
