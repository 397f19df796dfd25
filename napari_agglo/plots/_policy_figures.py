"""Plots of a learned policy: its calibration, and the importance of its features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_agglo.errors import InvalidInput, check_whole
from napari_agglo.plots._figure_style import SMALL, colours_of, new_axes, nothing, plain, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_reliability(record: Mapping[str, Any], *, axes: Axes | None = None) -> Axes:
    """Draw the share of wrong merges against the probability of the policy.

    On the diagonal the probabilities are calibrated. The area of a dot is the number of examples.

    Parameters
    ----------
    record : mapping
        ``LearnedPolicy.record``: its ``calibration`` lists mean probability, share of wrong merges
        and number of examples.
    axes : matplotlib Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> axes = plot_reliability({"calibration": [[0.1, 0.12, 90], [0.9, 0.8, 10]]})
    >>> axes.get_xlabel()
    'predicted probability that a merge is wrong'
    """
    axes = new_axes(5.2, 4.9) if axes is None else axes
    bins = np.array(record.get("calibration") or np.zeros((0, 3)), float)
    if bins.ndim != 2 or bins.shape[1:] != (3,):
        raise InvalidInput(
            "`record['calibration']` must list [mean probability, share wrong, examples], got "
            f"an array of shape {bins.shape}",
            argument="record['calibration']",
            remedy="pass the record of a policy as train wrote it",
        )
    if len(bins) == 0:
        return nothing(axes, "this policy has no record of its calibration")
    colours = colours_of(axes)
    predicted, wrong, n = bins.T
    axes.plot([0, 1], [0, 1], color=colours.muted, lw=0.9, zorder=1, gid="diagonal")
    axes.plot(predicted, wrong, color=colours.series[0], lw=1.4, zorder=2, gid="curve")
    axes.scatter(
        predicted, wrong, s=18 + 380 * n / n.max(), color=colours.series[0], alpha=0.75, lw=0.6,
        edgecolor=colours.paper, zorder=3, clip_on=False, gid="reliability",
    )  # fmt: skip
    error = float((n * np.abs(predicted - wrong)).sum() / n.sum())
    source = "held-out" if record.get("held_out") else "training"
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set(xlabel="predicted probability that a merge is wrong", ylabel="share of wrong merges")
    plain(axes, key=f"{int(n.sum())} {source} examples, off by {100 * error:.1f} % on average")
    return axes


def plot_importances(
    record: Mapping[str, Any], *, most: int = 15, axes: Axes | None = None
) -> Axes:
    """Draw the importance of each feature of the policy, the greatest at the top.

    Parameters
    ----------
    record : mapping
        ``LearnedPolicy.record``: its ``importances`` map features to numbers.
    most : int
        Number of features to draw, at most.
    axes : matplotlib Axes, optional
        Axes to draw on; by default on a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> axes = plot_importances({"importances": {"boundary/edge/mean": 0.4, "size": 0.1}})
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['boundary/edge/mean', 'size']
    """
    check_whole("most", most, 1)
    importances = dict(record.get("importances") or {})
    names = sorted(importances, key=lambda name: -importances[name])[:most]
    axes = new_axes(5.4, max(2.0, 1.0 + 0.27 * len(names))) if axes is None else axes
    if not names:
        return nothing(axes, "this policy has no record of its features")
    colours = colours_of(axes)
    values = [float(importances[name]) for name in names]
    axes.barh(range(len(names)), values, height=0.66, color=colours.series[0], gid="importance")
    for at, value in enumerate(values):
        axes.annotate(
            f"{value:.3f}", (value, at), xytext=(3, 0), textcoords="offset points", va="center",
            fontsize=SMALL - 1, color=colours.muted,
        )  # fmt: skip
    axes.set_yticks(range(len(names)), [shown(name, 40) for name in names], parse_math=False)
    axes.set(xlim=(0, 1.12 * max([*values, 1e-9])), ylim=(len(names) - 0.4, -0.6))
    axes.set_xlabel("importance")
    axes.tick_params(axis="y", length=0, labelsize=SMALL)
    plain(axes)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    return axes
