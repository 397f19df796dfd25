"""Style of all plots: colours for all kinds of colour vision, plain axes, markers.

The colours are those of Okabe and Ito without yellow and black. Text has darker colours on light
paper, and lighter colours on dark paper, as thin strokes need more contrast than lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd
    from matplotlib.axes import Axes

SMALL = 8.5  # points: the type within a plot
_DASHES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class Colours:
    """The colours of a plot on one kind of paper.

    Parameters
    ----------
    ink, muted, paper : str
        Of text and lines, of less important ones, and of the background.
    merge, split : str
        Of false merges and of false splits.
    series : tuple of str
        Of the lines of a plot, in order.
    text : tuple of str
        The same, dark or light enough for names.
    """

    ink: str
    muted: str
    paper: str
    merge: str
    split: str
    series: tuple[str, ...]
    text: tuple[str, ...]

    def line(self, k: int) -> tuple[str, str, str]:
        """Return colour, colour of the name and dashes of the k-th series.

        Parameters
        ----------
        k : int
            The number of the series, from 0.

        Returns
        -------
        tuple of str
            As matplotlib takes them.

        Examples
        --------
        >>> LIGHT.line(0)
        ('#0072b2', '#00629b', '-')
        >>> LIGHT.line(6)  # colours repeat with dashes
        ('#0072b2', '#00629b', '--')
        """
        n = len(self.series)
        return self.series[k % n], self.text[k % n], _DASHES[k // n % len(_DASHES)]


LIGHT = Colours(
    ink="#1f2329",
    muted="#646c75",
    paper="#fefefe",
    merge="#d67f00",
    split="#2f93d1",
    series=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    text=("#00629b", "#ad4b00", "#00745a", "#a04a7b", "#8a5d01", "#1b76a9"),
)
DARK = Colours(
    ink="#e6e9ee",
    muted="#9aa4af",
    paper="#14171c",
    merge="#f5a83c",
    split="#6fc3f7",
    series=("#4ba6e8", "#f58549", "#2fc49a", "#e6a1c8", "#f2b84b", "#8fd3f9"),
    text=("#6bb8f0", "#ff9c66", "#4dd6ae", "#efb6d5", "#f5c76e", "#a6dcfa"),
)


def new_axes(width: float = 5.4, height: float = 4.2, *, colours: Colours = LIGHT) -> Axes:
    """Return axes on a new figure of this size in inches, without the state of pyplot.

    Parameters
    ----------
    width, height : float
        The size of the figure.
    colours : Colours
        `LIGHT` or `DARK`.

    Returns
    -------
    Axes
        Axes of matplotlib.

    Examples
    --------
    >>> axes = new_axes(3, 2)
    >>> axes.figure.savefig("/dev/null", format="png")
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((width, height), layout="constrained", facecolor=colours.paper)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(facecolor="none")
    axes.tick_params(colors=colours.ink, which="both", labelsize=SMALL + 0.5)
    for spine in axes.spines.values():
        spine.set_color(colours.ink)
    for text in (axes.xaxis.label, axes.yaxis.label, axes.title):
        text.set_color(colours.ink)
    return axes


def colours_of(axes: Axes) -> Colours:
    """Return the colours for some axes, light or dark by the colour of their labels."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(axes.xaxis.label.get_color())
    return DARK if 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 else LIGHT


def plain(axes: Axes, *, key: str = "") -> None:
    """Remove spines that carry no data; write `key`, the legend of symbols, above the plot."""
    colours = colours_of(axes)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=colours.muted, alpha=0.22, lw=0.6)
    axes.set_axisbelow(True)
    if key:
        axes.set_title(key, loc="left", fontsize=SMALL, color=colours.muted)


def shown(name: object, most: int = 28) -> str:
    """Return a name on one line, printable, shortened to `most` characters.

    Parameters
    ----------
    name : object
        Anything with a str.
    most : int
        The largest number of characters.

    Returns
    -------
    str
        The name, with an ellipsis in the middle if it was too long.

    Examples
    --------
    >>> shown("line" + chr(10) + "break"), shown("a very long name indeed", 11)
    ('line break', 'a ver…ndeed')
    """
    text = "".join(c if c.isprintable() else " " for c in str(name))
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def need(table: pd.DataFrame, columns: Iterable[str], name: str) -> None:
    """Refuse a table that lacks one of the columns."""
    lacking = [column for column in columns if column not in table.columns]
    if lacking:
        raise InvalidInput(
            f"`{name}` must be a table with the columns {', '.join(columns)}; it has no "
            f"{', '.join(lacking)} (it has {', '.join(map(str, table.columns)) or 'none'})",
            argument=name,
            remedy="pass the table as it was computed",
        )


def mark(
    axes: Axes,
    point: tuple[float, float],
    marker: str,
    size: float,
    colour: str,
    gid: str,
    beyond: str = "",
) -> None:
    """Draw a marker; for a point beyond the limits, the open marker `beyond` at the edge."""
    paper = colours_of(axes).paper
    axes.plot(
        *point, beyond or marker, ms=7 if beyond else size, color=colour,
        mfc=paper if beyond else colour, mec=colour if beyond else paper,
        mew=1.4 if beyond else 0.7, zorder=5, clip_on=False, gid=gid,
    )  # fmt: skip


def nothing(axes: Axes, reason: str) -> Axes:
    """Write on empty axes the reason that they are empty."""
    axes.set_axis_off()
    axes.text(
        0.5, 0.5, reason, transform=axes.transAxes, ha="center", va="center", wrap=True,
        color=colours_of(axes).muted, parse_math=False,
    )  # fmt: skip
    return axes
