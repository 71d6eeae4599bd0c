"""Options that plugins are made with, checked against their constructors."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

#: Types by the names that annotations have: in words, and those of values that fit.
_TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "bool": ("true or false", (bool,)), "int": ("a whole number", (int,)), "float": ("a number", (int, float)),
    "str": ("a text", (str,)), "None": ("null", (type(None),)),
}  # fmt: skip
_PLAIN = (bool, int, float, str, list, dict, type(None))


class OptionError(TypeError):
    """A plugin got an unknown option or one of a wrong type, or lacks a required one."""


def nearest(name: str, known: list[str]) -> str:
    """Return a sentence that suggests the nearest known name, or an empty string."""
    match = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f" Did you mean {match[0]!r}?" if match else ""


def check_options(
    plugin: str, target: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> str:
    """Check the options of a plugin.

    Args:
        plugin: Its kind and name, for messages.
        target: Its class.
        args: Arguments beside the options.
        options: The options.

    Returns:
        A sentence on the options that it takes; empty where that is not known.

    Raises:
        OptionError: an unknown or a missing option, or one of a wrong type.
    """
    try:
        signature = inspect.signature(target)
    except ValueError:  # a builtin without a signature
        return ""
    parameters = signature.parameters
    known = [p.name for p in parameters.values() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes = f"It takes: {', '.join(known) or 'none'}."
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        if unknown := [option for option in options if option not in known]:
            what = f"has no option {unknown[0]!r}.{nearest(unknown[0], known)}"
            raise OptionError(f"{plugin} {what} {takes}") from None
        raise OptionError(f"{plugin}: {error}. {takes}") from None
    for option in options:
        if option in known and (expected := _mistyped(parameters[option], options[option])):
            raise OptionError(f"{plugin} expects {option} to be {expected}; got {options[option]!r}. {takes}")
    return takes


def _mistyped(parameter: inspect.Parameter, value: Any) -> str:
    """Say what an option of a configuration has to be, where it is something else; other objects are not checked."""
    annotation = parameter.annotation  # a string where the module's annotations are not evaluated
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    names = [part.strip() for part in text.split("|")]
    if value is parameter.default or type(value) not in _PLAIN or not all(name in _TYPES for name in names):
        return ""
    fits = any(type(value) in _TYPES[name][1] for name in names)
    return "" if fits else " or ".join(_TYPES[name][0] for name in names)
