"""Registration of a plugin for the length of one test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from isotone.registry import Registry


@contextmanager
def registered(registry: Registry[Any], name: str, plugin: Any) -> Iterator[None]:
    """Register a plugin within a ``with`` block.

    A registry forgets no name in use, and other tests run over all names. This is the one place that takes one back.
    """
    registry.register(name)(plugin)
    try:
        yield
    finally:
        registry.unregister(name)
