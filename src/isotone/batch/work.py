"""The work of a command on one recording, and errors in one line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from isotone.batch.inputs import readable
from isotone.pipeline import Pipeline
from isotone.pipeline.result import Result


class Work(ABC):
    """The work of a command on one recording.

    Attributes:
        command: Name on the command line.
        given_text: True where texts are given; otherwise they are recognised and listed.
    """

    command: ClassVar[str]
    given_text: ClassVar[bool]

    @abstractmethod
    def inputs(self, recording: Path) -> Mapping[str, Path]:
        """Return the files besides the recording that the result depends on, by their roles.

        Raises:
            OSError: one of them is missing.
        """

    @abstractmethod
    def run(
        self, pipeline: Pipeline, path: Path, id: str, samples: np.ndarray
    ) -> tuple[Result, Sequence[str]]:
        """Compute the result of a recording; return it with warnings."""

    def doubt(self, pipeline: Pipeline, score: float | None, agreement: float | None) -> str:
        """Return the reason to doubt the text of a result; empty if there is none."""
        return ""


def explain(error: Exception, path: Path) -> str:
    """Describe an error of a file in one line."""
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    if not isinstance(error, (OSError, ValueError, LookupError, ImportError)):
        text = f"{type(error).__name__}: {text}"
    return readable(text.removeprefix(f"{path}: ") or type(error).__name__)
