"""How to learn: what matters first, the rest folded away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QComboBox, QFormLayout, QSpinBox, QVBoxLayout, QWidget
from superqt import QCollapsible

from napari_agglo.widgets._folding import close_up
from napari_agglo.widgets.train._teacher import Teacher

_STRATEGIES = (
    ("agglo", "Learn while merging, epoch by epoch, from regions of every size. The best choice."),
    ("flat", "Learn from the superpixels alone. Quick, and often nearly as good."),
    ("lash", "Learn from every merge that the policy proposes, right or wrong; the last epoch."),
    ("mixed", "The examples of agglo and of lash together."),
)
_PRESETS = (
    ("em", "All features: moments, quantiles and histograms of every cue, shape and contact."),
    ("minimal", "Few features: quick, and enough for a first look."),
    ("natural", "As em, with more quantiles and the angles of regions; for natural images."),
)
_CLASSIFIERS = (
    ("forest", "A random forest. The best choice."),
    ("logistic", "Logistic regression: small and quick, but it knows no combinations."),
)


class OptionsPart(QWidget):
    """Shows the options of a teacher, and lets them be changed."""

    def __init__(self, teacher: Teacher) -> None:
        super().__init__()
        self._teacher = teacher
        self.strategy = _box("strategy", "How examples are collected", _STRATEGIES)
        self.epochs = _spin("epochs", 1, 50, "How many times the volume is merged and learned from")
        self.preset = _box("preset", "What the policy looks at", _PRESETS)
        self.classifier = _box("classifier", "What is fitted to the examples", _CLASSIFIERS)
        self.seed = _spin("seed", 0, 2**31 - 1, "Same data and seed, same policy, bit for bit")
        for name in ("strategy", "preset", "classifier"):
            box = getattr(self, name)
            box.currentTextChanged.connect(lambda text, n=name: self._set(n, text))
        for name in ("epochs", "seed"):
            spin = getattr(self, name)
            spin.valueChanged.connect(lambda value, n=name: self._set(n, value))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        first = QFormLayout()
        first.addRow("Strategy", self.strategy)
        first.addRow("Epochs", self.epochs)
        layout.addLayout(first)
        self.more = QCollapsible("More")
        self.more.setObjectName("more training")
        self.more.setToolTip("Features, classifier and seed")
        self.more.setDuration(0)
        inner = QWidget()
        rest = QFormLayout(inner)
        rest.setContentsMargins(0, 0, 0, 0)
        rest.addRow("Features", self.preset)
        rest.addRow("Classifier", self.classifier)
        rest.addRow("Seed", self.seed)
        self.more.setContent(inner)
        close_up(self.more)
        self.more.collapse(animate=False)
        layout.addWidget(self.more)
        self.follow()

    def follow(self) -> None:
        """Show the options."""
        options = self._teacher.options
        for name in ("strategy", "preset", "classifier"):
            getattr(self, name).setCurrentText(getattr(options, name))
        for name in ("epochs", "seed"):
            getattr(self, name).setValue(getattr(options, name))
        self.epochs.setEnabled(options.strategy != "flat")

    def _set(self, name: str, value: Any) -> None:
        if getattr(self._teacher.options, name) != value:
            self._teacher.options = replace(self._teacher.options, **{name: value})
            self._teacher.changed.emit()


def _box(name: str, tip: str, choices: tuple[tuple[str, str], ...]) -> QComboBox:
    box = QComboBox()
    box.setObjectName(name)
    box.setAccessibleName(name)
    for at, (text, what) in enumerate(choices):
        box.addItem(text)
        box.setItemData(at, what, Qt.ItemDataRole.ToolTipRole)
    lines = "".join(f"<li><b>{text}</b>: {what}</li>" for text, what in choices)
    box.setToolTip(f"{tip}:<ul>{lines}</ul>")
    return box


def _spin(name: str, low: int, high: int, tip: str) -> QSpinBox:
    spin = QSpinBox()
    spin.setObjectName(name)
    spin.setAccessibleName(name)
    spin.setRange(low, high)
    spin.setToolTip(tip)
    spin.setKeyboardTracking(False)
    return spin
