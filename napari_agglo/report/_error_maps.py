"""A plane with its errors painted, for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.evaluate import Contingency
from napari_agglo.plots import MERGE, SPLIT, grey, tinted, wrong_shares
from napari_agglo.report._layers import border_path, layered

_LARGEST = 512  # pixels along a side


def error_map(
    picture: NDArray[Any],
    labels: NDArray[Any],
    gold: NDArray[Any],
    table: Contingency,
    plane: tuple[int, ...],
    spacing: Sequence[float] | None,
) -> str:
    """Return one plane as an SVG element: tinted by how wrong a pixel is, with lines between.

    Parameters
    ----------
    picture : ndarray
        What lies below; grey, or with an axis of colours.
    labels, gold : ndarray of int
    table : Contingency
        Of the whole images.
    plane : tuple of int
        Index along all axes but the last two.
    spacing : sequence of float, optional
        Distance between pixels along each axis.
    """
    step = max(1, -(-max(labels.shape[-2:]) // _LARGEST))
    some: tuple[Any, ...] = (*plane, slice(None, None, step), slice(None, None, step))
    segments, truth = labels[some], gold[some]
    merge, split = wrong_shares(table, segments, truth)
    shown = tinted(tinted(grey(picture[some]), SPLIT, 0.55 * split), MERGE, 0.55 * merge)
    paths = {
        name: border_path(_parted(cut, joined, truth, 1), _parted(cut, joined, truth, 0))
        for name, cut, joined in (("split", segments, truth), ("merge", truth, segments))
    }
    said = "where there are false merges and false splits"
    return layered(shown, paths, said, tuple(spacing)[-2:] if spacing else (1.0, 1.0))


def _parted(
    cut: NDArray[Any], joined: NDArray[Any], gold: NDArray[Any], axis: int
) -> NDArray[np.bool_]:
    """Return where `cut` has a border and `joined` has none, both sides being annotated."""
    here = (slice(None), slice(None, -1)) if axis else (slice(None, -1), slice(None))
    there = (slice(None), slice(1, None)) if axis else (slice(1, None), slice(None))
    both = (gold[here] != 0) & (gold[there] != 0)
    return np.asarray((cut[here] != cut[there]) & (joined[here] == joined[there]) & both)
