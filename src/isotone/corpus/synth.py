"""Synthetic speech with exact phone and word times, written in the layout of a real corpus."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

from isotone import __version__
from isotone.corpus.ami import AMICorpus
from isotone.corpus.layouts import LAYOUTS
from isotone.corpus.librispeech import LibriSpeechCorpus
from isotone.corpus.rows import RowCorpus
from isotone.corpus.timit import TimitCorpus
from isotone.corpus.voices import SAMPLE_RATE, Speaker, Utterance, record, speakers
from isotone.files import atomic_folder
from isotone.interfaces import Corpus
from isotone.text.espeak import Engine
from isotone.text.phones import PhoneSet, Silence

if TYPE_CHECKING:
    from datasets import Dataset

# Raised when the same options come to make another corpus.
_REVISION = 2

# Share of the sentences that are for dev and test.
_TEST_SENTENCES = 0.2


class CorpusExists(FileExistsError):
    """The folder holds something else than the corpus that was asked for."""


def sentences() -> list[str]:
    """The English sentences that come with the package: rich in phones, 5 to 11 words each."""
    file = resources.files("isotone.corpus").joinpath("data/sentences_en.txt")
    return file.read_text("utf-8").splitlines()


def generate(
    folder: Path | str,
    *,
    layout: str = "timit",
    hours: float = 1.0,
    test_hours: float = 0.2,
    train_speakers: int = 24,
    test_speakers: int = 12,
    seed: int = 0,
    channel: bool = True,
    overwrite: bool = False,
) -> Path:
    """Write a corpus of synthetic speech, or find it there.

    What trains and what tests share no voice and no sentence. Where the hours ask for more than every speaker saying
    every sentence, the sentences are said again. The corpus appears when it is complete, with a
    ``manifest.json`` of its options, speakers and counts; a second call with the same options does nothing.

    Args:
        folder: Root of the corpus.
        layout: ``timit``, ``librispeech`` or ``ami``: the files of that corpus, which its class reads; see
            :mod:`isotone.corpus.layouts`. The test speakers are shared out between dev and test.
        hours: Hours of audio to train with, up to the length of one utterance.
        test_hours: Hours of audio of dev and test together.
        train_speakers: Speakers of train.
        test_speakers: Speakers of dev and test together, at least 2.
        seed: Decides on everything.
        channel: With microphones and noise; see :func:`record`.
        overwrite: Replace a synthetic corpus that was made with other options.

    Returns:
        The root.

    Raises:
        CorpusExists: the folder holds other files, or a corpus made with other options and ``overwrite`` is
            false.
        ValueError: no such layout, or a number that is too small.
        ImportError: espeak-ng is not installed.
    """
    _known(layout)
    if min(hours, test_hours) <= 0 or train_speakers < 1 or test_speakers < 2:
        raise ValueError(
            f"A synthetic corpus expects hours above 0, 1 train speaker and 2 test speakers or more; got "
            f"{hours} and {test_hours} hours, {train_speakers} and {test_speakers} speakers."
        )
    root = Path(folder)
    options: dict[str, Any] = {
        "layout": layout, "hours": hours, "test_hours": test_hours, "train_speakers": train_speakers,
        "test_speakers": test_speakers, "seed": seed, "channel": channel,
    }  # fmt: skip
    made = {"revision": _REVISION, "options": options}
    if not _is_there(root, made, overwrite):
        with atomic_folder(root) as temporary:
            splits = _write_splits(temporary, **options)
            text = json.dumps({**made, "isotone": __version__, "splits": splits}, indent=1) + "\n"
            (temporary / "manifest.json").write_text(text, "utf-8")
    return root


def _write_splits(
    root: Path,
    *,
    layout: str,
    hours: float,
    test_hours: float,
    train_speakers: int,
    test_speakers: int,
    seed: int,
    channel: bool,
) -> dict[str, Any]:
    """Write both splits; what the manifest says of them."""
    train, test = speakers(train_speakers, test_speakers, seed)
    lines = list(enumerate(sentences(), 1))
    lines = [lines[i] for i in np.random.default_rng([seed, 2]).permutation(len(lines))]
    cut = round(len(lines) * _TEST_SENTENCES)
    parts = ("train", train, lines[cut:], hours), ("test", test, lines[:cut], test_hours)
    splits = {}
    files = LAYOUTS[layout](root, [s.name for s in train], [s.name for s in test])
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        for number, (split, people, texts, wanted) in enumerate(parts):
            task = progress.add_task(f"synthesising {split}", total=wanted * 3600)
            phones: Counter[str] = Counter()
            lengths = []
            for utterance in _utterances(people, texts, wanted * 3600, [seed, 3, number], channel):
                files.add(utterance)
                lengths.append(len(utterance.samples) / SAMPLE_RATE)
                phones.update(m.label for m in utterance.phones)
                progress.advance(task, lengths[-1])
            splits[split] = {
                "utterances": len(lengths),
                "seconds": round(sum(lengths), 3),
                "speakers": [asdict(s) for s in people],
                "phones": dict(sorted(phones.items())),
            }
    files.finish()
    return splits


def _is_there(root: Path, made: dict[str, Any], overwrite: bool) -> bool:
    """Whether the corpus is there already; an error where something else is that may not be replaced."""
    if not root.exists() or (root.is_dir() and not any(root.iterdir())):
        return False
    manifest = root / "manifest.json"
    try:
        found = json.loads(manifest.read_text("utf-8"))
        found = {"revision": found.get("revision"), "options": found["options"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise CorpusExists(
            f"{root} is not a synthetic corpus: it has no readable manifest.json. Choose another folder."
        ) from None
    if found == made:
        return True
    if overwrite:
        return False
    raise CorpusExists(
        f"{root} holds a synthetic corpus made with {found}; expected {made}. "
        f"Set overwrite or choose another folder."
    )


def _utterances(
    people: Sequence[Speaker],
    texts: Sequence[tuple[int, str]],
    wanted_s: float,
    seed: list[int],
    channel: bool,
) -> Iterator[Utterance]:
    """Utterances by speakers in turn until there are enough seconds, everybody in an order of his own."""
    rng = np.random.default_rng(seed)
    engine = Engine(seed[0])
    stride = max(number for number, _ in texts) + 1000
    stride -= stride % 1000  # the same sentence said again: 17, 1017, 2017 ...
    seconds = 0.0
    again = 0
    while True:
        orders = [rng.permutation(len(texts)) for _ in people]
        for i in range(len(texts)):
            for speaker, order in zip(people, orders):
                if seconds >= wanted_s:
                    return
                number, text = texts[order[i]]
                utterance = record(engine, speaker, number + again * stride, text, rng, channel=channel)
                seconds += len(utterance.samples) / SAMPLE_RATE
                yield utterance
        again += 1


class SynthCorpus(Corpus):
    """Synthetic speech with exact phone and word times, generated when it is first loaded; needs no download.

    It is written in the files of a real corpus and read by that corpus's class, whose splits it has.

    Args:
        root: Folder for synthetic corpora; each set of options has a folder of its own in it.
        layout: See :func:`generate`, also for the following.
        hours: Of train.
        test_hours: Of dev and test together.
        train_speakers: Speakers of train.
        test_speakers: Speakers of dev and test together.
        seed: Decides on everything.
        channel: With microphones and noise.
        phones: Phone set of the layout timit, which alone has phones: 39, 48 or 61.
        silence: ``"drop"`` leaves silence out of these phones.

    Raises:
        ValueError: no such layout.
    """

    def __init__(
        self,
        root: str | Path = "~/.cache/isotone/synth",
        *,
        layout: str = "timit",
        hours: float = 1.0,
        test_hours: float = 0.2,
        train_speakers: int = 24,
        test_speakers: int = 12,
        seed: int = 0,
        channel: bool = True,
        phones: PhoneSet = 39,
        silence: Silence = "keep",
    ) -> None:
        self._options: dict[str, Any] = {
            "layout": _known(layout), "hours": hours, "test_hours": test_hours, "train_speakers": train_speakers,
            "test_speakers": test_speakers, "seed": seed, "channel": channel,
        }  # fmt: skip
        key = hashlib.sha256(json.dumps([_REVISION, self._options]).encode()).hexdigest()[:12]
        self.root = Path(root).expanduser() / key
        readers: dict[str, Callable[[], RowCorpus]] = {
            "timit": lambda: TimitCorpus(self.root, phones=phones, silence=silence),
            "librispeech": lambda: LibriSpeechCorpus(self.root),
            "ami": lambda: AMICorpus(self.root),
        }
        self._corpus = readers[layout]()

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """(id, reason) of what the last :meth:`load` left out."""
        return self._corpus.skipped

    @property
    def counts(self) -> Counter[str]:
        """What the rules for texts did in the last :meth:`load`."""
        return self._corpus.counts

    def load(self, split: str) -> Dataset:
        """One split of the layout's corpus; generates the corpus if need be.

        Raises:
            ValueError: no such split, or options that :func:`generate` does not take.
            ImportError: the corpus has to be generated and espeak-ng is not installed.
        """
        generate(self.root, **self._options)
        return self._corpus.load(split)


def _known(layout: str) -> str:
    if layout not in LAYOUTS:
        raise ValueError(f"There is no corpus layout {layout!r}; there is {', '.join(LAYOUTS)}.")
    return layout
