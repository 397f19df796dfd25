"""The Compare dock in a real window, used as a person does."""

from __future__ import annotations

import pytest
from windows import camera, draw, grid, settle, show

from napari_agglo.widgets import CompareWidget


@pytest.fixture
def opened():
    """Return what opens the dock beside an image and its mean hierarchy."""

    def call(viewer, project, dataset):
        viewer.add_image(dataset.image, name="raw", scale=dataset.placement.scale)
        show(project, dataset)
        made = CompareWidget(viewer)
        viewer.window.add_dock_widget(made, name="Compare")
        draw()
        return made

    return call


@pytest.fixture
def choose():
    """Return what chooses panels in a dock, begins, and waits for them."""

    def call(dock, *names):
        for panel, name in zip(dock.choices.fields, [*names, *["none"] * 4], strict=False):
            dock.choices[panel].native.setCurrentText(name)
        dock.run.button.click()
        settle(dock.project)
        draw()

    return call


@pytest.fixture
def dock(viewer, project, dataset, opened):
    return opened(viewer, project, dataset)


@pytest.fixture
def compare(dock, choose):
    return lambda *names: choose(dock, *names)


@pytest.fixture
def differ():
    """Return what asks a dock where a panel differs from the first, and waits for the list."""

    def call(dock, which):
        dock.differences.with_.setCurrentIndex(which)
        dock.differences.with_.activated.emit(which)
        for _ in range(100):
            draw()
            if dock.differences.list.rowCount():
                break
        settle(dock.project)
        return dock.differences._rows

    return call


@pytest.fixture
def look():
    """Return what tells all that leaving has to restore."""

    def call(viewer):
        lens, laid, dims = camera(viewer), grid(viewer), viewer.dims
        return {
            "layers": [(layer.name, layer.visible) for layer in viewer.layers],
            "grid": (laid.enabled, laid.stride, laid.shape, laid.spacing),
            "camera": (tuple(lens.center), lens.zoom, tuple(lens.angles)),
            "dims": (tuple(dims.point), dims.ndisplay, tuple(dims.order)),
            "active": viewer.layers.selection.active,
        }

    return call
