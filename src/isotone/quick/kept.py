"""The model and the pipeline of the last call, kept for the next."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from isotone.batch.options import Options
from isotone.kernels import compiling
from isotone.model.fetch import model_folder
from isotone.pipeline.forced import ForcedPipeline


class Kept:
    """The last model and the last pipeline.

    The model is loaded again when another one is asked for, or when its files have changed; the pipeline is made again
    when its options or dictionaries have.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: tuple[Hashable, Any] | None = None
        self._pipeline: tuple[Hashable, ForcedPipeline] | None = None

    def pipeline(self, options: Options) -> ForcedPipeline:
        """Return the pipeline of these options; raises as :meth:`isotone.batch.Options.check` and loading do."""
        with self._lock:
            source = (options.model, options.text.language, _state(model_folder(options.model)))
            key = (source, repr(options), tuple(map(_state, options.text.dictionaries + options.text.rules)))
            if self._pipeline is None or self._pipeline[0] != key:
                options.check()
                compiling.announce()
                loaded = source, options.chosen_engine().name
                if self._model is None or self._model[0] != loaded:
                    self._pipeline = self._model = None  # before the next is loaded: two may not fit
                    self._model = loaded, options.load_aligner()
                self._pipeline = key, options.aligning(self._model[1])
            return self._pipeline[1]


def _state(path: Path) -> Hashable:
    """Return names, sizes and times of change of the files of a folder, or of one file; empty if there is none."""
    paths = sorted(path.rglob("*")) if path.is_dir() else [path]
    found = [(str(p), p.stat()) for p in paths if p.is_file()]
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in found)
