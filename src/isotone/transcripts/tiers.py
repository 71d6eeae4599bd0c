"""The tiers of a transcript that hold speech: those that are asked for, else those that their names tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from isotone.format.reading import FormatError
from isotone.format.tier_names import parse_name, speaker_of
from isotone.text.given import listed

#: Kinds of tiers that hold utterances, and notes, as :func:`isotone.format.tier_names.parse_name` gives them.
_UTTERANCES = frozenset({"utterance", "sentence", "segment", "text", "transcript", "transcription"})
_NOTES = frozenset(
    {"note", "comment", "remark", "kommentar", "kommentare", "commentaire", "comentario", "commento"}
)
_NAMED = _UTTERANCES | {"words"}


def spoken(
    names: Sequence[str], asked: Sequence[str] = (), note: Callable[[str], None] = lambda warning: None
) -> dict[str, str]:
    """Choose the tiers that hold speech.

    Without a choice, tiers of utterances count if there are any. Else those of words do, as an earlier alignment has
    them. Else all do but those of phones and of notes, and their names are the speakers'.

    Args:
        names: Names of all tiers, in order.
        asked: The tiers to take: a name as it is; a kind, as ``words`` for ``Ann - words`` and ``Bob - words``; or a
            pattern with ``*`` or ``?``.
        note: Is told of tiers that are left out as notes.

    Returns:
        The speaker of every tier, by its name, in the order of the file; empty where there is none to name.

    Raises:
        FormatError: there is no such tier, or without a choice none that can hold words; the message lists all.
    """
    if asked:
        return _asked(names, asked)
    kinds = {name: parse_name(name).kind for name in names}
    all_kinds = set(kinds.values())
    wanted = _UTTERANCES & all_kinds or {"words"} & all_kinds or all_kinds - {"phones"} - _NOTES
    if names and not wanted:
        raise FormatError(f"expected a tier of words; got {listed(names)}: --tier names what holds them.")
    if not wanted & _NAMED and (notes := [name for name, kind in kinds.items() if kind in _NOTES]):
        note(f"left out as notes by the names of their tiers (--tier chooses tiers): {listed(notes)}")
    return {
        name: speaker_of(name) if kind in _NAMED else name for name, kind in kinds.items() if kind in wanted
    }


def check_without(asked: Sequence[str]) -> None:
    """Raise FormatError where tiers are asked for, and the transcript is of a kind that has none."""
    if asked:
        raise FormatError(
            f"expected a tier of intervals {asked[0]!r} (--tier); a transcript of this kind has no tiers."
        )


def _asked(names: Sequence[str], asked: Sequence[str]) -> dict[str, str]:
    """Return the tiers that are asked for, with their speakers."""
    found = {name for one in asked for name in _matching(names, one)}
    chosen = [name for name in names if name in found]
    speakers = {
        name: speaker_of(name) or ("" if parse_name(name).kind in _NAMED else name) for name in chosen
    }
    # tiers such as "Group 1 - Ann" and "Group 1 - Bob" are of different speakers
    return speakers if len({*speakers.values()}) == len(chosen) else {name: name for name in chosen}


def _matching(names: Sequence[str], asked: str) -> list[str]:
    """Return the tiers that a name, a kind or a pattern means."""
    if asked in names:
        return [asked]
    if any(sign in asked for sign in "*?"):
        found = [name for name in names if fnmatchcase(name, asked)]
    else:
        kind, speaker = parse_name(asked)
        parsed = [(name, parse_name(name)) for name in names]
        found = [name for name, own in parsed if own.kind == kind and speaker in ("", own.speaker)]
    if not found:
        raise FormatError(
            f"expected a tier of intervals {asked!r} (--tier); got {listed(names) or 'no tiers'}."
        )
    return found
