"""From the chosen layers to a dataset: all that can be refused without reading a pixel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from napari_agglo.errors import InvalidInput
from napari_agglo.widgets._dataset import Dataset, Placement
from napari_agglo.widgets.data._guess_roles import BOUNDARY
from napari_agglo.widgets.data._layers import (
    data_of,
    dtype_of,
    is_labels,
    is_turned,
    placement_of,
    shape_of,
)

if TYPE_CHECKING:
    from napari_agglo.widgets.data._cue_table import CueRow
    from napari_agglo.widgets.data._selection import Selection


# Why the chosen layers cannot be used together, and what one click could do about it.


class Trouble(InvalidInput):
    """What stands in the way.

    Attributes
    ----------
    button : str
        What the button says that mends it; empty if the user must.
    mend : callable or None
        What the button does.
    """

    def __init__(
        self, message: str, button: str = "", mend: Callable[[], object] | None = None
    ) -> None:
        super().__init__(message)
        self.button = button
        self.mend = mend


Placed = tuple[str, Any, tuple[int, ...], Placement]  # what it is called, layer, shape, place


def dataset_of(chosen: Selection) -> Dataset:
    """Return the chosen layers as a dataset, or raise the `Trouble` with it."""
    rows = [row for row in chosen.rows if row.used]
    if not rows:
        raise _no_cue(chosen)
    for row in rows:
        _check_cue(row)
    _check_names(rows)
    roles = {"gold": chosen.gold, "superpixels": chosen.superpixels, "start from": chosen.start}
    given = {what: layer for what, layer in roles.items() if layer is not None}
    for what, layer in given.items():
        _check_labels(what, layer, chosen)
    first = rows[0]
    placed: list[Placed] = [(row.source, row.layer, row.shape, row.placement) for row in rows]
    placed += [
        (layer.name, layer, shape_of(layer), placement_of(layer)) for layer in given.values()
    ]
    image = chosen.image
    used = image is not None and shape_of(image) == first.shape
    if used:
        placed.append((image.name, image, first.shape, placement_of(image)))
    _check_together(placed)
    return Dataset(
        name=str(image.name if used else first.layer.name),
        placement=first.placement,
        cues={row.name: row.data for row in sorted(rows, key=_in_order)},
        ranges={row.name: limits for row in rows if (limits := row.limits) is not None},
        image=data_of(image) if used else None,
        superpixels=_data(chosen.superpixels),
        gold=_data(chosen.gold),
        per_plane=chosen.per_plane and len(first.shape) > 2,
        min_size=chosen.min_size,
        nan="boundary" if chosen.nan_is_boundary else "refuse",
        start=_data(chosen.start),
    )


def _in_order(row: CueRow) -> tuple[bool, str]:
    """Return the place of a cue: the same in all volumes, as a policy wants it."""
    return row.name != BOUNDARY, row.name


def _data(layer: Any) -> Any:
    return None if layer is None else data_of(layer)


def _no_cue(chosen: Selection) -> Trouble:
    if chosen.image is not None:
        do = "Tick one below, or make" if chosen.rows else "Make"
        return Trouble(
            f"No boundary cue is chosen. {do} one from the image: one click on “Make a boundary "
            "cue”."
        )
    if chosen.rows:
        return Trouble("No boundary cue is chosen. Tick the map that is high on boundaries.")
    return Trouble(
        "There is no image yet. Open one (File > Open), or a sample: File > Open Sample > Agglo."
    )


def _check_cue(row: CueRow) -> None:
    dtype = dtype_of(row.layer)
    if dtype.kind not in "iuf":
        raise Trouble(
            f"“{row.source}” holds {dtype}, and a cue must hold numbers; choose another layer."
        )
    row.limits  # noqa: B018 - refuses what is no range


def _check_names(rows: list[CueRow]) -> None:
    names = [row.name for row in rows]
    for name in names:
        if not name.strip():
            raise Trouble("A cue has no name; double-click its name to give it one.")
        if names.count(name) > 1:
            raise Trouble(f"Two cues are called “{name}”; double-click a name to change it.")
    if BOUNDARY not in names:
        raise Trouble(
            "One cue must be called “boundary”: the one that is high on boundaries. Double-click "
            "its name to change it."
        )


def _check_labels(what: str, layer: Any, chosen: Selection) -> None:
    if not is_labels(layer):
        raise Trouble(
            f"“{layer.name}” is an image, and {what} must be labels: whole numbers, an id each.",
            "Convert it to labels",
            lambda: chosen.convert(what, layer),
        )


def _check_together(placed: list[Placed]) -> None:
    """Refuse layers that do not lie on top of each other."""
    first, _, shape, _ = placed[0]
    name, _, _, place = _home(placed)
    for other, layer, other_shape, other_place in placed:
        if is_turned(layer):
            raise Trouble(
                f"“{other}” is rotated, sheared or has an affine transform, which a segmentation "
                "cannot follow; resample it first."
            )
        if other_shape != shape:
            raise Trouble(_shapes(first, shape, other, other_shape))
        if not place.matches(other_place):
            raise Trouble(
                f"“{name}” and “{other}” have the same shape, but do not lie on top of each other: "
                f"scale {_list(place.scale)} and {_list(other_place.scale)}, translate "
                f"{_list(place.translate)} and {_list(other_place.translate)}.",
                f"Put all where “{name}” is",
                lambda: _align(placed, place),
            )


def _shapes(name: str, shape: tuple[int, ...], other: str, other_shape: tuple[int, ...]) -> str:
    said = f"“{name}” has the shape {_list(shape)} and “{other}” {_list(other_shape)}"
    if sorted(shape) == sorted(other_shape):
        return f"{said}: the axes seem to be in another order. Transpose one of them."
    if len(shape) != len(other_shape):
        return f"{said}: one has more axes. Choose another layer, or take one plane of it."
    return f"{said}: they must be of one shape. Choose another layer, or crop both alike."


def _home(placed: list[Placed]) -> Placed:
    """Return the one to which the others go: the first that knows the size of its pixels."""
    return next((one for one in placed if any(s != 1 for s in one[3].scale)), placed[0])


def _align(placed: list[Placed], place: Placement) -> None:
    """Move all layers to one place."""
    for _, layer, _, _ in placed:
        if layer.ndim == len(place.scale):
            layer.scale, layer.translate = place.scale, place.translate


def _list(values: Iterable[Any]) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"
