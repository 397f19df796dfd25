"""Pieces of a superpixel, from seeds and a watershed of a cue inside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.graph._divide_superpixel import kept_cues, superpixel_box
from napari_agglo.graph._region_graph import RegionGraph
from napari_agglo.superpixels import oversegment
from napari_agglo.volumes import split_components

# Widths of the Gaussian, in units of the smallest spacing, tried one after the other; the first is
# the default of superpixels. After them comes a flat map: each pixel to the nearest seed.
_SIGMAS = (0.5, 1.0, 2.0)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of a superpixel.

    Parameters
    ----------
    labels : ndarray of int, shape of the superpixel's bounding box
        1, 2, ... for the pieces, each face-connected; 0 elsewhere.
    groups : ndarray of int, shape (number of pieces,)
        Group of seeds of each piece, from 0; -1 for a piece that no seed can reach, which exists
        only in a superpixel that was not connected.
    """

    labels: NDArray[np.int64]
    groups: NDArray[np.int64]


def superpixel_pieces(
    graph: RegionGraph,
    superpixel: int,
    seeds: Sequence[Sequence[Sequence[int]]],
    *,
    cue: str = "boundary",
) -> Pieces:
    """Divide a superpixel by a watershed of a cue from seeds.

    Seeds of one group need not be connected within the superpixel: where another group lies between
    them, they give two pieces of one group.

    If a piece has only the neighbours of its seeds, as of a seed on a bright speck, the cue is
    smoothed more and more; in the end each pixel belongs to its nearest seed.

    Parameters
    ----------
    graph : RegionGraph
        With its cues.
    superpixel : int
        Dense id of the superpixel to divide.
    seeds : list of groups of pixels
        Two groups or more; a pixel is its index in the whole image, such as ``(3, 128, 64)``.
    cue : str
        The cue to flood, high on boundaries.

    Returns
    -------
    Pieces

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> boundary = np.array([[0.0, 0.0, 0.1, 0.9, 0.1, 0.0, 0.0, 1.0]])
    >>> graph = region_graph(np.array([[1, 1, 1, 1, 1, 1, 1, 2]]), boundary)
    >>> superpixel_pieces(graph, 1, [[(0, 0)], [(0, 6)]]).labels
    array([[1, 1, 1, 1, 2, 2, 2]])
    """
    values = kept_cues(graph)
    plane = int(graph.layout.source_table()[graph.cue_index(cue), 1])
    box = superpixel_box(graph, superpixel)
    inside = graph.superpixels.image[box] == superpixel
    marks = _marks(graph, superpixel, inside, seeds)
    heights = values[(plane, *box)].astype(np.float32) / np.float32(255)
    heights[marks > 0] = 0  # a seed floods its neighbours at once, also on a bright pixel
    groups = _flooded(heights, marks, inside, graph.spacing)
    # Connected pieces are numbered in raster order of their first pixel.
    labels = split_components(groups).astype(np.int64)
    numbers, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.zeros(len(numbers), np.int64)
    is_piece = numbers > 0
    order[is_piece] = np.argsort(np.argsort(first[is_piece])) + 1
    labels = order[inverse].reshape(labels.shape)
    owner = np.zeros(int(is_piece.sum()) + 1, np.int64)
    owner[labels] = groups
    return Pieces(labels, np.where(owner[1:] > len(seeds), -1, owner[1:] - 1))


def _marks(
    graph: RegionGraph, superpixel: int, inside: NDArray[np.bool_], seeds: Any
) -> NDArray[np.int64]:
    """Return the seeds as labels in the box, 1 for the first group; refuse invalid seeds."""
    name = f"superpixel {graph.ids[superpixel]}"
    if graph.sizes[superpixel] < 2:
        raise InvalidInput(
            f"{name.capitalize()} is a single pixel and cannot be divided",
            argument="superpixel",
            remedy="choose one of two pixels or more",
        )
    if len(seeds) < 2:
        raise InvalidInput(
            f"`seeds` must be two groups of pixels or more, got {len(seeds)}",
            argument="seeds",
            remedy="mark the parts to separate by seeds of different groups",
        )
    start = graph.boxes[superpixel, 0]
    marks = np.zeros(inside.shape, np.int64)
    for group, pixels in enumerate(seeds, start=1):
        if len(pixels) == 0:
            raise InvalidInput(
                f"Group {group} of `seeds` is empty",
                argument="seeds",
                remedy="mark a pixel, or remove the group",
            )
        for pixel in pixels:
            index = tuple(pixel)
            if len(index) != inside.ndim or not all(is_whole(i) for i in index):
                raise InvalidInput(
                    f"A seed must be {inside.ndim} whole numbers, the index of a pixel, got "
                    f"{pixel!r} in group {group}",
                    argument="seeds",
                    remedy="round the coordinates, in the order of the axes",
                )
            at = tuple(int(i - s) for i, s in zip(index, start, strict=True))
            fits = all(0 <= i < n for i, n in zip(at, inside.shape, strict=True))
            if not fits or not inside[at]:
                raise InvalidInput(
                    f"The seed {tuple(int(i) for i in index)} of group {group} is not in {name}",
                    argument="seeds",
                    remedy="put it on a pixel of that superpixel",
                )
            if marks[at] not in (0, group):
                raise InvalidInput(
                    f"The seeds of groups {int(marks[at])} and {group} share the pixel "
                    f"{tuple(int(i) for i in index)}",
                    argument="seeds",
                    remedy="move one of them",
                )
            marks[at] = group
    return marks


def _flooded(
    heights: NDArray[np.float32],
    marks: NDArray[np.int64],
    inside: NDArray[np.bool_],
    spacing: tuple[float, ...],
) -> NDArray[np.int64]:
    """Return the group of each pixel, 0 outside; unreached pixels have the number of groups + 1."""
    from scipy import ndimage  # takes 0.1 s to import

    n_groups = int(marks.max())
    cross = ndimage.generate_binary_structure(marks.ndim, 1)
    beyond = inside & ~ndimage.binary_dilation(marks > 0, cross)
    groups = marks
    for sigma in (*_SIGMAS, None):
        labels = oversegment(
            heights if sigma is not None else np.zeros_like(heights),
            spacing=spacing,
            sigma=(sigma or 0) * min(spacing),
            mask=inside,
            seeds=marks,
        )
        owner = np.full(int(labels.max()) + 1, n_groups + 1, np.int64)
        owner[0] = 0
        owner[labels[marks > 0]] = marks[marks > 0]
        groups = np.asarray(owner[labels], np.int64)
        if np.isin(np.arange(1, n_groups + 1), groups[beyond]).all():
            break
    return groups
