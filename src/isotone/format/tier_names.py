"""Names of tiers: what other tools call words and phones, and whose they are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from isotone.alignment import SILENCE, Alignment, AlignmentError, Segment, Tier, tier_from_spans

#: Names of tiers in lower case, as MFA, Praat, FAVE, WebMAUS, SPPAS, TIMIT and DoReCo write them.
SYNONYMS = {
    **dict.fromkeys(("words", "word", "wrd", "wd", "ort-mau", "tokensalign"), "words"),
    **dict.fromkeys(
        ("phones", "phone", "phonemes", "phoneme", "phon", "phn", "ph", "mau", "phonalign"), "phones"
    ),
}

# Segments that reach into each other by less than this, in seconds, do so by rounding.
_NOISE_S = 1e-6


class TierName(NamedTuple):
    """A tier's name in its parts.

    Attributes:
        kind: ``words`` or ``phones`` where the name means them; else the name in lower case, singular.
        speaker: In lower case; empty where the name has none.
    """

    kind: str
    speaker: str


def parse_name(name: str) -> TierName:
    """Parse the name of a tier, whatever its case: ``A - words``, ``A/word`` and ``words@A`` have a speaker."""
    plain = " ".join(name.split()).casefold()
    if plain in SYNONYMS:
        return TierName(SYNONYMS[plain], "")
    for separator in (" - ", "/"):
        speaker, _, kind = plain.rpartition(separator)
        if speaker and kind in SYNONYMS:
            return TierName(SYNONYMS[kind], speaker)
    kind, _, speaker = plain.partition("@")
    if speaker and kind in SYNONYMS:
        return TierName(SYNONYMS[kind], speaker)
    speaker, _, kind = plain.rpartition(" - ")
    return TierName(kind.removesuffix("s"), speaker)


def standard_name(name: str) -> str:
    """``words`` or ``phones`` where a tier's name means them, whoever speaks; any other name as it is."""
    kind = parse_name(name).kind
    return kind if kind in SYNONYMS else name


def find_tier(alignment: Alignment, name: str) -> Tier | None:
    """The tier that a name asks for, under its standard name; None where there is none.

    Taken is the tier of that very name; else the one that means the same. Where only speakers have tiers of the kind,
    and the name does not say whose, they become one tier without its silences. A speaker's tier is, where the
    alignment tells no speakers apart, the one that there is.

    Raises:
        AlignmentError: several tiers mean the same, or those of several speakers overlap.
    """
    if alignment.has(name):
        return Tier(standard_name(name), alignment.tier(name).segments)
    asked = parse_name(name)
    same = [tier for tier in alignment.tiers if parse_name(tier.name).kind == asked.kind]
    shared = [tier for tier in same if not parse_name(tier.name).speaker]
    own = [tier for tier in same if parse_name(tier.name).speaker == asked.speaker] if asked.speaker else []
    if asked.speaker and not own and len(shared) < len(same):
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
    """The segments of several speakers in order of time, without silences."""
    said: list[tuple[Segment, str]] = [(s, t.name) for t in tiers for s in t if s.label not in SILENCE]
    said.sort(key=lambda one: (one[0].start, one[0].end))
    for (a, first), (b, second) in pairwise(said):
        if b.start < a.end - _NOISE_S:
            raise AlignmentError(
                f"tiers {first!r} and {second!r} overlap ({a.label!r} ends at {a.end:g} s, {b.label!r} starts at "
                f"{b.start:g} s) and cannot be read as one tier {name!r}: choose one by its whole name."
            )
    spans = [(s.label, s.start, s.end, s.score) for s, _ in said]
    return tier_from_spans(name, spans, max((s.end for s, _ in said), default=0.0))


def _listed(tiers: Sequence[Tier]) -> str:
    *most, last = (repr(tier.name) for tier in tiers)
    return f"{', '.join(most)} and {last}"
