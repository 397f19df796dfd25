"""Real windows, small data, and waiting until nothing runs."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import pytest

pytest.importorskip("napari", reason="needs napari and a Qt binding")

from napari.components import ViewerModel
from napari.settings._base import EventedConfigFileSettings
from napari.utils.colormaps import _accelerated_cmap
from npe2 import PluginManifest
from spare_window import SIZE, SpareWindow
from vispy.gloo import glir
from vispy.visuals.shaders.program import ModularProgram
from windows import project_of, scene_of, settle, show

import napari_agglo as agglo
from napari_agglo.samples._sample import neuropil_sample
from napari_agglo.widgets._dataset import Dataset, Placement
from napari_agglo.widgets._project import Project

# Software GL crashes in the frame after a program was deleted, in plain napari too (two images, one
# of them removed): vispy goes on with a program that is no longer the current one. None is deleted.
glir.GlirProgram.delete = lambda self: None
os.environ.setdefault("NAPARI_ENSURE_PLUGIN_MAIN_THREAD", "1")


@pytest.fixture(scope="session", autouse=True)
def _manifests_once() -> Iterator[None]:
    """Find the manifests of plugins once: a window reads the metadata of every package for them."""
    found = list(PluginManifest.discover())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PluginManifest, "discover", staticmethod(lambda paths=(): iter(found)))
        yield


@pytest.fixture(scope="session", autouse=True)
def _settings_in_memory() -> Iterator[None]:
    """Write no settings of napari to the disk: each change of one would write all of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventedConfigFileSettings, "_maybe_save", lambda self: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _fonts_once() -> None:
    """Let matplotlib keep its list of fonts: in a new home it would look for all of them again."""
    matplotlib.get_cachedir()  # is remembered


@pytest.fixture(autouse=True)
def _light_canvas(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run no kernels that napari would compile, and no shaders where no test looks at pixels.

    The first colours of labels take seconds, and software GL a fifth of the time of a window. A
    reset of napari's settings chooses the loops anew: they are replaced under both names.
    """
    colours = _accelerated_cmap
    for names, plain in (
        (
            ("zero_preserving_modulo", "_zero_preserving_modulo_loop"),
            colours.zero_preserving_modulo_numpy,
        ),
        (
            ("labels_raw_to_texture_direct", "_labels_raw_to_texture_direct_loop"),
            colours._labels_raw_to_texture_direct_numpy,
        ),
    ):
        for name in names:
            monkeypatch.setattr(colours, name, plain, raising=False)
    if "painted" not in request.fixturenames:
        monkeypatch.setattr(ModularProgram, "draw", lambda *_, **__: None)


@pytest.fixture
def painted() -> None:
    """Let the canvas show what users see, for tests of pixels."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home of its own for the sessions of a test."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return tmp_path


@pytest.fixture
def layers_only(qapp: Any) -> Iterator[ViewerModel]:
    """Return a viewer without a window: its layers, dims and events, in a fraction of the time."""
    model = ViewerModel()
    yield model
    end(project_of(model))


def end(project: Project) -> None:
    """Stop the work of a project and close it."""
    project.jobs.close()
    settle(project)
    project.close()


@pytest.fixture(scope="session")
def spare_window(qapp: Any) -> Iterator[SpareWindow]:
    """Return the window that tests share."""
    window = SpareWindow()
    yield window
    window.close()


@pytest.fixture(autouse=True)
def _no_spare_window(request: pytest.FixtureRequest) -> None:
    """Close the shared window where a test opens windows of its own, which napari counts."""
    if "make_napari_viewer" in request.fixturenames:
        request.getfixturevalue("spare_window").close()


@pytest.fixture
def viewer(request: pytest.FixtureRequest, qtbot: Any) -> Iterator[Any]:
    """Return a viewer in a shown window of 1280 x 800, which is as new."""
    # napari looks for leaks with full collections; what is there already, modules and kernels
    # above all, need not be walked through each time.
    gc.freeze()
    if "make_napari_viewer" in request.fixturenames:
        made = request.getfixturevalue("make_napari_viewer")(show=True)
        made.window.resize(*SIZE)
        yield made
        end(project_of(made))
        return
    window: SpareWindow = request.getfixturevalue("spare_window")
    yield window.take()
    if window.viewer is not None:
        end(project_of(window.viewer))
        window.give_back()


@pytest.fixture
def project(viewer: Any) -> Project:
    """Return the project of the viewer, with its scene listening."""
    scene_of(viewer)
    return project_of(viewer)


@pytest.fixture(scope="session")
def crop() -> agglo.Sample:
    """Return a corner of the 2-D sample: cells of a few dozen superpixels, with gold."""
    drawn = agglo.sample("neuropil2d")
    part = (slice(0, 120), slice(0, 140))
    cues = {name: cue[part] for name, cue in drawn.cues.items()}
    return agglo.Sample(drawn.name, drawn.image[part], cues, drawn.gold[part], drawn.spacing)


@pytest.fixture(scope="session")
def block() -> agglo.Sample:
    """Return a small volume like the 3-D sample."""
    return neuropil_sample("neuropil3d", (24, 60, 64), 0)


@pytest.fixture(scope="session")
def dataset(crop: agglo.Sample) -> Dataset:
    """Return the corner as the Data step gives it, with superpixels."""
    return _dataset(crop)


@pytest.fixture(scope="session")
def dataset3d(block: agglo.Sample) -> Dataset:
    """Return the 3-D corner as the Data step gives it, with superpixels."""
    return _dataset(block)


def _dataset(sample: agglo.Sample) -> Dataset:
    ndim = sample.image.ndim
    placement = Placement(sample.spacing, (0.0,) * ndim)
    given = Dataset(sample.name, placement, cues=sample.cues, image=sample.image, gold=sample.gold)
    return given.oversegmented()


@pytest.fixture
def shown(project: Project, dataset: Dataset) -> Project:
    """Return the project with a mean hierarchy of the corner on the screen."""
    show(project, dataset)
    return project


@pytest.fixture
def notices() -> Iterator[list[str]]:
    """Return what the user is told, as it is told."""
    from napari.utils.notifications import notification_manager

    told: list[str] = []

    def note(event: Any) -> None:
        told.append(str(event.message))

    notification_manager.notification_ready.connect(note)
    yield told
    notification_manager.notification_ready.disconnect(note)
