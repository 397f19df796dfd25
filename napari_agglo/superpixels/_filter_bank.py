"""The filter bank MR8 (Varma and Zisserman 2005), and words of vectors by k-means.

The bank has edges and bars of three sizes in six orientations, of which the strongest counts, a
Gaussian and a Laplacian of a Gaussian: eight responses, which do not change when the image turns.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report

Floats = NDArray[np.float32]
SIZES = ((1.0, 3.0), (2.0, 6.0), (4.0, 12.0))  # across and along an edge or bar, in pixels
ORIENTATIONS = 6
BLOB = 10.0  # standard deviation of the Gaussian and of its Laplacian
SUPPORT = 24  # pixels on each side of the centre of a filter
_WEBER = 0.03  # a response that is much stronger counts by its logarithm


def mr8_filters() -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield the 38 filters, each with the response (0 to 7) of which it may be the strongest.

    A filter has zero mean, but for the Gaussian, and absolute values that add to 1.
    """
    at = np.arange(-SUPPORT, SUPPORT + 1.0)
    rows, columns = np.meshgrid(at, at, indexing="ij")
    for size, (across, along) in enumerate(SIZES):
        for order in (1, 2):
            for k in range(ORIENTATIONS):
                angle = math.pi * k / ORIENTATIONS
                u = columns * math.cos(angle) - rows * math.sin(angle)
                v = columns * math.sin(angle) + rows * math.cos(angle)
                line = np.exp(-0.5 * (u / along) ** 2 - 0.5 * (v / across) ** 2)
                slope = v if order == 1 else (v / across) ** 2 - 1.0
                yield 2 * size + order - 1, _balanced(line * slope)
    squares = (rows**2 + columns**2) / BLOB**2
    blob = np.exp(-0.5 * squares)
    yield 6, blob / blob.sum()
    yield 7, _balanced(blob * (squares - 2.0))


def _balanced(kernel: NDArray[np.float64]) -> NDArray[np.float64]:
    centred: NDArray[np.float64] = kernel - kernel.mean()
    centred /= np.abs(centred).sum()
    return centred


def mr8(image: Floats, progress: ProgressCallback | None = None) -> Floats:
    """Return the eight responses of a plane, shape (8, rows, columns); its border is mirrored.

    Edges and bars count by their absolute value: whether dark or bright does not matter.
    """
    from scipy import fft

    padded = np.pad(image, SUPPORT, mode="symmetric")
    shape = [fft.next_fast_len(n, real=True) for n in padded.shape]
    spectrum = fft.rfft2(padded, shape)
    out = np.zeros((8, *image.shape), np.float32)
    filters = list(mr8_filters())
    for done, (response, kernel) in enumerate(filters):
        report(progress, "texture filters", done, len(filters))
        # Correlation, by the transform of the mirrored filter; a circle is as long as the padded
        # image, so that only what is cut off here is mixed with the other side.
        product = spectrum * fft.rfft2(kernel[::-1, ::-1].astype(np.float32), shape)
        whole = fft.irfft2(product, shape)
        start = 2 * SUPPORT
        part = whole[start : start + image.shape[0], start : start + image.shape[1]]
        np.maximum(out[response], np.abs(part), out=out[response])
    report(progress, "texture filters", len(filters), len(filters))
    return out


def normalised(responses: Floats) -> Floats:
    """Return responses of which strong ones count by their logarithm (Weber's law)."""
    length = np.sqrt((responses**2).sum(axis=0))
    factor = np.log1p(length / _WEBER) / np.maximum(length, 1e-12)
    scaled: Floats = (responses * factor).astype(np.float32)
    return scaled


_SAMPLE = 20_000  # vectors that the words are fitted to
_ROUNDS = 20  # of k-means


def fit_words(vectors: Floats, n_words: int, seed: int) -> Floats:
    """Return `n_words` centres of vectors, shape (words, components), by k-means on a sample."""
    from scipy.cluster import vq

    rng = np.random.default_rng(seed)
    few = len(vectors) <= _SAMPLE
    sample = vectors if few else vectors[np.sort(rng.choice(len(vectors), _SAMPLE, replace=False))]
    with warnings.catch_warnings():  # an empty word is no harm
        warnings.simplefilter("ignore", UserWarning)
        centres, _ = vq.kmeans2(sample, n_words, iter=_ROUNDS, minit="++", rng=rng)
    return np.asarray(centres, np.float32)


def nearest_words(vectors: Floats, centres: Floats) -> NDArray[np.uint8]:
    """Return the nearest centre of each vector."""
    from scipy.cluster import vq

    words: NDArray[np.uint8] = vq.vq(vectors, centres, check_finite=False)[0].astype(np.uint8)
    return words
