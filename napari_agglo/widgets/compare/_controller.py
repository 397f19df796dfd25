"""Controller of a comparison: preparation in a worker, display, moves; one per viewer."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from napari.layers import Image
from psygnal import Signal

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.policy import Policy
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import per_viewer, single_shot, tell_error
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._slider_scale import SLIDER_STEPS, Ticks
from napari_agglo.widgets.compare._choices import (
    SESSION,
    Choice,
    Mode,
    PanelData,
    PanelSource,
    prepare,
    training_plan,
)
from napari_agglo.widgets.compare._comparison import Comparison, Focus
from napari_agglo.widgets.compare._grid import PanelGrid

COMPARE = "compare"  # the name of the job
_FLASH = 180  # milliseconds that new merges stay bright
_FLASHED = 4  # the code of new merges in `DIFFERENCES`


class CompareController:
    """The comparison in a viewer, independent of docks."""

    changed = Signal()  # shown, or moved
    left = Signal()

    def __init__(self, viewer: Any) -> None:
        self._viewer = weakref.ref(viewer)
        self.project = per_viewer(viewer, Project)
        self._scene = per_viewer(viewer, Scene)
        self.grid = PanelGrid(viewer, self._scene)
        self.comparison: Comparison | None = None
        self.ticks: Ticks | None = None
        self.other: int | None = None  # the panel whose differences from the first are shown
        self._focus: Focus | None = None
        self._policies: dict[str, Policy] = {}
        self._policies_of: tuple[Any, Any, int] | None = None  # graph, gold, strokes in it
        self._flash = single_shot(self._unflash, _FLASH)
        self.grid.left.connect(self._on_left)
        self.project.closing.connect(lambda: self._flash.stop())
        self.project.edited.connect(self._on_edited)
        self.project.hierarchy_changed.connect(self._on_hierarchy)
        viewer.dims.events.ndisplay.connect(self._follow_focus)

    # Show and leave.

    def start(self, choices: list[Choice]) -> None:
        """Prepare the panels in a worker, and show them."""
        graph = self.project.graph
        if graph is None:
            no_regions = "There are no regions to compare"
            tell_error(InvalidInput(no_regions, remedy="build them in step 1 or 3"))
            return
        gold = self.project.any_gold
        shared = PanelData(graph, gold, self.known_policies(), self.project.all_gold)

        def work(progress: ProgressCallback) -> tuple[list[PanelSource], Comparison]:
            sources = prepare(choices, shared, progress)
            return sources, Comparison.of(sources, graph, progress)

        needs_session = any(choice.kind in SESSION for choice in choices)
        start = self.project.worker.run if needs_session else self.project.jobs.start
        job = start(COMPARE, "Preparing the comparison", work, self._enter)
        if job is not None and self._viewer() is not None:
            self._scene.suspended = True  # old seeds and previews have no part in it
            job.ended.connect(self._on_ended)

    def _on_ended(self) -> None:
        """Give the canvas back after a comparison that failed or was cancelled."""
        if self.comparison is None:
            self._scene.suspended = False

    def known_policies(self) -> dict[str, Policy]:
        """Return the policies that a comparison need not train, by strategy."""
        graph, gold, strokes = self.project.graph, self.project.any_gold, self.project.strokes
        if graph is None:
            return {}
        before = self._policies_of
        if before is None or before[0] is not graph or before[1] is not gold or before[2] < strokes:
            self._policies, self._policies_of = {}, (graph, gold, strokes)
        return {**self._policies, **self.project.learned_policies(graph)}

    def plan(self, choices: list[Choice]) -> str:
        """Return a sentence on the policies that a comparison trains, and about how long."""
        graph = self.project.graph
        if graph is None:
            return ""
        return training_plan(choices, set(self.known_policies()), graph)

    def show(self, prepared: list[PanelSource], graph: Any) -> None:
        """Show panels that need no preparation."""
        self._enter((prepared, Comparison.of(prepared, graph, None)))

    def leave(self) -> None:
        """Restore the viewer as it was."""
        self.grid.leave()

    def _enter(self, result: tuple[list[PanelSource], Comparison]) -> None:
        prepared, comparison = result
        viewer, placement = self._viewer(), self.project.placement
        if viewer is None or placement is None:
            return
        for one in prepared:
            if one.choice.kind == "strategy" and one.policy is not None:
                self._policies[one.choice.value] = one.policy
        self.grid.enter(comparison, placement, _image_under(viewer, placement))
        self.comparison = comparison
        lead = comparison.lead
        self.ticks = None if lead is None else Ticks(lead.tree.heights)
        self.other = self._focus = None
        self.set(position=self.project.threshold)

    def _on_edited(self) -> None:
        """Leave if a superpixel was divided: the panels have the former ones."""
        comparison = self.comparison
        if comparison is not None and comparison.n_superpixels != comparison.graph.n_regions:
            self.leave()

    def _on_hierarchy(self) -> None:
        """Leave if the image has another shape."""
        comparison, graph = self.comparison, self.project.graph
        shape = None if graph is None else graph.superpixels.image.shape
        if comparison is not None and shape != comparison.graph.superpixels.image.shape:
            self.leave()

    def _on_left(self) -> None:
        self.comparison = self.ticks = self.other = self._focus = None
        self._flash.stop()
        self.left.emit()

    # Move.

    def set(
        self, *, position: float | None = None, mode: Mode | None = None, flash: bool = False
    ) -> None:
        """Move all panels; with `flash`, highlight new merges for a moment."""
        comparison = self.comparison
        if comparison is None:
            return
        before = [panel.names for panel in comparison.panels]
        comparison.set(position=position, mode=mode)
        self.grid.refresh()
        if flash:
            self._flash_up(before)
        else:
            self._show_codes()
        self.changed.emit()

    def step(self, direction: int, by_threshold: bool = False) -> bool:
        """Move one step; return False at the end."""
        comparison, ticks = self.comparison, self.ticks
        if comparison is None or ticks is None:
            return False
        here = ticks.merges(comparison.position)
        if by_threshold:
            low, high = ticks.span
            position = comparison.position + direction * (high - low) / SLIDER_STEPS
            position = min(max(position, low), high)
            if position == comparison.position:
                return False
        else:
            there = ticks.stepped(here, direction)
            if there == here:
                return False
            position = ticks.threshold(there)
        self.set(position=position, flash=True)
        return True

    def restart(self) -> None:
        """Go back to the superpixels."""
        if self.ticks is not None:
            self.set(position=self.ticks.threshold(0))

    # Overlays.

    def show_differences(self, other: int | None) -> None:
        """Colour the differences between the first panel and another one; None for none."""
        self.other = other
        self.look_at(None)
        self._show_codes()

    def look_at(self, focus: Focus | None) -> None:
        """Show only the segments of a difference in 3-D; None for all."""
        self._focus = focus
        self._follow_focus()

    def _follow_focus(self, event: object = None) -> None:
        viewer, comparison = self._viewer(), self.comparison
        if viewer is None or comparison is None:
            return
        focus = self._focus if viewer.dims.ndisplay == 3 else None
        if comparison.focus != focus:
            comparison.focus = focus
            comparison.update()
            self.grid.show_alone(focus is not None)
            self.grid.refresh()
            self._show_codes()

    def _show_codes(self) -> None:
        comparison = self.comparison
        if comparison is None:
            return
        self._flash.stop()
        for which in range(len(comparison.panels)):
            self.grid.show_codes(which, None)
        if self.other is not None and self.other < len(comparison.panels):
            codes = comparison.codes(self.other)
            for which in (0, self.other):
                self.grid.show_codes(which, codes)

    def _flash_up(self, before: list[Any]) -> None:
        assert self.comparison is not None
        for which, (panel, old) in enumerate(zip(self.comparison.panels, before, strict=True)):
            if panel.cut is not None and len(old) == len(panel.names):
                merged = (old != panel.names).astype(np.uint8) * np.uint8(_FLASHED)
                self.grid.show_codes(which, panel.on_pieces(merged))
        self._flash.start()

    def _unflash(self) -> None:
        if self._viewer() is not None:
            self._show_codes()


def _image_under(viewer: Any, placement: Any) -> Image | None:
    """Return the image to show below each panel: the lowest visible one of these axes."""
    fitting = [
        layer
        for layer in viewer.layers
        if isinstance(layer, Image) and layer.ndim == len(placement.scale)
    ]
    visible = [layer for layer in fitting if layer.visible]
    return (visible or fitting or [None])[0]
