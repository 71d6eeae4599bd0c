"""The TIMIT corpus: hand-labelled phones and words of American English (LDC93S1)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from isotone.alignment import Tier, tier_from_spans
from isotone.audio import info
from isotone.corpus.rows import CorpusError, Part, RowCorpus, recording_row
from isotone.text.phones import Closures, PhoneSet, Silence, fold_segments, phone_set

#: Rate of the sample numbers in label files, whatever the rate of the audio file.
SAMPLE_RATE = 16000

#: The 24 speakers of the standard core test set.
CORE_TEST = frozenset([
    "mdab0", "mwbt0", "felc0", "mtas1", "mwew0", "fpas0", "mjmp0", "mlnt0", "fpkt0", "mlll0", "mtls0",
    "fjlm0", "mbpm0", "mklt0", "fnlp0", "mcmj0", "mjdh0", "fmgd0", "mgrt0", "mnjm0", "fdhc0", "mjln0",
    "mpam0", "fmld0",
])  # fmt: skip

#: The 50 speakers of TEST that are usually the development set.
DEV = frozenset([
    "faks0", "fdac1", "fjem0", "mgwt0", "mjar0", "mmdb1", "mmdm2", "mpdf0", "fcmh0", "fkms0", "mbdg0",
    "mbwm0", "mcsh0", "fadg0", "fdms0", "fedw0", "mgjf0", "mglb0", "mrtk0", "mtaa0", "mtdt0", "mthc0",
    "mwjg0", "fnmr0", "frew0", "fsem0", "mbns0", "mmjr0", "mdls0", "mdlf0", "mdvc0", "mers0", "fmah0",
    "fdrw0", "mrcs0", "mrjm4", "fcal1", "mmwh0", "fjsj0", "majc0", "mjsw0", "mreb0", "fgjd0", "fjmg0",
    "mroa0", "mteb0", "mjfc0", "mrjr0", "fmml0", "mrws1",
])  # fmt: skip

SPLITS = ("train", "dev", "test", "full-test", "all")


@dataclass(frozen=True)
class _Utterance:
    """Files of one utterance, by suffix in lower case without its dot."""

    id: str
    speaker: str
    part: str  # "train", "test", or "" in a tree that has neither
    order: tuple[str, ...]
    files: dict[str, Path]


class TimitCorpus(RowCorpus):
    """TIMIT's phones and words, from the LDC tree or the smaller ``drN-speaker`` tree of the public sample.

    The LDC tree has the usual splits: ``train`` (462 speakers), ``test`` (the core test of 24), ``dev`` (50 other
    speakers of TEST), ``full-test`` (all of TEST) and ``all``. If TEST lacks some of these speakers, its speakers
    alternate between test and dev, in the order of the folders. In a tree without TRAIN and TEST the last two speakers
    are both dev and test, and the others are train.

    Args:
        root: The folder that contains TRAIN and TEST or the ``drN-speaker`` folders, or a folder above it. The case of
            names does not matter.
        phones: Phone set: 39, 48 or 61.
        closures: See :func:`isotone.text.phones.fold`.
        silence: ``"drop"`` leaves silence out of the phones.
        sa: Include the sentences SA1 and SA2, which every speaker reads; they are usually left out.
        test_speakers: Speakers of dev and test instead of those above; all others are train.

    Raises:
        ValueError: an option that does not exist.
    """

    title = "TIMIT"

    def __init__(
        self,
        root: str | Path,
        phones: PhoneSet = 39,
        closures: Closures = "sil",
        silence: Silence = "keep",
        sa: bool = False,
        test_speakers: Sequence[str] | None = None,
    ) -> None:
        phone_set(
            phones, closures=closures, silence=silence
        )  # raises ValueError for options that do not exist
        super().__init__(root)
        self.phones = phones
        self.closures = closures
        self.silence = silence
        self.sa = sa
        self.test_speakers = None if test_speakers is None else [s.lower() for s in test_speakers]

    def parts(self, split: str) -> Iterator[tuple[str, Callable[[], Part]]]:
        """Iterate over the utterances of a split, in sorted order.

        Raises:
            FileNotFoundError: no TIMIT tree at the root.
            ValueError: no such split, or an unknown test speaker.
        """
        if split not in SPLITS:
            raise ValueError(f"TIMIT has no split {split!r}; it has {', '.join(SPLITS)}.")
        utterances = self._utterances()
        chosen = self._speakers(utterances, split)
        for utterance in utterances:
            if utterance.speaker in chosen:
                yield utterance.id, partial(self._part, utterance)

    def _utterances(self) -> list[_Utterance]:
        if not self.root.is_dir():
            raise FileNotFoundError(f"TIMIT: no folder {self.root}; give the one that holds TRAIN and TEST.")
        found = [u for folder, _, names in os.walk(self.root) for u in _scan(self.root, Path(folder), names)]
        if not found:
            raise FileNotFoundError(
                f"TIMIT: no utterances under {self.root}. Looked for TRAIN/DR1/FCJF0/SX37.PHN or "
                f"dr1-fcjf0/sx37.phn and the like, in letters of either case."
            )
        one_part = self.root.name.lower() in ("train", "test")
        if one_part and not any(u.part or len(u.order) < 3 for u in found):
            raise FileNotFoundError(f"TIMIT: {self.root} is one part of it; give the folder above.")
        ids = Counter(u.id for u in found)
        if twice := next((u.id for u in found if ids[u.id] > 1), None):
            folders = sorted({str(next(iter(u.files.values())).parent) for u in found if u.id == twice})
            raise CorpusError(f"TIMIT at {self.root}: {twice} is there twice, in {folders}; give one copy.")
        kept = [u for u in found if self.sa or not u.order[-1].startswith("sa")]
        return sorted(kept, key=lambda u: (u.part != "train", *u.order))

    def _speakers(self, utterances: list[_Utterance], split: str) -> set[str]:
        # in the order of the folders, by dialect region and speaker
        train = list(dict.fromkeys(u.speaker for u in utterances if u.part != "test"))
        test = list(dict.fromkeys(u.speaker for u in utterances if u.part == "test"))
        everybody = {*train, *test}
        if self.test_speakers is not None:
            if absent := sorted(set(self.test_speakers) - everybody):
                raise ValueError(
                    f"TIMIT at {self.root} has no speakers {absent}; it has {sorted(everybody)}."
                )
            test = dev = core = self.test_speakers
        elif not any(u.part for u in utterances):
            test = dev = core = train[-2:]
        elif set(test) >= CORE_TEST | DEV:
            dev, core = list(DEV), list(CORE_TEST)
        else:
            dev, core = test[1::2], test[::2]
        parts = {"train": everybody - set(test), "dev": set(dev), "test": set(core), "full-test": set(test)}
        return parts.get(split, everybody)

    def _part(self, utterance: _Utterance) -> Part:
        return Part([self._row(utterance)])

    def _row(self, utterance: _Utterance) -> dict[str, Any]:
        files = utterance.files
        # converted copies of the corpus have SA1.WAV.wav beside the SPHERE file SA1.WAV
        audio = next((files[s] for s in ("wav.wav", "wav", "flac", "sph") if s in files), None)
        if audio is None or "phn" not in files:
            raise CorpusError(f"{utterance.id} has no {'audio' if audio is None else '.phn'} file.")
        duration = info(audio).seconds
        phones = self._fold(read_labels(files["phn"], "phones", duration), files["phn"])
        words = read_labels(files["wrd"], "words", duration) if "wrd" in files else Tier("words", ())
        text = _read_text(files["txt"]) if "txt" in files else " ".join(words.labels)
        if not text:
            raise CorpusError(f"{utterance.id} has no text: neither a .txt nor a .wrd file with words in it.")
        return recording_row(utterance.id, audio, duration, text, utterance.speaker, words, phones)

    def _fold(self, tier: Tier, path: Path) -> Tier:
        try:
            folded = fold_segments(tier, self.phones, closures=self.closures, silence=self.silence)
        except ValueError as error:
            raise CorpusError(f"{path}: {error}") from None
        return Tier(tier.name, tuple(folded))


def read_labels(path: Path, name: str, duration: float) -> Tier:
    """Read a ``.phn`` or ``.wrd`` file: lines of first sample, last sample and label, at 16 kHz.

    Args:
        path: The file.
        name: Name of the tier.
        duration: Seconds of audio; labels are cut at its end.

    Returns:
        The tier, in seconds.

    Raises:
        CorpusError: a malformed line, times that run backwards or lie after the audio, or no lines.
    """
    spans: list[tuple[str, float, float, float | None]] = []
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        match = re.fullmatch(r"\s*(\d+)\s+(\d+)\s+(\S+)\s*", line)
        if match is None:
            raise CorpusError(
                f"{path}, line {number}: expected 'first-sample last-sample label'; got {line[:80]!r}."
            )
        start, end = int(match[1]) / SAMPLE_RATE, int(match[2]) / SAMPLE_RATE
        if end < start or (spans and start < spans[-1][1]):
            raise CorpusError(f"{path}, line {number}: time runs backwards in {line[:80]!r}.")
        if start >= duration:
            raise CorpusError(
                f"{path}, line {number}: {match[3]!r} begins at {start:.3f} s, "
                f"but the audio ends at {duration:.3f} s."
            )
        spans.append((match[3], start, end, None))
    if not spans:
        raise CorpusError(f"{path}: the file has no labels.")
    return tier_from_spans(name, spans, duration)


def _scan(root: Path, folder: Path, names: Iterable[str]) -> list[_Utterance]:
    """Find the utterances of one folder."""
    groups: dict[str, dict[str, Path]] = {}
    for name in sorted(names):
        stem, dot, suffix = name.lower().partition(".")
        if dot and re.fullmatch(r"s[aix]\d+", stem):
            groups.setdefault(stem, {})[suffix] = folder / name
    parents = [p.lower() for p in folder.relative_to(root).parts]
    part = next((p for p in parents if p in ("train", "test")), "")
    parents = parents[parents.index(part) + 1 :] if part else parents
    speaker = re.sub(r"^dr\d-", "", parents[-1] if parents else folder.name.lower())
    return [
        _Utterance(f"{speaker}_{stem}", speaker, part, (*parents, stem), files)
        for stem, files in groups.items()
        if files.keys() & {"wav", "wav.wav", "phn", "flac", "sph"}
    ]


def _read_text(path: Path) -> str:
    """Read the prompt of a ``.txt`` file, after the numbers of its first and last sample."""
    text = " ".join(_lines(path)).strip()
    match = re.fullmatch(r"\d+\s+\d+\s+(\S.*)", text)
    if match is None:
        raise CorpusError(f"{path}, line 1: expected 'start end sentence'; got {text[:80]!r}.")
    return match[1]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise CorpusError(
            f"{path}, line {line}: expected plain text; the file is damaged or of another kind."
        ) from None
