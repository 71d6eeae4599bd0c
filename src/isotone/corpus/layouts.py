"""Layouts of synthetic corpora on disk: the files of real corpora."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from xml.sax.saxutils import escape

import numpy as np
import soundfile

from isotone.corpus.voices import SAMPLE_RATE, Utterance


class Layout(ABC):
    """Writer of utterances in the files of a corpus.

    Args:
        root: An empty folder.
        train: Names of the speakers of train.
        test: Names of the speakers of test and dev, alternating.
    """

    def __init__(self, root: Path, train: Sequence[str], test: Sequence[str]) -> None:
        self.root = root
        self.train = list(train)
        self.dev = list(test[1::2])
        self.test = list(test[::2])

    @abstractmethod
    def add(self, utterance: Utterance) -> None:
        """Write an utterance, or keep it until :meth:`finish`."""

    def finish(self) -> None:
        """Write the utterances that were kept."""
        return


class TimitLayout(Layout):
    """``TRAIN/DR1/<speaker>/SX<n>`` with ``.WAV`` (RIFF, 16 bits), ``.PHN``, ``.WRD`` and ``.TXT``."""

    def add(self, utterance: Utterance) -> None:
        """Write the four files of an utterance."""
        part = "TRAIN" if utterance.speaker in self.train else "TEST"
        stem = self.root / part / "DR1" / utterance.speaker / f"SX{utterance.number}"
        stem.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(
            stem.with_suffix(".WAV"), utterance.samples, SAMPLE_RATE, subtype="PCM_16", format="WAV"
        )
        texts = {
            ".PHN": "".join(f"{m.start} {m.end} {m.label}\n" for m in utterance.phones),
            ".WRD": "".join(f"{m.start} {m.end} {m.label}\n" for m in utterance.words),
            ".TXT": f"0 {len(utterance.samples)} {utterance.text}\n",
        }
        for suffix, text in texts.items():
            if text:  # the words' times may not be known
                stem.with_suffix(suffix).write_text(text, "utf-8")


class LibriSpeechLayout(Layout):
    """``LibriSpeech/train-clean-100/1000/100000/1000-100000-0000.flac``, and ``.trans.txt`` for every chapter.

    Speakers have numbers, and chapters of 20 utterances each. The other parts are ``dev-clean`` and ``test-clean``.
    """

    chapter: ClassVar[int] = 20

    def __init__(self, root: Path, train: Sequence[str], test: Sequence[str]) -> None:
        super().__init__(root, train, test)
        self._numbers = {name: 1000 + i for i, name in enumerate([*self.train, *self.dev, *self.test])}
        self._spoken: dict[str, int] = {}
        self._lines: dict[Path, list[str]] = {}

    def add(self, utterance: Utterance) -> None:
        """Write the audio of an utterance, and keep its text for the chapter."""
        name = utterance.speaker
        part = "train-clean-100" if name in self.train else "dev-clean" if name in self.dev else "test-clean"
        count = self._spoken.get(name, 0)
        self._spoken[name] = count + 1
        speaker, chapter = self._numbers[name], self._numbers[name] * 100 + count // self.chapter
        folder = self.root / "LibriSpeech" / part / str(speaker) / str(chapter)
        folder.mkdir(parents=True, exist_ok=True)
        id = f"{speaker}-{chapter}-{count % self.chapter:04d}"
        soundfile.write(folder / f"{id}.flac", utterance.samples, SAMPLE_RATE, subtype="PCM_16")
        text = " ".join(word.label for word in utterance.words).upper()
        self._lines.setdefault(folder / f"{speaker}-{chapter}.trans.txt", []).append(f"{id} {text}\n")

    def finish(self) -> None:
        """Write the texts of the chapters."""
        for path, lines in self._lines.items():
            path.write_text("".join(lines), "utf-8")


@dataclass
class _Group:
    """Participants of a series of meetings, and the utterances of the current meeting.

    Attributes:
        series: Name of their meetings, without the final letter.
        people: Names, in the order of their agent letters.
        utterances: (first sample, utterance) in order.
        size: Samples so far; a meeting begins with a second of silence.
    """

    series: str
    people: list[str]
    meetings: int = 0
    utterances: list[tuple[int, Utterance]] = field(default_factory=list)
    size: int = SAMPLE_RATE


class AMILayout(Layout):
    """``amicorpus/ES2002a/audio/ES2002a.Headset-0.wav``, and ``ami_public_manual_1.6.2`` with its XML beside it.

    Groups of about four speakers meet several times. They take turns; some turns begin before the last one has ended.
    A headset records its speaker alone. Meetings have names of real meetings of train, dev or eval.
    """

    _SERIES: ClassVar[dict[str, tuple[str, ...]]] = {
        "train": ("ES2002", "ES2005", "ES2006", "ES2007", "IS1000", "IS1001", "TS3005", "TS3008"),
        "dev": ("ES2011", "IS1008", "TS3004"),
        "test": ("ES2004", "IS1009", "TS3003"),
    }
    _MEETING_S = 300
    _PAUSE_S = 0.3
    _OVERLAP_S = 0.5

    def __init__(self, root: Path, train: Sequence[str], test: Sequence[str]) -> None:
        super().__init__(root, train, test)
        self._groups: dict[str, _Group] = {}
        for side, names in self._SERIES.items():
            people: list[str] = getattr(self, side)
            count = min(len(names), -(-len(people) // 4))
            for i, series in enumerate(names[:count]):
                group = _Group(series, people[i::count])
                self._groups.update(dict.fromkeys(group.people, group))
        self._annotations = root / "ami_public_manual_1.6.2"
        self._meetings: list[str] = []

    def add(self, utterance: Utterance) -> None:
        """Keep an utterance until its meeting is long enough to be written."""
        group = self._groups[utterance.speaker]
        start = group.size + round(self._PAUSE_S * SAMPLE_RATE)
        if len(group.utterances) % 3 == 2 and group.utterances[-1][1].speaker != utterance.speaker:
            start = group.size - round(self._OVERLAP_S * SAMPLE_RATE)
        group.utterances.append((start, utterance))
        group.size = max(group.size, start + len(utterance.samples))
        if group.size >= self._MEETING_S * SAMPLE_RATE and group.meetings < 25:
            self._write(group)

    def finish(self) -> None:
        """Write the last meeting of every group, and the participants of all meetings."""
        for group in {g.series: g for g in self._groups.values()}.values():
            if group.utterances:
                self._write(group)
        _write_xml(self._annotations / "corpusResources" / "meetings.xml", "meetings", self._meetings)

    def _write(self, group: _Group) -> None:
        """Write the recordings and annotations of a meeting, and begin the next one."""
        name = f"{group.series}{chr(ord('a') + group.meetings)}"
        channels = list(range(len(group.people)))
        if group.meetings % 2:
            channels.reverse()  # in real meetings, too, channels do not always follow the letters
        speakers = []
        for number, (person, channel) in enumerate(zip(group.people, channels)):
            agent = chr(ord("A") + number)
            own = [(start, u) for start, u in group.utterances if u.speaker == person]
            samples = np.zeros(group.size, np.int16)
            for start, utterance in own:
                samples[start : start + len(utterance.samples)] = utterance.samples
            wav = self.root / "amicorpus" / name / "audio" / f"{name}.Headset-{channel}.wav"
            wav.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(wav, samples, SAMPLE_RATE, subtype="PCM_16")
            words, segments = _annotations(f"{name}.{agent}", own)
            for kind, root, lines in (("words", "words", words), ("segments", "segs", segments)):
                path = self._annotations / kind / f"{name}.{agent}.{kind}.xml"
                _write_xml(path, f"{name}.{agent}.{root}", lines)
            id = f"{name}_{number + 1}"
            speakers.append(
                f'<speaker nite:id="{id}" channel="{channel}" nxt_agent="{agent}" global_name="{person}"/>'
            )
        self._meetings += [f'<meeting nite:id="meet_{name}" observation="{name}">', *speakers, "</meeting>"]
        group.meetings, group.utterances, group.size = group.meetings + 1, [], SAMPLE_RATE


def _annotations(name: str, utterances: Sequence[tuple[int, Utterance]]) -> tuple[list[str], list[str]]:
    """Return the XML elements of a speaker's words file and segments file."""
    words: list[str] = []
    segments: list[str] = []

    def word(text: str, start: int, end: int, more: str = "") -> None:
        times = f'starttime="{_seconds(start)}" endtime="{_seconds(end)}"'
        words.append(f'<w nite:id="{name}.words{len(words)}" {times}{more}>{escape(text)}</w>')

    for number, (first, utterance) in enumerate(utterances):
        begin = len(words)
        for mark in utterance.words:
            word(mark.label, first + mark.start, first + mark.end)
        end = first + utterance.words[-1].end
        word(utterance.text[-1], end, end, ' punc="true"')
        last = first + len(utterance.samples)
        segments += [
            f'<segment nite:id="{name}.sync.{number}" channel="0" transcriber_start="{_seconds(first)}" '
            f'transcriber_end="{_seconds(last)}">',
            f'<nite:child href="{name}.words.xml#id({name}.words{begin})..id({name}.words{len(words) - 1})"/>',
            "</segment>",
        ]
    return words, segments


def _write_xml(path: Path, id: str, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f'<nite:root nite:id="{id}" xmlns:nite="http://nite.sourceforge.net/">'
    body = "".join(f"   {line}\n" for line in lines)
    text = f'<?xml version="1.0" encoding="ISO-8859-1" standalone="yes"?>\n{head}\n{body}</nite:root>\n'
    path.write_text(text, "iso-8859-1")


def _seconds(sample: int) -> str:
    return f"{sample / SAMPLE_RATE:.3f}"


#: Layouts by name.
LAYOUTS: dict[str, type[Layout]] = {"timit": TimitLayout, "librispeech": LibriSpeechLayout, "ami": AMILayout}
