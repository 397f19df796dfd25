"""Plots over many images: one policy against another, and each policy beside people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.plots._curve_figures import rounded_up
from napari_agglo.plots._figure_style import SMALL, colours_of, new_axes, nothing, plain, shown
from napari_agglo.plots._line_labels import label_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_paired_vi(
    one: Mapping[str, float],
    two: Mapping[str, float],
    *,
    names: tuple[str, str] = ("one", "two"),
    label: int = 3,
    axes: Axes | None = None,
) -> Axes:
    """Draw the VI of each image by one policy against that by another.

    Below the diagonal the second policy is better.

    Parameters
    ----------
    one, two : mapping of str to float
        Name of the image to its VI in bits, by each policy; the images that both have are drawn.
    names : (str, str)
        The names of the policies.
    label : int
        Number of images to name: those with the greatest difference.
    axes : matplotlib Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> axes = plot_paired_vi({"a": 1.0, "b": 2.0}, {"a": 0.5, "b": 2.1}, names=("mean", "agglo"))
    >>> axes.get_title(loc="left")
    '1 of 2 images better by agglo'
    """
    axes = new_axes(5.2, 4.9) if axes is None else axes
    images = [image for image in one if image in two]
    if not images:
        return nothing(axes, "no image that both policies have")
    colours = colours_of(axes)
    x = np.array([one[image] for image in images], float)
    y = np.array([two[image] for image in images], float)
    top = rounded_up(1.05 * float(max(x.max(), y.max())))
    better = y < x
    axes.plot([0, top], [0, top], color=colours.muted, lw=0.9, zorder=1, gid="diagonal")
    for k, (chosen, gid) in enumerate(((better, "two"), (~better, "one"))):
        colour = colours.series[k]
        axes.scatter(
            x[chosen], y[chosen], s=34, color=colour, alpha=0.8, edgecolor=colours.paper, lw=0.6,
            zorder=3, clip_on=False, gid=f"better by {gid}",
        )  # fmt: skip
    axes.set(xlim=(0, top), ylim=(0, top), aspect="equal")
    first, second = (shown(name) for name in names)
    axes.set_xlabel(f"VI by {first} (bits)", parse_math=False)
    axes.set_ylabel(f"VI by {second} (bits)", parse_math=False)
    plain(axes)
    axes.set_title(
        f"{int(better.sum())} of {len(images)} images better by {second}", loc="left",
        fontsize=SMALL, color=colours.muted, parse_math=False,
    )  # fmt: skip
    crowd = np.column_stack([x, y])
    named = np.argsort(-np.abs(x - y), kind="stable")[:label]
    label_points(
        axes, [shown(images[at], 18) for at in named], crowd[named], crowd, np.full(named.size, 4.0)
    )
    return axes


def plot_vi_rows(rows: Mapping[str, Sequence[float]], *, axes: Axes | None = None) -> Axes:
    """Draw a row of dots for each policy, a dot for each image, and a line at their mean.

    A row for people has the VI of gold standards of one image against each other.

    Parameters
    ----------
    rows : mapping of str to sequence of float
        Name of the row to VI values in bits, e.g. ``{"agglo": [...], "human": [...]}``.
    axes : matplotlib Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> axes = plot_vi_rows({"agglo": [0.8, 1.1], "human": [0.5]})
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['agglo', 'human']
    """
    if not rows:
        raise InvalidInput("`rows` is empty", argument="rows", remedy="pass one row or more")
    axes = new_axes(5.4, 1.2 + 0.42 * len(rows)) if axes is None else axes
    colours = colours_of(axes)
    most = 0.0
    for k, values in enumerate(rows.values()):
        x = np.asarray(list(values), float)
        colour, text, _ = colours.line(k)
        if x.size == 0:
            continue
        most = max(most, float(x.max()))
        axes.scatter(
            x, np.full(x.size, k), s=26, color=colour, alpha=0.6, lw=0, zorder=2, gid="value",
            clip_on=False,
        )  # fmt: skip
        axes.plot([x.mean()] * 2, [k - 0.28, k + 0.28], color=colour, lw=2.5, zorder=3, gid="mean")
        axes.annotate(
            f"{x.mean():.3g}", (float(x.mean()), k - 0.3), xytext=(0, 2),
            textcoords="offset points", ha="center", fontsize=SMALL, color=text,
        )  # fmt: skip
    names = [shown(name) for name in rows]
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set(xlim=(0, rounded_up(1.05 * most)), ylim=(len(names) - 0.4, -0.75), xlabel="VI (bits)")
    axes.tick_params(axis="y", length=0)
    plain(axes)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    return axes
