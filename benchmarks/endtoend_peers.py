"""The peers of ``benchmarks.endtoend``, as scripts of their own: they import nothing of isotone.

``python endtoend_peers.py NAME FOLDER OUT`` aligns the recordings of a folder, and writes a CTM file of words for each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile

RATE = 16_000
#: File of a folder with pronunciations of its words, in the phones of pocketsphinx.
PRONUNCIATIONS = "pronunciations.json"
Words = list[tuple[str, float, float]]


def recordings(folder: Path) -> Iterator[tuple[str, np.ndarray, str]]:
    """Iterate over the names, samples and texts of a folder."""
    for path in sorted(folder.glob("*.wav")):
        samples, _ = soundfile.read(path, dtype="float32")
        yield path.stem, samples, path.with_suffix(".txt").read_text("utf-8")


def pocketsphinx(folder: Path) -> Iterator[tuple[str, Words]]:
    """Align by pocketsphinx: its own model, words and then phones; ten-millisecond frames."""
    from pocketsphinx import Decoder

    decoder = Decoder(samprate=RATE, bestpath=False, loglevel="FATAL")
    spoken = json.loads((folder / PRONUNCIATIONS).read_text("utf-8"))
    for name, samples, text in recordings(folder):
        for word in text.split():
            if decoder.lookup_word(word) is None:
                decoder.add_word(word, spoken[word], True)
        sound = (np.clip(samples, -1, 1) * 32767).astype(np.int16).tobytes()
        decoder.set_align_text(text)
        for again in (False, True):
            if again:
                decoder.set_alignment()
            decoder.start_utt()
            decoder.process_raw(sound, full_utt=True)
            decoder.end_utt()
        alignment = decoder.get_alignment()
        yield name, [(w.name, w.start / 100, (w.start + w.duration) / 100) for w in alignment or ()]


def torchaudio(folder: Path) -> Iterator[tuple[str, Words]]:
    """Align as torchaudio's tutorial does, by a Wav2Vec2 of 300 million random weights."""
    import torch
    from torchaudio.functional import forced_align, merge_tokens
    from torchaudio.models import wav2vec2_xlsr_300m

    torch.manual_seed(0)
    model = wav2vec2_xlsr_300m(aux_num_out=29).eval()
    letters = {letter: 1 + i for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz'")}
    for name, samples, text in recordings(folder):
        words = [[letters[c] for c in word if c in letters] for word in text.split()]
        with torch.inference_mode():
            log_probs = model(torch.from_numpy(samples)[None])[0].log_softmax(-1)
        labels = torch.tensor([[label for word in words for label in word]])
        path, scores = forced_align(log_probs, labels, blank=0)
        spans = iter(merge_tokens(path[0], scores[0]))
        hop = len(samples) / RATE / log_probs.shape[1]
        own = [[next(spans) for _ in spelt] for spelt in words]
        found = zip(text.split(), own)
        yield name, [(word, s[0].start * hop, s[-1].end * hop) for word, s in found if s]


PEERS = {"pocketsphinx": pocketsphinx, "torchaudio": torchaudio}


def main() -> None:
    """Run a peer."""
    name, folder, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    for stem, words in PEERS[name](folder):
        lines = (f"{stem} 1 {start:.3f} {end - start:.3f} {word}\n" for word, start, end in words)
        (out / f"{stem}.ctm").write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main()
