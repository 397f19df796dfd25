"""Volumes kept for training: the chosen one can be kept, and the next one opened."""

# In its own file: one panel of the dock, which a user can name.

from __future__ import annotations

from napari.utils.notifications import show_info, show_warning
from qtpy.QtWidgets import QGroupBox, QListWidget

from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import button, column, label, named, row


class TrainingVolumes(QGroupBox):
    """The volumes that are kept for training."""

    def __init__(self, project: Project) -> None:
        super().__init__("Further volumes to train on")
        named(
            self, "training volumes", "Train learns from the volume chosen above, and from these."
        )
        self._project = project
        kept = "Volumes that are kept for training, with their gold labels"
        self.list = named(QListWidget(), "training list", kept)
        self.list.setAccessibleName("volumes to train on")
        self.list.setFixedHeight(64)
        keep = (
            "Keep the volume chosen above, with its gold labels, to learn from it later together "
            "with others. Its layers may then be removed."
        )
        self.add = button("Keep this volume", keep, self._add, "add to training")
        marked = "Do not train on the marked volume"
        self.remove = button("Remove", marked, self._remove, "remove from training")
        self.list.currentRowChanged.connect(lambda _: self.follow())
        self.empty = label("no training volumes")
        self.empty.setText("None. One volume with gold labels is enough.")
        inner = column(self, self.empty, self.list, row(self.add, self.remove))
        inner.setContentsMargins(6, 6, 6, 6)

    def follow(self) -> None:
        """Show the volumes of the project."""
        kept = self._project.training
        names = [f"{one.name} {'x'.join(str(n) for n in one.shape)}" for one in kept]
        if names != [self.list.item(k).text() for k in range(self.list.count())]:
            self.list.blockSignals(True)
            self.list.clear()
            self.list.addItems(names)
            self.list.setCurrentRow(len(names) - 1)
            self.list.blockSignals(False)
        self.list.setVisible(bool(names))
        self.empty.setVisible(not names)
        self.remove.setVisible(bool(names))
        dataset = self._project.dataset
        self.add.setEnabled(dataset is not None and dataset.gold is not None)

    def _add(self) -> None:
        dataset = self._project.dataset
        if dataset is None or dataset.gold is None:
            show_warning("To train on a volume, choose its gold labels first.")
            return
        if any(one.gold is dataset.gold for one in self._project.training):
            show_info(f"{dataset.name} is among the volumes already.")
            return
        self._project.training = (*self._project.training, dataset)

    def _remove(self) -> None:
        row = self.list.currentRow()
        self._project.training = [one for k, one in enumerate(self._project.training) if k != row]
