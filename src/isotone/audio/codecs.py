"""Lossy codecs: a recording as it sounds after it was sent or stored at a low rate; times stay as they are."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

# Seconds of silence after what is coded.
_PAD_S = 0.1


class _Codec(NamedTuple):
    """A codec of libsndfile.

    Attributes:
        format: The container.
        subtype: The codec in it.
        rate: Hz that are coded.
        levelled: True where it has a level of compression.
    """

    format: str
    subtype: str
    rate: int
    levelled: bool


#: Codecs by name: of music and messages at 16 kHz, and of telephones at 8.
CODECS = {
    "mp3": _Codec("MP3", "MPEG_LAYER_III", 16_000, True),
    "opus": _Codec("OGG", "OPUS", 16_000, True),
    "vorbis": _Codec("OGG", "VORBIS", 16_000, True),
    "gsm": _Codec("WAV", "GSM610", 8_000, False),
    "mu-law": _Codec("WAV", "ULAW", 8_000, False),
}


def coded(samples: NDArray[Any], rate: int, codec: str, level: float = 0.99) -> NDArray[np.float32]:
    """Encode and decode a recording, without delay.

    Args:
        samples: ``(N,)``, full scale at 1.
        rate: Hz.
        codec: Of :data:`CODECS`.
        level: Of compression, 0 to 1 (lowest rate); GSM and mu-law have one rate. Speech has 21 kbit/s at .99 as
            MP3, 9 as Opus, and 28 as Vorbis.

    Returns:
        ``(N,)``.

    Raises:
        ValueError: an unknown codec.
    """
    if codec not in CODECS:
        raise ValueError(f"No codec is called {codec!r}; there are {', '.join(CODECS)}.")
    kind = CODECS[codec]
    options = {"compression_level": level} if kind.levelled else {}
    # the frames of codecs fill up, and some cannot read back less than one
    padded = np.pad(np.asarray(samples, np.float32), (0, round(_PAD_S * rate)))
    file = io.BytesIO()
    soundfile.write(
        file,
        soxr.resample(padded, rate, kind.rate),
        kind.rate,
        format=kind.format,
        subtype=kind.subtype,
        **options,
    )
    file.seek(0)
    decoded, _ = soundfile.read(file, dtype="float32")
    return soxr.resample(decoded, kind.rate, rate)[: len(samples)]
