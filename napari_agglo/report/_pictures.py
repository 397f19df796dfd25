"""Pictures of errors for a page: error maps, and cut-outs of the plane that shows an error best.

In its own file because it only draws arrays: errors are chosen in `_findings.py`.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.evaluate import Contingency
from napari_agglo.evaluate._boundary import filled
from napari_agglo.plots import LIGHT, MERGE, SPLIT, error_borders, grey, tinted, wrong_shares
from napari_agglo.volumes import DenseLabels

_LARGEST_MAP, _LARGEST_CUTOUT = 512, 240  # pixels along a side; larger pictures are thinned
_LEAST = 40  # pixels along a side of a cut-out
_MEMBRANE = 3  # pixels by which gold segments grow into the zeros between them
_TINTS = (*LIGHT.series[:4], "#f0e442", LIGHT.series[5])


@dataclass(frozen=True)
class Plane:
    """Plane of a volume: its two axes, and the index along the others (None for these two)."""

    rows: int
    columns: int
    index: tuple[int | None, ...]

    def cut(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the plane of an array; an axis after those of the labels stays."""
        return np.asarray(array[tuple(slice(None) if i is None else i for i in self.index)])

    def moved(self, box: Sequence[slice]) -> Plane:
        """Return this plane of a part as a plane of the whole, from which `box` cuts the part."""
        index = tuple(
            None if i is None else s.start + i for i, s in zip(self.index, box, strict=True)
        )
        return Plane(self.rows, self.columns, index)

    def __str__(self) -> str:
        """Return the place in words, empty for an image of two axes."""
        fixed = [f"axis {axis} = {i}" for axis, i in enumerate(self.index) if i is not None]
        return ", ".join(fixed)


def best_plane(
    segment: NDArray[np.bool_],
    minor: NDArray[np.bool_],
    spacing: Sequence[float] | None = None,
) -> Plane:
    """Return the plane that shows most of an error: of the minor parts and of the largest part.

    `minor` are the voxels of the segment outside of its largest part. Axes more than twice as
    coarse as the finest are not shown.

    Examples
    --------
    >>> labels = np.ones((3, 4, 5), int)
    >>> labels[1, :2] = 2
    >>> best_plane(labels > 0, labels == 2)
    Plane(rows=1, columns=2, index=(1, None, None))
    """
    best: tuple[int, Plane] | None = None
    for shown in _pairs(segment.ndim, spacing):
        parts = np.count_nonzero(minor, axis=shown, keepdims=True)
        both = np.minimum(parts, np.count_nonzero(segment, axis=shown, keepdims=True) - parts)
        at = int(np.lexsort([parts.ravel(), both.ravel()])[-1])
        most = int(both.ravel()[at])
        if best is None or most > best[0]:
            places = np.unravel_index(at, both.shape)
            index = (None if axis in shown else int(k) for axis, k in enumerate(places))
            best = most, Plane(*shown, tuple(index))
    assert best is not None
    return best[1]


def _pairs(ndim: int, spacing: Sequence[float] | None) -> list[tuple[int, int]]:
    """Return the pairs of the last three axes that may be shown, the last two first."""
    axes = range(max(0, ndim - 3), ndim)
    fine = [a for a in axes if spacing is None or spacing[a] <= 2 * min(spacing[b] for b in axes)]
    chosen = fine if len(fine) >= 2 else list(axes)
    return list(combinations(chosen, 2))[::-1]


def png_uri(picture: NDArray[np.float64]) -> str:
    """Return RGB from 0 to 1 as a data URI of a PNG of 256 colours, a third of the size of RGB.

    Examples
    --------
    >>> png_uri(np.zeros((1, 1, 3)))[:22]
    'data:image/png;base64,'
    """
    from PIL import Image

    pixels = np.round(np.clip(picture, 0, 1) * 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels, "RGB").quantize(256, dither=Image.Dither.NONE).save(
        out, "PNG", optimize=True
    )
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode("ascii")


def border_path(upright: NDArray[np.bool_], level: NDArray[np.bool_]) -> str:
    """Return an SVG path along the sides of pixels.

    `upright`, shape (rows, columns - 1), are borders between a pixel and the next in its row,
    `level`, shape (rows - 1, columns), between a pixel and the next in its column.

    Examples
    --------
    >>> border_path(np.array([[True, False], [True, False]]), np.zeros((1, 3), bool))
    'M1 0V2'
    """
    parts = [f"M{line + 1} {a}V{b}" for line, a, b in _runs(upright.T)]
    parts += [f"M{a} {line + 1}H{b}" for line, a, b in _runs(level)]
    return "".join(parts)


def _runs(lines: NDArray[np.bool_]) -> list[tuple[int, int, int]]:
    """Return (line, begin, end) of each run of true values along the last axis."""
    change = np.diff(lines.astype(np.int8), axis=1, prepend=0, append=0)
    line, begin = np.nonzero(change > 0)
    _, end = np.nonzero(change < 0)
    return list(zip(line.tolist(), begin.tolist(), end.tolist(), strict=True))


def label_path(labels: NDArray[Any]) -> str:
    """Return the path of the borders between labels.

    Examples
    --------
    >>> label_path(np.array([[1, 2], [1, 2]]))
    'M1 0V2'
    """
    return border_path(labels[:, :-1] != labels[:, 1:], labels[:-1] != labels[1:])


def layered(
    picture: NDArray[np.float64],
    paths: Mapping[str, str],
    caption: str,
    spacing: Sequence[float] = (1.0, 1.0),
) -> str:
    """Return an SVG element: the picture, and paths over it that stay sharp, each with a class."""
    rows, columns = picture.shape[:2]
    height, width = rows * spacing[0], columns * spacing[1]
    lines = "".join(
        f'<path class="{escape(name)}" d="{d}" vector-effect="non-scaling-stroke"/>'
        for name, d in paths.items()
        if d
    )
    return (
        f'<svg viewBox="0 0 {columns} {rows}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(caption)}" class="pixels" '
        f'style="aspect-ratio:{width:.6g}/{height:.6g}">'
        f'<image href="{png_uri(picture)}" width="{columns}" height="{rows}" '
        f'preserveAspectRatio="none"/>{lines}</svg>'
    )


def error_map(
    picture: NDArray[Any],
    labels: NDArray[Any],
    gold: NDArray[Any],
    table: Contingency,
    plane: tuple[int, ...],
    spacing: Sequence[float] | None,
) -> str:
    """Return one plane as an SVG element, tinted by error, with lines along wrong borders.

    `picture` is the image below, grey or with an axis of colours; `table` the overlaps of the whole
    images; `plane` an index along all axes but the last two.
    """
    step = max(1, -(-max(labels.shape[-2:]) // _LARGEST_MAP))
    some: tuple[Any, ...] = (*plane, slice(None, None, step), slice(None, None, step))
    segments, truth = labels[some], gold[some]
    merge, split = wrong_shares(table, segments, truth)
    shown = tinted(
        tinted(grey(np.asarray(picture[some])), SPLIT, 0.55 * split), MERGE, 0.55 * merge
    )
    paths = {
        name: border_path(*(error_borders(cut, joined, truth, axis) for axis in (1, 0)))
        for name, cut, joined in (("split", segments, truth), ("merge", truth, segments))
    }
    caption = "map of false merges and false splits"
    return layered(shown, paths, caption, tuple(spacing)[-2:] if spacing else (1.0, 1.0))


def boxes(labels: DenseLabels, ids: Sequence[int]) -> dict[int, tuple[slice, ...]]:
    """Return the bounding box of each of some labels, from one pass over the image.

    Examples
    --------
    >>> from napari_agglo.volumes import dense_labels
    >>> boxes(dense_labels(np.array([5, 9, 9, 0])), [9, 0])
    {9: (slice(1, 3, None),), 0: (slice(3, 4, None),)}
    """
    from scipy.ndimage import find_objects

    distinct = list(dict.fromkeys(ids))
    numbers = np.zeros(labels.ids.size, np.min_scalar_type(len(distinct)))
    at = np.searchsorted(labels.ids, np.array(distinct, np.uint64))
    numbers[at] = np.arange(1, len(distinct) + 1)
    return dict(zip(distinct, find_objects(numbers[labels.image]), strict=True))


def cut_out(
    backdrop: NDArray[Any],
    labels: NDArray[Any],
    gold: NDArray[Any],
    *,
    kind: str,
    one: int,
    partners: Sequence[int],
    spacing: Sequence[float] | None = None,
    box: tuple[slice, ...] | None = None,
) -> tuple[str, Plane]:
    """Return the picture of an error as an SVG element, and its plane.

    The segment (or gold segment) is tinted by its parts; lines are the borders of the gold standard
    and of the segmentation. `one` is the id of the gold segment that is split ("false split"), or
    of the segment that merges ("false merge"), and `partners` the ids of its parts, the largest
    first. Only `box`, which contains all of `one`, is searched.
    """
    from matplotlib.colors import to_rgb

    whole, parts = (gold, labels) if kind == "false split" else (labels, gold)
    box = tuple(slice(0, n) for n in gold.shape) if box is None else box
    segment = (whole[box] == one) & (gold[box] != 0)
    plane = best_plane(segment, segment & (parts[box] != partners[0]), spacing).moved(box)
    shown = (plane.cut(whole) == one) & (plane.cut(gold) != 0)
    window = _window(shown)
    step = max(1, -(-max(s.stop - s.start for s in window) // _LARGEST_CUTOUT))
    window = tuple(slice(s.start, s.stop, step) for s in window)
    picture = grey(plane.cut(backdrop)[window])
    inside, part = shown[window], plane.cut(parts)[window]
    # without thin lines of 0 between segments, so that one border is drawn, not two
    truth = filled(plane.cut(gold)[window], max(1.0, _MEMBRANE / step))
    outline = (truth if kind == "false split" else plane.cut(whole)[window]) == one
    for k, partner in enumerate(partners[: len(_TINTS)]):
        picture = tinted(picture, to_rgb(_TINTS[k]), 0.45 * (inside & (part == partner)))
    paths = {
        "gold": label_path(truth),
        "segmentation": label_path(plane.cut(labels)[window]),
        "whole": label_path(outline),
    }
    sides = (1.0, 1.0) if spacing is None else (spacing[plane.rows], spacing[plane.columns])
    return layered(picture, paths, f"{kind} {one}", sides), plane


def _window(shown: NDArray[np.bool_]) -> tuple[slice, ...]:
    """Return the part of a plane around a segment, with a margin."""
    window = []
    spans = [np.flatnonzero(shown.any(axis=1 - axis)) for axis in (0, 1)]
    side = max(_LEAST, *(int(1.25 * (s[-1] - s[0] + 1)) + 8 for s in spans))
    for axis, span in enumerate(spans):
        # Square where the image allows, so that all cut-outs are of one shape.
        length = min(side, shown.shape[axis])
        begin = (int(span[0]) + int(span[-1]) + 1 - length) // 2
        begin = min(max(begin, 0), shown.shape[axis] - length)
        window.append(slice(begin, begin + length))
    return tuple(window)
