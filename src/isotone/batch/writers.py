"""The formats in which a command writes alignments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from isotone.interfaces import Format
from isotone.registries import formats

#: The name of a format, or a mapping of its name and options.
Spec = str | Mapping[str, Any]


def writer_for(spec: Spec, tiers: Sequence[str]) -> Format:
    """Make a format; one of a single tier gets the first of the tiers, if it does not ask for another.

    Raises:
        LookupError: there is no such format.
        OptionError: it has no such option.
        ValueError: an option out of range.
    """
    writer = formats.create(spec)
    tier = getattr(writer, "tier", None)
    asked = not isinstance(spec, str) and "tier" in spec
    if isinstance(tier, str) and tier not in tiers and not asked:
        return formats.create(spec, tier=tiers[0])
    return writer


def name_of(spec: Spec) -> str:
    """Return the name of a format with its options: files with other options are other files."""
    return (
        spec if isinstance(spec, str) else json.dumps(spec, sort_keys=True, default=str, ensure_ascii=False)
    )


def writers_for(specs: Iterable[Spec], tiers: Sequence[str]) -> dict[str, Format]:
    """Make formats by their names with options, see :func:`writer_for`.

    Raises:
        ValueError: two of the formats write the same file.
    """
    writers: dict[str, Format] = {}
    for spec in specs:
        name, writer = name_of(spec), writer_for(spec, tiers)
        twin = next((n for n, w in writers.items() if n != name and w.suffix == writer.suffix), None)
        if twin is not None:
            raise ValueError(f"The formats {twin!r} and {name!r} both write {writer.suffix} files: give one.")
        writers[name] = writer
    return writers
