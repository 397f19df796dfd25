"""Plots, numbers and a report as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtWidgets import QFileDialog, QMenu, QPushButton, QWidget

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import AggloError
from napari_agglo.policy import LearnedPolicy, Policy
from napari_agglo.report import examine, html_report
from napari_agglo.volumes import replacing
from napari_agglo.widgets._notices import tell, tell_error
from napari_agglo.widgets._project import Project
from napari_agglo.widgets.evaluate._comparison import Comparison

if TYPE_CHECKING:
    import pandas as pd

REPORT = "report"  # the name of the job


class Export(QPushButton):
    """A button with a menu of what can be written."""

    def __init__(self, project: Project, comparison: Comparison, plots: dict[str, Any]) -> None:
        super().__init__()
        self._project, self._comparison, self._plots = project, comparison, plots
        self.setObjectName("export")
        self.setText("Save")
        self.setToolTip("Save plots as pictures, numbers as tables, or all as an HTML report")
        menu = QMenu(self)
        menu.addAction("Plots as PNG…").triggered.connect(lambda: self._ask_folder("png"))
        menu.addAction("Plots as SVG…").triggered.connect(lambda: self._ask_folder("svg"))
        menu.addAction("Numbers as CSV…").triggered.connect(
            lambda: self._ask_file("Save numbers", "numbers.csv", "CSV (*.csv)", self.write_numbers)
        )
        menu.addAction("Curve as CSV…").triggered.connect(
            lambda: self._ask_file("Save curve", "curve.csv", "CSV (*.csv)", self.write_curve)
        )
        menu.addAction("HTML report…").triggered.connect(
            lambda: self._ask_file("Save report", "report.html", "HTML (*.html)", self.write_report)
        )
        self.setMenu(menu)

    def write_plots(self, folder: str, ending: str) -> None:
        """Write each plot that shows something to a file of its name."""
        try:
            for name, plot in self._plots.items():
                plot.export(Path(folder) / f"{name}.{ending}")
            tell(f"Saved {len(self._plots)} plots in {folder}.")
        except (AggloError, OSError) as error:
            tell_error(error)

    def write_numbers(self, path: str) -> None:
        """Write the measures at this threshold."""
        numbers = self._comparison.numbers
        if numbers is not None:
            _write_csv(numbers.rename("value").rename_axis("measure").reset_index(), path)

    def write_curve(self, path: str) -> None:
        """Write the errors at every threshold."""
        if self._project.curve is not None:
            _write_csv(self._project.curve, path)

    def write_report(self, path: str) -> None:
        """Write the HTML report in a worker."""
        project = self._project
        tree, gold, at, material = (
            project.tree, project.gold, project.threshold, project.graph_of
        )  # fmt: skip
        if tree is None or gold is None:
            return
        policy = project.tree_of[1]
        name = policy_name(policy)
        image = "image" if material is None else material.name
        backdrop = None if material is None else material.image
        spacing = None if material is None else material.spacing
        records = {name: policy.record} if isinstance(policy, LearnedPolicy) else {}

        def work(progress: ProgressCallback) -> Path:
            found = examine(
                tree, np.asarray(gold), policy=name, image=image,
                backdrop=None if backdrop is None else np.asarray(backdrop),
                threshold=at, spacing=spacing, progress=progress,
            )  # fmt: skip
            page = html_report([found], title=f"{image}: {name}", records=records)
            target = Path(path)
            with replacing(target) as temporary:
                temporary.write_text(page, encoding="utf-8")
            return target

        project.jobs.start(REPORT, "Writing the report", work, lambda file: tell(f"Saved {file}."))

    def _ask_folder(self, ending: str) -> None:
        folder = QFileDialog.getExistingDirectory(self._window(), "Folder for the plots")
        if folder:
            self.write_plots(folder, ending)

    def _ask_file(self, title: str, name: str, kinds: str, write: Callable[[str], None]) -> None:
        path, _ = QFileDialog.getSaveFileName(self._window(), title, name, kinds)
        if path:
            write(path)

    def _window(self) -> QWidget:
        return self.window() or self


def policy_name(policy: Policy | None) -> str:
    """Return what to call the curve of a policy.

    Examples
    --------
    >>> from napari_agglo import MeanPolicy
    >>> policy_name(MeanPolicy())
    'mean'
    """
    if isinstance(policy, LearnedPolicy):
        strategy, epochs = policy.record.get("strategy", "learned"), policy.record.get("epochs")
        return f"{strategy}, {epochs} epochs" if epochs else str(strategy)
    return "policy" if policy is None else type(policy).__name__.removesuffix("Policy").lower()


def _write_csv(table: pd.DataFrame, path: str) -> None:
    try:
        with replacing(Path(path)) as temporary:
            table.to_csv(temporary, index=False)
        tell(f"Saved {path}.")
    except (AggloError, OSError) as error:
        tell_error(error)
