"""Remedies of a problem with the chosen data, as buttons of the Data step; the others as words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

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
from napari_agglo.widgets._remedies import setting_text, value_text, window_problem, window_remedy
from napari_agglo.widgets.data._guess_roles import BOUNDARY
from napari_agglo.widgets.data._layers import channel_axis, may_have_offsets

if TYPE_CHECKING:
    from napari_agglo.widgets.data._selection import Selection

# The label images of a selection, by their arguments, with their names on the screen.
LABELS = {"gold": "gold", "superpixels": "superpixels", "start": "the segmentation to start from"}


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
