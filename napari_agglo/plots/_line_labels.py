"""Names beside lines and dots, instead of a legend.

Strategy: candidates are the places on eight sides of every visible point of a line. Of the places
where the name covers no line, the one farthest from other lines is chosen. Distances are in points
of type at the present limits of the axes. Names of dots are placed in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_agglo.plots._figure_style import SMALL, colours_of, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PLACES = 80  # points of a line beside which its name may be placed
_FAR = 60.0  # points of type; a larger distance from other lines is no better
_SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))


@dataclass(frozen=True)
class Named:
    """Line with a name: its points in data coordinates, and the colour of the name."""

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    colour: str


def label_lines(
    axes: Axes, lines: Sequence[Named], avoid: Sequence[tuple[float, float]] = ()
) -> None:
    """Write the name of each line beside it, on axes with their final limits.

    The markers at `avoid` stay visible.
    """
    size = _size(axes)
    paths = [_in_points(axes, line.x, line.y, size) for line in lines]
    visible = [_resampled(path, size) for path in paths]
    x, y = np.array([*avoid, (np.nan, np.nan)], float).T
    marks = _in_points(axes, x, y, size)
    taken: list[NDArray[np.float64]] = []
    for k, line in enumerate(lines):
        name = shown(line.name)
        box = np.array([0.6 * SMALL * len(name), 1.25 * SMALL])
        others = np.concatenate([p for j, p in enumerate(visible) if j != k] or [marks[:0]])
        place = _best_place(visible[k], others, marks, taken, box, size, 4.0)
        if place is not None:
            taken.append(np.stack([place, box]))
            _write(axes, name, place / size, line.colour)


def label_points(
    axes: Axes,
    names: Sequence[str],
    points: NDArray[np.float64],
    crowd: NDArray[np.float64],
    radii: NDArray[np.float64],
) -> None:
    """Write the name of each point beside it, on axes with their final limits and scales.

    `points`, shape (n, 2), are data coordinates, and `radii` those of their dots in points of type;
    `crowd`, shape (m, 2), are all points that are drawn.
    """
    size = _size(axes)
    everything = _in_points(axes, crowd[:, 0], crowd[:, 1], size)
    taken: list[NDArray[np.float64]] = []
    own_places = _in_points(axes, points[:, 0], points[:, 1], size)
    for name, own, radius in zip(names, own_places, radii, strict=True):
        box = np.array([0.62 * SMALL * len(name), 1.25 * SMALL])
        place = _best_place(
            own[None], everything, everything[:0], taken, box, size, float(radius) + 1
        )
        if place is not None:
            taken.append(np.stack([place, box]))
            _write(axes, name, place / size, colours_of(axes).ink)


def _write(axes: Axes, name: str, place: NDArray[np.float64], colour: str) -> None:
    from matplotlib.patheffects import withStroke

    axes.annotate(
        name, (float(place[0]), float(place[1])), xycoords="axes fraction",
        ha="center", va="center", fontsize=SMALL, color=colour, fontweight="bold",
        path_effects=[withStroke(linewidth=2.5, foreground=colours_of(axes).paper)],
        parse_math=False, zorder=6, gid="name",
    )  # fmt: skip


def _size(axes: Axes) -> NDArray[np.float64]:
    """Return the approximate width and height of the axes in points, before they are drawn."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    box = axes.get_position(original=True)
    size = np.array([figure.get_figwidth() * box.width, figure.get_figheight() * box.height]) * 72
    if axes.get_aspect() == 1:
        span = np.abs([np.diff(axes.get_xlim())[0], np.diff(axes.get_ylim())[0]])
        size = span * (size / span).min()
    return size


def _in_points(
    axes: Axes, x: NDArray[np.float64], y: NDArray[np.float64], size: NDArray[np.float64]
) -> NDArray[np.float64]:
    across = (axes.transData - axes.transAxes).transform(np.column_stack([x, y]))
    return np.asarray(across * size)


def _resampled(path: NDArray[np.float64], size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points at equal distances along the part of a path within the axes."""
    path = path[np.isfinite(path).all(axis=1)]
    if len(path) == 0:
        return path
    along = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(path, axis=0).T))])
    # Most of a path may lie outside: sample finely, then thin out the visible part.
    at = np.linspace(0, along[-1], 4000)
    dense = np.column_stack([np.interp(at, along, path[:, k]) for k in (0, 1)])
    dense = dense[((dense >= 0) & (dense <= size)).all(axis=1)]
    return dense[:: max(1, len(dense) // _PLACES)]


def _best_place(
    own: NDArray[np.float64],
    others: NDArray[np.float64],
    marks: NDArray[np.float64],
    taken: Sequence[NDArray[np.float64]],
    box: NDArray[np.float64],
    size: NDArray[np.float64],
    gap: float,
) -> NDArray[np.float64] | None:
    """Return the middle of the best box for a name; None if the line is not visible."""
    if len(own) == 0:
        return None
    sides = np.array(_SIDES, float)
    centres = (own[:, None] + sides * (box / 2 + gap)).reshape(-1, 2)
    inside = ((centres >= box / 2) & (centres <= size - box / 2)).all(axis=1)
    if not inside.any():
        centres, inside = np.clip(own, box / 2, size - box / 2), np.ones(len(own), bool)
    centres = centres[inside]
    score = np.minimum(_clearance(centres, box, others), _FAR)
    score -= 0.05 * np.hypot(*(centres - size / 2).T)  # of equal ones the most central
    score -= 200 * (_clearance(centres, box, own) < 2)
    score -= 200 * (_clearance(centres, box, marks) < 7)
    for place, other in taken:
        apart = np.abs(centres - place) - (box + other) / 2
        score -= 400 * (apart < 2).all(axis=1)
    return np.asarray(centres[int(score.argmax())])


def _clearance(
    centres: NDArray[np.float64], box: NDArray[np.float64], points: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the distance of the nearest of some points from a box around each centre."""
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) == 0:
        return np.full(len(centres), _FAR)
    gap = np.maximum(np.abs(centres[:, None] - points[None]) - box / 2, 0)
    return np.asarray(np.hypot(gap[..., 0], gap[..., 1]).min(axis=1))
