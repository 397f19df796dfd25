"""Open napari with a sample and the guided dock: ``python -m napari_agglo.widgets [SAMPLE]``."""

from __future__ import annotations

import sys


def main(sample: str = "neuropil3d") -> None:
    """Open the window; return when it is closed."""
    import napari
    from qtpy.QtWidgets import QApplication

    from napari_agglo.samples import SAMPLES
    from napari_agglo.widgets._napari import text_overlay

    if sample not in SAMPLES:
        sys.exit(f"There is no sample {sample!r}; choose one of {', '.join(SAMPLES)}.")
    viewer = napari.Viewer(title="Agglo")
    note = text_overlay(viewer)
    note.text, note.visible = f"Loading the sample {sample}…", True
    viewer.status = note.text
    viewer.window.add_plugin_dock_widget("napari-agglo", "Agglo")
    QApplication.processEvents()  # the window appears with the dock, not empty
    image, *_ = viewer.open_sample("napari-agglo", sample)
    note.text, note.visible = "", False
    viewer.status = "Ready"
    viewer.layers.selection.active = image
    napari.run()


if __name__ == "__main__":
    main(*sys.argv[1:2])
