"""A message while kernels are compiled, which happens once per machine and takes about half a minute."""

from __future__ import annotations

import logging
from functools import cache

from numba.core.event import Event, Listener, register

log = logging.getLogger(__name__)


@cache
def announce() -> None:
    """Log one line before the first kernel of this process is compiled; none where all of them are in numba's cache."""
    register("numba:compile", _Announcement())


class _Announcement(Listener):
    said = False

    def on_start(self, event: Event) -> None:
        kernel = event.data["dispatcher"].py_func.__module__
        if not self.said and kernel.startswith("isotone"):
            self.said = True
            log.warning("Compiling kernels for this machine: about half a minute, the first time only.")

    def on_end(self, event: Event) -> None:
        return
