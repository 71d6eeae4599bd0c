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

from spoken.corpus import write_known, write_scenes
from spoken.packing import write_pack
from spoken.real import HELD_OUT, recordings, write_labelled
from spoken.texts import transcripts_in

from isotone.files import atomic_folder
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
    given = _arguments()
    speech, out = given.speech, given.out
    if absent := [str(path) for path in speech if not path.is_dir()]:
        raise SystemExit(f"error: no folder {', '.join(absent)}.")
    scenes = out / "scenes"
    if not scenes.is_dir():
        with atomic_folder(scenes) as folder:
            write_scenes(
                folder,
                transcripts_in(speech),
                given.hours,
                0.1,
                given.seed,
                given.voices,
                workers=given.workers,
            )
    settings = [*TOKENS, f"seed={given.seed}", *given.set]
    model = _train(out / "first", scenes, [f"train.steps={given.steps}", *settings])
    again = [f"train.steps={given.round_steps}", "train.lr=5e-4", "objective.ottc.loss.path_after=0.7"]
    for number in range(1, given.rounds + 1):
        corpus = out / f"corpus{number}"
        if not corpus.is_dir():
            _label(corpus, scenes, model, speech, given.workers)
        model = _train(out / f"round{number}", corpus, [f"init={model}", *again, *settings])
    print(f"The aligner is in {model}.")
    if given.package:
        known = write_known(out / "known", transcripts_in(speech), given.seed, given.workers)
        write_pack(model, given.package, speech, known, _facts(given))
        print(f"The pack is in {given.package}.")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("speech", type=Path, nargs="+", help="folders of real speech with transcripts")
    parser.add_argument("--out", type=Path, default=Path("runs/english"), help="folder of all stages")
    parser.add_argument("--hours", type=float, default=3.0, help="hours of synthetic scenes")
    parser.add_argument("--voices", type=int, default=60, help="voices of the scenes")
    parser.add_argument("--steps", type=int, default=1200, help="steps of the first training")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of self-training")
    parser.add_argument("--round-steps", type=int, default=800, help="steps of every round")
    parser.add_argument("--workers", type=int, default=1, help="processes that make scenes and label speech")
    parser.add_argument("--package", type=Path, help="write the model pack here, as plugins/isotone_english")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="key=value", help="settings for all trainings"
    )
    return parser.parse_args()


def _facts(given: argparse.Namespace) -> dict[str, object]:
    """Return the facts of the pack's making."""
    corpora = sorted(given.out.glob("corpus*"))
    return {
        "scenes_hours": given.hours,
        "voices": given.voices,
        "steps": [given.steps, *[given.round_steps] * given.rounds],
        "seed": given.seed,
        "overrides": given.set,
        "labelled": {c.name: json.loads((c / "labelled.json").read_text()) for c in corpora},
    }


def _train(output: Path, corpus: Path, settings: list[str]) -> Path:
    if not (output / "model").is_dir():
        run(load_recipe(HERE / "aligner.yaml", [f"data.root={corpus}", f"output={output}", *settings]))
    return output


def _label(corpus: Path, scenes: Path, model: Path, speech: list[Path], workers: int) -> None:
    """Write a corpus of the scenes and of real speech with the model's labels."""
    with atomic_folder(corpus) as folder:
        shutil.copytree(scenes, folder, copy_function=os.link, dirs_exist_ok=True)
        sources = [r for root in speech for r in recordings(root) if r.speaker not in HELD_OUT]
        counts = write_labelled(folder, model, sources, workers)
        (folder / "labelled.json").write_text(json.dumps(counts, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
