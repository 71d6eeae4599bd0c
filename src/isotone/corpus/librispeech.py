"""LibriSpeech: a thousand hours of read English (OpenSLR 12)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from isotone.audio import info, is_audio, without_copies
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

#: Splits by ``test_speakers``.
_OF_SPEAKERS = ("train", "test")

_LINE = re.compile(r"(\d+-\d+-\d+)\s+(\S.*)")


class LibriSpeechCorpus(RowCorpus):
    """LibriSpeech as it comes from OpenSLR: ``train-clean-100/SPEAKER/CHAPTER/SPEAKER-CHAPTER-NUMBER.flac``.

    The splits are named by hours of training speech: ``train-100``, ``train-360``, ``train-460`` (the first two parts)
    and ``train-960`` (all three). Every part is a split by its own name as well: ``dev-clean``, ``dev-other``,
    ``test-clean``, ``test-other``, ``train-clean-100`` ...

    Texts are not changed: upper case, letters and apostrophes, no punctuation; tokenizers convert the case. There are
    no times.

    Of a part of the corpus, ``test_speakers`` makes the splits ``train`` and ``test``, of whatever parts there are.
    Recordings need not be FLAC: any suffix of audio will do (:func:`isotone.audio.is_audio`).

    Args:
        root: The folder ``LibriSpeech`` or its parent folder.
        test_speakers: Numbers of the speakers of ``test``; all others are ``train``. Default: there are no such splits.

    Attributes:
        counts: ``words``, and ``words_with_other_characters`` than A to Z and the apostrophe (0 in the official
            corpus).
    """

    title = "LibriSpeech"

    def __init__(self, root: str | Path, test_speakers: Sequence[str | int] | None = None) -> None:
        super().__init__(root)
        self.test_speakers = None if test_speakers is None else {str(speaker) for speaker in test_speakers}

    def parts(self, split: str) -> Iterator[tuple[str, Callable[[], Part]]]:
        """Iterate over the chapters of a split, by part, speaker and number.

        Raises:
            FileNotFoundError: a part of the split is missing, or there is none.
            ValueError: no such split, or no such test speaker.
        """
        speakers = [(folder, _numbered(folder)) for folder in self.sources(split)]
        if split in _OF_SPEAKERS:
            everybody = {speaker.name for _, found in speakers for speaker in found}
            if absent := sorted(self._tested - everybody, key=int):
                raise ValueError(
                    f"{self._where} has no speakers {absent}; it has {sorted(everybody, key=int)}."
                )
            wanted = self._tested if split == "test" else everybody - self._tested
            speakers = [(folder, [s for s in found if s.name in wanted]) for folder, found in speakers]
        for _, found in speakers:
            chapters = [
                (int(speaker.name), int(chapter.name), chapter)
                for speaker in found
                for chapter in _numbered(speaker)
            ]
            for speaker, number, chapter in sorted(chapters):
                yield f"{speaker}-{number}", partial(_read_chapter, chapter, f"{speaker}-{number}")

    def sources(self, split: str) -> Sequence[Path]:
        """Return the folders of a split's parts; raises as :meth:`parts`."""
        known = (*SPLITS, *([] if self.test_speakers is None else _OF_SPEAKERS))
        if split not in known:
            raise ValueError(f"LibriSpeech has no split {split!r}; it has {', '.join(known)}.")
        there = {part: found for part in PARTS if (found := self._folder(part))}
        wanted = SPLITS.get(split) or tuple(there) or PARTS[:1]
        for part in wanted:
            if part not in there:
                folders = f"{self.root / part} or {self.root / 'LibriSpeech' / part}"
                raise FileNotFoundError(
                    f"LibriSpeech: no folder {folders}; of its parts there {'is' if there else 'are'} "
                    f"{', '.join(there) or 'none'}. Get {part}.tar.gz from https://www.openslr.org/12 and unpack it "
                    "there."
                )
        return [there[part] for part in wanted]

    @property
    def _tested(self) -> set[str]:
        return self.test_speakers or set()

    def _folder(self, part: str) -> Path | None:
        folders = [self.root / part, self.root / "LibriSpeech" / part]
        return next((p for p in folders if p.is_dir()), None)


def _numbered(folder: Path) -> list[Path]:
    return [p for p in folder.iterdir() if p.name.isdecimal() and p.is_dir()]


def _recordings(folder: Path) -> dict[str, Path]:
    """Return the recordings by their id; of several of one id the FLAC, which is the original."""
    found = without_copies(p for p in folder.iterdir() if is_audio(p))
    return {p.stem: p for p in sorted(found, key=lambda p: (p.suffix.lower() == ".flac", p.name))}


def _read_chapter(folder: Path, name: str) -> Part:
    """Read the utterances of a chapter in order; malformed lines and lines without recordings are skipped."""
    texts = folder / f"{name}.trans.txt"
    part = Part()
    recordings = _recordings(folder)
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
