"""Draw the alignment of a recording: ``python docs/picture.py RECORDING "TEXT"`` writes alignment.png.

The picture of the README is LJ001-0174 of LJSpeech (public domain).
"""

from __future__ import annotations

import sys
from pathlib import Path

import isotone
from isotone.alignment import Alignment, Tier
from isotone.report.tiers import tiers_figure

SECONDS = 4.0


def main(recording: str, text: str) -> None:
    """Align a recording by the pack of English, and draw wave, spectrogram, words and phones."""
    aligned = isotone.align(recording, text)
    alignment = aligned.alignment
    rows = {
        tier.name: Alignment(alignment.id, alignment.duration, (Tier("row", tier.segments),))
        for tier in alignment.tiers
    }
    end = min(SECONDS, alignment.duration)
    figure = tiers_figure(aligned.samples, aligned.sample_rate, rows, "row", start_s=0.0, end_s=end)
    figure.savefig(Path(__file__).parent / "alignment.png", dpi=100)


if __name__ == "__main__":
    main(*sys.argv[1:])
