"""Synthetic speech with exact phone and word times, written in the layout of a real corpus."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isotone import __version__
from isotone.corpus.ami import AMICorpus
from isotone.corpus.layouts import LAYOUTS
from isotone.corpus.librispeech import LibriSpeechCorpus
from isotone.corpus.rows import RowCorpus
from isotone.corpus.timit import TimitCorpus
from isotone.corpus.voices import SAMPLE_RATE, Speaker, Utterance, record, speakers
from isotone.files import atomic_folder
from isotone.interfaces import Corpus
from isotone.progress import bars
from isotone.text.espeak import Engine
from isotone.text.phones import PhoneSet, Silence

if TYPE_CHECKING:
    from datasets import Dataset

# Increased whenever the same options make another corpus.
_REVISION = 2

# Share of the sentences of dev and test.
_TEST_SENTENCES = 0.2


class CorpusExists(FileExistsError):
    """The folder holds something other than the requested corpus."""


def sentences() -> list[str]:
    """Return the English sentences of the package: rich in phones, 5 to 11 words each."""
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
    """Write a corpus of synthetic speech, unless the folder has it already.

    Train and test share no voice and no sentence. Sentences are repeated if the hours are more than every speaker needs
    for every sentence. The corpus appears when it is complete, with a ``manifest.json`` of its options, speakers and
    counts; a second call with the same options does nothing.

    Args:
        folder: Root of the corpus.
        layout: ``timit``, ``librispeech`` or ``ami``: the corpus whose files are written and whose class reads them
            (:mod:`isotone.corpus.layouts`). The test speakers are divided between dev and test.
        hours: Hours of train, to within one utterance.
        test_hours: Hours of dev and test together.
        train_speakers: Speakers of train.
        test_speakers: Speakers of dev and test together, at least 2.
        seed: Seed of all random choices.
        channel: Simulate microphones and noise; see :func:`isotone.corpus.voices.record`.
        overwrite: Replace a synthetic corpus that was made with other options.

    Returns:
        The root.

    Raises:
        CorpusExists: the folder holds other files, or a corpus made with other options and ``overwrite`` is
            false.
        ValueError: no such layout, or a number is too small.
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
    """Write both splits; return their entries for the manifest."""
    train, test = speakers(train_speakers, test_speakers, seed)
    lines = list(enumerate(sentences(), 1))
    lines = [lines[i] for i in np.random.default_rng([seed, 2]).permutation(len(lines))]
    cut = round(len(lines) * _TEST_SENTENCES)
    parts = ("train", train, lines[cut:], hours), ("test", test, lines[:cut], test_hours)
    splits = {}
    files = LAYOUTS[layout](root, [s.name for s in train], [s.name for s in test])
    with bars() as progress:
        for number, (split, people, texts, length_h) in enumerate(parts):
            task = progress.add_task(f"synthesising {split}", total=length_h * 3600)
            phones: Counter[str] = Counter()
            lengths = []
            for utterance in utterances(people, texts, length_h * 3600, [seed, 3, number], channel):
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
    """Return whether the corpus exists already; CorpusExists if something else may not be replaced."""
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


def utterances(
    people: Sequence[Speaker],
    texts: Sequence[tuple[int, str]],
    length_s: float,
    seed: list[int],
    channel: bool,
) -> Iterator[Utterance]:
    """Iterate over utterances of alternating speakers up to a length in seconds; each speaker has a random order."""
    rng = np.random.default_rng(seed)
    engine = Engine(seed[0])
    stride = max(number for number, _ in texts) + 1000
    stride -= stride % 1000  # numbers of a repeated sentence: 17, 1017, 2017 ...
    seconds = 0.0
    repetition = 0
    while True:
        orders = [rng.permutation(len(texts)) for _ in people]
        for i in range(len(texts)):
            for speaker, order in zip(people, orders):
                if seconds >= length_s:
                    return
                number, text = texts[order[i]]
                utterance = record(engine, speaker, number + repetition * stride, text, rng, channel=channel)
                seconds += len(utterance.samples) / SAMPLE_RATE
                yield utterance
        repetition += 1


class SynthCorpus(Corpus):
    """Synthetic speech with exact phone and word times, generated at the first load, without a download.

    It is written in the files of a real corpus and read by that corpus's class, so it has the same splits.

    Args:
        root: Folder for synthetic corpora; each set of options has its own folder in it.
        layout: See :func:`generate`.
        hours: Hours of train.
        test_hours: Hours of dev and test together.
        train_speakers: Speakers of train.
        test_speakers: Speakers of dev and test together.
        seed: Seed of all random choices.
        channel: Simulate microphones and noise.
        phones: Phone set, 39, 48 or 61, of the layout timit; the others have no phones.
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
        """(id, reason) of utterances that the last :meth:`load` left out."""
        return self._corpus.skipped

    @property
    def counts(self) -> Counter[str]:
        """Counts of the rules for texts in the last :meth:`load`."""
        return self._corpus.counts

    def load(self, split: str) -> Dataset:
        """Load a split of the layout's corpus; the corpus is generated if necessary.

        Raises:
            ValueError: no such split, or options that :func:`generate` refuses.
            ImportError: the corpus has to be generated and espeak-ng is not installed.
        """
        generate(self.root, **self._options)
        return self._corpus.load(split)


def _known(layout: str) -> str:
    if layout not in LAYOUTS:
        raise ValueError(f"There is no corpus layout {layout!r}; there is {', '.join(LAYOUTS)}.")
    return layout
