"""Model packs that are installed: by name, and by the language of a text. Nothing here imports torch."""

from __future__ import annotations

from pathlib import Path

from isotone.interfaces import ModelPack
from isotone.registries import packs
from isotone.text.languages import iso_code, language_code

#: Language of texts whose language nobody named.
DEFAULT_LANGUAGE = "en"

# The distribution whose pack is the default where another has one for the same language.
_OWN = "isotone"


def pack_folder(name: Path | str) -> Path | None:
    """Return the folder of the pack of that name; None if there is no such pack.

    Raises:
        FileNotFoundError: the pack is installed and its model is missing.
        LookupError, ImportError: two packages claim the name, or the pack does not import.
    """
    return packs.build(str(name)).folder() if str(name) in packs.names() else None


def pack_for(language: str | None = None) -> ModelPack:
    """Return the pack of a language: isotone's own, or the only one that is installed.

    Args:
        language: ISO 639 code, also with a region (``en-GB``). Default, and for an empty one: English.

    Raises:
        ValueError: the language is not an ISO 639 code.
        LookupError: no pack has the language, or several have it and none is isotone's own; the message lists what is
            installed and names ``--model``.
    """
    wanted = language_code(language or DEFAULT_LANGUAGE)
    found = {name: pack for name, pack in _usable().items() if wanted in map(iso_code, pack.languages)}
    own = [row.name for row in packs.describe() if row.name in found and row.distribution == _OWN]
    chosen = own or list(found)
    if len(chosen) == 1:
        return found[chosen[0]]
    if chosen:
        raise LookupError(
            f"Several model packs have the language {wanted!r}: {listed()} Say which by --model."
        )
    raise LookupError(
        f"No model pack is installed for the language {wanted!r}, and --model names no model. {listed()} Give a model "
        "or run folder, or a hub id of a CTC model: --model MODEL."
    )


def listed() -> str:
    """List the installed packs with their languages, in one sentence."""
    found = [f"{name} ({', '.join(pack.languages)})" for name, pack in _usable().items()]
    return f"Installed packs: {', '.join(found)}." if found else "No packs are installed."


def _usable() -> dict[str, ModelPack]:
    """Build all packs that can be used, by name; `isotone plugins` says why others cannot."""
    found: dict[str, ModelPack] = {}
    for name in packs.names():
        try:
            found[name] = packs.build(name)
        except Exception:  # whatever a package does, others can be used
            continue
    return found
