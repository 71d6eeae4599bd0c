"""The two sides of an evaluation, hypothesis and reference, as they lie on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from isotone.alignment import Alignment
from isotone.evaluation.ids import ambiguous
from isotone.format.folder import Folder, read_file, read_folder
from isotone.format.tier_names import find_tier, parse_name

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
    paths: tuple[Path, Path], sides: tuple[Folder, Folder], tier: str, matches: Collection[tuple[str, str]]
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
