"""Progress on a terminal: bars with the time that is left, on standard error; nothing of it under :func:`quiet`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

Item = TypeVar("Item")

_quiet = ContextVar("isotone_quiet", default=False)


@contextmanager
def quiet(wanted: bool = True) -> Iterator[None]:
    """Show no progress inside, where it is wanted so; nor tell that kernels are being compiled."""
    token = _quiet.set(wanted or _quiet.get())
    kernels = logging.getLogger("isotone.kernels")
    level = kernels.level
    if _quiet.get():
        kernels.setLevel(logging.ERROR)
    try:
        yield
    finally:
        kernels.setLevel(level)
        _quiet.reset(token)


def is_quiet() -> bool:
    """True inside :func:`quiet`."""
    return _quiet.get()


def bars(*columns: ProgressColumn, shown: bool = True) -> Progress:
    """Make bars that vanish at their end.

    Args:
        columns: Columns after the description and the bar; the time that is left follows. Default: the share done.
        shown: False where another process shows them.

    Returns:
        A context manager. It writes to standard error, and only where that is a terminal.
    """
    screen = Console(stderr=True)
    share = TextColumn("{task.percentage:>3.0f} %")
    left = TimeRemainingColumn(elapsed_when_finished=True)
    middle = (TextColumn("{task.description}"), BarColumn(), *(columns or (share,)))
    hidden = is_quiet() or not (shown and screen.is_terminal)
    return Progress(*middle, left, console=screen, transient=True, disable=hidden)


def counted(items: Iterable[Item], what: str, total: int) -> Iterator[Item]:
    """Iterate over items, and show the number that is done.

    Args:
        items: The items.
        what: Description of the work.
        total: Number of items.
    """
    with bars(MofNCompleteColumn()) as shown:
        yield from shown.track(items, total=total, description=what)
