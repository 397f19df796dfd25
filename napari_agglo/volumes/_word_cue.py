"""Words: a cue that says what a pixel looks like, by numbers whose order means nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_agglo.errors import InvalidInput, SetOption, is_whole
from napari_agglo.volumes._named_axes import voxel_size_of
from napari_agglo.volumes._oriented_cue import Bytes
from napari_agglo.volumes._volume import in_memory, unwrap

MOST_WORDS = 256


@dataclass(frozen=True, eq=False)
class Words:
    """A cue of words, such as textons: a region is described by how often each word occurs in it.

    Pass it to `region_graph` among the cues, with a name of its own; `textons` makes it from an
    image, and `word_cue` from an array. Its histogram has a bin for each word, and bins add when
    regions merge. A boundary has no words.

    Attributes
    ----------
    words : ndarray of uint8
        A number from 0 to `n_words` - 1 for each pixel.
    n_words : int
        The number of words, 2 to 256.
    spacing : tuple of float, optional
        Size of a pixel along each axis.
    unit : str, optional
        Unit of the spacing, if known.
    """

    words: Bytes
    n_words: int
    spacing: tuple[float, ...] | None = None
    unit: str | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of pixels along each axis."""
        return self.words.shape


def word_cue(array: Any, n_words: int | None = None) -> Words:
    """Read an array of whole numbers, such as classes of pixels, as words.

    Parameters
    ----------
    array : array of int, or Volume
        From 0 to `n_words` - 1.
    n_words : int, optional
        Number of words, 2 to 256; by default one more than the highest number. Images that a policy
        is to be learned from and applied to must have the same number.

    Returns
    -------
    Words

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> from napari_agglo.volumes import word_cue
    >>> classes = word_cue(np.array([[0, 0, 1, 2]]))
    >>> cues = {"boundary": np.zeros((1, 4)), "classes": classes}
    >>> graph = agglo.region_graph(np.array([[1, 1, 2, 2]]), cues)
    >>> graph.word_counts("classes")
    array([[0, 0, 0],
           [2, 0, 0],
           [0, 1, 1]])
    """
    values = in_memory(unwrap(array, "array"), "array")
    if values.dtype.kind not in "biu" or values.size == 0:
        raise InvalidInput(
            f"`array` must hold whole numbers, the word of each pixel, not {values.dtype} of shape "
            f"{values.shape}",
            argument="array",
            remedy="pass values whose order means something as a plain cue",
        )
    low, high = int(values.min()), int(values.max())
    if n_words is None:
        n_words = max(2, high + 1)
    if not is_whole(n_words) or not 2 <= int(n_words) <= MOST_WORDS:
        raise InvalidInput(
            f"`n_words` must be from 2 to {MOST_WORDS}, got {n_words!r}",
            argument="n_words",
            remedy=SetOption("n_words", 100),
        )
    if low < 0 or high >= n_words:
        raise InvalidInput(
            f"`array` must be from 0 to {n_words - 1}, got {low} to {high}",
            argument="array",
            remedy=SetOption("n_words", high + 1) if low >= 0 and high < MOST_WORDS
            else f"use at most {MOST_WORDS} words, from 0 on",
        )  # fmt: skip
    return Words(np.ascontiguousarray(values, np.uint8), int(n_words), *voxel_size_of(array))
