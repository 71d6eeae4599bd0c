"""Matching of recordings with a reference: time maps, and the reference's tiers carried over."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

import isotone
from isotone import audio as sound
from isotone.alignment import Alignment
from isotone.batch.inputs import absolute
from isotone.batch.keys import result_key
from isotone.batch.options import Target
from isotone.batch.outcome import Outcome
from isotone.batch.runs import run
from isotone.batch.work import Done, Inputs, Job, Own, Work
from isotone.batch.writers import writers_for
from isotone.format.folder import beside, read_beside, read_file
from isotone.warping import Match, Matcher, refined

#: Formats of time maps, and the suffixes of their files.
MAPS = {"csv": ".map.csv", "json": ".map.json"}


@dataclass(frozen=True)
class Reference:
    """A labelled recording.

    Attributes:
        audio: Its file.
        labels: Its tiers; None where there are none.
        files: The files of the labels.
    """

    audio: Path
    labels: Alignment | None
    files: tuple[Path, ...]

    @classmethod
    def of(cls, audio: Path, labels: Path | None) -> Reference:
        """Find the labels of a recording: those given, or those beside it.

        Raises:
            OSError: the recording or the labels are missing.
            ValueError: labels that cannot be read, or of several recordings.
        """
        if not audio.is_file():
            raise FileNotFoundError(f"No recording {audio}: the reference is one audio file.")
        if labels is None:
            return cls(audio, read_beside(audio), tuple(beside(audio)))
        if not labels.is_file():
            raise FileNotFoundError(
                f"No labels at {labels}: give one file, or none for the file beside {audio}."
            )
        found = list(read_file(labels).alignments.values())
        if len(found) != 1:
            raise ValueError(f"{labels} has the labels of {len(found)} recordings; expected those of one.")
        return cls(audio, found[0], (labels,))


def match_files(
    reference: Path,
    audio: Sequence[Path],
    matcher: Matcher,
    target: Target,
    *,
    labels: Path | None = None,
    maps: Sequence[str] = ("csv",),
    only: str = "*",
) -> Outcome:
    """Match recordings with a reference; write a time map of each, and the reference's tiers at its times.

    Args:
        reference: One audio file.
        audio: Files or folders of others.
        matcher: The method.
        target: Folder and formats of the tiers.
        labels: The file of the reference's labels. Default: the file beside it, if any. Without labels there are only
            time maps.
        maps: Formats of the time maps, of :data:`MAPS`.
        only: Pattern of the names of files to match, such as ``sa1.*``. The reference itself is left out.

    Raises:
        ValueError: formats or labels that cannot be used.
        OutputConflict: files that isotone did not write would be overwritten.
        OSError: a recording, the labels or a folder is missing.
        LookupError: there is no such format.
    """
    target.check()
    if unknown := [name for name in maps if name not in MAPS]:
        raise ValueError(f"No time map {unknown[0]!r}; there are {', '.join(MAPS)}.")
    if all(absolute(path) == absolute(reference) for path in audio):
        raise ValueError(
            f"{reference} is the reference, and is not matched with itself: name other recordings."
        )
    found = Reference.of(reference, labels)
    if found.labels is None and not maps:
        raise ValueError(f"Nothing to write: {reference} has no labels beside it, and no time map is wanted.")
    return run(
        audio,
        target,
        lambda: Matching(found, matcher, target, maps),
        lambda path: fnmatchcase(path.name, only) and absolute(path) != absolute(reference),
    )


class Matching(Work):
    """Matching with a reference; see :func:`match_files`."""

    command = "match"

    def __init__(self, reference: Reference, matcher: Matcher, target: Target, maps: Sequence[str]) -> None:
        self.reference = reference
        self.matcher = matcher
        self.sample_rate = matcher.features.sample_rate
        labels = reference.labels
        self.writers = writers_for(target.formats, [t.name for t in labels.tiers]) if labels else {}
        self.suffixes = {name: writer.suffix for name, writer in self.writers.items()}
        self.suffixes |= {f"map {name}": MAPS[name] for name in maps}
        self._vectors = matcher.vectors(sound.load(reference.audio, self.sample_rate))

    def inputs(self, recording: Path, own: Own) -> Inputs:
        """Return the reference and its labels."""
        labels = {f"labels {file.suffix}": file for file in self.reference.files}
        return Inputs({"reference": self.reference.audio, **labels})

    def key(self, digests: Mapping[str, str]) -> str:
        """See :meth:`Work.key`."""
        return result_key(self.matcher.features.model, digests, self.matcher.values())

    def run(self, job: Job, samples: np.ndarray) -> Done:
        """Match a recording."""
        found = self.matcher.match(self._vectors, self.matcher.vectors(samples))
        seconds = len(samples) / self.sample_rate
        contents = {}
        if self.writers and self.reference.labels is not None:
            times = refined(found.map, self.reference.labels, samples, self.sample_rate, self.matcher.refine)
            carried = replace(times.carry(self.reference.labels, job.id, seconds), audio=job.path)
            contents = {name: writer.dumps(carried).encode() for name, writer in self.writers.items()}
        contents["map csv"] = _csv(found).encode()
        contents["map json"] = self._json(found, job.path, seconds).encode()
        return Done({name: contents[name] for name in job.formats}, tuple(_warnings(found)))

    def _json(self, found: Match, path: Path, seconds: float) -> str:
        whole: dict[str, Any] = {
            "reference": self.reference.audio.name, "reference_s": self._vectors[1],
            "other": path.name, "other_s": seconds, **self.matcher.values(), "isotone": isotone.__version__,
            "mismatch": found.mismatch, "only_reference": found.only_reference, "only_other": found.only_other,
            "map": [[round(t, 4) for t in knot] for knot in found.map.knots()],
        }  # fmt: skip
        return json.dumps(whole, ensure_ascii=False) + "\n"


def _csv(found: Match) -> str:
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["reference_s", "other_s"])
    rows.writerows([f"{a:.4f}", f"{b:.4f}"] for a, b in found.map.knots())
    return file.getvalue()


def _warnings(found: Match) -> list[str]:
    """Describe what does not match."""
    out = [found.doubtful] if found.doubtful else []
    sides = {
        "of the reference is not in it": found.only_reference,
        "of it is not in the reference": found.only_other,
    }
    for what, stretches in sides.items():
        if stretches:
            out.append(f"{', '.join(f'{a:.1f} to {b:.1f} s' for a, b in stretches)} {what}")
    return out
