"""Counts of the pauses beside frequent words, as a model finds them in real speech.

``python recipes/english/pauses.py SPEECH...``

SPEECH are folders as run.py takes them. Speakers that are never trained on are left out here as well.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pronunciations.pausing import LEAST, PAUSES, PauseCounts, write_pauses
from spoken.real import HELD_OUT, recordings

from isotone.alignment import SILENCE, AlignmentError
from isotone.audio import load
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
    print(
        f"{counts.places:,} places between words, {counts.pauses:,} with a pause; {left_out} recordings left out"
    )
    print(f"{given.out}: words that occur {LEAST} times or more")


def counted(speech: list[Path], model: str) -> tuple[PauseCounts, int]:
    """Count the pauses beside the words of recordings; return also how many could not be aligned."""
    pipeline = Pipeline(Model.load(model), check=False, presence=False)
    counts, left_out = PauseCounts(), 0
    for source in (one for root in speech for one in recordings(root) if one.speaker not in HELD_OUT):
        samples = load(source.path, pipeline.model.encoder.sample_rate)
        try:
            found = pipeline.align(source.path.stem, samples, pipeline.encode(source.text))
        except (AlignmentError, TextError):
            left_out += 1
            continue
        counts.add([word for word in found.alignment.tier("words") if word.label not in SILENCE])
    return counts, left_out


if __name__ == "__main__":
    main()
