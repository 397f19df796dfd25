"""The controls of a cut: groups of seeds, the method, what would come of it."""

from __future__ import annotations

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

from napari_agglo.widgets._colours import GROUPS
from napari_agglo.widgets._links import link
from napari_agglo.widgets.proofread._cutting import METHODS
from napari_agglo.widgets.proofread._proofreader import Proofreader
from napari_agglo.widgets.proofread._seeds import GROUP_NAMES


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
