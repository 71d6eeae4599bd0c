"""The formats in which a command writes alignments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isotone.interfaces import Format
from isotone.registries import formats


def writers_for(names: Iterable[str], tiers: Sequence[str]) -> dict[str, Format]:
    """Make formats by name; those of a single tier get one of the tiers.

    Raises:
        ValueError: two of the formats write the same file.
    """
    writers: dict[str, Format] = {}
    for name in names:
        writer = formats.build(name)
        tier = getattr(writer, "tier", None)
        if isinstance(tier, str) and tier not in tiers:
            writer = formats.build(name, tier=tiers[0])
        twin = next((n for n, w in writers.items() if n != name and w.suffix == writer.suffix), None)
        if twin is not None:
            raise ValueError(f"The formats {twin!r} and {name!r} both write {writer.suffix} files: give one.")
        writers[name] = writer
    return writers
