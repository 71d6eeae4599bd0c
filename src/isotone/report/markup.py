"""Text, pictures and sound made fit to stand inside an HTML page."""

from __future__ import annotations

import base64
import html
import io
import re

import numpy as np
import soundfile
from numpy.typing import NDArray

from isotone.report.spectrum import mono


def escape(text: object) -> str:
    """Text safe between tags and in quoted attributes; characters no page may hold become U+FFFD."""
    clean = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", "\ufffd", str(text))
    return html.escape(clean, quote=True)


def data_uri(kind: str, data: bytes) -> str:
    """Bytes as a ``data:`` address; ``kind`` is the media type."""
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def wav_uri(audio: NDArray[np.floating], sample_rate: int) -> str:
    """Mono audio ``(N,)`` in [-1, 1] as a 16-bit WAV ``data:`` address; louder samples are clipped."""
    samples = np.clip(mono(audio, sample_rate), -1.0, 1.0)
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, int(sample_rate), format="WAV", subtype="PCM_16")
    return data_uri("audio/wav", buffer.getvalue())
