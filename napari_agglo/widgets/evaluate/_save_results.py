"""Export of plots, numbers and a report."""

# In its own file: exports to files, apart from the display.

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from napari.utils.notifications import show_info
from qtpy.QtWidgets import QFileDialog, QMenu, QPushButton, QWidget

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import MergeTree
from napari_agglo.errors import AggloError
from napari_agglo.evaluate import plain_curve
from napari_agglo.policy import policy_record
from napari_agglo.report import examine, html_report
from napari_agglo.volumes import replacing
from napari_agglo.widgets._forms import Form, ask_form
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import tell_error
from napari_agglo.widgets.evaluate._error_curves import EDITED_SUFFIX, Curves, policy_name
from napari_agglo.widgets.evaluate._live_errors import Comparison

if TYPE_CHECKING:
    import pandas as pd

REPORT = "report"  # the name of the job


class Export(QPushButton):
    """A button with a menu of exports."""

    def __init__(
        self, project: Project, comparison: Comparison, curves: Curves, plots: dict[str, Any]
    ) -> None:
        super().__init__()
        self._project, self._comparison, self._plots = project, comparison, plots
        self._curves, self._edited = curves, curves.edits
        self.setObjectName("export")
        self.setText("Save")
        self.setMinimumWidth(80)  # with room for the arrow of the menu
        self.setToolTip("Save plots as pictures, numbers as tables, or an HTML report")
        menu = QMenu(self)
        menu.addAction("Plots…").triggered.connect(self.ask_plots)
        menu.addAction("Numbers as CSV…").triggered.connect(
            lambda: self._ask_file("Save numbers", "numbers.csv", "CSV (*.csv)", self.write_numbers)
        )
        menu.addAction("Curve as CSV…").triggered.connect(
            lambda: self._ask_file("Save curve", "curve.csv", "CSV (*.csv)", self.write_curve)
        )
        menu.addAction("HTML report…").triggered.connect(self.ask_report)
        self.setMenu(menu)

    def ask_plots(self) -> None:
        """Ask for the folder and the format of the plots, and write them."""
        table = {"folder": Annotated[Path, {"mode": "d"}], "ending": {"label": "Format"}}
        form = Form(self.write_plots, table=table)
        form.show_values({"folder": Path.home()})
        ask_form(self._window(), "Save plots", form, "Save", self.write_plots)

    def ask_report(self) -> None:
        """Ask for the file and the options of the report, and write it."""
        form = Form(
            self.write_report,
            examine,
            table={
                "path": Annotated[Path, {"label": "File", "mode": "w", "filter": "*.html"}],
                "worst": {"label": "Worst errors"},
                "boundaries": {"label": "compare boundaries too"},
            },
            without=("policy", "image", "threshold", "training"),
        )
        form.show_values({"path": Path.home() / "report.html"})
        ask_form(self._window(), "Save report", form, "Save", self.write_report)

    def write_plots(self, folder: Path | str, ending: Literal["png", "svg"] = "png") -> None:
        """Write each plot to a file of its name.

        Parameters
        ----------
        folder : path-like
            Existing folder of the pictures.
        ending : {"png", "svg"}
            Format of the pictures. *png*: pixels. *svg*: lines, for print.
        """

        def write(curve: pd.DataFrame) -> None:
            if self._edited.exists:
                self._curves.show_edited(curve)
            try:
                for name, plot in self._plots.items():
                    plot.export(Path(folder) / f"{name}.{ending}")
                show_info(f"Saved {len(self._plots)} plots in {folder}{self._which()}.")
            except (AggloError, OSError) as error:
                tell_error(error)

        self._edited.ask_curve(write)

    def write_numbers(self, path: str) -> None:
        """Write the measures at this threshold."""
        numbers = self._comparison.numbers
        if numbers is not None:
            table = numbers.rename("value").rename_axis("measure").reset_index()
            _write_csv(table, path, self._which())

    def write_curve(self, path: str) -> None:
        """Write the errors at every threshold."""
        self._edited.ask_curve(lambda curve: _write_csv(plain_curve(curve), path, self._which()))

    def write_report(self, path: Path | str, **options: Any) -> None:
        """Write the HTML report in a worker.

        Parameters
        ----------
        path : path-like
            The file, NAME.html.
        **options
            Of `examine`.
        """
        if self._project.gold is not None:
            self._edited.ask_tree(lambda tree: self._report(tree, Path(path), options))

    def _report(self, tree: MergeTree, path: Path, options: dict[str, Any]) -> None:
        project, regions = self._project, self._project.regions
        dataset = None if regions is None else regions.dataset
        gold, at, which = project.gold, project.threshold, self._which()
        if dataset is not None and dataset.shape != tree.superpixels.image.shape:
            dataset = None  # a session of another image is open
        policy = self._edited.policy
        name = policy_name(policy) + (EDITED_SUFFIX if self._edited.exists else "")
        image = "image" if dataset is None else dataset.name
        backdrop = None if dataset is None else dataset.image
        spacing = None if project.graph is None else project.graph.spacing
        record = policy_record(policy)
        records = {} if record is None else {name: record}
        settings = {"hierarchy": self._edited.description}
        own = project.built is not None and project.built.training

        def work(progress: ProgressCallback) -> Path:
            examined = examine(
                tree, gold, policy=name, image=image, backdrop=backdrop, threshold=at,
                spacing=spacing, training=own, progress=progress, **options,
            )  # fmt: skip
            title = f"{image}: {name}"
            page = html_report([examined], title=title, records=records, settings=settings)
            with replacing(path) as temporary:
                temporary.write_text(page, encoding="utf-8")
            return path

        project.jobs.start(
            REPORT, "Writing the report", work, lambda file: show_info(f"Saved {file}{which}.")
        )

    def _which(self) -> str:
        return f", {self._edited.description}" if self._edited.exists else ""

    def _ask_file(self, title: str, name: str, kinds: str, write: Callable[[str], None]) -> None:
        path, _ = QFileDialog.getSaveFileName(self._window(), title, name, kinds)
        if path:
            write(path)

    def _window(self) -> QWidget:
        return self.window() or self


def _write_csv(table: pd.DataFrame, path: str, which: str) -> None:
    try:
        with replacing(Path(path)) as temporary:
            table.to_csv(temporary, index=False)
        show_info(f"Saved {path}{which}.")
    except (AggloError, OSError) as error:
        tell_error(error)
