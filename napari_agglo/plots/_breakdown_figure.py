"""Plot of the VI breakdown: the error of each segment against its size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import check_choice, check_whole
from napari_agglo.plots._figure_style import SMALL, colours_of, need, new_axes, nothing, plain
from napari_agglo.plots._line_labels import label_points

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_MANY = 3000  # dots; more are drawn as pixels even in a vector file


def plot_breakdown(
    table: pd.DataFrame, *, kind: str, worst: int = 5, axes: Axes | None = None
) -> Axes:
    """Draw the error of each segment against its size; the product is its part of the VI.

    Lines join points of equal contribution. The worst segments have their ids beside them.

    Parameters
    ----------
    table : DataFrame
        ``Breakdown.gold`` (false splits) or ``Breakdown.segments`` (false merges): columns
        ``share``, ``entropy`` and ``contribution``, by id.
    kind : {"false split", "false merge"}
        Kind of errors in the table.
    worst : int
        Number of segments to name.
    axes : matplotlib Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from napari_agglo.evaluate import breakdown
    >>> parts = breakdown(np.array([3, 3, 4, 4, 5, 5]), np.array([1, 1, 1, 1, 2, 2]))
    >>> plot_breakdown(parts.gold, kind="false split").get_ylabel()
    'H(S|U=u) (bits)'
    """
    check_choice("kind", kind, ("false split", "false merge"))
    check_whole("worst", worst, 0)
    need(table, ("share", "entropy", "contribution"), "table")
    split = kind == "false split"
    axes = new_axes() if axes is None else axes
    colours = colours_of(axes)
    wrong = table[(table["contribution"] > 0) & (table["share"] > 0)]
    if len(wrong) == 0:
        kind = "gold segment is split" if split else "segment merges two of the gold standard"
        return nothing(axes, f"no {kind}")
    share, entropy = wrong["share"].to_numpy(float), wrong["entropy"].to_numpy(float)
    part = wrong["contribution"].to_numpy(float)
    colour = colours.split if split else colours.merge
    area = 6 + 150 * part / part.max()
    axes.scatter(
        share, entropy, s=area, color=colour, alpha=0.7, lw=0.5,
        edgecolor=colours.paper, zorder=3, gid=kind, rasterized=len(wrong) > _MANY, clip_on=False,
    )  # fmt: skip
    low, high = _decades(share)
    top = 1.12 * float(entropy.max())
    axes.set(xscale="log", xlim=(low, high), ylim=(0, top))
    _ticks(axes, low, high)
    axes.set(
        xlabel="size of the gold segment, P(u)" if split else "size of the segment, P(s)",
        ylabel="H(S|U=u) (bits)" if split else "H(U|S=s) (bits)",
    )
    _isocurves(axes, part, low, high, top)
    named = np.argsort(-part, kind="stable")[:worst]
    points = np.column_stack([share, entropy])
    ids = [str(wrong.index[at]) for at in named]
    label_points(axes, ids, points[named], points, np.sqrt(area[named]) / 2)
    right = int(len(table) - len(wrong))
    plain(
        axes,
        key=f"{len(wrong)} with {kind}s, together {part.sum():.3g} bits; {right} without",
    )
    return axes


def _decades(share: NDArray[np.float64]) -> tuple[float, float]:
    """Return limits of a logarithmic axis around all shares; none is above 1."""
    high = min(1.0, 2.5 * float(share.max()))
    return min(max(float(share.min()), 1e-12) / 1.6, high / 10), high


def _ticks(axes: Axes, low: float, high: float) -> None:
    """Write plain numbers: powers of ten as formulas take 0.1 s each."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    subs = (1.0,) if high / low > 100 else (1.0, 2.0, 5.0)
    axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _isocurves(axes: Axes, part: NDArray[np.float64], low: float, high: float, top: float) -> None:
    """Draw curves of equal contribution, at a few round values up to the largest."""
    colours = colours_of(axes)
    most = 10.0 ** np.floor(np.log10(part.max()))
    x = np.geomspace(low, high, 200)
    for value in (most / 100, most / 10, most):
        axes.plot(x, value / x, color=colours.muted, lw=0.6, alpha=0.5, zorder=1, gid="isocurve")
        at = value / top
        if low * 1.5 < at < high / 1.5:
            axes.annotate(
                f"{value:.3g} bits", (at, top), xytext=(4, -2), textcoords="offset points",
                fontsize=SMALL - 1.5, color=colours.muted, va="top",
            )  # fmt: skip
