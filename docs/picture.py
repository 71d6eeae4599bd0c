"""Draw a sentence as three systems align it, beside hand labels: ``python -m docs.picture`` writes alignment.png.

The recording and its labels are Tim Mahrt's, from the examples of praatIO 6.2 (pictured/LICENSE, MIT); only the rate
was changed. pocketsphinx is drawn where it is installed (`pip install pocketsphinx`).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from benchmarks.aligners.systems import PocketSphinx, System, Times, isotone_system
from isotone import audio, formats
from isotone.alignment import Alignment, Tier
from isotone.report.tiers import tiers_figure

FOLDER = Path(__file__).parent
RATE = 16_000
TEXT = "Mary rolled the barrel"


def main() -> None:
    """Align the recording, and draw wave, spectrogram, phones and words."""
    samples = audio.load(FOLDER / "pictured" / "mary.flac", RATE)
    duration = len(samples) / RATE
    labels = formats.build("textgrid").loads((FOLDER / "pictured" / "mary.TextGrid").read_text(), "mary")
    found = {"by hand": Times(labels.tier("words").segments, labels.tier("phones").segments)}
    found |= {name: system(samples, TEXT) for name, system in systems().items()}
    shown = {
        name: Alignment("mary", duration, (Tier("words", times.words), Tier("phones", times.phones)))
        for name, times in found.items()
    }
    figure = tiers_figure(samples, RATE, shown, ["phones", "words"], start_s=0.2, end_s=1.65)
    figure.savefig(FOLDER / "alignment.png", dpi=100)


def systems() -> dict[str, System]:
    """Return the aligners by name: ours, the same model's CTC head as most aligners use one, and pocketsphinx."""
    ours = {
        "isotone": isotone_system("english"),
        "CTC, Viterbi": isotone_system("english", refined=False, times="ctc", aligner={"name": "ctc"}),
    }
    return ours | ({"pocketsphinx": PocketSphinx()} if importlib.util.find_spec("pocketsphinx") else {})


if __name__ == "__main__":
    main()
