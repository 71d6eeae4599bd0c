"""The files that the commands of the documentation name: recordings of a synthetic voice, texts, small models, runs."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import soundfile

from isotone import formats
from isotone.alignment import Alignment, Segment, Tier
from isotone.text.espeak import SAMPLE_RATE, Engine
from tests import doc_blocks
from tests.paths import ROOT
from tests.tiny_models import LETTERS, isotone, save_adapters, save_character_model, save_transformers_model

LINES = ["She washed the dog.", "The cold rain fell on the town.", "The boat left at nine."]


def make(folder: Path, recipes: Path) -> None:
    """Write them to a folder; ``recipes`` holds small ones named ``base.yaml``, ``ctc.yaml`` and ``joint.yaml``."""
    _recordings(folder)
    _transcripts(folder)
    _book(folder)
    model = save_character_model(folder / "MODEL")
    shutil.copytree(model, folder / "runs/demo/joint")
    save_transformers_model(folder / "facebook/wav2vec2-base-960h")
    special = ["<pad>", "<s>", "</s>", "<unk>", "|"]
    save_adapters(folder / "facebook/mms-1b-all", {x: [*special, *LETTERS] for x in ("deu", "eng")})
    shutil.copytree(recipes, folder / "recipes/timit")
    for name in ("runs/timit/ctc", "runs/librispeech/ctc"):
        shutil.copytree(ROOT / "tests/fixtures/run_0_1_0", folder / name)
    _alignments(folder)


def _recordings(folder: Path) -> None:
    engine = Engine()

    def say(name: str, number: int, voice: str = "en-us+f1", text: str = "") -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        samples = engine.say(LINES[number], voice=voice).samples
        # whatever the name says, libsndfile reads the content
        soundfile.write(path, samples, SAMPLE_RATE, format="FLAC" if path.suffix != ".wav" else "WAV")
        if text:
            path.with_suffix(text).write_text(LINES[number])
        return path

    for name in ("talk.wav", "interview.wav", "hour.wav"):
        say(name, 0, text=".txt")
    for name in ("talk.m4a", "film.mkv", "a.wav"):
        say(name, 0)
    # adaptation needs six
    for number, name in enumerate(
        ("anna/a1.wav", "anna/a2.wav", "anna/a3.wav", "ben/b1.wav", "ben/b2.wav", "c1.flac")
    ):
        number, voice = number % 3, "en-us+f1" if number < 3 else "en-us+m3"
        say(f"speech/{name}", number, voice, text=".lab")
        say(f"CORPUS/{name}", number, voice, text=".lab")
        for texts in ("transcripts", "TEXTS"):
            path = (folder / texts / Path(name)).with_suffix(".txt")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(LINES[number])
    for number, name in enumerate(("recordings/one.wav", "recordings/two.wav")):
        say(name, number)
    say("more/three.wav", 2)
    say("anna/sa1.wav", 0, text=".txt")
    say("readers/sa1.wav", 0, "en-us+m3")
    say("song.flac", 1)
    say("live.flac", 1, "en-us+m3")
    concert, rate = soundfile.read(say("concert.flac", 1))
    soundfile.write(folder / "clip.wav", concert[rate // 4 : 5 * rate // 4], rate)


def _transcripts(folder: Path) -> None:
    (folder / "talk.lab").write_text(LINES[0])
    (folder / "speech.txt").write_text(LINES[0])
    (folder / "transcripts.txt").write_text("\n".join(LINES))
    (folder / "names.dict").write_text("dog d ao g\n")
    seconds = soundfile.info(folder / "talk.wav").duration
    (folder / "film.srt").write_text(
        f"1\n00:00:00,000 --> 00:00:0{seconds:.3f}\n{LINES[0]}\n".replace(".", ",", 1)
    )
    tiers = (Tier("Ann", (Segment("She washed", 0, seconds / 2),)), Tier("Ben", ()), Tier("gestures", ()))
    rough = formats.build("textgrid").dumps(Alignment("interview", seconds, tiers))
    (folder / "interview.TextGrid").write_text(rough)
    passage = {"start": 0.0, "end": seconds, "text": LINES[0]}
    (folder / "whisper.json").write_text(json.dumps({"segments": [passage]}))


def _book(folder: Path) -> None:
    """The chapters and the text of the tutorial on books."""
    with contextlib.chdir(folder):
        doc_blocks.run(doc_blocks.blocks(ROOT / "docs/tutorials/book.md")[:1])
        Path("alice").rename("audiobook")
        Path("alice.txt").rename("book.txt")


def _alignments(folder: Path) -> None:
    """Alignments of the recordings by isotone, and the same as if others had made them."""
    isotone("align", folder / "speech", "--out", folder / "aligned")
    isotone("align", folder / "talk.wav", "--out", folder)
    isotone("align", folder / "anna/sa1.wav", "--out", folder / "anna")
    for name in ("reference", "corrected", "other", "OUT", "REFERENCE"):
        shutil.copytree(folder / "aligned", folder / name, ignore=shutil.ignore_patterns(".*"))
