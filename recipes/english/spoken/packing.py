"""The model pack: a trained aligner in half precision, with its thresholds, its margins and the facts of its making."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from isotone import __version__
from isotone.corpus.librispeech import LibriSpeechCorpus
from isotone.corpus.timit import TimitCorpus
from isotone.files import atomic_write
from isotone.model import Model
from isotone.model.check import Check
from isotone.model.onnx import add_onnx
from isotone.training import margins
from isotone.training.data import Utterances
from isotone.training.presence import fit
from isotone.training.threshold import measure
from spoken.real import HELD_OUT

LICENCE = Path(__file__).parents[1] / "pronunciations" / "built" / "LICENSE.cmudict"
SPLIT = "three speakers of LibriSpeech's dev-clean"
KNOWN = "synthetic scenes of other voices, in noise and rooms"
# more than of other models: here wrong and right transcripts of real speech are far apart
FLAGGED = 0.99


def write_pack(
    run: Path, package: Path, speech: Sequence[Path], known: Path, facts: dict[str, object]
) -> None:
    """Write the model of a run into a package, as ``model``, and its facts as ``training.json``.

    The thresholds of doubt and of the presence of words are measured on held-out speakers, where the speech has them.
    Then margins are fitted as well.

    Args:
        run: The run folder.
        package: The folder of the package.
        speech: Folders of real speech.
        known: See :func:`with_margins`.
        facts: What the run was made with.
    """
    model = Model.load(run)
    for root in speech:
        if all(any(root.rglob(speaker)) for speaker in HELD_OUT):
            model.check = checked(model, root)
    write_model(with_margins(model, known), package)
    # the lexicon's licence travels with it
    shutil.copyfile(LICENCE, package / LICENCE.name)
    made = {"isotone": __version__, **facts, "speech": {root.name: fingerprint(root) for root in speech}}
    with atomic_write(package / "training.json") as file:
        file.write(json.dumps(made, indent=1) + "\n")


def write_model(model: Model, package: Path) -> None:
    """Write a model into a package, with its graph for onnxruntime."""
    model.save(package / "model", half=True)
    add_onnx(Model.load(package / "model"), package / "model")


def with_margins(model: Model, known: Path) -> Model:
    """Fit the margins of a model that has thresholds.

    Args:
        model: The model.
        known: Scenes of other voices than those that it was trained with, in the files of TIMIT.
    """
    rows = TimitCorpus(known, phones=39, closures="merge", silence="drop").load("all")
    data = Utterances(rows, model.tokenizer, model.encoder.sample_rate, 0.0, model.encoder.frames)
    if model.check is not None:
        model.check = replace(model.check, margins=margins.fit(model, data, KNOWN))
    return model


def checked(model: Model, root: Path) -> Check | None:
    """Measure the thresholds of a model on the held-out speakers of LibriSpeech's dev-clean."""
    rows = LibriSpeechCorpus(root, test_speakers=HELD_OUT).load("test")
    data = Utterances(rows, model.tokenizer, model.encoder.sample_rate, 0.0, model.encoder.frames)
    check = measure(model, data, SPLIT, FLAGGED)
    return check and replace(check, presence=fit(model, data, SPLIT))


def fingerprint(root: Path) -> str:
    """Return a digest of the names and sizes of all files below a folder."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    lines = (f"{path.relative_to(root).as_posix()} {path.stat().st_size}\n" for path in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]
