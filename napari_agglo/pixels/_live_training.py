"""Live training: strokes in, a classifier and the probabilities of the part in view out.

In its own file because an interface keeps its state between strokes. The features of pixels that
have been labelled once are kept, and so are those of the part in view: a further stroke costs the
features of its own pixels, a new forest, and the forest's answer for the part in view.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.pixels._filters import Array, FilterBank
from napari_agglo.pixels._pixel_classifier import PixelClass, PixelClassifier, check_bank
from napari_agglo.pixels._pixel_image import Box, PixelImage, lines_of
from napari_agglo.pixels._predict_classes import BAND, class_probabilities, threads
from napari_agglo.pixels._train_pixels import (
    TREES,
    Examples,
    check_counts,
    check_spread,
    features_at,
    fit_pixels,
)
from napari_agglo.volumes import check_same_shape

_MOST_EXAMPLES = (
    3000  # pixels of a class in a live training: more would not be felt, but waited for
)


class LiveTraining:
    """State of the training of one image by strokes.

    Parameters
    ----------
    image : array or Volume
        A picture or a volume.
    spacing, channel_axis
        As in `train_pixels`.
    bank : FilterBank, optional
        The features; by default those of `train_pixels`.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.pixels import LiveTraining, check_classes
    >>> image = np.random.default_rng(0).random((20, 30))
    >>> strokes = np.zeros(image.shape, np.uint8)
    >>> strokes[5, :9], strokes[9, :9] = 1, 2
    >>> live = LiveTraining(image)
    >>> classifier = live.train(strokes, check_classes(["dark", "bright"]))
    >>> live.predict(classifier, (0, 0), (20, 30)).shape
    (2, 20, 30)
    """

    def __init__(
        self,
        image: object,
        *,
        spacing: Sequence[float] | None = None,
        channel_axis: int | None = None,
        bank: FilterBank | None = None,
    ) -> None:
        self.source = PixelImage.of(image, spacing, channel_axis)
        self.source.warn_of_channels()
        self._begin(
            bank or FilterBank(axes=2 if self.source.is_thick else 3, channels=self.source.channels)
        )

    def with_bank(self, bank: FilterBank) -> LiveTraining:
        """Return a training of the same image with other features; nothing is kept of this one.

        Parameters
        ----------
        bank : FilterBank
            The features, such as those of a classifier from a file.

        Returns
        -------
        LiveTraining
            The training.

        Raises
        ------
        InvalidInput
            If the image has other channels, or is one plane and the features lie across planes.
        """
        other = copy.copy(self)
        other._begin(bank)
        return other

    def _begin(self, bank: FilterBank) -> None:
        """Use features, and forget those of pixels and of the view."""
        check_bank(bank, self.source)
        self.bank = bank
        self._known = np.zeros(0, np.int64)  # flat indices of pixels, in order
        self._rows = np.zeros((0, self.bank.width), np.float32)  # their features
        self._values = np.zeros((0, self.source.channels), np.float32)  # theirs in the image
        self._view: tuple[Box, list[Array]] | None = None

    def train(
        self,
        labels: NDArray[Any],
        classes: tuple[PixelClass, ...],
        *,
        seed: int = 0,
        trees: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> PixelClassifier:
        """Return a classifier of all strokes so far; raise `InvalidInput` if there are too few.

        Parameters
        ----------
        labels : ndarray of int
            The strokes: 0 is unpainted, 1, 2, ... are the classes.
        classes : tuple of PixelClass
            The class of each label.
        seed : int
            The same strokes and seed give the same classifier.
        trees : int, optional
            By default as many as in `train_pixels`. Few are grown and asked in a fraction of the
            time, for a first look.
        progress : callable, optional
            Called with a `Progress` after each tree; cancels by raising `Cancelled`.

        Returns
        -------
        PixelClassifier
            The classifier.
        """
        check_same_shape(labels, self.source.shape, "labels", "the image")
        flat = np.flatnonzero(labels.reshape(-1))
        kinds = labels.reshape(-1)[flat].astype(np.int64) - 1
        check_counts([kinds + 1], classes)
        rng = np.random.default_rng(seed)
        parts = []
        for kind in range(len(classes)):
            places = np.flatnonzero(kinds == kind)
            if len(places) > _MOST_EXAMPLES:
                places = rng.choice(places, _MOST_EXAMPLES, replace=False)
            parts.append(places)
        chosen = np.sort(np.concatenate(parts))
        rows, values = self._features(flat[chosen])
        check_spread([Examples(self.source, flat[chosen], kinds[chosen], values)], classes)
        return fit_pixels(
            rows, kinds[chosen], classes, self.bank, trees=trees or TREES, seed=seed,
            progress=progress,
            record={"source": "labels", "volumes": 1,
                    "spacing": list(self.source.spacing[3 - self.source.ndim :])},
        )  # fmt: skip

    def predict(
        self,
        classifier: PixelClassifier,
        start: Sequence[int],
        stop: Sequence[int],
        *,
        progress: ProgressCallback | None = None,
    ) -> Array:
        """Return (class, ...), the probabilities of a part of the image from `start` to `stop`.

        Parameters
        ----------
        classifier : PixelClassifier
            The result of `train`.
        start, stop : sequence of int
            The first index along each axis, and one past the last.
        progress : callable, optional
            Called with a `Progress` now and then; cancels by raising `Cancelled`.

        Returns
        -------
        ndarray of float32
            The probabilities.
        """
        lead = 3 - self.source.ndim
        box = Box((*(0,) * lead, *start), (*(1,) * lead, *stop))
        n = len(classifier.classes)
        with threads() as pool:
            if self._view is None or self._view[0] != box:
                self._view = None  # so that two views are never in memory at once
                reach = self.bank.reach(self.source.spacing)
                block = self.source.read(box, reach)
                filtered = self.bank.apply(block, self.source.spacing, pool)
                bands = lines_of(box, BAND)
                tasks = [pool.submit(filtered.features, *band) for band in bands]
                self._view = box, [task.result() for task in tasks]
            answers = [
                pool.submit(class_probabilities, rows, classifier.forest, n)
                for rows in self._view[1]
            ]
            parts: list[Array] = []
            for answer in answers:
                report(progress, "classifying pixels", len(parts), len(answers))
                parts.append(answer.result())
        out = np.concatenate(parts, axis=1)
        return out.reshape(n, *box.shape[lead:])

    def _features(self, flat: NDArray[np.int64]) -> tuple[Array, Array]:
        """Return the features of pixels by their flat indices, in order, and their values."""
        new = np.setdiff1d(flat, self._known, assume_unique=True)
        if len(new):
            with threads() as pool:
                rows, values = features_at(self.source, self.bank, new, pool)
            known = np.concatenate([self._known, new])
            order = np.argsort(known)
            self._known = known[order]
            self._rows = np.concatenate([self._rows, rows])[order]
            self._values = np.concatenate([self._values, values])[order]
        at = np.searchsorted(self._known, flat)
        return self._rows[at], self._values[at]
