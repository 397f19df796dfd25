"""Picture of a suggestion: the plane through the contact, both sides tinted, the line between them.

In its own file: it only draws arrays; suggestions are ranked in `rank.py`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph, kept_cues

# Orange and sky blue, the first two colours of seeds and of the preview of a cut.
COLOURS = ((0.902, 0.624, 0.0), (0.337, 0.706, 0.914))
_STRENGTH = 0.35
_AROUND = 24  # pixels of the finest axis on either side of the contact
_COARSE = 2.0  # times the finest spacing: an axis that is coarser is shown only if it must be


def shown_axes(position: tuple[float, ...], spacing: tuple[float, ...]) -> tuple[int, int]:
    """Return the two axes of the plane in which a contact is seen from the side.

    A contact is a face, half a pixel away from an index along its own axis, which must be shown.
    """
    ndim = len(position)
    across = [axis for axis in range(ndim) if position[axis] % 1 and axis >= ndim - 3]
    best = None
    for a in range(max(0, ndim - 3), ndim):
        for b in range(a + 1, ndim):
            facing = not across or a in across or b in across
            coarse = max(spacing[a], spacing[b]) > _COARSE * min(spacing[-3:])
            rank = (facing, not coarse, a + b)
            if best is None or rank > best[0]:
                best = rank, (a, b)
    return (0, 0) if best is None else best[1]


def draw_question(
    graph: RegionGraph,
    position: tuple[float, ...],
    sides: NDArray[np.uint8],
    image: Any,
    side: int,
) -> NDArray[np.uint8]:
    """Return an RGB picture around a contact; `sides` is 1 and 2 for superpixels of both sides.

    `image` may have colours along an axis after those of the superpixels; None for a graph's first
    cue, or plain grey if it has none.
    """
    from napari_agglo.plots._raster_pictures import (  # matplotlib
        NEXT,
        enlarged,
        factors,
        grey,
        tinted,
    )

    shape, spacing = graph.superpixels.image.shape, graph.spacing
    rows, columns = shown_axes(position, spacing)
    finest = min(spacing[rows], spacing[columns])
    index: list[Any] = [min(int(x), n - 1) for x, n in zip(position, shape, strict=True)]
    for axis in (rows, columns):
        reach = max(2, round(_AROUND * finest / spacing[axis]))
        centre = round(position[axis])
        start = max(0, min(centre - reach, shape[axis] - 2 * reach))
        index[axis] = slice(start, min(start + 2 * reach, shape[axis]))
    box = tuple(index)
    part = sides[np.asarray(graph.superpixels.image[box])]
    if image is not None:
        backdrop = np.asarray(image[box])
    else:
        backdrop = np.zeros(part.shape)
        if graph.cues is not None and len(graph.cues):
            with suppress(InvalidInput):  # the file of a cue on disk is not in its place
                backdrop = kept_cues(graph)[(0, *box)]
    picture = grey(backdrop)
    for k, colour in enumerate(COLOURS, start=1):
        picture = tinted(picture, colour, _STRENGTH * (part == k))
    times = factors(part.shape, side, (spacing[rows], spacing[columns]))
    large = enlarged(part, times)
    out = enlarged(picture, times)
    for here, there in NEXT:  # the boundary between both sides alone
        touching = (large[here] * large[there] == 2) & (large[here] != large[there])
        out[here][touching] = 1.0
        out[there][touching] = 1.0
    return np.round(255 * out).astype(np.uint8)
