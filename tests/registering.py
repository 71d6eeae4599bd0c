"""Registration of a plugin for the length of one test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from isotone.registry import Registry


@contextmanager
def registered(registry: Registry[Any], name: str, plugin: Any) -> Iterator[None]:
    """Register a plugin within a ``with`` block.

    Other tests run over all names, so the name is taken back.
    """
    registry.register(name)(plugin)
    try:
        yield
    finally:
        registry.unregister(name)
