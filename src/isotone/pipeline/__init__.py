"""Audio, a model and a text to an Alignment with scores and doubt; or audio alone to text with times."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotone.pipeline.pipeline import Pipeline

__all__ = ["Pipeline"]


def __getattr__(name: str) -> Any:
    # imported at its first use, so that constants and checks start without torch
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from isotone.pipeline import pipeline

    return getattr(pipeline, name)
