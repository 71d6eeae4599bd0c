"""Registries of plugins by name: isotone's own, those of other distributions, and those of notebooks.

Listing names reads package metadata only, and describing them their sources. A plugin's module is imported when it is
first built, so a broken plugin affects only those who use it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint
from typing import Any, Generic, TypeVar

from isotone.installed import installed
from isotone.registry.options import OptionError, check_options, nearest

T = TypeVar("T")


class UnknownPlugin(LookupError):
    """No plugin of that name is installed."""


class BrokenPlugin(ImportError):
    """A plugin of that name is installed but cannot be imported."""


class DuplicatePlugin(LookupError):
    """Two distributions, or code and a distribution, claim one name."""


@dataclass(frozen=True)
class PluginInfo:
    """One line of ``isotone plugins``.

    Attributes:
        name, kind: Name and kind of the plugin.
        target: Its class.
        distribution, version: The package that it came with.
        summary: The first line of its description.
        error: The reason why it cannot be used; None if it can.
        facts: Values of the attributes that the registry lists, by name.
    """

    name: str
    kind: str
    target: str
    distribution: str
    version: str
    summary: str
    error: str | None
    facts: dict[str, Any] = field(default_factory=dict)


class Registry(Generic[T]):
    """Names of one kind of plugin (losses, aligners ...) and their classes.

    Args:
        kind: The kind in the singular, for messages: ``"loss"``.
        group: The entry-point group that other distributions declare: ``"isotone.losses"``.
        interface: Class that plugins must be subclasses of, as ``module:name``; imported with the first plugin. Empty:
            any class will do.
        facts: Attributes that its classes must have; :meth:`describe` lists them.

    Example:
        >>> losses = Registry("loss", "isotone.losses")
        >>> @losses.register("zero")
        ... class Zero:
        ...     def __init__(self, scale: float = 1.0): self.scale = scale
        >>> losses.build("zero", scale=2.0).scale
        2.0
    """

    def __init__(self, kind: str, group: str, interface: str = "", facts: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self.group = group
        self.interface = interface
        self.facts = facts
        self._registered: dict[str, Callable[..., T]] = {}

    def register(self, name: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
        """Return a decorator that adds a class under a name, in this process.

        Raises:
            DuplicatePlugin: the name is taken; nothing is overwritten.
        """

        def add(target: Callable[..., T]) -> Callable[..., T]:
            taken = self._registered.get(name)
            if taken is not None and not _same_definition(taken, target):
                raise DuplicatePlugin(
                    f"There is already a {self.kind} named {name!r} ({_path(taken)}): choose another."
                )
            if entries := self._entries(name):
                raise DuplicatePlugin(
                    f"There is already a {self.kind} named {name!r} ({_claims(entries)}): choose another."
                )
            self._registered[name] = target
            return target

        return add

    def unregister(self, name: str) -> None:
        """Remove a class that :meth:`register` added in this process.

        Raises:
            UnknownPlugin: no such name in this process; plugins of installed distributions cannot be removed.
        """
        if self._registered.pop(name, None) is None:
            raise UnknownPlugin(f"No {self.kind} named {name!r} was registered in this process.")

    def names(self) -> list[str]:
        """Return all names, sorted, without importing a plugin."""
        return sorted({*self._registered, *(e.name for e in installed(self.group))})

    def get(self, name: str) -> Callable[..., T]:
        """Return the class of that name; its plugin is imported.

        Raises:
            UnknownPlugin: no such name; the message lists all names and the nearest match.
            DuplicatePlugin: two distributions claim the name.
            BrokenPlugin: the plugin cannot be imported or called; the message says why.
        """
        if name in self._registered:
            return self._registered[name]
        entries = self._entries(name)
        if not entries:
            known = self.names()
            raise UnknownPlugin(
                f"No {self.kind} named {name!r}.{nearest(name, known)} Installed: {', '.join(known) or 'none'}."
            )
        if len(entries) > 1:
            raise DuplicatePlugin(
                f"The {self.kind} name {name!r} is claimed by {_claims(entries)}: uninstall one of them."
            )
        try:
            target = entries[0].load()
        except (Exception, SystemExit) as error:
            raise BrokenPlugin(
                f"The {self.kind} {name!r} ({_claims(entries)}) did not import: {type(error).__name__}: {error}"
            ) from error
        if not callable(target):
            raise BrokenPlugin(
                f"The {self.kind} {name!r} ({_claims(entries)}) is a {type(target).__name__}, which cannot be built."
            )
        return target

    def build(self, name: str, /, *args: Any, **options: Any) -> T:
        """Build an instance of the class of that name; raises as :meth:`get`, too.

        Raises:
            OptionError: an unknown or a missing option, or one of a wrong type; the message lists the options of the
                constructor.
            BrokenPlugin: its class is no subclass of the interface, or lacks an attribute that all must have.
        """
        target = self.get(name)
        takes = check_options(f"The {self.kind} {name!r}", target, args, options)
        try:
            return self._checked(target(*args, **options), name)
        except TypeError as error:
            # the cause may be an option of a wrong type, such as a text in a list of numbers
            if options and not isinstance(error, OptionError):
                what = f"cannot be made with {options}: {error}."
                raise OptionError(f"The {self.kind} {name!r} {what} {takes}") from error
            raise

    def _checked(self, plugin: T, name: str) -> T:
        """The plugin itself, once it is known to be of the interface."""
        found = f"The {self.kind} {name!r} ({type(plugin).__module__}.{type(plugin).__qualname__})"
        if self.interface:
            module, _, attribute = self.interface.partition(":")
            if not isinstance(plugin, getattr(importlib.import_module(module), attribute)):
                raise BrokenPlugin(
                    f"{found} is no {attribute}: "
                    f"make its class a subclass of {module}.{attribute}, which declares what it can do."
                )
        if lacking := self._lacking(type(plugin)):
            raise BrokenPlugin(f"{found} {lacking}")
        return plugin

    def _lacking(self, target: Any) -> str:
        """Say which of the attributes that all classes must have one lacks; empty if it has all."""
        missing = [fact for fact in self.facts if not hasattr(target, fact)]
        return f"lacks {', '.join(missing)}: its class must have them." if missing else ""

    def create(self, spec: str | Mapping[str, Any], /, *args: Any, **options: Any) -> T:
        """Build from a configuration: a name, or a mapping with ``name`` and options, to which ``options`` are added.

        Raises:
            OptionError: neither a name nor a mapping, a mapping without ``name``, or an option given twice.
        """
        if isinstance(spec, str):
            return self.build(spec, *args, **options)
        if not isinstance(spec, Mapping):
            raise OptionError(f"A {self.kind} in a configuration is a name or a mapping; got {spec!r}.")
        settings = {str(k): v for k, v in spec.items()}
        if "name" not in settings:
            raise OptionError(f"A {self.kind} in a configuration needs a 'name'; got {settings}.")
        if not isinstance(settings["name"], str):
            raise OptionError(f"A {self.kind} is named by a text; got {settings['name']!r}.")
        if twice := [o for o in options if o in settings]:
            raise OptionError(
                f"The {self.kind} option {twice[0]!r} is set by the program: leave it out of {settings}."
            )
        return self.build(settings.pop("name"), *args, **settings, **options)

    def describe(self, check: bool = True) -> list[PluginInfo]:
        """Describe every plugin and its origin.

        Args:
            check: Import all, and report those that fail. Otherwise descriptions are read from the sources, where
                that is possible: imports of all plugins take seconds, and hundreds of megabytes.
        """
        entries = installed(self.group)
        names = sorted({*self._registered, *entries.names})
        return [self._info(name, _distinct(entries.select(name=name)), check) for name in names]

    def _info(self, name: str, entries: list[EntryPoint], check: bool) -> PluginInfo:
        target, error, summary = _claims(entries), None, None
        facts: dict[str, Any] = {}
        if not (check or self.facts or name in self._registered) and len(entries) == 1:
            target, summary = entries[0].value, _summary(entries[0])
        if summary is None:
            try:
                found = self.get(name)
                target = _path(found)
                summary = (inspect.getdoc(found) or "").split("\n", 1)[0]
                facts = {fact: getattr(found, fact, None) for fact in self.facts}
                if lacking := self._lacking(found):
                    error = f"The {self.kind} {name!r} ({_claims(entries) or target}) {lacking}"
            except (BrokenPlugin, DuplicatePlugin) as problem:
                error = str(problem)
        dist = entries[0].dist if entries else None
        origin = (dist.name, dist.version) if dist else ("(this process)", "")
        return PluginInfo(name, self.kind, target, *origin, summary or "", error, facts)

    def _entries(self, name: str) -> list[EntryPoint]:
        return _distinct(installed(self.group).select(name=name))


def _distinct(entries: Iterable[EntryPoint]) -> list[EntryPoint]:
    # one distribution can be found twice (an editable install and its build folder)
    return list({(e.dist.name if e.dist else "", e.value): e for e in entries}.values())


def _path(target: Any) -> str:
    return f"{getattr(target, '__module__', '?')}:{getattr(target, '__qualname__', target)}"


def _summary(entry: EntryPoint) -> str | None:
    """Return the first line of a class's description from its source; None where only an import can tell."""
    first, *rest = entry.module.split(".")
    try:
        spec = importlib.util.find_spec(first)
        for part in rest:  # not by the module's whole name, which would import the packages above it
            spec = (
                PathFinder.find_spec(f"{spec.name}.{part}", spec.submodule_search_locations) if spec else None
            )
        body = ast.parse(spec.loader.get_source(spec.name)).body  # type: ignore[union-attr]
    except Exception:  # there is no such module, or no source
        return None
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == entry.attr:
            return (ast.get_docstring(node) or "").split("\n", 1)[0] or None
    return None


def _same_definition(a: Any, b: Any) -> bool:
    """Return whether b is a re-run of the notebook cell that defined a."""
    return _path(a) == _path(b) and getattr(a, "__module__", "") == "__main__"


def _claims(entries: list[EntryPoint]) -> str:
    return " and ".join(
        f"{e.value}, from {e.dist.name} {e.dist.version}" if e.dist else e.value for e in entries
    )
