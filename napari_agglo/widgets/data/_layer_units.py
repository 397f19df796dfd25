"""Layers of a viewer whose units differ in kind, such as pixels and micrometres, and remedies.

napari warns of them and draws without units, but has no control for the units of a layer.

In its own file: unlike the problems of `_check`, these prevent no run, and concern layers that are
not chosen too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qtpy.QtWidgets import QFrame

from napari_agglo.widgets._colours import GREY
from napari_agglo.widgets._fit_text import fitting_button
from napari_agglo.widgets._napari import is_of_sample, one_update
from napari_agglo.widgets._qt import button, column, guarded, label, shortened
from napari_agglo.widgets.data._layers import data_of
from napari_agglo.widgets.data._selection import Selection

_LETTERS = 24  # of the name of a layer in a sentence, or on a button


def with_other_units(layer: Any, layers: Sequence[Any]) -> list[Any]:
    """Return the layers whose units measure something else than those of a layer, axis by axis.

    Lengths such as nm and µm are of one kind: napari converts between them.
    """
    return [one for one in layers if _differ(layer.units, one.units)]


def _differ(units: Sequence[Any], others: Sequence[Any]) -> bool:
    pairs = zip(reversed(units), reversed(others), strict=False)  # the last axes are those of space
    return any(a.dimensionality != b.dimensionality for a, b in pairs)


def give_units(layer: Any, others: Sequence[Any]) -> None:
    """Give layers the units of a layer; an axis that the layer lacks keeps its own."""
    units = tuple(layer.units)
    for one in others:
        one.units = (*one.units[: max(0, one.ndim - len(units))], *units[-one.ndim :])


def unit_text(layer: Any) -> str:
    """Return the unit of the last axis of a layer, as a plural: pixels, micrometers."""
    return f"{layer.units[-1]}s"


class UnitsBox(QFrame):
    """A line on layers whose units differ from those of the image, with buttons that mend it."""

    def __init__(self, viewer: Any, selection: Selection) -> None:
        super().__init__()
        self.setObjectName("units")
        self.setStyleSheet(f"QFrame#units {{ border: 1px solid {GREY}; border-radius: 4px; }}")
        self._viewer, self._selection = viewer, selection
        self.message = label("units message")
        one = "Change the unit of the other layers; their scale, position and pixels stay"
        self.give = fitting_button("", one, lambda: guarded(self._give), "give units")
        out = "Remove the layers of the sample from the list of layers, and its segmentation"
        self.remove = button("Remove the sample", out, lambda: guarded(self._remove),
                             "remove sample")  # fmt: skip
        column(self, self.message, self.remove, self.give).setContentsMargins(6, 4, 6, 4)

    def follow(self) -> None:
        """Show the line if layers of the viewer differ in units."""
        layer, others = self._differing()
        self.setVisible(bool(others))
        if not others:
            return
        name, other = (shortened(str(one.name), _LETTERS) for one in (layer, others[0]))
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        are = "are" if more else "is"
        self.message.setText(
            f"“{name}” is in {unit_text(layer)}, “{other}”{more} {are} in {unit_text(others[0])}: "
            "napari draws them without units. The segmentation is the same."
        )
        self.give.setText(f"Use the units of “{name}”")
        self.remove.setVisible(bool(self._of_samples()))

    def _differing(self) -> tuple[Any, list[Any]]:
        """Return the image, or else the first cue, and the layers with units of another kind."""
        used = [row.layer for row in self._selection.rows if row.used]
        image = self._selection.image
        layer = next((one for one in (image, *used) if one is not None), None)
        return layer, [] if layer is None else with_other_units(layer, list(self._viewer.layers))

    def _of_samples(self) -> list[Any]:
        """Return the layers of samples, if one of them is among the layers that differ."""
        layer, others = self._differing()
        if not any(map(is_of_sample, [layer, *others] if others else [])):
            return []
        return [one for one in self._viewer.layers if is_of_sample(one)]

    def _give(self) -> None:
        layer, others = self._differing()
        give_units(layer, others)

    def _remove(self) -> None:
        samples, built = self._of_samples(), self._selection.project.built
        with one_update(self._viewer):
            for layer in samples:
                self._viewer.layers.remove(layer)
        uses = None if built is None else built.regions.dataset.uses
        if uses is not None and any(uses(data_of(layer)) for layer in samples):
            self._selection.project.drop_hierarchy()
