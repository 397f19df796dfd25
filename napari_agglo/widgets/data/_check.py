"""Checks of the chosen layers, without reading pixels, and buttons for remedies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from napari.layers import Labels

from napari_agglo.errors import (
    ConvertTo,
    DataWarning,
    InvalidInput,
    LabelComponents,
    PickIndex,
    ReadAffinities,
    Remedy,
    SetOption,
    alternatives,
    sentence,
)
from napari_agglo.widgets._dataset import Dataset, Placement
from napari_agglo.widgets._remedies import setting_text, value_text, window_problem, window_remedy
from napari_agglo.widgets.data._guess_roles import BOUNDARY, has_role
from napari_agglo.widgets.data._layers import (
    TEXTONS,
    channel_axis,
    data_of,
    dtype_of,
    is_rgb,
    is_turned,
    may_have_offsets,
    placement_of,
    shape_of,
    textons_of,
)

if TYPE_CHECKING:
    from napari_agglo.widgets.data._cue_table import CueRow
    from napari_agglo.widgets.data._selection import Selection

LABELS = {"gold": "gold", "superpixels": "superpixels", "start": "the segmentation to start from"}


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
        raise InvalidInput(
            f"“{layer.name}” is an image, but {LABELS[role]} must be labels: whole numbers, one id "
            f"for each object{people}",
            argument=role,
            remedy=(ConvertTo("uint32"), SetOption(role, None)),
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
    return InvalidInput(problem, argument=other.role, remedy=remedy)


def _home(placed: list[Placed]) -> Placed:
    """Return the layer whose placement counts: the first with a pixel size."""
    return next((one for one in placed if any(s != 1 for s in one.placement.scale)), placed[0])


def _list(values: Iterable[Any]) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"


class Fix(NamedTuple):
    """A remedy as a button: its text and its action."""

    text: str
    act: Callable[[], object]


def fixes(error: InvalidInput | DataWarning, chosen: Selection) -> list[Fix]:
    """Return a button for each remedy of an error or warning that a click can apply."""
    argument = error.argument or ""
    return [
        fix
        for remedy in alternatives(error.remedy)
        if (fix := _fix(remedy, argument, chosen)) is not None
    ]


def message(error: InvalidInput | DataWarning, chosen: Selection) -> str:
    """Return the problem, and the remedies that have no button, as a sentence."""
    argument = error.argument or ""
    rest = [one for one in alternatives(error.remedy) if _fix(one, argument, chosen) is None]
    clauses = ", or ".join(window_remedy(one) for one in rest)
    problem = window_problem(error) if isinstance(error, DataWarning) else error.problem
    return sentence(problem, clauses) if clauses else f"{problem.rstrip('.')}."


def _fix(remedy: Remedy, argument: str, chosen: Selection) -> Fix | None:
    if isinstance(remedy, SetOption) and (remedy.value is not None or remedy.option == argument):
        return _fix_option(remedy, chosen)
    if isinstance(remedy, ReadAffinities):
        rows = [row for row in chosen.rows if row.used and may_have_offsets(row.layer, None)]
        if len(rows) == 1:
            layer = rows[0].layer
            return Fix(f"Read “{layer.name}” as affinities", partial(_call_affinities, layer))
    if argument not in LABELS or getattr(chosen, argument) is None:
        return None
    if isinstance(remedy, ConvertTo):
        return Fix("Use it as labels", lambda: chosen.convert(argument))
    if isinstance(remedy, LabelComponents):
        return Fix(
            "Label its connected components", lambda: chosen.convert(argument, components=True)
        )
    if isinstance(remedy, PickIndex):
        return Fix("Use one plane of it", lambda: chosen.pick_plane(argument, remedy.axes))
    return None


def _call_affinities(layer: Any) -> None:
    """Name a layer so that it is recognised as affinities."""
    layer.name = f"{layer.name} affinities"


def _fix_option(remedy: SetOption, chosen: Selection) -> Fix | None:
    if remedy.option in LABELS and remedy.value is None:
        return Fix("Continue without it", lambda: chosen.choose(remedy.option, None))
    if remedy.option == "golds":
        shape = next(row.shape for row in chosen.rows if row.used)
        axis = channel_axis(chosen.gold, shape)
        if axis is None:
            return None
        text = f"Use it as {remedy.value} gold standards"
        return Fix(text, lambda: chosen.use_several(axis))
    if remedy.option == "placement":
        return Fix(
            f"Give all layers the placement of “{remedy.key}”", lambda: chosen.align(remedy.value)
        )
    if remedy.option in ("ranges", "value_range"):
        name = remedy.key or BOUNDARY
        rows = [row for row in chosen.rows if row.used and row.name == name]
        text = value_text(remedy.value)
        if rows:
            return Fix(
                f"Set the range of “{name}” to {text}",
                lambda: chosen.set_cue(rows[0], range_text=text),
            )
    if remedy.option == "nan" and remedy.value == "boundary":
        return Fix("Treat NaN as boundary", lambda: chosen.set_option("nan", "boundary"))
    if remedy.option in chosen.options:
        text = setting_text(remedy)
        return Fix(
            text[0].upper() + text[1:], lambda: chosen.set_option(remedy.option, remedy.value)
        )
    return None
