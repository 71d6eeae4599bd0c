"""Any folder of recordings with transcripts beside them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from isotone.alignment import SILENCE, Tier, tier_from_spans
from isotone.audio import AUDIO_SUFFIXES, DECODED_SUFFIXES, info, without_copies
from isotone.corpus.rows import Part, RowCorpus, recording_row
from isotone.format.tier_names import find_tier

MEDIA_SUFFIXES = AUDIO_SUFFIXES | DECODED_SUFFIXES
TEXT_SUFFIXES = (".txt", ".lab")
SPLITS = ("train", "dev", "test")

#: Names of folders that are the splits.
SPLIT_FOLDERS = {
    "train": "train", "training": "train", "dev": "dev", "valid": "dev", "validation": "dev", "test": "test",
}  # fmt: skip


class FolderCorpus(RowCorpus):
    """Recordings with a ``.txt``, ``.lab`` or ``.TextGrid`` of the same name beside each, in nested folders.

    What libsndfile does not read, films among it, is decoded where ffmpeg or torchcodec is; beside plain audio of its
    name it is left alone. A TextGrid gives times from its tiers ``words`` and ``phones`` (by any name that
    :func:`isotone.format.tier_names.find_tier` knows; others are ignored), and the text where there is no text file. An
    utterance's id is its path below the root without the file's ending, and its speaker the folder that it is in.

    The splits are the folders ``train``, ``dev`` (or ``valid``, ``validation``) and ``test`` directly below
    the root; what is outside of them is in ``all`` only. Without such folders an utterance's id decides, and
    adding recordings moves none of the others.

    Args:
        root: The folder.
        test_share: Share of the utterances in ``test``, and again in ``dev``, where no folders say so.

    Raises:
        ValueError: ``test_share`` is not from 0 to 0.5.
    """

    def __init__(self, root: str | Path, test_share: float = 0.1) -> None:
        if not 0 <= test_share <= 0.5:
            raise ValueError(f"test_share is the share of test and of dev, from 0 to 0.5; got {test_share}.")
        super().__init__(root)
        self.test_share = test_share

    def parts(self, split: str) -> Iterator[tuple[str, Callable[[], Part]]]:
        """The recordings of a split (``train``, ``dev``, ``test`` or ``all``), in sorted order.

        Raises:
            FileNotFoundError: no such folder, or no recordings in it.
            ValueError: no such split.
        """
        if split not in (*SPLITS, "all"):
            raise ValueError(f"A folder has no split {split!r}; it has {', '.join(SPLITS)} and all.")
        recordings = self._recordings()
        named = {self._folder_split(id) for id in recordings} - {None}
        if named and split != "all" and split not in named:
            there = ", ".join(sorted(str(n) for n in named))
            raise ValueError(f"{self.root} has no folder for the split {split!r}; it has {there}, and all.")
        for id, files in recordings.items():
            if split in ("all", self._folder_split(id) if named else self._hash_split(id)):
                yield id, partial(self._part, id, files)

    def _recordings(self) -> dict[str, dict[str, Path]]:
        """For every id its files, by suffix in lower case."""
        if not self.root.is_dir():
            raise FileNotFoundError(f"No folder {self.root}.")
        found: dict[str, dict[str, Path]] = {}
        for folder, _, names in os.walk(self.root):
            for name in sorted(names):
                path = Path(folder, name)
                suffix = path.suffix.lower()
                if name.startswith(".") or suffix not in {*MEDIA_SUFFIXES, *TEXT_SUFFIXES, ".textgrid"}:
                    continue
                id = path.relative_to(self.root).with_suffix("").as_posix()
                found.setdefault(id, {})[suffix] = path
        recordings = {id: files for id, files in sorted(found.items()) if files.keys() & MEDIA_SUFFIXES}
        if not recordings:
            raise FileNotFoundError(
                f"No recordings in {self.root}: looked for {' '.join(sorted(AUDIO_SUFFIXES))} and, to be decoded, "
                f"{' '.join(sorted(DECODED_SUFFIXES))} at any depth."
            )
        return recordings

    def _folder_split(self, id: str) -> str | None:
        top, *rest = id.split("/")
        return SPLIT_FOLDERS.get(top.lower()) if rest else None

    def _hash_split(self, id: str) -> str:
        digest = hashlib.blake2b(id.encode("utf-8", "surrogateescape"), digest_size=8).digest()
        place = int.from_bytes(digest, "big") / 2**64
        return "test" if place < self.test_share else "dev" if place < 2 * self.test_share else "train"

    def _part(self, id: str, files: Mapping[str, Path]) -> Part:
        return Part([self._row(id, files)])

    def _row(self, id: str, files: Mapping[str, Path]) -> dict[str, Any]:
        audio = without_copies(path for suffix, path in files.items() if suffix in MEDIA_SUFFIXES)
        if len(audio) > 1:
            raise ValueError(f"{[p.name for p in audio]} share a name and a transcript; keep one of them.")
        texts = [files[suffix] for suffix in TEXT_SUFFIXES if suffix in files]
        if not texts and ".textgrid" not in files:
            raise ValueError("no text: expected a .txt, .lab or .TextGrid file of the same name beside it.")
        duration = info(audio[0]).seconds
        tiers = _read_textgrid(files[".textgrid"], duration) if ".textgrid" in files else {}
        words, phones = (tiers.get(name, Tier(name, ())) for name in ("words", "phones"))
        text = _read_text(texts[0]) if texts else " ".join(words.labels)
        if not text:
            where = texts[0] if texts else f"{files['.textgrid']} (its tier 'words')"
            raise ValueError(f"no text: {where} has no words.")
        parents = id.split("/")[:-1]
        if parents and self._folder_split(id):
            parents = parents[1:]
        speaker = parents[-1] if parents else ""
        return recording_row(id, audio[0], duration, text, speaker, words, phones)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error.reason}); save the file as UTF-8.") from None


def _read_textgrid(path: Path, duration: float) -> dict[str, Tier]:
    """Tiers ``words`` and ``phones``, those that there are; silent words are gaps."""
    from isotone.format.reading import decode
    from isotone.registries import formats

    try:
        alignment = formats.build("textgrid").loads(decode(path.read_bytes()), path.stem)
        found = {name: find_tier(alignment, name) for name in ("words", "phones")}
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    tiers: dict[str, Tier] = {}
    for name, tier in found.items():
        if tier is None:
            continue
        segments = [s for s in tier if s.label.strip() and not (name == "words" and s.label in SILENCE)]
        if segments and segments[-1].start >= duration:
            raise ValueError(
                f"{path}: {segments[-1].label!r} begins at {segments[-1].start} s, but the audio ends at "
                f"{duration:.3f} s. Is this the TextGrid of another recording?"
            )
        spans = [(s.label.strip(), s.start, s.end, s.score) for s in segments]
        tiers[name] = tier_from_spans(name, spans, duration)
    return tiers
