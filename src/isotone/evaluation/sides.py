"""The two sides of an evaluation, hypothesis and reference, as they lie on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from isotone.alignment import Alignment, AlignmentError, Segment, Tier
from isotone.evaluation.ids import ambiguous
from isotone.format.folder import Folder, read_file, read_folder
from isotone.format.tier_names import OverlapError, find_tier, parse_name, standard_name

# Seconds between speakers who are compared one after the other, so that no collar reaches across.
_APART_S = 100.0

#: Folder of alignments that a run writes.
RUN_ALIGNMENTS = "alignments"


def is_run(path: Path) -> bool:
    """Return whether a folder was written by a run."""
    return (path / RUN_ALIGNMENTS).is_dir()


def read_side(path: Path, tier: str) -> Folder:
    """Read the alignments of a file, a folder or a run.

    Args:
        path: A file, a folder or a run. A CTM file may hold many alignments.
        tier: The tier that is needed; also the name of a tier whose file has none.

    Raises:
        FileNotFoundError: there is nothing of that name.
        FormatError: a single file cannot be read.
    """
    if is_run(path):
        path = path / RUN_ALIGNMENTS
    if path.is_dir():
        return read_folder(path, tier)
    if not path.exists():
        raise FileNotFoundError(f"Expected a file or a folder of alignments; there is no {path}.")
    return read_file(path, tier)


def both_with_tier(
    predicted: Alignment, reference: Alignment, tier: str
) -> tuple[Alignment | None, Alignment | None]:
    """Reduce two alignments to one tier, see :func:`with_tier`; speakers who talk at once come one after the other.

    Raises:
        AlignmentError: speakers talk at once, and the two have different ones.
    """
    try:
        return with_tier(predicted, tier), with_tier(reference, tier)
    except OverlapError as error:
        sides = [_by_speaker(alignment, tier) for alignment in (predicted, reference)]
        if sides[0].keys() != sides[1].keys():
            names = " and ".join(", ".join(map(repr, side)) or "none" for side in sides)
            raise AlignmentError(f"{error} Its speakers are not those of the other side: {names}") from None
    apart = max(predicted.duration, reference.duration) + _APART_S
    pair = [
        Alignment(
            alignment.id,
            apart * len(side),
            (Tier(standard_name(tier), tuple(_in_turn([side[name] for name in sorted(side)], apart))),),
        )
        for alignment, side in zip((predicted, reference), sides)
    ]
    return pair[0], pair[1]


def _by_speaker(alignment: Alignment, tier: str) -> dict[str, Tier]:
    """Return the tiers of a kind by their speakers, in lower case."""
    named = [(parse_name(one.name), one) for one in alignment.tiers]
    return {name.speaker: one for name, one in named if name.kind == parse_name(tier).kind and name.speaker}


def _in_turn(tiers: Sequence[Tier], apart: float) -> Iterator[Segment]:
    """Iterate over the segments of tiers, each so many seconds later than the one before."""
    for number, tier in enumerate(tiers):
        for segment in tier:
            yield replace(segment, start=segment.start + number * apart, end=segment.end + number * apart)


def with_tier(alignment: Alignment, tier: str) -> Alignment | None:
    """Reduce an alignment to one tier, under its standard name; None where it has no such tier."""
    found = find_tier(alignment, tier)
    return None if found is None else Alignment(alignment.id, alignment.duration, (found,))


def check_speaker(sides: Iterable[Folder], tier: str) -> None:
    """Check that the requested tier's speaker is on at least one side, so that a mistyped name is an error.

    Raises:
        ValueError: no tier has that name.
    """
    requested = parse_name(tier)
    names = {t.name for side in sides for a in side.alignments.values() for t in a.tiers}
    if requested.speaker and names and requested not in map(parse_name, names):
        raise ValueError(
            f"No file has a tier {tier!r}; there are {', '.join(map(repr, sorted(names)[:10]))}."
        )


def describe_lack(name: str, side: Folder, id: str, tier: str) -> str:
    """Describe the files of an utterance without the tier, and the tiers that they have."""
    there = (f"{file.name} has {_listed(tiers)}" for file, tiers in side.lacking.get(id, {}).items())
    return f"the {name} has no tier {tier!r} ({', '.join(there)})"


def describe_nothing(
    paths: tuple[Path, Path],
    sides: tuple[Folder, Folder],
    tier: str,
    matches: Collection[tuple[str, str]],
    skipped: Sequence[tuple[str, str]],
) -> str:
    """Explain why two sides share no utterance that can be scored, and what to do."""
    for path, side in zip(paths, sides):
        if not side.alignments:
            why = [str(error) for _, error in (*side.errors, *side.foreign)]
            more = f" and {len(why) - 3} more" if len(why) > 3 else ""
            return (
                f"{path} has no alignment that can be read: {'; '.join(why[:3])}{more}"
                if why
                else (f"{path} has no files of alignments (TextGrid, CTM, JSON, CSV, .phn, .wrd).")
            )
    if not matches:
        hyp, ref = (side.alignments for side in sides)
        return (
            f"{paths[0]} and {paths[1]} share no utterance: ids {_some(hyp)} and {_some(ref)}. Files match by their "
            f"paths without suffix, or where one ends like the other (fvmh0_sa1, dr1-fvmh0/sa1)."
            f"{_describe_ambiguous(hyp, ref)}"
        )
    if skipped and not any(side.lacking for side in sides):
        return f"{paths[0]} and {paths[1]} share no utterance that can be scored: {': '.join(skipped[0])}"
    tiers = "; ".join(f"{path} has {_tiers_of(side)}" for path, side in zip(paths, sides) if side.lacking)
    broken = [str(error) for side in sides for _, error in side.errors]
    return (
        f"Of the utterances that {paths[0]} and {paths[1]} share ({len(matches)}), none has a tier {tier!r} on both "
        f"sides: {tiers}. "
        f"Choose a tier with --tier.{f' Also: {broken[0]}' if broken else ''}"
    )


def _describe_ambiguous(hyp: Mapping[str, Alignment], ref: Mapping[str, Alignment]) -> str:
    for id, partners in ambiguous(hyp, ref):
        return f" {id!r} could be any of {_some(partners)}: give the folder that it belongs to."
    return ""


def _tiers_of(side: Folder) -> str:
    """Describe the tiers of files, with the number of files per suffix."""
    counts = Counter((f.suffix, names) for files in side.lacking.values() for f, names in files.items())
    return ", ".join(
        f"{_listed(names)} in {n} {suffix} file{'s' if n > 1 else ''}"
        for (suffix, names), n in counts.most_common(3)
    )


def _listed(names: Collection[str]) -> str:
    return ", ".join(map(repr, names)) or "no tiers"


def _some(ids: Iterable[str]) -> str:
    names = sorted(map(repr, ids))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") or "none"
