"""Filling of the page's templates, and text, pictures and sound in the form that a page can hold."""

from __future__ import annotations

import base64
import io
import re
from functools import cache
from importlib import resources

import numpy as np
import soundfile
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from isotone.report.spectrum import mono

# Control characters and halves of surrogate pairs: no page may hold them.
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def clean(value: object) -> object:
    """Replace the characters that no page may hold by U+FFFD; markup stays as it is."""
    return value if isinstance(value, Markup) else _FORBIDDEN.sub("\ufffd", str(value))


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("isotone.report", "templates"),
        autoescape=True,
        finalize=clean,
        undefined=StrictUndefined,
        trim_blocks=True,
    )


def fill(template: str, **values: object) -> str:
    """Fill a template of this package; every value is escaped."""
    return _environment().get_template(f"{template}.html.j2").render(**values)


def read(name: str) -> str:
    """Read a style sheet or a script of this package."""
    return resources.files("isotone.report").joinpath("templates", name).read_text(encoding="utf-8")


def data_uri(kind: str, data: bytes) -> str:
    """Write bytes as a ``data:`` address; ``kind`` is the media type."""
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def wav_uri(audio: NDArray[np.floating], sample_rate: int) -> str:
    """Write mono audio ``(N,)`` in [-1, 1] as a 16-bit WAV ``data:`` address; louder samples are clipped."""
    samples = np.clip(mono(audio, sample_rate), -1.0, 1.0)
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, int(sample_rate), format="WAV", subtype="PCM_16")
    return data_uri("audio/wav", buffer.getvalue())
