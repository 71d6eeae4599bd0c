"""Model packs for tests: classes whose model lies in a given folder."""

from __future__ import annotations

from pathlib import Path

from isotone.interfaces import ModelPack


def pack_class(model: Path, language: str = "de", called: str = "german") -> type[ModelPack]:
    """Make the class of a pack of one language with the model of a folder."""

    class Pack(ModelPack):
        """A small model."""

        name = called
        title = "A small model"
        languages = (language,)
        licence = "CC0-1.0"
        size_mb = 0.1
        trained_on = "noise"

        def folder(self) -> Path:
            return model

    return Pack
