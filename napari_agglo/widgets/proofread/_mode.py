"""The mode of the canvas: the banner on it, the cursor, and the text of the dock."""

# In its own file: the mode of the canvas, apart from the panels of the dock.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psygnal import Signal

from napari_agglo.widgets._colours import CUTTING, EDITING, GROUPS, READING
from napari_agglo.widgets._napari import text_overlay, view_size, when_resized
from napari_agglo.widgets._qt import single_shot
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets.proofread._seeded_cut import Seeds

COMPARING = "Comparing: press Leave to proofread"
_AT_ONCE = 2  # new letters
_BETWEEN = 30  # milliseconds between new letters, for other events


class OverlayText:
    """Text on the overlay of one canvas, with a few new letters at a time.

    napari needs some ten milliseconds for each new letter, and caches it then. The first text is
    invisible until it is complete: half of it would look cut off.
    """

    def __init__(self) -> None:
        self._cached: set[str] = set()
        self._shows = False  # whether a text has been complete
        self._text = ""
        self._overlay: Any = None
        self._timer = single_shot(self._go_on, _BETWEEN)

    def write(self, overlay: Any, text: str) -> None:
        """Write a text, at once if napari has drawn its letters before."""
        self._overlay, self._text = overlay, text
        self._follow()
        if self._cached:
            self._go_on()
        else:  # the first letters need a shader too: not in the same turn as a new session
            self._timer.start()

    def stop(self) -> None:
        """Stop writing."""
        self._timer.stop()
        self._overlay = None

    def _go_on(self) -> None:
        if self._overlay is None:
            return
        end, new = 0, set[str]()
        while end < len(self._text):
            new |= {self._text[end]} - self._cached
            if len(new) > (_AT_ONCE if self._cached else 1):
                break
            end += 1
        self._cached |= set(self._text[:end])
        self._overlay.text = self._text[:end]
        if end < len(self._text):
            self._timer.start()
        else:
            self._timer.stop()
            self._shows = True
            self._follow()

    def _follow(self) -> None:
        # napari draws, and so caches, the letters of a transparent overlay, not of a hidden one.
        self._overlay.opacity = float(self._shows)
        self._overlay.box = self._shows


_POINTS = 11.0  # the size of the letters
_LEAST_POINTS = 6.0  # below, nothing can be read
_CAPITAL, _OTHER = 14.5, 10.0  # pixels of a letter on the canvas at that size
_MARGIN = 16.0  # pixels of the box and its distance from the edges


def fitting_text(texts: Sequence[str], width: float) -> tuple[str, float]:
    """Return the first text that fits a canvas of so many pixels, and its size in points.

    The last text is written smaller where none fits.

    Examples
    --------
    >>> texts = ("PROOFREADING · segment 12", "PROOFREADING")
    >>> fitting_text(texts, 400), fitting_text(texts, 200)
    (('PROOFREADING · segment 12', 11.0), ('PROOFREADING', 11.0))
    >>> fitting_text(texts, 90)
    ('PROOFREADING', 6.0)
    """
    room = max(width - _MARGIN, 0.0)
    for text in texts:
        needed = sum(_CAPITAL if letter.isupper() else _OTHER for letter in text)
        if needed <= room:
            return text, _POINTS
    return texts[-1], max(_LEAST_POINTS, _POINTS * room / needed)


class Mode:
    """The mode of the canvas, as a text and a colour."""

    changed = Signal()

    def __init__(self, scene: Scene, seeds: Seeds) -> None:
        self.scene = scene
        self.project = scene.project
        self.seeds = seeds
        self.text = self.short = ""  # the text, and one for a narrow place
        self.colour = READING
        self._before: dict[str, Any] | None = None  # the former text on the canvas
        self._help_before = ""  # of the layer of segments, in napari's status bar
        self._overlay = OverlayText()
        self.project.closing.connect(self._overlay.stop)
        self.project.hierarchy_changed.connect(self._follow)
        self.project.selection_changed.connect(self._follow)
        seeds.changed.connect(self._follow)
        scene.suspended_changed.connect(self._follow)
        scene.viewer.layers.events.inserted.connect(self._set_cursor)
        when_resized(scene.viewer, self._on_size)
        self._follow()

    def _follow(self) -> None:
        session, active = self.project.session, self.project.active
        if session is None or self.scene.suspended:
            comparing = session is not None
            self.text, self.short = (COMPARING, "COMPARING") if comparing else ("", "")
            self.colour = READING
            self._restore()  # the panels have names of their own
        else:
            name = f"segment {self.project.id_of(active)}" if active else "no segment active"
            self.short = "PROOFREADING"
            if session.read_only:
                self.text, self.colour = f"READ-ONLY · {name}", READING
                self.short = "READ-ONLY"
            elif self.seeds or self.seeds.group:
                group = self.seeds.group
                self.text = f"CUTTING {name} · group {group + 1}"
                self.colour = CUTTING
                self.short = f"CUTTING · group {group + 1}"
            else:
                self.text, self.colour = f"PROOFREADING · {name}", EDITING
            self._write()
        self._set_cursor()
        self.changed.emit()

    def _on_size(self, _: object = None) -> None:
        if self.text and not self.scene.suspended:
            self._write()

    def _write(self) -> None:
        overlay = text_overlay(self.scene.viewer)
        if self._before is None:
            self._before = {name: getattr(overlay, name) for name in _OURS}
        width = view_size(self.scene.viewer)[1]
        text, points = fitting_text((self.text, self.short), width)
        self._overlay.write(overlay, text)
        overlay.position = "top_center"
        overlay.font_size = points
        overlay.color = "white"
        overlay.box_color = GROUPS[self.seeds.group] if self.seeds else self.colour
        if self.seeds:
            overlay.color = "black"
        overlay.visible = True

    def _restore(self) -> None:
        if self._before is None:
            return
        self._overlay.stop()
        overlay = text_overlay(self.scene.viewer)
        for name, value in self._before.items():
            setattr(overlay, name, value)
        self._before = None

    def _set_cursor(self, _: object = None) -> None:
        layer = self.scene.segmentation
        if layer is not None:
            editing = self.project.session is not None
            shape = ("cross" if self.seeds else "pointing") if editing else "standard"
            if str(layer.cursor) != shape:
                layer.cursor = shape
            if editing and layer.help != _HELP:
                self._help_before, layer.help = layer.help, _HELP
            elif not editing and layer.help == _HELP:
                layer.help = self._help_before
                if self.scene.viewer.help == _HELP:
                    self.scene.viewer.help = self._help_before


_HELP = "Shift + click merges, Ctrl + click places a seed, right-click selects several"
_OURS = ("text", "position", "font_size", "color", "box", "box_color", "opacity", "visible")
