"""The English aligner, from nothing: synthetic scenes, training, and rounds of self-training on real speech.

``python recipes/english/run.py SPEECH...``

SPEECH are folders of real speech with transcripts: LibriSpeech's, LJSpeech's, or recordings with .txt files. What has
been done is not done again: the same command goes on where it was cut off.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path

from spoken.corpus import write_scenes
from spoken.real import HELD_OUT, recordings, write_labelled

from isotone.files import atomic_folder
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.training.config import load_recipe
from isotone.training.run import run

HERE = Path(__file__).parent


def main() -> None:
    """Run all stages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("speech", type=Path, nargs="+", help="folders of real speech with transcripts")
    parser.add_argument("--out", type=Path, default=Path("runs/english"), help="folder of all stages")
    parser.add_argument("--hours", type=float, default=3.0, help="hours of synthetic scenes")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of self-training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "overrides", nargs="*", metavar="key=value", help="settings of the recipe, for every stage"
    )
    given = parser.parse_args()
    speech = [path for path in given.speech if "=" not in str(path)]
    overrides = [str(path) for path in given.speech if "=" in str(path)]
    if absent := [str(path) for path in speech if not path.is_dir()]:
        raise SystemExit(f"error: no folder {', '.join(absent)}.")
    scenes = given.out / "scenes"
    if not scenes.is_dir():
        transcripts = [
            p for root in speech for p in sorted([*root.rglob("*.trans.txt"), *root.rglob("metadata.csv")])
        ]
        with atomic_folder(scenes) as folder:
            write_scenes(folder, transcripts, given.hours, 0.1, given.seed)
    settings = [f"seed={given.seed}", *overrides]
    model = _train(given.out / "first", scenes, settings)
    for number in range(1, given.rounds + 1):
        corpus = given.out / f"corpus{number}"
        if not corpus.is_dir():
            _label(corpus, scenes, model, speech)
        again = [f"init={model}", "train.steps=800", "train.lr=5e-4", "objective.ottc.loss.path_after=0.3"]
        model = _train(given.out / f"round{number}", corpus, [*again, *settings])
    print(f"The aligner is in {model}.")


def _train(output: Path, corpus: Path, settings: list[str]) -> Path:
    if not (output / "model").is_dir():
        run(load_recipe(HERE / "aligner.yaml", [f"data.root={corpus}", f"output={output}", *settings]))
    return output


def _label(corpus: Path, scenes: Path, model: Path, speech: list[Path]) -> None:
    """Write a corpus of the scenes and of real speech with the model's labels."""
    pipeline = Pipeline(Model.load(model))
    with atomic_folder(corpus) as folder:
        shutil.copytree(scenes, folder, copy_function=os.link, dirs_exist_ok=True)
        sources = [r for root in speech for r in recordings(root) if r.speaker not in HELD_OUT]
        counts = write_labelled(folder, pipeline, sources)
        (folder / "labelled.json").write_text(json.dumps(counts, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
