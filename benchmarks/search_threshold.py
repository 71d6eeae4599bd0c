"""Clips that are in an index, and clips that are not, against the threshold that was measured on the index.

``python -m benchmarks.search_threshold FOLDER OTHER...`` indexes FOLDER, searches for clips of it and of the others, as
they are and damaged, and prints a table: for clips of FOLDER the share whose first match is the clip's own position,
for clips of the others the share that matches anything.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import soundfile
import typer
from numpy.typing import NDArray
from scipy.signal import butter, sosfilt

from isotone import audio
from isotone.batch.inputs import find_audio
from isotone.evaluation import markdown_table
from isotone.interfaces import Searcher
from isotone.search import SearchIndex, bar, build_index, open_searcher, query_vectors, search

_SECONDS = (1, 2, 3, 5, 10)
_NEAR_S = 0.5
_SILENT = 1e-3
Change = Callable[[NDArray[np.float32], int], NDArray[np.float32]]


def noisy(db: float) -> Change:
    """Add white noise so many dB below the clip."""

    def change(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
        noise = np.random.default_rng(len(samples)).standard_normal(len(samples))
        return (samples + noise * samples.std() * 10 ** (-db / 20)).astype(np.float32)

    return change


def telephone(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """Pass 300 to 3400 Hz."""
    return np.asarray(sosfilt(butter(4, (300, 3400), "band", fs=rate, output="sos"), samples), np.float32)


def mp3(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """Apply the strongest compression of MP3."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="MP3", compression_level=0.99)
    file.seek(0)
    return np.asarray(soundfile.read(file, dtype="float32")[0])


CHANGES: dict[str, Change] = {
    "as it is": lambda samples, rate: samples,
    "noise, 20 dB": noisy(20),
    "noise, 10 dB": noisy(10),
    "300 to 3400 Hz": telephone,
    "MP3": mp3,
}


def clips(
    files: list[Path], rate: int, seconds: int, count: int
) -> list[tuple[Path, float, NDArray[np.float32]]]:
    """Draw clips anywhere in random files: file, start in seconds, samples."""
    rng = np.random.default_rng(seconds)
    found: list[tuple[Path, float, NDArray[np.float32]]] = []
    for _ in range(20 * count):
        path = files[int(rng.integers(len(files)))]
        samples = audio.load(path, rate)
        if len(samples) < seconds * rate:
            continue
        start = int(rng.integers(len(samples) - seconds * rate + 1))
        clip = samples[start : start + seconds * rate]
        if clip.std() > _SILENT:
            found.append((path, start / rate, clip))
        if len(found) == count:
            break
    return found


def matched(
    index: SearchIndex, searcher: Searcher, clip: NDArray[np.float32], file: Path | None, start: float
) -> bool:
    """Tell if a clip's best position is a match and, where a file is given, the right one."""
    query = query_vectors(searcher, clip)
    best = search(index, searcher, query, top=1)[0]
    least = bar(index, searcher, query, best.item)
    right = file is None or (best.file == str(file) and abs(best.start_s - start) < _NEAR_S)
    return right and least is not None and best.score >= least.score


def main(
    folder: Annotated[Path, typer.Argument(help="Recordings to index.")],
    others: Annotated[list[Path], typer.Argument(help="Recordings of which nothing is in FOLDER.")],
    model: Annotated[Path | None, typer.Option(help="Folder of a search model. Default: log-mel.")] = None,
    count: Annotated[int, typer.Option(min=1, help="Clips of each length.")] = 100,
) -> None:
    """Print hits and false alarms of searches at the index's own threshold."""
    searcher = open_searcher(model)
    with tempfile.TemporaryDirectory() as temporary:
        built = build_index([folder], searcher, Path(temporary, "index"))
        index = SearchIndex.open(Path(temporary, "index"))
        typer.echo(f"{built.done} files, {built.seconds / 3600:.2f} h; threshold {index.threshold}\n")
        lengths = [
            s for s in _SECONDS if s <= searcher.window_s + (searcher.item_windows - 1) * searcher.hop_s
        ]
        rows = []
        for source in (folder, *others):
            drawn = [clips(find_audio([source]), searcher.sample_rate, s, count) for s in lengths]
            for name, change in CHANGES.items():
                cells = []
                for some in drawn:
                    hits = [
                        matched(index, searcher, change(clip, searcher.sample_rate),
                                path if source == folder else None, start)
                        for path, start, clip in some
                    ]  # fmt: skip
                    cells.append(f"{100 * np.mean(hits):.0f}" if hits else "")
                rows.append([source.name, name, *cells])
    head = ["clips of", "changed", *(f"{s} s, %" for s in lengths)]
    typer.echo(markdown_table(head, rows), nl=False)


if __name__ == "__main__":
    typer.run(main)
