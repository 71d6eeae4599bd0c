"""Names of tiers in other tools: their kind, words or phones, and their speaker."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from isotone.alignment import SILENCE, Alignment, AlignmentError, Segment, Tier, tier_from_spans

#: Names of tiers, in lower case, in files of MFA, Praat, FAVE, WebMAUS, SPPAS, TIMIT and DoReCo.
SYNONYMS = {
    **dict.fromkeys(("words", "word", "wrd", "wd", "ort-mau", "tokensalign"), "words"),
    **dict.fromkeys(
        ("phones", "phone", "phonemes", "phoneme", "phon", "phn", "ph", "mau", "phonalign"), "phones"
    ),
}

# Overlaps below this, in seconds, are rounding errors.
_NOISE_S = 1e-6


class OverlapError(AlignmentError):
    """Tiers of several speakers overlap, and cannot be read as one."""


class TierName(NamedTuple):
    """The parts of a tier's name.

    Attributes:
        kind: ``words`` or ``phones`` if the name means them; else the name in lower case, singular.
        speaker: The speaker in lower case; empty if the name has none.
    """

    kind: str
    speaker: str


def parse_name(name: str) -> TierName:
    """Parse the name of a tier, ignoring case: ``A - words``, ``A/word`` and ``words@A`` have a speaker."""
    kind, speaker = _parts(" ".join(name.split()))
    kind = kind.casefold()
    return TierName(SYNONYMS.get(kind, kind.removesuffix("s")), speaker.casefold())


def speaker_of(name: str) -> str:
    """Return the speaker in a tier's name as written; empty if it has none."""
    return _parts(" ".join(name.split()))[1]


def _parts(name: str) -> tuple[str, str]:
    """Split the name of a tier into kind and speaker, which may be empty."""
    if name.casefold() in SYNONYMS:
        return name, ""
    for separator in (" - ", "/"):
        speaker, _, kind = name.rpartition(separator)
        if speaker and kind.casefold() in SYNONYMS:
            return kind, speaker
    kind, _, speaker = name.partition("@")
    if speaker and kind.casefold() in SYNONYMS:
        return kind, speaker
    speaker, _, kind = name.rpartition(" - ")
    return kind, speaker


def standard_name(name: str) -> str:
    """Return ``words`` or ``phones`` if a tier's name means them, for any speaker; else the name."""
    kind = parse_name(name).kind
    return kind if kind in SYNONYMS else name


def voices(alignment: Alignment, name: str) -> dict[str, Tier]:
    """Map every speaker to the tier of a kind; the key of a tier of exactly that name is empty.

    Raises:
        KeyError: there is no such tier; the message lists what there is.
    """
    if not alignment.has(name):
        kind = parse_name(name).kind
        found = {speaker_of(t.name): t for t in alignment.tiers if parse_name(t.name).kind == kind}
        if found and "" not in found:
            return found
    return {"": alignment.tier(name)}


def one_tier(alignment: Alignment, name: str) -> Tier:
    """Return the tier of that name, or the merged tiers of the speakers.

    Raises:
        KeyError: there is no such tier; the message lists what there is.
        AlignmentError: tiers to be merged overlap.
    """
    found = None if alignment.has(name) else find_tier(alignment, name)
    return found or alignment.tier(name)


def find_tier(alignment: Alignment, name: str) -> Tier | None:
    """Find a tier by name, and return it under its standard name; None if there is none.

    1. A tier of exactly that name is returned.
    2. Else a tier of the same kind (and speaker, if the name has one) is returned.
    3. If the name has no speaker and only speakers have tiers of the kind, these are merged, without silences.
    4. If the name has a speaker and no tier of the kind has one, that tier is returned.

    Raises:
        OverlapError: tiers to be merged overlap.
        AlignmentError: several tiers mean the same.
    """
    if alignment.has(name):
        return Tier(standard_name(name), alignment.tier(name).segments)
    requested = parse_name(name)
    same = [tier for tier in alignment.tiers if parse_name(tier.name).kind == requested.kind]
    shared = [tier for tier in same if not parse_name(tier.name).speaker]
    own = [t for t in same if parse_name(t.name).speaker == requested.speaker] if requested.speaker else []
    if requested.speaker and not own and len(shared) < len(same):
        return None
    found = own or shared or same
    if len(found) < 2:
        return Tier(standard_name(name), found[0].segments) if found else None
    if own or shared:
        raise AlignmentError(
            f"tiers {_listed(found)} all stand for {name!r}: choose one by its whole name, or rename the others."
        )
    return _merge(standard_name(name), found)


def _merge(name: str, tiers: Sequence[Tier]) -> Tier:
    """Merge the segments of several speakers in order of time, without silences."""
    spoken: list[tuple[Segment, str]] = [(s, t.name) for t in tiers for s in t if s.label not in SILENCE]
    spoken.sort(key=lambda one: (one[0].start, one[0].end))
    for (a, first), (b, second) in pairwise(spoken):
        if b.start < a.end - _NOISE_S:
            raise OverlapError(
                f"tiers {first!r} and {second!r} overlap ({a.label!r} ends at {a.end:g} s, {b.label!r} starts at "
                f"{b.start:g} s) and cannot be read as one tier {name!r}: choose one by its whole name."
            )
    spans = [(s.label, s.start, s.end, s.score) for s, _ in spoken]
    return tier_from_spans(name, spans, max((s.end for s, _ in spoken), default=0.0))


def _listed(tiers: Sequence[Tier]) -> str:
    *most, last = (repr(tier.name) for tier in tiers)
    return f"{', '.join(most)} and {last}"
