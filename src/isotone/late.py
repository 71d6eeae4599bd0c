"""Names of packages that are imported at their first use, so that what needs no torch starts without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def late(package: str, modules: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """Return the function ``__getattr__`` of a package.

    Args:
        package: The package.
        modules: Names that its modules have, by module inside of the package.
    """
    homes = {name: f"{package}.{module}" for module, names in modules.items() for name in names}

    def found(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return found
