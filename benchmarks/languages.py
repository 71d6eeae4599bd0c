"""Texts in other languages than the model's: verdicts on them, and on wrong texts in its own language.

``python -m benchmarks.languages MODEL FOLDER...`` prints the table. Folders are those of :mod:`benchmarks.doubt`. Their
recordings are aligned with texts of:

own
    the recording's transcript
wrong
    another recording's
de, fr ...
    ``benchmarks/languages.txt``, a line each, or ``--texts FILE`` of the same form; texts that take as long as the
    recording to say, roughly

With ``--spoken`` the texts of other languages are aligned with their own sound too, said by espeak-ng.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks.doubt import arguments, spread, transcripts, wrong_texts
from isotone import audio as sound
from isotone.alignment import AlignmentError
from isotone.evaluation import markdown_table
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.pipeline.language import ANOTHER_LANGUAGE
from isotone.pipeline.verdict import NO_SPEECH, PARTLY, RIGHT, WRONG
from isotone.text.normalize import TextError

TEXTS = Path(__file__).with_suffix(".txt")

#: Verdicts, and ``unread`` for texts with nothing to align, which are errors of ``isotone align``.
COLUMNS = (RIGHT, PARTLY, WRONG, NO_SPEECH, ANOTHER_LANGUAGE, "unread")

#: A text is given to a recording whose own text has at least so many times its characters.
ROOM = 0.8


def by_language(path: Path) -> dict[str, list[str]]:
    """Read the texts of every language."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            language, text = line.split("|", 1)
            found[language.strip()].append(text.strip())
    return dict(found)


def verdict(pipeline: Pipeline, samples: np.ndarray, text: str) -> str:
    """Return the verdict on a text; a text that is not judged is wrong where it is doubtful, as for the command."""
    try:
        result = pipeline.align("", samples, pipeline.encode(text))
    except TextError:
        return "unread"
    except AlignmentError:  # too long for the audio, which is an error of its own
        return NO_SPEECH
    check = pipeline.model.check
    low = result.agreement is not None and check is not None and result.agreement < check.threshold
    return result.alignment.verdict or (WRONG if low else "")


def against(
    pipeline: Pipeline, found: Mapping[Path, str], languages: Mapping[str, Sequence[str]]
) -> dict[str, Counter[str]]:
    """Count the verdicts on texts that are not what recordings say, and on those that are."""
    out: dict[str, Counter[str]] = defaultdict(Counter)
    wrong = wrong_texts(dict(found))["shuffled"]
    for number, (path, own) in enumerate(track(found.items(), transient=True, console=Console(stderr=True))):
        samples = sound.load(path, pipeline.model.encoder.sample_rate)
        out["own"][verdict(pipeline, samples, own)] += 1
        out["wrong"][verdict(pipeline, samples, wrong[path])] += 1
        for language, texts in languages.items():
            text = texts[number % len(texts)]
            if len(own) >= ROOM * len(text):
                out[language][verdict(pipeline, samples, text)] += 1
    return out


def spoken(pipeline: Pipeline, languages: Mapping[str, Sequence[str]]) -> dict[str, Counter[str]]:
    """Count the verdicts on texts with their own sound."""
    out: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder, "said.wav")
        for language, texts in languages.items():
            for text in texts:
                subprocess.run(["espeak-ng", "-v", language, "-w", str(said), "--", text], check=True)
                samples = sound.load(said, pipeline.model.encoder.sample_rate)
                out[language][verdict(pipeline, samples, text)] += 1
    return out


def rows(name: str, counted: Mapping[str, Counter[str]], each: bool) -> Iterator[tuple[str, ...]]:
    """Compute the rows of the table: numbers of texts with each verdict.

    Args:
        name: Of the recordings.
        counted: By kind of text: ``own``, ``wrong``, and codes of languages.
        each: Also a row for each language, before that of all others.
    """
    every = Counter[str]()
    for kind, count in counted.items():
        own = kind in ("own", "wrong")
        every += Counter() if own else count
        if own or each:
            yield name, kind, *_shown(count)
    yield name, "all others", *_shown(every)


def _shown(count: Counter[str]) -> Iterator[str]:
    yield str(count.total())
    yield from (str(count[column]) for column in COLUMNS)


def main() -> None:
    """Print the table."""
    parser = arguments("languages", __doc__ or "", 60)
    parser.add_argument("--texts", type=Path, default=TEXTS, help="file of texts: language | text")
    parser.add_argument(
        "--spoken", action="store_true", help="texts of other languages with their own sound, too"
    )
    parser.add_argument("--each", action="store_true", help="a row for each language, too")
    given = parser.parse_args()
    pipeline = Pipeline(Model.load(given.model))
    languages = by_language(given.texts)
    table: list[tuple[str, ...]] = []
    for folder in given.folders:
        found = dict(spread(list(transcripts(folder)), given.limit))
        table += rows(folder.name, against(pipeline, found, languages), given.each)
    if given.spoken:
        table += rows("espeak-ng", spoken(pipeline, languages), given.each)
    print(markdown_table(("recordings", "texts", "files", *COLUMNS), table), end="")


if __name__ == "__main__":
    main()
