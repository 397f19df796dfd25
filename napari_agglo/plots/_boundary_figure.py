"""Plot of boundary precision against recall, with lines of equal F."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from napari_agglo.evaluate._vi_curve import check_curves
from napari_agglo.plots._figure_style import SMALL, colours_of, mark, new_axes, plain
from napari_agglo.plots._line_labels import Named, label_lines

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_boundaries(
    curves: Mapping[str, pd.DataFrame],
    *,
    human: Mapping[str, float] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw boundary precision against recall, a line for each policy, a star where F is greatest.

    Parameters
    ----------
    curves : mapping of str to DataFrame
        Name of the policy to its `boundary_curve`: columns ``precision``, ``recall`` and ``f``. One
        with ``attrs["training"]`` is dotted: it was measured on the data that the policy was
        trained on.
    human : mapping, optional
        ``precision`` and ``recall`` of gold standards against each other.
    axes : matplotlib Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd
    >>> curve = pd.DataFrame({"threshold": [0.2, 0.8], "precision": [0.5, 0.9],
    ...                       "recall": [0.9, 0.6], "f": [0.64, 0.72]})
    >>> plot_boundaries({"mean": curve}).get_xlabel()
    'recall'
    """
    check_curves(curves, "precision", "recall", "f")
    axes = new_axes(5.2, 4.9) if axes is None else axes
    colours = colours_of(axes)
    low = _lowest(curves.values(), human)
    axes.set(xlim=(low, 1), ylim=(low, 1), aspect="equal", xlabel="recall", ylabel="precision")
    _isolines(axes, low)
    named, avoid = [], []
    for k, (name, curve) in enumerate(curves.items()):
        colour, text, dashes = colours.line(k)
        dots = curve.attrs.get("training")
        ordered = curve.dropna(subset=["precision", "recall"])
        x, y = ordered["recall"].to_numpy(float), ordered["precision"].to_numpy(float)
        line = {"ls": ":"} if dots else {"ls": dashes, "marker": ".", "ms": 4}
        axes.plot(x, y, color=colour, lw=1.8, label=name, gid="curve", **line)
        if len(ordered):
            at = int(np.nanargmax(ordered["f"].fillna(0.0).to_numpy(float)))
            mark(axes, (x[at], y[at]), "*", 13, colour, "greatest")
            avoid.append((float(x[at]), float(y[at])))
        named.append(Named(name, x, y, text))
    key = "★ greatest F"
    if human is not None:
        axes.plot(human["recall"], human["precision"], "s", ms=6, color=colours.ink, gid="human")
        avoid.append((float(human["recall"]), float(human["precision"])))
        key += "    ■ people"
    plain(axes, key=f"{key}    thin lines: equal F")
    axes.grid(visible=False)
    label_lines(axes, named, avoid)
    return axes


def _lowest(curves: Iterable[pd.DataFrame], human: Mapping[str, float] | None) -> float:
    """Return the lower limit of both axes: a tenth well below every point of greatest F."""
    points = [float(human[key]) for key in ("precision", "recall")] if human is not None else []
    for curve in curves:
        if curve["f"].notna().any():
            at = int(np.nanargmax(curve["f"].to_numpy(float)))
            points += [float(curve[key].iloc[at]) for key in ("precision", "recall")]
    return max(0.0, math.floor(10 * (min(points, default=0.0) - 0.3)) / 10)


def _isolines(axes: Axes, low: float) -> None:
    """Draw curves of equal F, the harmonic mean of both, each with its value at the right."""
    colours = colours_of(axes)
    for f in np.arange(1, 20) / 20:
        if f / (2 - f) < low or (low < 0.5 and round(20 * f) % 2):
            continue
        x = np.linspace(f / (2 - f), 1, 100)
        axes.plot(x, f * x / (2 * x - f), color=colours.muted, lw=0.6, alpha=0.4, zorder=0,
                  gid="isoline")  # fmt: skip
        axes.annotate(
            f"{f:.2g}", (1, f / (2 - f)), xytext=(3, 0), textcoords="offset points", va="center",
            fontsize=SMALL - 1.5, color=colours.muted, annotation_clip=False,
        )  # fmt: skip
