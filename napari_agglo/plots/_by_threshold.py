"""VI against the threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from napari_agglo.plots._curves import check_curves, focus, steps, thinned
from napari_agglo.plots._labels import Named, label_lines
from napari_agglo.plots._style import colours_of, new_axes, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_vi_by_threshold(
    curves: Mapping[str, pd.DataFrame], *, threshold: float = 0.5, axes: Axes | None = None
) -> Axes:
    """Draw the variation of information at every threshold, a line for each policy.

    Parameters
    ----------
    curves : mapping of str to DataFrame
        Name of the policy to its `vi_curve`, or to the `mean_curve` of several volumes, whose
        standard error is shaded.
    threshold : float
        Where the circle is.
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
    >>> plot_vi_by_threshold({"mean": curve}).get_ylabel()
    'VI (bits)'
    """
    from napari_agglo.evaluate import minimum, state_at

    check_curves(curves)
    axes = new_axes() if axes is None else axes
    colours = colours_of(axes)
    finite = [c["threshold"][np.isfinite(c["threshold"])] for c in curves.values()]
    low = min(0.0, *(float(t.min()) for t in finite if len(t)), 0.0)
    high = max(1.0, *(float(t.max()) for t in finite if len(t)), 1.0)
    marks = {n: (minimum(c), state_at(c, threshold)["vi"]) for n, c in curves.items()}
    top = focus([least["vi"] for least, _ in marks.values()], [half for _, half in marks.values()])
    named, avoid = [], []
    for k, (name, curve) in enumerate(curves.items()):
        colour, text, dashes = colours.line(k)
        at, vi = curve["threshold"].to_numpy(float), curve["vi"].to_numpy(float)
        x, y = steps(at, vi, low, high)
        if "vi_sem" in curve.columns:
            _band(axes, thinned(curve), low, high, colour)
        axes.plot(x, y, color=colour, ls=dashes, lw=1.8, label=name, gid="curve")
        least, half = marks[name]
        star = (max(least["threshold"], low), least["vi"])
        beyond = half > top  # an open triangle at the edge points to it
        axes.plot(
            threshold, min(half, top), "^" if beyond else "o", ms=7, color=colour, zorder=5,
            mfc=colours.paper if beyond else colour, mec=colour if beyond else colours.paper,
            mew=1.4 if beyond else 0.7, clip_on=False, gid="at threshold",
        )  # fmt: skip
        axes.plot(
            *star, "*", ms=13, color=colour, mec=colours.paper, mew=0.7, zorder=5, clip_on=False,
            gid="least",
        )  # fmt: skip
        named.append(Named(name, x, y, text))
        avoid += [star, (threshold, min(half, top))]
    axes.axvline(threshold, color=colours.muted, lw=0.8, ls=":", zorder=0)
    axes.set(xlim=(low, high), ylim=(0, top), xlabel="threshold", ylabel="VI (bits)")
    plain(axes, key=f"★ least    ● at {threshold:g}")
    label_lines(axes, named, avoid)
    return axes


def _band(axes: Axes, curve: pd.DataFrame, low: float, high: float, colour: str) -> None:
    """Shade the standard error."""
    at, vi = curve["threshold"].to_numpy(float), curve["vi"].to_numpy(float)
    sem = np.nan_to_num(curve["vi_sem"].to_numpy(float))
    x, under = steps(at, vi - sem, low, high)
    over = steps(at, vi + sem, low, high)[1]
    axes.fill_between(x, under, over, color=colour, alpha=0.2, lw=0, gid="standard error")
