"""The model pack: a trained aligner in half precision, with its thresholds of doubt and the facts of its making.

``python -m spoken.packing PACKAGE SPEECH...``, in ``recipes/english``, measures the thresholds of a pack again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from isotone import __version__
from isotone.corpus.librispeech import LibriSpeechCorpus
from isotone.files import atomic_write
from isotone.model import Model
from isotone.model.check import Check
from isotone.training.data import Utterances
from isotone.training.presence import fit
from isotone.training.threshold import measure
from spoken.real import HELD_OUT

LICENCE = Path(__file__).parents[1] / "pronunciations" / "built" / "LICENSE.cmudict"
SPLIT = "three speakers of LibriSpeech's dev-clean"


def write_pack(run: Path, package: Path, speech: Sequence[Path], facts: dict[str, object]) -> None:
    """Write the model of a run into a package, as ``model``, and its facts as ``training.json``.

    Thresholds of doubt are measured on held-out speakers, where the speech has them.

    Args:
        run: The run folder.
        package: The folder of the package.
        speech: Folders of real speech.
        facts: What the run was made with.
    """
    model = Model.load(run)
    model.check = checked(model, speech)
    model.save(package / "model", half=True)
    # the lexicon's licence travels with it
    shutil.copyfile(LICENCE, package / LICENCE.name)
    made = {"isotone": __version__, **facts, "speech": {root.name: fingerprint(root) for root in speech}}
    with atomic_write(package / "training.json") as file:
        file.write(json.dumps(made, indent=1) + "\n")


def checked(model: Model, speech: Sequence[Path]) -> Check | None:
    """Measure when texts and words are doubtful; None without the corpus that has the held-out speakers.

    The probabilities of words are fitted to its other speakers; all thresholds are those of the held-out ones.
    """
    for root in speech:
        if not all(any(root.rglob(speaker)) for speaker in HELD_OUT):
            continue
        corpus = LibriSpeechCorpus(root, test_speakers=HELD_OUT)
        heard, held_out = (
            Utterances(
                corpus.load(split), model.tokenizer, model.encoder.sample_rate, 0.0, model.encoder.frames
            )
            for split in ("train", "test")
        )
        model.check = None  # words are judged by what is measured here
        if (check := measure(model, held_out, SPLIT)) is not None:
            return replace(check, presence=fit(model, heard, held_out, SPLIT))
    return None


def fingerprint(root: Path) -> str:
    """Return a digest of the names and sizes of all files below a folder."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    lines = (f"{path.relative_to(root).as_posix()} {path.stat().st_size}\n" for path in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


if __name__ == "__main__":
    folder, *speech = map(Path, sys.argv[1:])
    pack = Model.load(folder / "model")
    pack.check = checked(pack, speech)
    pack.save(folder / "model", half=True)
