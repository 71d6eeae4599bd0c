"""Registries of plugins by name, and the options that plugins are made with."""

from isotone.registry.names import BrokenPlugin, DuplicatePlugin, PluginInfo, Registry, UnknownPlugin
from isotone.registry.options import OptionError, nearest

__all__ = [
    "BrokenPlugin", "DuplicatePlugin", "OptionError", "PluginInfo", "Registry", "UnknownPlugin", "nearest",
]  # fmt: skip
