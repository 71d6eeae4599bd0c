"""The figure of an alignment for notebooks: HTML with pictures in it, and nothing to fetch."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from isotone.alignment import Alignment, Tier
from isotone.report.markup import clean, data_uri
from isotone.report.tiers import tiers_figure

if TYPE_CHECKING:
    from isotone.quick.aligned import Aligned

#: Most seconds of one picture, and most pictures: a label needs room, and a notebook keeps every picture.
PIECE_S, PIECES = 5.0, 8

_DPI = 110


def html(aligned: Aligned) -> str:
    """Draw wave, spectrogram and tiers, in pictures one below the other; the first 40 s of a long recording.

    All text is escaped, and the result holds no script.
    """
    alignment = aligned.alignment
    head = f"{alignment.id}: {alignment.duration:.2f} s, model {aligned.model}"
    parts = [_paragraph(head)]
    about = f'alt="{_text(aligned.text)}" style="max-width:100%"'
    parts += [f'<img src="{picture}" {about}>' for picture in _pictures(aligned)]
    if alignment.duration > PIECE_S * PIECES:
        parts.append(_paragraph(f"The first {PIECE_S * PIECES:g} s are shown; print() lists all words."))
    parts += [_paragraph(f"warning: {warning}") for warning in aligned.warnings]
    return f"<div>{''.join(parts)}</div>"


def _pictures(aligned: Aligned) -> Iterator[str]:
    """Draw the pieces of a recording, as ``data:`` addresses of PNG files."""
    alignment = aligned.alignment
    rows = {
        tier.name: Alignment(alignment.id, alignment.duration, (Tier("row", tier.segments),))
        for tier in alignment.tiers
    }
    count = math.ceil(alignment.duration / PIECE_S)
    for number in range(min(count, PIECES)):
        start, end = (n * alignment.duration / count for n in (number, number + 1))
        figure = tiers_figure(aligned.samples, aligned.sample_rate, rows, "row", start_s=start, end_s=end)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=_DPI)
        yield data_uri("image/png", buffer.getvalue())


def _text(text: str) -> str:
    return escape(str(clean(text)), quote=True)


def _paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>"
