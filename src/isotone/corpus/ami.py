"""The AMI corpus: a hundred hours of meetings in English, with the time of every word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from isotone.alignment import Tier, tier_from_spans
from isotone.audio import info
from isotone.corpus import tier_column
from isotone.corpus.nxt import Item, Participant, Turn, Words, read_participants, read_turns
from isotone.corpus.rows import CorpusError, Part, RowCorpus

#: Meetings of dev and eval in the partition "full-corpus-ASR"; a name without a final letter means all meetings of
#: a series. All other meetings belong to train.
DEV = ("ES2011", "IS1008", "TS3004", "IB4001", "IB4002", "IB4003", "IB4004", "IB4010", "IB4011")
EVAL = ("ES2004", "IS1009", "TS3003", "EN2002")

SPLITS = ("train", "dev", "eval", "test", "all")


class AMICorpus(RowCorpus):
    """AMI's headset recordings (IHM) with the manual annotations of ``ami_public_manual_1.6.2``.

    An utterance is a transcribed segment of a speaker's headset. The splits are those of the partition
    full-corpus-ASR: ``train``, ``dev`` (18 meetings), ``eval`` (16 meetings, also named ``test``), and ``all``.

    Rules for texts, with their names in :attr:`counts`:

    - Punctuation (``punctuation``) and everything else that is not a word, such as vocal sounds and gaps
      (``other_items``), is left out. Segments without words are not utterances (``segments_without_words``).
    - Truncated words are kept as written (``truncated_words``), or left out with ``truncated: drop``. Either way they
      are in the audio.
    - Spelled letters are written ``T_V_``; the last underscore is removed (``spelled_words``). A tokenizer separates
      them: t v.
    - The tier of word times is empty for segments in which the time of a word is unknown or outside the segment
      (``segments_without_word_times``): against a partial reference, correct words would count as errors.

    Letters keep their case; tokenizers convert it.

    Args:
        root: Folder of the recordings ``ES2002a/audio/ES2002a.Headset-0.wav``, or its parent folder, which contains
            ``amicorpus``.
        annotations: Folder with ``words``, ``segments`` and ``corpusResources``. Default: the root, or a folder in
            it whose name begins with ``ami_public_manual`` or is ``annotations``.
        truncated: ``keep`` or ``drop`` truncated words.

    Raises:
        ValueError: no such option for truncated words.
    """

    title = "AMI"

    def __init__(
        self,
        root: str | Path,
        annotations: str | Path | None = None,
        truncated: Literal["keep", "drop"] = "keep",
    ) -> None:
        if truncated not in ("keep", "drop"):
            raise ValueError(f"AMI's truncated words are to keep or to drop; got {truncated!r}.")
        super().__init__(root)
        self.annotations = None if annotations is None else Path(annotations)
        self.truncated = truncated

    def parts(self, split: str) -> Iterator[tuple[str, Callable[[], Part]]]:
        """Iterate over the headsets of a split, by meeting and agent.

        Raises:
            FileNotFoundError: no recordings or no annotations.
            ValueError: no such split.
        """
        if split not in SPLITS:
            raise ValueError(f"AMI has no split {split!r}; it has {', '.join(SPLITS)}.")
        audio, annotations = self._folders()
        resources = annotations / "corpusResources" / "meetings.xml"
        people = read_participants(resources) if resources.is_file() else {}
        for path in sorted((annotations / "segments").glob("*.*.segments.xml")):
            meeting, agent = path.name.split(".")[:2]
            if split != "all" and split_of(meeting) != split.replace("test", "eval"):
                continue
            who = people.get((meeting, agent)) or _by_letter(agent)
            wav = audio / meeting / "audio" / f"{meeting}.Headset-{who.channel}.wav"
            yield (
                f"{meeting}.{agent}",
                partial(self._read_headset, wav, path, who.name or f"{meeting}_{agent}"),
            )

    def sources(self, split: str) -> Sequence[Path]:
        """Return the folders of the recordings and of the annotations."""
        return list(dict.fromkeys(self._folders()))

    def _folders(self) -> tuple[Path, Path]:
        if not self.root.is_dir():
            raise FileNotFoundError(f"AMI: no folder {self.root}; give the one that holds amicorpus.")
        audio = next((p for p in (self.root / "amicorpus", self.root) if any(p.glob("*/audio"))), None)
        if audio is None:
            raise FileNotFoundError(
                f"AMI: no recordings in {self.root}: looked for amicorpus/ES2002a/audio/ES2002a.Headset-0.wav and "
                "the like, and without amicorpus."
            )
        folders = [self.annotations] if self.annotations else [self.root, self.root / "annotations"]
        if not self.annotations:
            folders += sorted(self.root.glob("ami_public_manual*"))
        found = next((p for p in folders if (p / "words").is_dir() and (p / "segments").is_dir()), None)
        if found is None:
            raise FileNotFoundError(
                f"AMI: no annotations: looked for the folders words and segments in "
                f"{', '.join(str(p) for p in folders)}. Unpack ami_public_manual_1.6.2.zip, and name its folder with "
                "annotations=..."
            )
        return audio, found

    def _read_headset(self, wav: Path, segments: Path, speaker: str) -> Part:
        meeting, agent = segments.name.split(".")[:2]
        duration = info(wav).seconds
        words = Words(segments.parent.parent / "words" / f"{meeting}.{agent}.words.xml")
        part = Part()
        for number, turn in enumerate(read_turns(segments), 1):
            try:
                row = self._row(turn, words.of(turn), duration, part.counts)
            except ValueError as error:
                part.skipped.append((f"{meeting}_{agent}, segment {number}", f"{segments}: {error}"))
                continue
            if row:
                id = f"{meeting}_{agent}_{_centiseconds(turn.start)}_{_centiseconds(turn.end)}"
                part.rows.append({"id": id, "audio": str(wav.absolute()), "speaker": speaker, **row})
        return part

    def _row(
        self, turn: Turn, items: Sequence[Item], duration: float, counts: Counter[str]
    ) -> dict[str, Any]:
        """Return the times, text and tiers of a segment; empty for a segment without words."""
        start, end = turn.start, min(turn.end, duration)
        if not 0 <= start < end:
            raise CorpusError(f"no audio lies from {start} s to {turn.end} s; it lasts {duration:.3f} s.")
        words = [(_spelling(item.text), item) for item in items if self._is_word(item)]
        words = [(text, item) for text, item in words if text]
        counts.update(_counted(items, words))
        if not words:
            counts["segments_without_words"] += 1
            return {}
        tier = Tier("words", ())
        if all(item.span and item.span[0] < end and item.span[1] > start for _, item in words):
            spans = [
                (text, item.span[0] - start, item.span[1] - start, None) for text, item in words if item.span
            ]
            tier = tier_from_spans("words", spans, end - start)
        else:
            counts["segments_without_word_times"] += 1
        return {
            "start": start,
            "end": end,
            "text": " ".join(text for text, _ in words),
            "words": tier_column(tier),
            "phones": tier_column(Tier("phones", ())),
        }

    def _is_word(self, item: Item) -> bool:
        kept = self.truncated == "keep" or not item.truncated
        return item.kind == "w" and not item.punctuation and kept


def split_of(meeting: str) -> str:
    """Return the split of a meeting in the partition full-corpus-ASR: train, dev or eval."""
    series = re.sub(r"[a-z]$", "", meeting)
    return "dev" if series in DEV else "eval" if series in EVAL else "train"


def _by_letter(agent: str) -> Participant:
    return Participant("", ord(agent[:1] or "A") - ord("A"))


def _spelling(text: str) -> str:
    """Return a word as it is in texts: without final underscores, and empty if nothing in it is spoken."""
    text = text.rstrip("_")
    return text if any(c.isalnum() for c in text) else ""


def _counted(items: Sequence[Item], words: Sequence[tuple[str, Item]]) -> Mapping[str, int]:
    spoken = [item for item in items if item.kind == "w"]
    return {
        "words": len(words),
        "truncated_words": sum(item.truncated for item in spoken),
        "spelled_words": sum(text != item.text for text, item in words),
        "punctuation": sum(item.punctuation for item in spoken),
        "other_items": len(items) - len(spoken),
    }


def _centiseconds(seconds: float) -> str:
    return f"{round(seconds * 100):07d}"
