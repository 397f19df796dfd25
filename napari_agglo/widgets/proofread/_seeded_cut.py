"""A cut by seeds: what it would make, shown while seeds are placed, and then the cut itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtWidgets import (
    QComboBox,
    QGridLayout,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QToolButton,
    QVBoxLayout,
)

from napari_agglo.errors import AggloError
from napari_agglo.widgets._lut_array import Patch
from napari_agglo.widgets._qt import link, tell_error
from napari_agglo.widgets._scene import GROUPS, Scene
from napari_agglo.widgets._session_worker import Latest
from napari_agglo.widgets.proofread._commands import Acts
from napari_agglo.widgets.proofread._seeds import GROUP_NAMES, Seeds

if TYPE_CHECKING:
    from napari_agglo.widgets.proofread._proofreader import Proofreader


METHODS = {
    "min_cut": "where it costs least (minimum cut)",
    "seeded": "merge anew, groups apart (seeded)",
    "tree": "undo the merges between (tree)",
}


@dataclass(frozen=True)
class Preview:
    """What a cut would make: superpixels of each part, its colour, and what goes through others."""

    parts: Sequence[NDArray[np.uint64]]
    colours: Sequence[int]  # the group of seeds of each part, from 0
    divided: Sequence[Patch] = ()
    sizes: Sequence[int] = ()

    def by_colour(
        self, parts: Sequence[NDArray[np.intp]]
    ) -> tuple[list[NDArray[np.intp]], list[Patch]]:
        """Return parts, and what is divided, numbered like their groups, so coloured like them."""
        found = [np.zeros(0, np.intp) for _ in range(max(self.colours) + 1)]
        for colour, part in zip(self.colours, parts, strict=True):
            found[colour] = part
        number = np.array([0, *self.colours]) + 1
        number[0] = 0
        return found, [(box, number[inner]) for box, inner in self.divided]


class Cutting:
    """Follows the seeds, and cuts when told to."""

    changed = Signal()

    def __init__(self, scene: Scene, seeds: Seeds, acts: Acts) -> None:
        self.scene = scene
        self.project = scene.project
        self.seeds = seeds
        self.acts = acts
        self.method = "min_cut"
        self.words = ""  # what the cut would make, or why it cannot be made
        self.possible = False
        self._asked: Any = None
        self._preview = Latest(self.project.hold, self.project.release)
        seeds.changed.connect(self._follow)
        self.project.edited.connect(self._on_change)
        self.project.threshold_changed.connect(self._on_change)
        self.project.closing.connect(self._preview.close)

    @property
    def segment(self) -> int:
        """The segment that the seeds are in, by its dense name; 0 if they are in several."""
        table = self.project.table()
        held = {int(table[s.superpixel]) for s in self.seeds.placed if s.superpixel < len(table)}
        return held.pop() if len(held) == 1 else 0

    def set_method(self, method: str) -> None:
        """Cut in another way, between the same seeds."""
        self.method = method
        self._follow()

    def commit(self) -> None:
        """Cut."""
        if len(self.seeds.groups) < 2:
            self._say("Place seeds of two groups: Ctrl + click, G for the next group.")
            return
        segment = self.segment
        if not segment:
            self._say(_SEVERAL)
            return
        points = self._within_one()
        self.acts.cut(segment, self._groups(points), self.method, self.seeds.clear, points=points)

    def _within_one(self) -> bool:
        """Whether a superpixel has seeds of two groups, and has to be divided."""
        groups: dict[int, int] = {}
        return any(
            groups.setdefault(seed.superpixel, seed.group) != seed.group
            for seed in self.seeds.placed
        )

    def _groups(self, points: bool) -> list[list[Any]]:
        if points:
            return [[seed.index for seed in group] for group in self.seeds.groups]
        return [
            [self.project.id_of(k) for k in sorted({seed.superpixel for seed in group})]
            for group in self.seeds.groups
        ]

    def _on_change(self) -> None:
        if self.seeds:
            self._asked = None
            self._locate()
            self._follow()

    def _locate(self) -> None:
        """Look again which superpixels the seeds are in: one may have been divided."""
        graph = self.project.graph
        if graph is None:
            return
        image = graph.superpixels.image
        self.seeds.placed[:] = [
            type(seed)(seed.index, int(image[seed.index]), seed.group) for seed in self.seeds.placed
        ]

    def _follow(self) -> None:
        """Show what the cut would make, as far as that is known."""
        session, groups = self.project.session, self.seeds.groups
        if session is None or len(groups) < 2 or not self.segment:
            self._preview.forget()
            self._asked = None
            self.scene.preview(None)
            several = bool(self.seeds) and len(groups) > 1
            self._tell(False, _SEVERAL if several else self._next_step())
            return
        points = self._within_one()
        seeds = self._groups(points)
        colours = sorted({seed.group for seed in self.seeds.placed})
        asked = (self.segment, seeds, self.method, points, colours)
        if asked == self._asked:
            self.changed.emit()  # another group is current, no more
            return
        self._asked = asked
        segment, method = self.project.id_of(self.segment), self.method

        def work() -> Preview:
            between: dict[str, Any] = {"points" if points else "seeds": seeds}
            found = session.preview(segment, method=method, **between)
            divided = [(one.box, one.parts) for one in found.divided]
            return Preview(list(found.whole), colours, divided, found.sizes)

        if not self.words:
            self.words = "Computing the preview…"
        self.changed.emit()
        self._preview.ask(work, self._show, self._refused)

    def _show(self, preview: Preview) -> None:
        graph = self.project.graph
        if graph is None:
            return
        inside = [np.searchsorted(graph.ids, part) for part in preview.parts]
        sizes = preview.sizes or [int(graph.sizes[part].sum()) for part in inside]
        shown, divided = preview.by_colour(inside)
        self.scene.preview(shown, divided)
        self.seeds.raise_()
        n = len(divided)
        through = "one superpixel" if n == 1 else f"{n} superpixels"
        more = f", {through} divided" if n else ""
        many = " + ".join(f"{size:,}" for size in sizes)
        self._tell(True, f"{len(inside)} parts of {many} pixels{more}. Enter cuts.")

    def _refused(self, error: Exception) -> None:
        self.scene.preview(None)
        if isinstance(error, AggloError):
            self._tell(False, str(error))
        else:
            self._tell(False, "The preview failed.")
            tell_error(error)

    def _next_step(self) -> str:
        if not self.seeds:
            return "Ctrl + click places a seed; G begins the next group; Enter cuts."
        return "Press G, then Ctrl + click where the other part is."

    def _tell(self, possible: bool, words: str) -> None:
        self.possible, self.words = possible, words
        self.changed.emit()

    def _say(self, words: str) -> None:
        self.acts.editor.said.emit(words)


_SEVERAL = "The seeds are in several segments; take those in the others away, or merge first."


# The controls of a cut: groups of seeds, the method, what would come of it.


class CutPanel(QGroupBox):
    """Shows a cut while it is prepared, and makes it."""

    def __init__(self, proofreader: Proofreader) -> None:
        super().__init__("Cut by seeds")
        self.cutting = proofreader.cutting
        self.seeds = proofreader.seeds
        self.swatches = [self._swatch(k) for k in range(len(GROUPS))]
        self.method = QComboBox()
        self.method.setObjectName("cut method")
        self.method.setToolTip("How to cut between the same seeds")
        self.method.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        for key, words in METHODS.items():
            self.method.addItem(words, key)
        self.method.activated.connect(self._on_method)
        self.words = QLabel()
        self.words.setObjectName("cut words")
        self.words.setWordWrap(True)
        # A tab does not grow with text that wraps, and should not jump with each seed.
        self.words.setMinimumHeight(3 * self.words.fontMetrics().lineSpacing())
        self.commit = QPushButton("Cut")
        self.commit.setObjectName("cut")
        self.commit.setToolTip("Make the cut that is shown (Enter)")
        self.commit.clicked.connect(self.cutting.commit)
        self.clear = QPushButton("Clear seeds")
        self.clear.setObjectName("clear seeds")
        self.clear.setToolTip("Take all seeds away (Escape)")
        self.clear.clicked.connect(self.seeds.clear)
        groups = QHBoxLayout()
        groups.setSpacing(2)
        for swatch in self.swatches:
            groups.addWidget(swatch)
        groups.addStretch(1)
        row = QGridLayout()
        row.addWidget(self.commit, 0, 0)
        row.addWidget(self.clear, 0, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.addWidget(self.method)
        layout.addLayout(groups)
        layout.addWidget(self.words)
        layout.addLayout(row)
        link(self, self.cutting.changed, self._follow)
        link(self, self.seeds.changed, self._follow)
        self._follow()

    def _swatch(self, group: int) -> QToolButton:
        button = QToolButton()
        button.setObjectName(f"group {group + 1}")
        button.setCheckable(True)
        button.setFixedSize(30, 22)
        button.setToolTip(f"Place seeds of group {group + 1}, {GROUP_NAMES[group]} (G: the next)")
        button.setStyleSheet(
            f"QToolButton {{ background: {GROUPS[group]}; color: black; border: 1px solid #777; "
            "border-radius: 3px; }"
            "QToolButton:checked { border: 3px solid palette(text); font-weight: bold; }"
        )
        button.clicked.connect(lambda: self.seeds.set_group(group))
        return button

    def _on_method(self) -> None:
        self.cutting.set_method(str(self.method.currentData()))

    def _follow(self) -> None:
        groups = {seed.group: 0 for seed in self.seeds.placed}
        for seed in self.seeds.placed:
            groups[seed.group] += 1
        for k, swatch in enumerate(self.swatches):
            swatch.setChecked(k == self.seeds.group)
            swatch.setText(str(groups[k]) if k in groups else "")
        at = self.method.findData(self.cutting.method)
        self.method.setCurrentIndex(at)
        self.words.setText(self.cutting.words)
        self.commit.setEnabled(self.cutting.possible)
        self.clear.setEnabled(bool(self.seeds))
