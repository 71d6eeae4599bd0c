"""LibriSpeech: a thousand hours of read English (OpenSLR 12)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from isotone.audio import info
from isotone.corpus.rows import CorpusError, Part, RowCorpus, recording_row

#: Parts of the corpus; each is a folder and an archive.
PARTS = (
    "train-clean-100", "train-clean-360", "train-other-500", "dev-clean", "dev-other", "test-clean", "test-other",
)  # fmt: skip

#: The parts of each split.
SPLITS: dict[str, tuple[str, ...]] = {
    "train-100": PARTS[:1],
    "train-360": PARTS[1:2],
    "train-460": PARTS[:2],
    "train-960": PARTS[:3],
    **{part: (part,) for part in PARTS},
}

_LINE = re.compile(r"(\d+-\d+-\d+)\s+(\S.*)")


class LibriSpeechCorpus(RowCorpus):
    """LibriSpeech as it comes from OpenSLR: ``train-clean-100/SPEAKER/CHAPTER/SPEAKER-CHAPTER-NUMBER.flac``.

    The splits are named by hours of training speech: ``train-100``, ``train-360``, ``train-460`` (the first two parts)
    and ``train-960`` (all three). Every part is a split by its own name as well: ``dev-clean``, ``dev-other``,
    ``test-clean``, ``test-other``, ``train-clean-100`` ...

    Texts are not changed: upper case, letters and apostrophes, no punctuation; tokenizers convert the case. There are
    no times.

    Args:
        root: The folder ``LibriSpeech`` or its parent folder.

    Attributes:
        counts: ``words``, and ``words_with_other_characters`` than A to Z and the apostrophe (0 in the official
            corpus).
    """

    title = "LibriSpeech"

    def parts(self, split: str) -> Iterator[tuple[str, Callable[[], Part]]]:
        """Iterate over the chapters of a split, by part, speaker and number.

        Raises:
            FileNotFoundError: a part of the split is missing.
            ValueError: no such split.
        """
        for folder in self.sources(split):
            chapters = [
                (int(speaker.name), int(chapter.name), chapter)
                for speaker in _numbered(folder)
                for chapter in _numbered(speaker)
            ]
            for speaker, number, chapter in sorted(chapters):
                yield f"{speaker}-{number}", partial(_read_chapter, chapter, f"{speaker}-{number}")

    def sources(self, split: str) -> Sequence[Path]:
        """Return the folders of a split's parts; raises as :meth:`parts`."""
        if split not in SPLITS:
            raise ValueError(f"LibriSpeech has no split {split!r}; it has {', '.join(SPLITS)}.")
        return [self._folder(part) for part in SPLITS[split]]

    def _folder(self, part: str) -> Path:
        folders = [self.root / part, self.root / "LibriSpeech" / part]
        if found := next((p for p in folders if p.is_dir()), None):
            return found
        there = [p for p in PARTS if any((folder.parent / p).is_dir() for folder in folders)]
        raise FileNotFoundError(
            f"LibriSpeech: no folder {folders[0]} or {folders[1]}; of its parts there {'is' if there else 'are'} "
            f"{', '.join(there) or 'none'}. Get {part}.tar.gz from https://www.openslr.org/12 and unpack it there."
        )


def _numbered(folder: Path) -> list[Path]:
    return [p for p in folder.iterdir() if p.name.isdecimal() and p.is_dir()]


def _read_chapter(folder: Path, name: str) -> Part:
    """Read the utterances of a chapter in order; malformed lines and lines without recordings are skipped."""
    texts = folder / f"{name}.trans.txt"
    part = Part()
    recordings = {p.stem: p for p in folder.glob("*.flac")}
    for number, line in enumerate(_lines(texts), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            reason = f"{texts}, line {number}: expected 'SPEAKER-CHAPTER-NUMBER TEXT'; got {line[:80]!r}."
            part.skipped.append((f"{name}, line {number}", reason))
            continue
        id, text = match.groups()
        path = recordings.pop(id, None)
        if path is None:
            reason = f"{texts}, line {number}: there is no {folder / id}.flac, or the line is there twice."
            part.skipped.append((id, reason))
            continue
        try:
            part.rows.append(recording_row(id, path, info(path).seconds, text, id.split("-")[0]))
        except (ValueError, OSError) as error:
            part.skipped.append((id, str(error)))
            continue
        words = text.split()
        part.counts["words"] += len(words)
        part.counts["words_with_other_characters"] += sum(not re.fullmatch("[A-Z']+", w) for w in words)
    part.skipped += [(id, f"{texts} has no line for it.") for id in sorted(recordings)]
    return part


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path}: expected UTF-8 text ({error.reason}); get the file again.") from None
