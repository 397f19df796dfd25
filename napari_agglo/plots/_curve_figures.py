"""Plots of VI curves: split VI, VI by threshold, VI by epoch of training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration import threshold_phrase
from napari_agglo.evaluate import first_threshold, minimum, state_at, tangent_point
from napari_agglo.evaluate._vi_curve import check_curves
from napari_agglo.plots._figure_style import (
    SMALL,
    colours_of,
    mark,
    need,
    new_axes,
    nothing,
    plain,
)
from napari_agglo.plots._line_labels import Named, label_lines

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_ROUNDING = 1e-9  # bits; a smaller error is 0
_COLUMNS = ("threshold", "false_merge", "false_split", "vi")


def marked(
    curve: pd.DataFrame, threshold: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return (false merge, false split) at the least VI, and at a threshold."""
    least, at = minimum(curve), state_at(curve, threshold)
    return (least["false_merge"], least["false_split"]), (at["false_merge"], at["false_split"])


def rounded_up(value: float) -> float:
    """Return the next of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten, so that ticks are round.

    Examples
    --------
    >>> rounded_up(0.23), rounded_up(7.0), rounded_up(0.0)
    (0.3, 8.0, 1.0)
    """
    if not _ROUNDING < value < np.inf:
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    steps = np.array([1, 1.5, 2, 3, 4, 5, 6, 8, 10])
    return round(float(power * steps[np.searchsorted(steps, value / power - 1e-9)]), 12)


def focus(required: Iterable[float], optional: Iterable[float] = ()) -> float:
    """Return the end of an axis from 0 that shows all of `required`, and `optional` if it is near.

    Examples
    --------
    >>> focus([0.5, 1.0], [1.5, 40.0])
    2.0
    """
    most = max(required, default=0.0)
    near = [value for value in optional if value <= 2 * most]
    return rounded_up(1.3 * max([most, *near]))


def thinned(curve: pd.DataFrame, most: int = 1500) -> pd.DataFrame:
    """Return at most `most` rows of a curve, the last included: matplotlib does not thin areas.

    Examples
    --------
    >>> import pandas as pd
    >>> thinned(pd.DataFrame({"vi": range(10)}), 4)["vi"].tolist()
    [0, 3, 6, 9]
    """
    n = len(curve)
    return curve if n <= most else curve.iloc[np.linspace(0, n - 1, most).round().astype(int)]


def steps(
    threshold: NDArray[np.float64], values: NDArray[np.float64], low: float, high: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners of a step line from `low` to `high`.

    Examples
    --------
    >>> x, y = steps(np.array([-np.inf, 0.4]), np.array([3.0, 1.0]), 0.0, 1.0)
    >>> x.tolist(), y.tolist()
    ([0.0, 0.4, 0.4, 1.0], [3.0, 3.0, 1.0, 1.0])
    """
    begins = np.clip(threshold, low, high)
    x = np.concatenate([np.repeat(begins, 2)[1:], [high]])
    return x, np.repeat(values, 2)


def plot_vi_by_epoch(epochs: pd.DataFrame, *, axes: Axes | None = None) -> Axes:
    """Draw the least VI, and that at threshold 0.5, after each epoch of training.

    Where both meet, the probabilities of the policy are calibrated.

    Parameters
    ----------
    epochs : DataFrame
        Columns ``epoch`` (0 is flat learning), ``vi_at_half`` and ``vi_min``, in bits. Several rows
        of one epoch are averaged, and their standard error is shaded.
    axes : matplotlib Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"epoch": [0, 1, 2], "vi_at_half": [0.9, 0.6, 0.5],
    ...                       "vi_min": [0.6, 0.5, 0.5]})
    >>> plot_vi_by_epoch(table).get_xlabel()
    'epochs of agglomerative learning (0 is flat)'
    """
    from matplotlib.ticker import MaxNLocator

    need(epochs, ("epoch", "vi_at_half", "vi_min"), "epochs")
    axes = new_axes() if axes is None else axes
    if len(epochs) == 0:
        return nothing(axes, "no epochs to compare")
    colours = colours_of(axes)
    groups = epochs.groupby("epoch", sort=True)[["vi_at_half", "vi_min"]]
    mean, sem = groups.mean(), groups.sem().fillna(0.0)
    x = mean.index.to_numpy(float)
    named, avoid = [], []
    for k, (column, name, marker) in enumerate(
        (("vi_at_half", "at threshold 0.5", "o"), ("vi_min", "least", "*"))
    ):
        colour, text, _ = colours.line(k)
        y, spread = mean[column].to_numpy(float), sem[column].to_numpy(float)
        if len(epochs) > len(mean):
            axes.fill_between(
                x, y - spread, y + spread, color=colour, alpha=0.2, lw=0, gid="standard error"
            )
        axes.plot(
            x, y, marker=marker, ms=7 + 4 * k, color=colour, mec=colours.paper, mew=0.7, lw=1.8,
            label=name, gid="curve", clip_on=False,
        )  # fmt: skip
        named.append(Named(name, x, y, text))
        avoid += list(zip(x.tolist(), y.tolist(), strict=True))
    top = rounded_up(1.15 * float(np.nanmax(mean.to_numpy())))
    axes.set(ylim=(0, top), xlabel="epochs of agglomerative learning (0 is flat)")
    axes.set(ylabel="VI (bits)", xlim=(x.min() - 0.2, x.max() + 0.2))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain(axes)
    label_lines(axes, named, avoid)
    return axes


def plot_vi_by_threshold(
    curves: Mapping[str, pd.DataFrame], *, threshold: float = 0.5, axes: Axes | None = None
) -> Axes:
    """Draw the variation of information at every threshold, a line for each policy.

    Parameters
    ----------
    curves : mapping of str to DataFrame
        Name of the policy to its `vi_curve`, or to the `mean_curve` of several volumes, whose
        standard error is shaded. One with ``attrs["training"]`` is dotted: it was measured on the
        data that the policy was trained on.
    threshold : float
        Threshold of the circle.
    axes : matplotlib Axes, optional
        Axes to draw on; by default on a new figure.

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
    check_curves(curves, *_COLUMNS)
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
        dashes = ":" if curve.attrs.get("training") else dashes
        at, vi = curve["threshold"].to_numpy(float), curve["vi"].to_numpy(float)
        x, y = steps(at, vi, low, high)
        if "vi_sem" in curve.columns:
            _threshold_band(axes, thinned(curve), low, high, colour)
        axes.plot(x, y, color=colour, ls=dashes, lw=1.8, label=name, gid="curve")
        least, half = marks[name]
        star = (max(least["threshold"], low), least["vi"])
        circle = (threshold, min(half, top))
        mark(axes, circle, "o", 7, colour, "at threshold", beyond="^" if half > top else "")
        mark(axes, star, "*", 13, colour, "least")
        named.append(Named(name, x, y, text))
        avoid += [star, circle]
    axes.axvline(threshold, color=colours.muted, lw=0.8, ls=":", zorder=0)
    axes.set(xlim=(low, high), ylim=(0, top), xlabel="threshold", ylabel="VI (bits)")
    plain(axes, key=f"★ least    ● {threshold_phrase(threshold, first_threshold(curves))}")
    label_lines(axes, named, avoid)
    return axes


def _threshold_band(axes: Axes, curve: pd.DataFrame, low: float, high: float, colour: str) -> None:
    """Shade the standard error."""
    at, vi = curve["threshold"].to_numpy(float), curve["vi"].to_numpy(float)
    sem = np.nan_to_num(curve["vi_sem"].to_numpy(float))
    x, under = steps(at, vi - sem, low, high)
    over = steps(at, vi + sem, low, high)[1]
    axes.fill_between(x, under, over, color=colour, alpha=0.2, lw=0, gid="standard error")


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

    A true merge moves down, a false one to the right. Diagonals have equal VI. A star marks the
    least VI of each curve, a circle the state at `threshold`; an open triangle at the edge is a
    marker that lies beyond it.

    Parameters
    ----------
    curves : mapping of str to DataFrame
        Name of the policy to its `vi_curve`, or to the `mean_curve` of several volumes, whose
        standard error is shaded. One with ``attrs["training"]`` is dotted: it was measured on the
        data that the policy was trained on.
    best : mapping, optional
        ``false_merge`` and ``false_split`` of the optimal agglomeration, from `best_point`.
    human : DataFrame, optional
        ``false_merge`` and ``false_split`` of gold standards against each other, from
        `human_agreement`.
    threshold : float
        Threshold of the circle.
    weight : float, optional
        Bits of false split that are as bad as one bit of false merge: lines then have the slope
        -weight, and a diamond marks the point where one touches each curve.
    limit : float, optional
        End of both axes; by default around the markers.
    axes : matplotlib Axes, optional
        Axes to draw on; by default on a new figure.

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
    check_curves(curves, *_COLUMNS)
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
        dashes = ":" if curve.attrs.get("training") else dashes
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
    key = f"★ least    ● {threshold_phrase(threshold, first_threshold(curves))}"
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
    """Draw a marker; for a point beyond the limits, an open triangle at the edge."""
    limit = axes.get_xlim()[1]
    beyond = "" if max(point) <= limit else ">" if point[0] > limit else "^"
    mark(axes, _within(point, limit), marker, size, colour, gid, beyond)


def _within(point: tuple[float, float], limit: float) -> tuple[float, float]:
    return min(point[0], limit), min(point[1], limit)


def _isoclines(axes: Axes, limit: float, weight: float) -> None:
    """Draw lines of equal weighted VI, each with its value at the edge."""
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
    """Shade the standard error of both errors."""
    if "false_merge_sem" not in curve.columns or "false_split_sem" not in curve.columns:
        return
    x, y = curve["false_merge"].to_numpy(float), curve["false_split"].to_numpy(float)
    dx = np.nan_to_num(curve["false_merge_sem"].to_numpy(float))
    dy = np.nan_to_num(curve["false_split_sem"].to_numpy(float))
    axes.fill(
        np.concatenate([x - dx, (x + dx)[::-1]]), np.concatenate([y - dy, (y + dy)[::-1]]),
        color=colour, alpha=0.2, lw=0, zorder=1, gid="standard error",
    )  # fmt: skip
