"""The split-VI plot: false splits against false merges, a curve for each policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from napari_agglo.plots._curves import check_curves, focus, marked, thinned
from napari_agglo.plots._labels import Named, label_lines
from napari_agglo.plots._style import SMALL, colours_of, need, new_axes, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_split_vi(
    curves: Mapping[str, pd.DataFrame],
    *,
    best: Mapping[str, float] | None = None,
    human: pd.DataFrame | None = None,
    threshold: float = 0.5,
    weight: float | None = None,
    limit: float | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw false splits H(S|U) against false merges H(U|S), along the merging.

    A true merge moves down, a false one to the right. Diagonals are of equal VI. A star marks the
    least VI of each curve, a circle the state at `threshold`; an open triangle at the edge stands
    for one that lies beyond it.

    Parameters
    ----------
    curves : mapping of str to DataFrame
        Name of the policy to its `vi_curve`, or to the `mean_curve` of several volumes, whose
        standard error is shaded.
    best : mapping, optional
        ``false_merge`` and ``false_split`` of the best that the superpixels allow, from
        `best_point`.
    human : DataFrame, optional
        ``false_merge`` and ``false_split`` of gold standards against each other, from
        `human_agreement`.
    threshold : float
        Where the circle is.
    weight : float, optional
        How many bits of false split a bit of false merge is worth: lines then have the slope
        -weight, and a diamond marks where one touches each curve.
    limit : float, optional
        Where both axes end; by default around what is marked.
    axes : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd
    >>> curve = pd.DataFrame({"threshold": [-np.inf, 0.3, 0.7], "false_merge": [0.1, 0.2, 2.0],
    ...                       "false_split": [2.0, 0.4, 0.0], "vi": [2.1, 0.6, 2.0]})
    >>> axes = plot_split_vi({"mean": curve}, best={"false_merge": 0.1, "false_split": 0.1})
    >>> axes.get_xlabel()
    'false merge H(U|S) (bits)'
    """
    from napari_agglo.evaluate import tangent_point

    check_curves(curves)
    axes = new_axes(5.2, 4.9) if axes is None else axes
    colours = colours_of(axes)
    marks = {name: marked(curve, threshold) for name, curve in curves.items()}
    tangents = {}
    if weight is not None:
        for name, curve in curves.items():
            at = tangent_point(curve, weight)
            tangents[name] = (at["false_merge"], at["false_split"])
    if limit is None:
        stars = [v for star, _ in marks.values() for v in star]
        limit = focus(stars, [v for _, half in marks.values() for v in half])
    axes.set(xlim=(0, limit), ylim=(0, limit), aspect="equal")
    _isoclines(axes, limit, 1.0 if weight is None else weight)
    named, avoid = [], []
    for k, (name, curve) in enumerate(curves.items()):
        colour, text, dashes = colours.line(k)
        x, y = curve["false_merge"].to_numpy(float), curve["false_split"].to_numpy(float)
        _band(axes, thinned(curve), colour)
        axes.plot(x, y, color=colour, ls=dashes, lw=1.8, label=name, gid="curve")
        star, half = marks[name]
        if name in tangents:
            _mark(axes, tangents[name], "D", 7, colour, "tangent")
            axes.axline(
                tangents[name], slope=-float(weight or 1), color=colour, lw=0.9, alpha=0.7, zorder=1
            )
        _mark(axes, half, "o", 7, colour, "at threshold")
        _mark(axes, star, "*", 13, colour, "least")
        named.append(Named(name, x, y, text))
        avoid += [_within(star, limit), _within(half, limit)]
    key = f"★ least    ● at {threshold:g}"
    if weight is not None:
        key += f"    ◆ touched by slope −{weight:g}"
    if best is not None:
        point = _within((best["false_merge"], best["false_split"]), limit)
        _mark(axes, point, "P", 9, colours.ink, "best")
        avoid.append(point)
        key += "    ✚ best possible"
    if human is not None and len(human):
        need(human, ("false_merge", "false_split"), "human")
        x, y = human["false_merge"].to_numpy(float), human["false_split"].to_numpy(float)
        axes.plot(x, y, "s", ms=4, color=colours.muted, alpha=0.8, zorder=2, gid="human")
        avoid += list(zip(x.tolist(), y.tolist(), strict=True))
        key += "    ■ people"
    axes.set(xlabel="false merge H(U|S) (bits)", ylabel="false split H(S|U) (bits)")
    plain(axes, key=key)
    axes.grid(visible=False)
    label_lines(axes, named, avoid)
    return axes


def _mark(
    axes: Axes, point: tuple[float, float], marker: str, size: float, colour: str, gid: str
) -> None:
    """Draw a marker, or at the edge an open triangle that points to where it is."""
    limit, paper = axes.get_xlim()[1], colours_of(axes).paper
    beyond = max(point) > limit
    if beyond:
        marker, size = (">" if point[0] > limit else "^"), 7
    axes.plot(
        *_within(point, limit), marker, ms=size, color=colour, mfc=paper if beyond else colour,
        mec=colour if beyond else paper, mew=1.4 if beyond else 0.7, zorder=5, clip_on=False,
        gid=gid,
    )  # fmt: skip


def _within(point: tuple[float, float], limit: float) -> tuple[float, float]:
    return min(point[0], limit), min(point[1], limit)


def _isoclines(axes: Axes, limit: float, weight: float) -> None:
    """Draw lines of equal weighted VI, each with its value where it meets the edge."""
    from matplotlib.ticker import MaxNLocator

    colours = colours_of(axes)
    for value in MaxNLocator(7).tick_values(0, (1 + weight) * limit):
        if not 0 < value < 0.97 * (1 + weight) * limit:
            continue
        axes.axline(
            (0, value), slope=-weight, color=colours.muted, lw=0.6, alpha=0.35, zorder=0,
            gid="isocline",
        )  # fmt: skip
        above = value > limit  # it meets the upper edge, not the left one
        place = ((value - limit) / weight, limit) if above else (0.0, value)
        if not above and value > 0.93 * limit:
            continue
        axes.annotate(
            f"{value:g}", place, xytext=(3, -3), textcoords="offset points", va="top",
            fontsize=SMALL - 2, color=colours.muted, zorder=0,
        )  # fmt: skip


def _band(axes: Axes, curve: pd.DataFrame, colour: str) -> None:
    """Shade the standard error, towards fewer and towards more errors of both kinds."""
    if "false_merge_sem" not in curve.columns or "false_split_sem" not in curve.columns:
        return
    x, y = curve["false_merge"].to_numpy(float), curve["false_split"].to_numpy(float)
    dx = np.nan_to_num(curve["false_merge_sem"].to_numpy(float))
    dy = np.nan_to_num(curve["false_split_sem"].to_numpy(float))
    axes.fill(
        np.concatenate([x - dx, (x + dx)[::-1]]), np.concatenate([y - dy, (y + dy)[::-1]]),
        color=colour, alpha=0.2, lw=0, zorder=1, gid="standard error",
    )  # fmt: skip
