"""Counts of the pauses beside frequent words, as a model finds them in real speech.

``python recipes/english/pauses.py SPEECH...``

SPEECH are folders as run.py takes them. Speakers that are never trained on are left out here as well.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pronunciations.pausing import LEAST, PAUSES, PauseCounts, write_pauses
from spoken.real import HELD_OUT, recordings

from isotone.alignment import SILENCE, AlignmentError
from isotone.audio import AudioError, load
from isotone.files import check_target
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.text.normalize import TextError


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("speech", type=Path, nargs="+", help="folders of real speech with transcripts")
    parser.add_argument("--model", default="english", help="model that aligns them [default: english]")
    parser.add_argument(
        "--out", type=Path, default=PAUSES, help="table of the counts [default: the recipe's]"
    )
    given = parser.parse_args()
    if absent := [str(path) for path in given.speech if not path.is_dir()]:
        raise SystemExit(f"error: no folder {', '.join(absent)}.")
    check_target(given.out, lambda content: content.startswith(b"# Pauses"))
    counts, left_out = counted(given.speech, given.model)
    write_pauses(given.out, counts)
    print(f"{counts.places:,} places between words, {counts.pauses:,} with a pause")
    print(f"{given.out}: words that occur {LEAST} times or more")
    for path, error in left_out:
        print(f"left out: {path.stem}: {error}", file=sys.stderr)
    if left_out:
        raise SystemExit(1)


def counted(speech: list[Path], model: str) -> tuple[PauseCounts, list[tuple[Path, Exception]]]:
    """Count the pauses beside the words of recordings; return also those that could not be read or aligned, and why."""
    pipeline = Pipeline(Model.load(model), check=False, presence=False)
    counts, left_out = PauseCounts(), list[tuple[Path, Exception]]()
    for source in (one for root in speech for one in recordings(root) if one.speaker not in HELD_OUT):
        try:
            samples = load(source.path, pipeline.model.encoder.sample_rate)
            found = pipeline.align(source.path.stem, samples, pipeline.encode(source.text))
        except (AlignmentError, AudioError, TextError) as error:
            left_out.append((source.path, error))
            continue
        counts.add([word for word in found.alignment.tier("words") if word.label not in SILENCE])
    return counts, left_out


if __name__ == "__main__":
    main()
