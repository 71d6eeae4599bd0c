"""Errors of boundaries before and after a model adapts to recordings.

``python -m benchmarks.adapting FOLDER [--test FOLDER] [--seeds 0 1 2] [--cut MS]``

A folder holds what ``benchmarks.aligners`` reads. The model adapts to copies of FOLDER's recordings that have texts and
no times (``isotone adapt``), once per seed. Then the words and phones of FOLDER, or of another folder, are measured. A
FOLDER without labels, such as LJSpeech, is compared with pocketsphinx (``pip install pocketsphinx``).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import soundfile

from benchmarks.aligners.recordings import RATE, Labelled, add_cut, labelled
from benchmarks.aligners.systems import PocketSphinx, isotone_system
from benchmarks.aligners.tables import report
from benchmarks.doubt import transcripts
from isotone.audio import load
from isotone.batch import Options
from isotone.batch.adapting import adapt_files
from isotone.text.normalize import normalize
from isotone.training.adapt import Settings


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.adapting",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--test", type=Path, help="labelled recordings to measure, in place of FOLDER's")
    parser.add_argument("--model", default="english")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    add_cut(parser)
    arguments = parser.parse_args()
    recordings = list(labelled(arguments.folder, arguments.cut)) or list(compared(arguments.folder))
    measured = list(labelled(arguments.test, arguments.cut)) if arguments.test else recordings
    if not (recordings and measured):
        raise SystemExit(f"error: no recordings with texts in {arguments.test or arguments.folder}.")
    systems = {f"isotone, {arguments.model}": isotone_system(arguments.model)}
    with tempfile.TemporaryDirectory() as folder:
        speech = copied(recordings, Path(folder, "speech"))
        for seed in arguments.seeds:
            out = Path(folder, f"model-{seed}")
            adapted = adapt_files(
                [speech], Options(arguments.model), out, settings=Settings(seed=seed)
            ).adapted
            print(
                f"seed {seed}: loss {adapted.before:.3f} before, {adapted.after:.3f} at step {adapted.step}"
            )
            if adapted.better:
                systems[f"adapted, seed {seed}"] = isotone_system(str(out))
        report("clean", systems, measured, [r.samples for r in measured], None)


def compared(folder: Path) -> Iterator[Labelled]:
    """Iterate over the recordings of a folder with their words as pocketsphinx places them."""
    aligner = PocketSphinx()
    for path, text in transcripts(folder):
        samples, words = load(path, RATE), normalize(text)
        try:
            yield Labelled(path.stem, samples, words, aligner(samples, words).words)
        except RuntimeError as error:
            print(f"{path}: {error}")


def copied(recordings: Sequence[Labelled], folder: Path) -> Path:
    """Write recordings with their texts beside them, without labels, and return the folder."""
    for recording in recordings:
        path = folder / f"{recording.name}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, recording.samples, RATE, subtype="FLOAT")
        path.with_suffix(".txt").write_text(recording.text, "utf-8")
    return folder


if __name__ == "__main__":
    main()
