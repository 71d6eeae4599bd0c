"""Signed boundary errors as a figure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from isotone.report.panels import NAME_LENGTH, new_figure
from isotone.report.style import INK, WIDE_IN, looks, set_title, short, styled


@styled
def error_figure(
    errors: Mapping[str, NDArray[np.floating]], *, limit_s: float = 0.1, title: str = ""
) -> Figure:
    """Draw the distribution of signed boundary errors, and the share of boundaries within a tolerance.

    Left, the density of the signed error (right of zero: too late) with the median marked; right, the
    share of boundaries whose absolute error is at most x. Errors past the limit are not drawn on the left;
    the legend says how many there are. They count in both shares and medians.

    Args:
        errors: For every system, ``(N,)`` predicted minus reference times in seconds.
        limit_s: Where both panels end.
        title: Heading.

    Raises:
        ValueError: ``limit_s`` is not positive, or an error is not finite.
    """
    if limit_s <= 0:
        raise ValueError(f"error_figure expects limit_s > 0 seconds; got {limit_s}.")
    figure, (density, share) = new_figure(1, 2, width=WIDE_IN, height=3.9)
    styles = looks(errors)
    limit = 1000 * limit_s
    bins = np.linspace(-limit, limit, 81)
    names = []
    for name, values in errors.items():
        look = styles[name]
        ms = 1000 * np.asarray(values, dtype=float)
        if not np.isfinite(ms).all():
            raise ValueError(
                f"error_figure expects finite errors in seconds; those of {name!r} hold NaN or infinity."
            )
        if not len(ms):
            names.append(f"{short(name, NAME_LENGTH)}: no boundaries")
            continue
        counts, _ = np.histogram(ms, bins)
        density.stairs(
            100 * counts / len(ms) / (bins[1] - bins[0]), bins, color=look.colour, lw=1.6, ls=look.dash
        )
        density.axvline(float(np.median(ms)), color=look.colour, lw=1.0, ls=look.dash, ymax=0.06)
        outside = 100 * float((np.abs(ms) > limit).mean())
        median = f"{np.median(ms):+.1f}".replace("-", "\u2212")
        names.append(
            f"{short(name, NAME_LENGTH)}: median {median} ms, {outside:.1f} % beyond {limit:g} ms (n = {len(ms):,})"
        )
        order = np.sort(np.abs(ms))
        x = np.concatenate([[0.0], order[order <= limit], [limit]])
        y = 100 * np.searchsorted(order, x, side="right") / len(order)
        share.step(x, y, where="post", color=look.colour, ls=look.dash)
    density.axvline(0, color=INK, lw=0.8, zorder=1)
    density.set_xlim(-limit, limit)
    density.set_ylim(bottom=0)
    density.set_xlabel("error (ms): early  ◂  0  ▸  late")
    density.set_ylabel("boundaries (% per ms)")
    share.set_xlim(0, limit)
    share.set_ylim(0, 101.5)
    share.set_xlabel("tolerance (ms)")
    share.set_ylabel("boundaries within it (%)")
    set_title(figure, title)
    handles = [Line2D([], [], color=look.colour, ls=look.dash) for look in styles.values()]
    if handles:
        figure.legend(handles, names, loc="outside lower left", ncols=1, handlelength=2.4)
    return figure
