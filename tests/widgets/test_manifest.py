"""The manifest: valid, all that it names is there, and all that there is is named."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from npe2 import PluginManifest
from npe2.manifest.utils import import_python_name
from windows import STEPS

import napari_agglo
from napari_agglo.samples import SAMPLES
from napari_agglo.widgets import _napari, step_classes

FILE = Path(napari_agglo.__file__).parent / "napari.yaml"


@pytest.fixture(scope="module")
def manifest():
    return PluginManifest.from_file(FILE)


def test_all_that_is_named_can_be_imported(manifest):
    manifest.validate_imports()


def test_the_installed_plugin_is_this_manifest():
    found = PluginManifest.from_distribution("napari-agglo")
    assert found.contributions == PluginManifest.from_file(FILE).contributions


def test_every_command_is_used(manifest):
    contributed = manifest.contributions
    used = {one.command for kind in ("widgets", "readers", "writers", "sample_data")
            for one in getattr(contributed, kind)}  # fmt: skip
    assert {command.id for command in contributed.commands} == used


def test_every_sample_is_offered(manifest):
    assert {one.key for one in manifest.contributions.sample_data} == set(SAMPLES)


def test_every_widget_takes_the_viewer(manifest):
    names = {one.id: one.python_name for one in manifest.contributions.commands}
    for widget in manifest.contributions.widgets:
        made = import_python_name(names[widget.command])
        assert "napari_viewer" in inspect.signature(made.__init__).parameters


def test_the_dock_and_every_step_are_in_the_segment_menu(manifest):
    menus = manifest.contributions.menus
    assert menus["napari/layers/segment"][0].submenu == "napari-agglo/segment"
    listed = [item.command for item in menus["napari-agglo/segment"]]
    assert listed == [widget.command for widget in manifest.contributions.widgets]


def test_the_defaults_of_settings_are_those_of_the_manifest(manifest):
    written = {
        (group, key): shown.default
        for group, one in manifest.contributions.configurations.items()
        for key, shown in one.properties.items()
    }
    assert written == _napari.DEFAULTS


@pytest.mark.parametrize("key", _napari.DEFAULTS, ids=" ".join)
def test_a_setting_has_its_default(key):
    assert _napari.setting(*key) == _napari.DEFAULTS[key]


def test_every_step_is_the_command_of_its_key(manifest):
    contributed = manifest.contributions
    commands = {one.id: one.python_name for one in contributed.commands}
    titles = {one.command: one.display_name for one in contributed.widgets}
    for step in STEPS:
        command = f"napari-agglo.{step.key}"
        assert commands[command] == f"napari_agglo.widgets:{step.__name__}"
        assert titles[command] == step.title


def test_the_table_of_steps_is_that_of_the_dock_and_of_the_manifest(manifest):
    names = [step.__name__ for step in step_classes()]
    assert names == [step.__name__ for step in STEPS]
    assert {"Dock", *names, "CompareWidget"} <= set(napari_agglo.widgets.__all__)
    keys = [step.key for step in step_classes()]
    listed = [one.command.partition(".")[2] for one in manifest.contributions.widgets]
    assert listed == ["dock", *keys, "compare"]
