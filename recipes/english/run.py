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
from spoken.packing import write_pack
from spoken.real import HELD_OUT, recordings, write_labelled

from isotone.files import atomic_folder
from isotone.model import Model
from isotone.pipeline import Pipeline
from isotone.training.config import load_recipe
from isotone.training.run import run

HERE = Path(__file__).parent
BUILT = HERE / "pronunciations" / "built"
# pronunciations of real speech, which the aligner chooses from
TOKENS = (
    "tokens.closures=lattice",
    "tokens.pronouncer={kind: chain, pronouncers: ["
    f"{{kind: english, file: '{BUILT}/english_words.xz', phones: 48, closures: sil}}, "
    f"{{kind: letters, file: '{BUILT}/english_letters.safetensors', phones: 48, closures: sil}}]}}",
)


def main() -> None:
    """Run all stages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("speech", type=Path, nargs="+", help="folders of real speech with transcripts")
    parser.add_argument("--out", type=Path, default=Path("runs/english"), help="folder of all stages")
    parser.add_argument("--hours", type=float, default=3.0, help="hours of synthetic scenes")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of self-training")
    parser.add_argument("--package", type=Path, help="write the model pack here, as plugins/isotone_english")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="key=value", help="settings for all trainings"
    )
    given = parser.parse_args()
    speech, overrides = given.speech, given.set
    if absent := [str(path) for path in speech if not path.is_dir()]:
        raise SystemExit(f"error: no folder {', '.join(absent)}.")
    scenes = given.out / "scenes"
    if not scenes.is_dir():
        transcripts = [
            p for root in speech for p in sorted([*root.rglob("*.trans.txt"), *root.rglob("metadata.csv")])
        ]
        with atomic_folder(scenes) as folder:
            write_scenes(folder, transcripts, given.hours, 0.1, given.seed)
    settings = [*TOKENS, f"seed={given.seed}", *overrides]
    model = _train(given.out / "first", scenes, settings)
    for number in range(1, given.rounds + 1):
        corpus = given.out / f"corpus{number}"
        if not corpus.is_dir():
            _label(corpus, scenes, model, speech)
        again = [f"init={model}", "train.steps=800", "train.lr=5e-4", "objective.ottc.loss.path_after=0.7"]
        model = _train(given.out / f"round{number}", corpus, [*again, *settings])
    print(f"The aligner is in {model}.")
    if given.package:
        labelled = {
            c.name: json.loads((c / "labelled.json").read_text()) for c in sorted(given.out.glob("corpus*"))
        }
        facts = {
            "scenes_hours": given.hours,
            "seed": given.seed,
            "overrides": overrides,
            "labelled": labelled,
        }
        write_pack(model, given.package, speech, facts)
        print(f"The pack is in {given.package}.")


def _train(output: Path, corpus: Path, settings: list[str]) -> Path:
    if not (output / "model").is_dir():
        run(load_recipe(HERE / "aligner.yaml", [f"data.root={corpus}", f"output={output}", *settings]))
    return output


def _label(corpus: Path, scenes: Path, model: Path, speech: list[Path]) -> None:
    """Write a corpus of the scenes and of real speech with the model's labels."""
    pipeline = Pipeline(Model.load(model), closures=True)
    with atomic_folder(corpus) as folder:
        shutil.copytree(scenes, folder, copy_function=os.link, dirs_exist_ok=True)
        sources = [r for root in speech for r in recordings(root) if r.speaker not in HELD_OUT]
        counts = write_labelled(folder, pipeline, sources)
        (folder / "labelled.json").write_text(json.dumps(counts, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
