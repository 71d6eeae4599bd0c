"""The shares of wrong and of right transcripts that are flagged as doubtful.

``python -m benchmarks.doubt MODEL FOLDER...`` prints the table.

A folder contains recordings with transcripts beside them (``.txt``, ``.lab``), or is LJSpeech (``metadata.csv``) or
LibriSpeech (``*.trans.txt``). Every recording is aligned with its own transcript and with some that are wrong: one of
another recording, that of the next one by name, both with other words; and its own, of which the second half of the
words is another's, or 30 % of the words are others'.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.progress import track

from isotone import audio as sound
from isotone.alignment import AlignmentError
from isotone.batch.inputs import find_audio, find_transcript, read_text
from isotone.evaluation import markdown_table, roc
from isotone.model import Model
from isotone.model.check import usable
from isotone.pipeline import Pipeline
from isotone.pipeline.doubt import strangers
from isotone.text.normalize import normalize

Value = TypeVar("Value")

#: Kinds of transcripts, as the table says them.
KINDS = {
    "right": "right",
    "shuffled": "another recording's",
    "next": "the next recording's",
    "half": "the second half another's",
    "words": "30 % of the words others'",
}
HEAD = (
    "recordings", "transcripts", "files", "too short to tell", "flagged %", "AUC %", "AUC % of the score",
)  # fmt: skip


def transcripts(folder: Path) -> Iterator[tuple[Path, str]]:
    """List the recordings of a folder, with their texts."""
    audio = find_audio([folder])
    stems = {path.stem: path for path in audio}
    if (folder / "metadata.csv").is_file():
        for line in (folder / "metadata.csv").read_text("utf-8").splitlines():
            id, text = line.split("|")[:2]
            if id in stems:
                yield stems[id], text
    elif lists := sorted(folder.rglob("*.trans.txt")):
        for path in lists:
            for line in path.read_text("utf-8").splitlines():
                id, text = line.split(" ", 1)
                if id in stems:
                    yield stems[id], text
    else:
        for path in audio:
            yield path, read_text(find_transcript(path, None).path, sound.info(path).seconds)


def wrong_texts(texts: dict[Path, str], seed: int = 0) -> dict[str, dict[Path, str]]:
    """Make wrong transcripts by kind and recording."""
    rng = np.random.default_rng(seed)
    others = strangers({path: normalize(text) for path, text in texts.items()}, seed)
    order = list(texts)
    kinds: dict[str, dict[Path, str]] = {"shuffled": {}, "next": {}, "half": {}, "words": {}}
    for number, (path, text) in enumerate(texts.items()):
        other = texts[others[path]]
        kinds["shuffled"][path] = other
        following = (order[(number + step) % len(order)] for step in range(1, len(order)))
        kinds["next"][path] = texts[next(p for p in following if normalize(texts[p]) != normalize(text))]
        words, stranger = text.split(), other.split()
        half = len(words) // 2
        kinds["half"][path] = " ".join([*words[:half], *np.resize(stranger, len(words) - half)])
        replaced = set(rng.permutation(len(words))[: max(1, round(0.3 * len(words)))].tolist())
        kinds["words"][path] = " ".join(
            str(rng.choice(stranger)) if i in replaced else word for i, word in enumerate(words)
        )
    return kinds


def measure(model: str, folder: Path, limit: int) -> Iterator[tuple[str, ...]]:
    """Compute the rows of the table."""
    pipeline = Pipeline(Model.load(model))
    found = dict(spread(list(transcripts(folder)), limit))
    kinds = {"right": found, **wrong_texts(found)}
    scores: dict[str, list[tuple[float | None, float]]] = {kind: [] for kind in kinds}
    for path in track(found, folder.name, transient=True, console=Console(stderr=True)):
        samples = sound.load(path, pipeline.model.encoder.sample_rate)
        for kind, texts in kinds.items():
            try:
                result = pipeline.align(path.stem, samples, pipeline.encode(texts[path]))
                scores[kind].append((result.agreement, result.score))
            except AlignmentError:  # too long for the audio, which is an error of its own
                scores[kind].append((-np.inf, -np.inf))
    check = usable(pipeline.model.check)
    agreements = {kind: [a for a, _ in rows if a is not None] for kind, rows in scores.items()}
    for kind, agreed in agreements.items():
        if not agreed:
            continue
        auc = f"{100 * roc(agreements['right'], agreed).auc:.1f}" if kind != "right" else ""
        of_scores = f"{100 * roc([s for _, s in scores['right']], [s for _, s in scores[kind]]).auc:.1f}"
        flagged = f"{100 * np.mean([a < check.threshold for a in agreed]):.1f}"
        yield (
            folder.name, KINDS[kind], str(len(scores[kind])), str(len(scores[kind]) - len(agreed)), flagged, auc,
            of_scores if kind != "right" else "",
        )  # fmt: skip


def arguments(name: str, description: str, limit: int) -> argparse.ArgumentParser:
    """Make the parser of a measurement of folders of recordings: model, folders and ``--limit``."""
    parser = argparse.ArgumentParser(f"python -m benchmarks.{name}", description=description.splitlines()[0])
    parser.add_argument("model", help="model or run folder, pack, or a hub id")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument(
        "--limit", type=int, default=limit, help="recordings of a folder, spread over it; 0: all"
    )
    return parser


def spread(found: Sequence[Value], limit: int) -> Sequence[Value]:
    """Choose that many of a folder's recordings, spread over it; 0: all."""
    return found[:: max(1, -(-len(found) // limit))] if limit else found


def main() -> None:
    """Print the table."""
    given = arguments("doubt", __doc__ or "", 200).parse_args()
    threshold = usable(Model.load(given.model).check).threshold
    table = [row for folder in given.folders for row in measure(given.model, folder, given.limit)]
    print(f"**{given.model}, threshold {threshold:.3f}**\n\n{markdown_table(HEAD, table)}", end="")


if __name__ == "__main__":
    main()
