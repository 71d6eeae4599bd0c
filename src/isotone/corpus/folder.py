"""Any folder of recordings with transcripts beside them."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from isotone.alignment import SILENCE, Tier, tier_from_spans
from isotone.audio import AUDIO_SUFFIXES, DECODED_SUFFIXES, info, without_copies
from isotone.corpus.rows import Part, RowCorpus, recording_row
from isotone.format.tier_names import find_tier

log = logging.getLogger(__name__)

MEDIA_SUFFIXES = AUDIO_SUFFIXES | DECODED_SUFFIXES
TEXT_SUFFIXES = (".txt", ".lab")
SPLITS = ("train", "dev", "test")

#: Names of folders that are splits.
SPLIT_FOLDERS = {
    "train": "train", "training": "train", "dev": "dev", "valid": "dev", "validation": "dev", "test": "test",
}  # fmt: skip


class FolderCorpus(RowCorpus):
    """Recordings with a ``.txt``, ``.lab`` or ``.TextGrid`` of the same name beside each, in nested folders.

    Files that libsndfile cannot read, such as films, are decoded if ffmpeg or torchcodec is installed; they are ignored
    beside plain audio of the same name. A TextGrid gives times from its tiers ``words`` and ``phones``, and the text if
    there is no text file. (Tiers may have any name that :func:`isotone.format.tier_names.find_tier` knows; others are
    ignored.) Of a ``.txt`` and a ``.lab`` file the ``.txt`` is read, with a warning. An utterance's id is its path
    below the root without the suffix; its speaker is the name of its folder.

    The splits are the folders ``train``, ``dev`` (or ``valid``, ``validation``) and ``test`` directly below the root;
    recordings outside of them are in ``all`` only. Without such folders the id of an utterance decides, so that new
    recordings do not move the others.

    Args:
        root: The folder.
        test_share: Share of the utterances in ``test``, and again in ``dev``, if there are no folders of splits.

    Raises:
        ValueError: ``test_share`` is not from 0 to 0.5.
    """

    def __init__(self, root: str | Path, test_share: float = 0.1) -> None:
        if not 0 <= test_share <= 0.5:
            raise ValueError(f"test_share is the share of test and of dev, from 0 to 0.5; got {test_share}.")
        super().__init__(root)
        self.test_share = test_share

    def parts(self, split: str) -> Iterator[tuple[str, Callable[[], Part]]]:
        """Iterate over the recordings of a split (``train``, ``dev``, ``test`` or ``all``), in sorted order.

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
        chosen = {
            id: files
            for id, files in recordings.items()
            if split in ("all", self._folder_split(id) if named else self._hash_split(id))
        }
        self._warn_of_unread(chosen)
        for id, files in chosen.items():
            yield id, partial(self._part, id, files)

    def _warn_of_unread(self, recordings: Mapping[str, Mapping[str, Path]]) -> None:
        """Log that recordings have several transcripts, of which one is read."""
        texts = [[files[s].name for s in TEXT_SUFFIXES if s in files] for files in recordings.values()]
        if several := [names for names in texts if len(names) > 1]:
            read, *unread = several[0]
            more = f" (and the like for {len(several) - 1} more)" if len(several) > 1 else ""
            log.warning(
                "%s: a transcript is %s, not %s beside it%s.", self._where, read, " or ".join(unread), more
            )

    def _recordings(self) -> dict[str, dict[str, Path]]:
        """Return the files of every id, by suffix in lower case."""
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
        draw = int.from_bytes(digest, "big") / 2**64  # uniform in [0, 1)
        return "test" if draw < self.test_share else "dev" if draw < 2 * self.test_share else "train"

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
    """Read the tiers ``words`` and ``phones``, if the file has them; silent words become gaps."""
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
