"""VI against the number of epochs of agglomerative learning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from napari_agglo.plots._curves import rounded_up
from napari_agglo.plots._labels import Named, label_lines
from napari_agglo.plots._style import colours_of, need, new_axes, nothing, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def plot_vi_by_epoch(epochs: pd.DataFrame, *, axes: Axes | None = None) -> Axes:
    """Draw the least VI, and that at threshold 0.5, after each epoch of training.

    Where both meet, the probabilities that the policy gives can be believed.

    Parameters
    ----------
    epochs : DataFrame
        Columns ``epoch`` (0 is flat learning), ``vi_at_half`` and ``vi_min``, in bits. Several rows
        of one epoch are averaged, and their standard error is shaded.
    axes : matplotlib Axes, optional
        Where to draw; by default on a new figure.

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
