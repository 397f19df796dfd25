"""Samples by name and seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import check_choice, check_whole


@dataclass(frozen=True)
class Sample:
    """An image with cues and a gold standard, ready for the pipeline.

    Attributes
    ----------
    name : str
        The kind of sample.
    image : ndarray of uint8
        Simulated micrograph; axes are plane, row, column (3-D) or row, column (2-D).
    cues : dict of str to ndarray of float32
        Evidence per pixel in [0, 1], each of the shape of `image`; the first is "boundary".
    gold : ndarray of uint16
        The true regions, 1..n, each face-connected; 0 is not annotated.
    spacing : tuple of float
        Size of a pixel along each axis, in micrometres.
    """

    name: str
    image: NDArray[np.uint8]
    cues: dict[str, NDArray[np.float32]]
    gold: NDArray[np.uint16]
    spacing: tuple[float, ...]


def sample(kind: str = "neuropil3d", *, seed: int = 0) -> Sample:
    """Generate an embedded sample; no file is read and nothing is downloaded.

    Parameters
    ----------
    kind : str
        ``"neuropil3d"``, tissue as in electron microscopy, with the cues boundary, cytoplasm and
        mitochondria (a few seconds); ``"neuropil2d"``, the same in two dimensions; or
        ``"cells2d"``, cells in fluorescence, with boundary, nucleus, brightness and texture.
    seed : int
        Another seed gives another sample of the kind, for instance to train on one and test on
        the other. The same seed gives the same bits.

    Returns
    -------
    Sample
        The image, its cues, the gold standard and the spacing.

    Raises
    ------
    InvalidInput
        If there is no such kind, or `seed` is not a whole number of at least 0.

    Examples
    --------
    >>> cells = sample("cells2d")
    >>> cells.image.shape, list(cells.cues)
    ((320, 320), ['boundary', 'nucleus', 'brightness', 'texture'])
    >>> bool((sample("cells2d", seed=1).gold == cells.gold).all())
    False
    """
    check_choice("kind", kind, SAMPLES)
    shape, make = _KINDS[kind]
    return make(kind, shape, check_whole("seed", seed, 0))


def neuropil_sample(name: str, shape: tuple[int, ...], seed: int) -> Sample:
    """Return neuropil of any 2-D or 3-D shape."""
    from napari_agglo.samples._neuropil import neuropil, neuropil_cues
    from napari_agglo.samples._random_fields import generator, without_edges

    tissue, labels = neuropil(shape, generator(len(shape), seed))
    # pixels of membrane belong to no process: not annotated
    gold = without_edges(labels).astype(np.uint16)
    spacing = (0.008,) * len(shape)  # micrometres, the unit of the files that we write
    return Sample(name, tissue.image, neuropil_cues(tissue.image), gold, spacing)


def cells_sample(name: str, shape: tuple[int, ...], seed: int) -> Sample:
    """Return cells of any 2-D shape."""
    from napari_agglo.samples._cells import cell_cues, cells
    from napari_agglo.samples._random_fields import generator

    tissue, labels = cells(shape, generator(_CELLS, seed))
    gold = labels.astype(np.uint16)
    return Sample(name, tissue.image, cell_cues(tissue.image), gold, (0.5,) * len(shape))


_CELLS = 100  # the generator's key for cells; neuropil uses its number of axes
_KINDS: dict[str, tuple[tuple[int, ...], Callable[[str, tuple[int, ...], int], Sample]]] = {
    "neuropil3d": ((96, 160, 160), neuropil_sample),
    "neuropil2d": ((384, 384), neuropil_sample),
    "cells2d": ((320, 320), cells_sample),
}
SAMPLES: tuple[str, ...] = tuple(_KINDS)
