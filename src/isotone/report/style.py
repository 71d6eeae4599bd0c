"""The look of all figures: colours by system, fonts, sizes, and writing figures to files."""

from __future__ import annotations

import functools
import io
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from isotone.files import atomic_write

P = ParamSpec("P")
R = TypeVar("R")

#: Width in inches of figures that fill the report page, and of curves.
WIDE_IN = 10.8
CURVE_IN = 7.2

INK = "#1f2328"
MUTED = "#59636e"
RULE = "#c4cad1"
GRID = "#e7eaee"

REFERENCE = "#5f6770"
CTC = "#dd7a00"
OTTC = "#1769aa"
JOINT = "#12946a"
#: For systems of any other name; told apart by marker and dash as well once these run out.
SPARE = ("#7a2be2", "#7d1609", "#c65bb0", "#0b4f52", "#1f2297")

#: Two colours for neighbouring groups of frames, far apart in lightness: they survive colour blindness and
#: grey print.
ALTERNATING = ("#1f4e79", "#f0b429")

# DejaVu Sans comes with matplotlib and holds the IPA; the others serve scripts it lacks, where installed.
_FAMILIES = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Arial Unicode MS",
    "Noto Emoji",
)

_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "h", "<", ">")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))


@dataclass(frozen=True)
class Look:
    """The look of one system: ``colour`` (hex), ``marker`` and ``dash`` (matplotlib line style)."""

    colour: str
    marker: str
    dash: Any


def looks(names: Iterable[str], reference: str | None = None) -> dict[str, Look]:
    """Choose the look of every system, no two alike while the colours last.

    A name that says ``reference``, ``ctc``, ``ottc`` or ``joint`` (or both ``ctc`` and ``ottc``) as a word
    gets that family's colour, so that a system looks the same in every figure; others get a spare one in
    order.

    Args:
        names: Names of the systems, in order of display.
        reference: The name that is the reference, whatever it is called.
    """
    names = list(dict.fromkeys(names))
    chosen: dict[str, str] = {}
    for name in names:
        colour = REFERENCE if name == reference else _family(name)
        if colour is not None and colour not in chosen.values():
            chosen[name] = colour
    spare = (SPARE[i % len(SPARE)] for i in range(len(names)))
    colours = {name: chosen.get(name) or next(spare) for name in names}
    return {
        name: Look(colours[name], _MARKERS[i % len(_MARKERS)], _DASHES[i % len(_DASHES)])
        for i, name in enumerate(names)
    }


def _family(name: str) -> str | None:
    words = set(re.findall(r"[a-z]+", name.lower()))
    if words & {"reference", "ref", "gold", "manual"}:
        return REFERENCE
    if "joint" in words or {"ctc", "ottc"} <= words:
        return JOINT
    if "ottc" in words:
        return OTTC
    return CTC if "ctc" in words else None


def tint(colour: str, share: float) -> str:
    """Mix a colour with white: ``share`` 1 is the colour, 0 is white. Returns hex."""
    red, green, blue = (1 + (c - 1) * share for c in to_rgb(colour))
    return to_hex((red, green, blue))


@functools.cache
def families() -> list[str]:
    """Return the installed font families that figures use, in order of fallback."""
    installed = set(font_manager.get_font_names())
    return [name for name in _FAMILIES if name in installed] or ["sans-serif"]


@functools.cache
def _fonts() -> list[Any]:
    return [
        font_manager.get_font(font_manager.findfont(FontProperties(family=[name]))) for name in families()
    ]


@functools.lru_cache(maxsize=4096)
def drawable(text: str) -> str:
    """Make text that the figures' fonts can draw on one line.

    Control characters and line breaks become spaces; a character that no font has becomes a box
    (the report page shows the label itself).
    """
    out = []
    for char in text:
        if unicodedata.category(char) in ("Cc", "Zl", "Zp"):
            out.append(" ")
        elif any(font.get_char_index(ord(char)) for font in _fonts()):
            out.append(char)
        elif unicodedata.category(char) not in ("Cf", "Mn"):
            out.append("\u25a1")
    return "".join(out)


def short(text: str, length: int) -> str:
    """Shorten text to a number of drawable characters; an ellipsis replaces the end."""
    text = drawable(text)
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


@functools.lru_cache(maxsize=4096)
def text_width(text: str, size: float) -> float:
    """Measure drawable text: its width in inches at a font size in points."""
    font = FontProperties(family=families(), size=size)
    return float(TextToPath().get_text_width_height_descent(text, font, ismath=False)[0]) / 72.0


@functools.lru_cache(maxsize=16384)
def fit_label(text: str, width: float, height: float) -> tuple[float, float] | None:
    """Find the largest (font size in points, rotation in degrees) at which a label fits; None where none does.

    Args:
        text: Drawable text.
        width, height: The room in inches. Level text is tried from 9 down to 6.5 points, then text
            turned by 90°.
    """
    for size in (9.0, 8.0, 7.0, 6.5):
        if text_width(text, size) + 0.025 <= width and size / 72.0 <= height:
            return size, 0.0
    for size in (8.0, 7.0, 6.0):
        # 0.8: from the top of a capital to a descender; a line's own spacing is not needed here
        if 0.8 * size / 72.0 <= width and text_width(text, size) <= height:
            return size, 90.0
    return None


def _style() -> dict[str, Any]:
    return {
        "font.family": families(),
        "font.size": 9.5,
        "text.color": INK,
        "text.parse_math": False,  # labels are data: a dollar sign is a dollar sign
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        "axes.facecolor": "white",
        "axes.edgecolor": RULE,
        "axes.linewidth": 0.8,
        "axes.labelcolor": INK,
        "axes.labelsize": 9.5,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.unicode_minus": True,
        "grid.color": GRID,
        "grid.linewidth": 0.8,
        "legend.frameon": False,
        "legend.fontsize": 9,
        "lines.linewidth": 1.9,
        "lines.markersize": 5.0,
        "svg.fonttype": "path",
        "svg.hashsalt": "isotone",
    }


#: Groups of settings that change how a figure looks; the others (backends, key maps ...) stay the user's.
_GROUPS = (
    "axes", "figure", "font", "grid", "hatch", "image", "legend", "lines", "mathtext", "patch", "path",
    "savefig", "scatter", "svg", "text", "xaxis", "xtick", "yaxis", "ytick",
)  # fmt: skip


@functools.cache
def _settings() -> Any:
    defaults = {k: v for k, v in mpl.rcParamsDefault.items() if k.split(".")[0] in _GROUPS}
    return {**defaults, **_style()}


def styled(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a drawing function: it runs under the house style, whatever the user's own settings are."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context(_settings()):
            return function(*args, **kwargs)

    return run


def tidy(axes: Axes, *, grid: bool = False, ticks: bool = True) -> Axes:
    """Set ticks and their labels now: matplotlib would read their settings only when it draws."""
    axes.tick_params(labelsize=9, labelcolor=MUTED, color=RULE, length=3 if ticks else 0, width=0.8)
    axes.grid(grid)
    return axes


def set_title(figure: Figure, title: str, left: float = 0.012) -> None:
    """Put a bold title at the figure's top left corner; nothing where the title is empty."""
    if title:
        figure.suptitle(drawable(title), x=left, ha="left", fontsize=11.5, fontweight="bold", color=INK)


@styled
def render(figure: Figure, kind: str, dpi: int = 150) -> bytes:
    """Return the bytes of a figure's file; equal figures give equal bytes.

    Args:
        figure: Any figure.
        kind: ``"png"`` or ``"svg"``.
        dpi: Dots per inch of a PNG, and of the pictures inside an SVG.

    Raises:
        ValueError: another kind.
    """
    metadata: dict[str, dict[str, str | None]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
    }
    if kind not in metadata:
        raise ValueError(f"A figure is written as png or svg; got {kind!r}. Name the file .png or .svg.")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata[kind])
    return buffer.getvalue()


def save(figure: Figure, path: Path | str, dpi: int = 200) -> tuple[Path, ...]:
    """Write a figure, whole or not at all.

    Args:
        figure: Any figure.
        path: Ends in ``.png`` or ``.svg``; with neither ending, both are written beside each other.
        dpi: Dots per inch of a PNG.

    Returns:
        The files written.
    """
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    kinds = (kind,) if kind in ("png", "svg") else ("png", "svg")
    files = tuple(path if kind in kinds else path.with_name(f"{path.name}.{k}") for k in kinds)
    for k, file in zip(kinds, files):
        data = render(figure, k, dpi)
        with atomic_write(file, mode="wb") as handle:
            handle.write(data)
    return files
