"""Volumes whose gold labels teach the pixel classifier: the chosen one, and those that are kept."""

# In its own file: arrays of datasets, apart from the strokes on the canvas.

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_agglo._data_warnings import keep_warnings, warn_caller
from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import DataWarning, InvalidInput
from napari_agglo.pixels import FilterBank, PixelClass, PixelClassifier, train_pixels
from napari_agglo.volumes import Volume
from napari_agglo.widgets.data._layers import data_of, is_rgb, placement_of
from napari_agglo.widgets.data._selection import Selection


@dataclass(frozen=True, eq=False)
class GoldVolume:
    """An image with its gold labels, of one person or several; arrays, not layers."""

    name: str
    image: Any
    golds: tuple[Any, ...]
    spacing: tuple[float, ...]
    is_rgb: bool


@dataclass(frozen=True, eq=False)
class GoldVolumes:
    """The volumes to learn from, and the names of those that have no image.

    Examples
    --------
    >>> one, two = (GoldVolume(name, None, (), (), False) for name in "ab")
    >>> GoldVolumes((one, two), ("c",)).text
    'The classifier has learned from the gold labels of “a” and “b”. Without an image: “c”.'
    """

    volumes: tuple[GoldVolume, ...]
    without_image: tuple[str, ...] = ()

    @classmethod
    def of(cls, selection: Selection) -> GoldVolumes:
        """Return the chosen volume, if it has gold, and the volumes that are kept for training."""
        volumes, image, gold = [], selection.image, selection.gold
        if image is not None and gold is not None:
            golds = selection.golds() or (data_of(gold),)
            spacing = tuple(abs(one) for one in placement_of(image).scale)
            volumes.append(
                GoldVolume(str(image.name), data_of(image), golds, spacing, is_rgb(image))
            )
        known = [id(one) for volume in volumes for one in volume.golds]
        kept = [one for one in selection.project.training if id(one.gold) not in known]
        for one in kept:
            if one.image is not None:
                golds = one.golds or (one.gold,)
                coloured = len(one.image.shape) > len(one.shape)
                volumes.append(GoldVolume(one.name, one.image, golds, one.spacing, coloured))
        return cls(tuple(volumes), tuple(one.name for one in kept if one.image is None))

    @property
    def text(self) -> str:
        """Sentences on the volumes that have taught, and on those that could not."""
        names = _quoted([one.name for one in self.volumes])
        text = f"The classifier has learned from the gold labels of {names}."
        rest = self.without_image
        return f"{text} Without an image: {_quoted(rest)}." if rest else text

    def check_colours(self, image: Any) -> None:
        """Refuse colours beside grey values; `image` is the layer that the classifier is for."""
        coloured = {str(image.name): is_rgb(image)}
        coloured |= {one.name: one.is_rgb for one in self.volumes}
        if len(set(coloured.values())) > 1:
            colours = _quoted([name for name, one in coloured.items() if one])
            greys = _quoted([name for name, one in coloured.items() if not one])
            raise InvalidInput(
                f"A classifier reads either colours or grey values, and {colours} is in colours, "
                f"{greys} in grey",
                argument="images",
                remedy=(
                    "use one channel of the colours (right-click on the layer, Split RGB)",
                    "remove one of them from “Further volumes to train on”, under More",
                ),
            )

    def train(
        self,
        classes: Sequence[PixelClass],
        bank: FilterBank,
        per_plane: bool | None,
        progress: ProgressCallback,
    ) -> PixelClassifier:
        """Return a classifier; errors and warnings name volumes in place of arguments."""
        pairs = [(volume, gold) for volume in self.volumes for gold in volume.golds]
        names = [volume.name for volume, _ in pairs]
        # The axis of colours has a spacing, too.
        images = [Volume(one.image, (*one.spacing, 1.0) if one.is_rgb else one.spacing)
                  for one, _ in pairs]  # fmt: skip
        try:
            with keep_warnings() as kept:
                return train_pixels(
                    images,
                    gold=[np.asarray(gold) for _, gold in pairs],
                    classes=classes,
                    scales=bank.scales,
                    structure=bank.structure,
                    per_plane=per_plane,
                    channel_axis=-1 if self.volumes[0].is_rgb else None,
                    progress=progress,
                )
        except InvalidInput as error:
            problem = _named(error.problem, names)
            raise InvalidInput(problem, argument=error.argument, remedy=error.remedy) from error
        finally:
            for one in kept:
                problem = _named(one.problem, names)
                warn_caller(DataWarning(problem, argument=one.argument, remedy=one.remedy))


def _quoted(names: Sequence[str]) -> str:
    """Return names in quotation marks, each once.

    >>> _quoted(["a", "b", "a", "c"])
    '“a”, “b” and “c”'
    """
    quoted = [f"“{name}”" for name in dict.fromkeys(names)]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def _named(text: str, names: Sequence[str]) -> str:
    """Return a text with the names of volumes in place of arguments of `train_pixels`.

    >>> _named("No two objects of `gold[1]` touch", ["a", "b"])
    'No two objects of the gold labels of “b” touch'
    """

    def name(match: re.Match[str]) -> str:
        quoted = f"“{names[int(match[2] or 0)]}”"
        return quoted if match[1] == "images" else f"the gold labels of {quoted}"

    return re.sub(r"`(images|gold)(?:\[(\d+)\])?`", name, text)
