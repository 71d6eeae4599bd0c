"""Plugins on the command line: their names, or mappings of their names and options in YAML."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from isotone.cli.console import explained


def plugin(text: str | None, example: str = "{name: ctc-beam, beam: 16}") -> str | dict[str, Any] | None:
    """Parse a plugin option: its name, or a mapping of its name and options in YAML.

    Args:
        text: The option.
        example: A mapping for the error.

    Raises:
        ValueError: a mapping that is no YAML, or has no name.
    """
    if text is None or not text.lstrip().startswith("{"):
        return text
    import yaml  # type: ignore[import-untyped]

    try:
        part = dict(yaml.safe_load(text))
    except (yaml.YAMLError, ValueError, TypeError):
        part = {}
    if "name" not in part:
        raise ValueError(f"{text!r} is no YAML mapping such as {example}.")
    return part


def formats(texts: Iterable[str]) -> list[str | dict[str, Any]]:
    """Parse the formats of files, see :func:`plugin`; each counts once. The command ends where one cannot be parsed."""
    parts: list[str | dict[str, Any]] = []
    with explained():
        for text in texts:
            part = plugin(text, "{name: srt, level: word}")
            if part is not None and part not in parts:
                parts.append(part)
    return parts
