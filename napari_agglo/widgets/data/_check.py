"""Checks of the chosen layers, and whether they make one dataset.

No pixels are read but a part of one plane of an image that is chosen as labels.

In its own file because `_selection.py` keeps what is chosen, whether it fits together or not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from napari.layers import Labels

from napari_agglo.errors import (
    ConvertTo,
    InvalidInput,
    PickIndex,
    SetOption,
)
from napari_agglo.widgets._dataset import Dataset, Placement
from napari_agglo.widgets.data._guess_roles import BOUNDARY, has_role, may_hold_labels
from napari_agglo.widgets.data._layers import (
    TEXTONS,
    channel_axis,
    data_of,
    dtype_of,
    is_rgb,
    is_turned,
    placement_of,
    shape_of,
    textons_of,
)
from napari_agglo.widgets.data._remedy_buttons import LABELS

if TYPE_CHECKING:
    from napari_agglo.widgets.data._cue_table import CueRow
    from napari_agglo.widgets.data._selection import Selection


class Placed(NamedTuple):
    """A chosen layer with its role, its name on the screen, and its placement."""

    role: str
    name: str
    layer: Any
    shape: tuple[int, ...]
    placement: Placement


def dataset_of(chosen: Selection) -> Dataset:
    """Return the chosen layers as a dataset; raise `InvalidInput` if they do not fit together."""
    rows = [row for row in chosen.rows if row.used]
    if not rows:
        raise _no_cue(chosen)
    for row in rows:
        _check_cue(row)
    _check_names(rows)
    placed = [
        Placed(f"cues[{row.name!r}]", row.source, row.layer, row.shape, row.placement)
        for row in rows
    ]
    labels = {role: getattr(chosen, role) for role in LABELS}
    for role, layer in labels.items():
        if layer is not None:
            _check_labels(role, layer, rows[0].shape)
            placed.append(_placed(role, layer, chosen.people if role == "gold" else None))
    first, image = rows[0], chosen.image
    used = image is not None and shape_of(image) == first.shape
    if used:
        placed.append(_placed("image", image))
    _check_together(placed)
    golds = chosen.golds()
    arrays = {role: None if one is None else data_of(one) for role, one in labels.items()}
    if golds:
        arrays["gold"] = golds[min(chosen.person, len(golds) - 1)]
    options = dict(chosen.options)
    options["per_plane"] = options["per_plane"] and len(first.shape) > 2
    return Dataset(
        name=str(image.name if used else first.layer.name),
        placement=first.placement,
        cues={row.name: row.data for row in sorted(rows, key=_order)} | _words(rows),
        ranges={row.name: limits for row in rows if (limits := row.limits) is not None},
        image=data_of(image) if used else None,
        options=options,
        golds=golds,
        **arrays,
    )


def _placed(role: str, layer: Any, axis: int | None = None) -> Placed:
    shape = tuple(n for k, n in enumerate(shape_of(layer)) if k != axis)
    return Placed(role, str(layer.name), layer, shape, placement_of(layer, axis))


def _words(rows: list[CueRow]) -> dict[str, Any]:
    """Return the word cue of the boundary map in use, unless another cue has its name."""
    cues = [words for row in rows if (words := textons_of(row.layer)) is not None]
    taken = any(row.name == TEXTONS for row in rows)
    return {TEXTONS: cues[0]} if cues and not taken else {}


def _order(row: CueRow) -> tuple[bool, bool, str]:
    """Return the sort key of a cue: policies need the same order in all volumes."""
    return row.name != BOUNDARY, not row.is_affinities, row.name


def _no_cue(chosen: Selection) -> InvalidInput:
    coloured = next(
        (one for one in chosen.images() if is_rgb(one) and _may_be_cue(one, chosen)), None
    )
    if coloured is None and chosen.image is None and not chosen.rows:
        return InvalidInput(
            "No image is open",
            argument="image",
            remedy="open one with File > Open, or a sample with File > Open Sample > Agglo",
        )
    problem, ways = "No boundary cue is chosen", []
    if coloured is not None:
        problem += f": “{coloured.name}” is in colours, and a cue has one value for each pixel"
        ways.append("split it (right-click on the layer, Split RGB) and tick one channel")
    if chosen.rows:
        ways.append("tick the layer that is high on boundaries")
    if chosen.image is not None:
        ways.append("make one from the image with “Make a boundary cue” or “Paint classes…”")
    return InvalidInput(problem, argument="cues", remedy=tuple(ways))


def _may_be_cue(layer: Any, chosen: Selection) -> bool:
    """Return whether a layer in colours may be a boundary map, not only the picture."""
    return layer is not chosen.image or has_role(layer, "cue")


def _check_cue(row: CueRow) -> None:
    dtype = dtype_of(row.layer)
    if dtype.kind not in "iuf":
        raise InvalidInput(
            f"“{row.source}” has the type {dtype}, but a cue must be numbers",
            argument=f"cues[{row.name!r}]",
            remedy="choose another layer",
        )
    row.limits  # noqa: B018 - raises for a text that is no range
    if row.is_affinities:
        row.offsets  # noqa: B018 - raises for a text that is no list of offsets


def _check_names(rows: list[CueRow]) -> None:
    names = [row.name for row in rows]
    problem = ""
    if not all(name.strip() for name in names):
        problem = "A cue has no name"
    for name in names:
        if name.strip() and names.count(name) > 1:
            problem = f"Two cues are called “{name}”"
    if not problem and BOUNDARY not in names and not any(row.is_affinities for row in rows):
        problem = "No cue is called “boundary”, the name of the cue that is high on boundaries"
    if problem:
        raise InvalidInput(problem, argument="cues", remedy="double-click a name to change it")


def _check_labels(role: str, layer: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(layer, Labels):
        axis = channel_axis(layer, shape) if role == "gold" else None
        people = "" if axis is None else f" (this may be labels of {shape_of(layer)[axis]} people)"
        without = SetOption(role, None)
        if not may_hold_labels(layer):
            raise InvalidInput(
                f"“{layer.name}” has grey values, but {LABELS[role]} must be labels: whole "
                "numbers, one id for each object",
                argument=role,
                remedy=("choose another layer", without),
            )
        raise InvalidInput(
            f"“{layer.name}” is an image, but {LABELS[role]} must be labels: whole numbers, one id "
            f"for each object{people}",
            argument=role,
            remedy=(ConvertTo("uint32"), without),
        )


def _check_together(placed: list[Placed]) -> None:
    """Refuse layers of different shapes or placements."""
    first, home = placed[0], _home(placed)
    for other in placed:
        if is_turned(other.layer):
            raise InvalidInput(
                f"“{other.name}” is rotated, sheared or has an affine transform, which a "
                "segmentation does not support",
                argument=other.role,
                remedy="resample it first",
            )
        if other.shape != first.shape:
            raise _shapes_differ(first, other)
        if not home.placement.matches(other.placement):
            here, there = home.placement, other.placement
            raise InvalidInput(
                f"“{home.name}” and “{other.name}” have the same shape, but different "
                f"placements: scale {_list(here.scale)} and {_list(there.scale)}, translate "
                f"{_list(here.translate)} and {_list(there.translate)}",
                argument=other.role,
                remedy=SetOption("placement", here, home.name),
            )


def _shapes_differ(first: Placed, other: Placed) -> InvalidInput:
    problem = (
        f"“{first.name}” has the shape {_list(first.shape)} and “{other.name}” {_list(other.shape)}"
    )
    remedy: Any = "choose another layer, or crop both alike"
    if sorted(first.shape) == sorted(other.shape):
        problem, remedy = f"{problem}: the axes seem to be in another order", "transpose one layer"
    elif len(first.shape) != len(other.shape):
        axis = channel_axis(other.layer, first.shape)
        problem, remedy = f"{problem}: one has more axes", "choose another layer"
        if axis is not None and other.role in LABELS:
            pick = PickIndex((axis,), len(other.shape))
            people = other.shape[axis]
            remedy = (SetOption("golds", people), pick) if other.role == "gold" else pick
    else:
        problem = f"{problem}: they must have one shape"
    if other.role in LABELS and not isinstance(remedy, (tuple, PickIndex)):
        remedy = (remedy, SetOption(other.role, None))
    return InvalidInput(problem, argument=other.role, remedy=remedy)


def _home(placed: list[Placed]) -> Placed:
    """Return the layer whose placement counts: the first with a pixel size."""
    return next((one for one in placed if any(s != 1 for s in one.placement.scale)), placed[0])


def _list(values: Iterable[Any]) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"
