"""Audio, a model and a text to an Alignment with scores and doubt; or audio alone to text with times."""

from typing import TYPE_CHECKING

from isotone.late import late

if TYPE_CHECKING:
    from isotone.pipeline.pipeline import Pipeline

__all__ = ["Pipeline"]

# constants and checks beside it start without torch
__getattr__ = late(__name__, {"pipeline": __all__})
