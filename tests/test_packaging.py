"""The package as it is published: extras, links, the recipe for conda, a wheel without napari."""

from __future__ import annotations

import configparser
import os
import re
import runpy
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

from napari_agglo import __version__, widgets
from napari_agglo.errors import Install, InvalidInput

ROOT = Path(__file__).parents[1]
CONFIG = configparser.ConfigParser()
CONFIG.read(ROOT / "setup.cfg")
WINDOW = {"napari", "magicgui", "qtpy", "superqt", "pyqtgraph", "imageio-ffmpeg"}


def listed(text):
    """Return the requirements of an option by name, with their versions."""
    lines = [line.strip() for line in text.splitlines()]
    named = [
        re.match(r"([\w-]+(?:\[.*\])?)(.*)", line) for line in lines if line and line[0] != "#"
    ]
    return {match[1]: match[2] for match in named}


CORE = listed(CONFIG["options"]["install_requires"])
EXTRAS = {name: listed(text) for name, text in CONFIG["options.extras_require"].items()}


def test_the_core_has_no_window_and_no_video():
    assert not WINDOW & CORE.keys()
    assert not {name for name in CORE if "qt" in name.lower()}
    docks = EXTRAS["napari"] | EXTRAS["movie"]
    assert docks.keys() - {"napari-agglo[movie]"} == WINDOW
    assert not any("pyqt6" in name or "pyside" in name.lower() for name in EXTRAS["napari"])
    assert "napari[pyqt6]" in EXTRAS["all"]


def test_links_are_absolute_where_they_are_shown():
    url = CONFIG["metadata"]["url"]
    assert url.startswith("https://")
    absolute = runpy.run_path(str(ROOT / "setup.py"))["absolute"]
    text = absolute((ROOT / "README.md").read_text(encoding="utf-8"), url)
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 15
    assert all(link.startswith(("https://", "#")) for link in links)
    assert (
        f"![Proofreading in napari]({url}/raw/HEAD/docs/images/plugin_proofread_dark.png)" in text
    )
    for path in re.findall(rf"{re.escape(url)}/(?:raw|blob)/HEAD/([^)#]+)", text):
        assert (ROOT / path).exists(), path
    assert absolute("[a](https://b.org) [c](#d)", url) == "[a](https://b.org) [c](#d)"


def test_the_recipe_for_conda_has_the_same_requirements():
    text = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(text)
    assert recipe["schema_version"] == 1
    assert recipe["context"]["version"] == __version__
    assert CONFIG["options"]["python_requires"] == f">={recipe['context']['python_min']}"
    assert recipe["about"]["homepage"] == CONFIG["metadata"]["url"]
    assert (ROOT / recipe["about"]["license_file"]).exists()
    base, docks = (
        dict(line.split(" ", 1) for line in output["requirements"]["run"] if "${{" not in line)
        for output in recipe["outputs"]
    )
    base["matplotlib"] = base.pop("matplotlib-base")
    assert base == CORE
    assert docks == {
        name: version
        for name, version in (EXTRAS["napari"] | EXTRAS["movie"]).items()
        if not name.startswith("napari-agglo")
    }


def test_docks_without_their_requirements_say_what_to_install(monkeypatch):
    monkeypatch.setattr(widgets, "find_spec", lambda name: None if name == "pyqtgraph" else name)
    with pytest.raises(InvalidInput) as caught:
        widgets.check_requirements()
    assert "pyqtgraph" in caught.value.problem
    assert caught.value.remedy == Install('"napari-agglo[napari]"')


@pytest.mark.slow
def test_the_wheel_runs_where_there_is_no_napari(tmp_path):
    """Install the wheel as a cluster would, and run the pipeline; needs a package index."""
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", str(tmp_path), str(ROOT)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
        entries = archive.read(metadata.replace("METADATA", "entry_points.txt")).decode()
    assert "napari_agglo/napari.yaml" in names
    assert "napari-agglo = napari_agglo:napari.yaml" in entries
    assert f"({CONFIG['metadata']['url']}/raw/HEAD/docs/images/" in text
    assert "Project-URL: Source Code, " in text
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    installed = subprocess.run(
        [python, "-m", "pip", "install", "-q", str(wheel)], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if "No matching distribution" in installed.stderr or "Connection" in installed.stderr:
        pytest.skip("there is no package index")
    assert installed.returncode == 0, installed.stderr
    listing = [python, "-m", "pip", "list", "--format=freeze"]
    packages = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.lower()
    assert not re.findall(r"^(napari|pyqt\w*|pyside\w*|pyqtgraph|imageio-ffmpeg)==", packages, re.M)
    for words in (
        "sample neuropil2d -o n",
        "oversegment n/cue_boundary.tif -o n/superpixels.ome.zarr --unit nm",
        "segment --superpixels n/superpixels.ome.zarr --cues n/cue_boundary.tif -o n/labels.tif",
        "evaluate n/labels.tif --gold n/gold.tif",
    ):
        done = subprocess.run(
            [python, "-m", "napari_agglo", *words.split()], cwd=tmp_path, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
