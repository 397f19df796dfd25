"""Open napari with a sample and the guided dock: ``python -m napari_agglo.widgets [SAMPLE]``."""

from __future__ import annotations

import sys


def main(sample: str = "neuropil3d") -> None:
    """Open the window; return when it is closed."""
    import napari

    from napari_agglo.samples import SAMPLES

    if sample not in SAMPLES:
        sys.exit(f"There is no sample {sample!r}; choose one of {', '.join(SAMPLES)}.")
    viewer = napari.Viewer(title="Agglo")
    image, *_ = viewer.open_sample("napari-agglo", sample)
    viewer.layers.selection.active = image
    viewer.window.add_plugin_dock_widget("napari-agglo", "Agglo")
    napari.run()


if __name__ == "__main__":
    main(*sys.argv[1:2])
