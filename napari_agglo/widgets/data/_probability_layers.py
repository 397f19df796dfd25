"""Probabilities of the classes of a whole image: computed in memory, or in a file, and as layers.

What does not fit in memory is written to a file that the user names, and its layers are lazy. In
its own file: the whole image, apart from strokes and the plane in view.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from napari.layers import Image
from napari.utils import Colormap
from qtpy.QtWidgets import QFileDialog

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.pixels import PixelClassifier
from napari_agglo.pixels._pixel_image import PixelImage
from napari_agglo.pixels._probability_files import write_probabilities
from napari_agglo.volumes import VoxelSize, is_lazy, open_volume, require_memory, unit_name
from napari_agglo.widgets._layer_levels import lazy_data
from napari_agglo.widgets._napari import add_inactive, role, role_of
from napari_agglo.widgets.data._layers import placement_of

OPACITY = 0.7
Classified = tuple[PixelClassifier, dict[str, Any]]


def classification(
    make: Callable[[], PixelClassifier], source: PixelImage, n_classes: int, layer: Any
) -> Callable[[ProgressCallback], Classified]:
    """Return the work of a job that classifies a whole image by the classifier that `make` makes.

    If the result does not fit in memory, the user is asked for a file; without one it is refused.
    """
    target = _ask_place(source, n_classes, layer.name)
    unit = unit_name(str(layer.units[-1]))
    spacing = source.spacing[3 - source.ndim :]
    voxel = VoxelSize(spacing if unit is not None or set(spacing) != {1.0} else None, unit)

    def work(progress: ProgressCallback) -> Classified:
        classifier = make()
        options: dict[str, Any] = {
            "spacing": spacing, "channel_axis": source.picture.channel_axis, "progress": progress,
        }  # fmt: skip
        if target is None:
            return classifier, dict(classifier.predict(source.picture.data, **options))
        write_probabilities(target, classifier, source.picture.data, voxel, **options)
        return classifier, {name: open_volume(f"{target}:{name}").data for name in classifier.names}

    return work


def _ask_place(source: PixelImage, n_classes: int, name: str) -> Path | None:
    """Return None if the probabilities fit in memory, or else the file that the user names."""
    ways = "make the cues again, and name a file to write them to", "use a crop"
    try:
        require_memory(source.picture.data, "image", 4 * n_classes, ways)
    except InvalidInput as error:
        title = "The classes do not fit in memory: write them to a file"
        chosen, _ = QFileDialog.getSaveFileName(None, title, f"{name}.zarr", "Zarr (*.zarr)")
        if not chosen:
            raise error from None
        path = Path(chosen)
        return path if path.suffix == ".zarr" else path.with_name(f"{path.name}.zarr")
    return None


def show_probabilities(
    viewer: Any, image: Any, classifier: PixelClassifier, cues: dict[str, Any]
) -> dict[str, Any]:
    """Give each class a layer, or its former layer the new pixels; return the layers by class."""
    layers = {}
    for k, one in enumerate(classifier.classes):
        name, values = f"{image.name} {one.name}", cues[one.name]
        former = [x for x in viewer.layers if x.name == name and role_of(x) == ("cue", one.name)]
        lazy = is_lazy(values)
        if former and (lazy or former[-1].multiscale):
            viewer.layers.remove(former.pop())
        if former:
            former[-1].data = values
            layers[one.name] = former[-1]
            continue
        layer = Image(
            **(lazy_data([values]) if lazy else {"data": values}),
            name=name,
            colormap=Colormap(["#000000", one.colour], name=f"agglo {one.colour}"),
            contrast_limits=(0.0, 1.0),
            blending="additive",
            opacity=OPACITY,
            visible=k == 0,
            metadata=role("cue", one.name),
            **placement_of(image).keywords(),
        )
        add_inactive(viewer, layer)
        layers[one.name] = layer
    return layers
