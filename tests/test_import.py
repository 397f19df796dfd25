"""Cost and needs of the import, each in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

NO_GUI = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"napari", "qtpy", "magicgui", "superqt", "pyqtgraph"}:
            raise ModuleNotFoundError(f"refused: {name}", name=name)

sys.meta_path.insert(0, Refuse())
"""
PIPELINE = """
import numpy as np
import napari_agglo as agglo
boundary = np.zeros((6, 8), np.float32)
boundary[:, 4] = 0.9
boundary[2] += 0.1
superpixels = agglo.oversegment(boundary)
graph = agglo.region_graph(superpixels, boundary)
tree = agglo.agglomerate(graph, "mean")
labels = tree.segment(1.0)
assert labels.shape == boundary.shape
gold = np.ones(boundary.shape, int)
assert agglo.split_vi(labels, gold)[0] == 0
assert len(agglo.vi_curve(tree, gold)) >= 1
"""
# What numba does when neither the package's folder nor the user's cache can be written. Permissions
# cannot show it here, for root writes everywhere; so none of numba's places is offered.
NO_CACHE = """
from numba.core import caching

for thing in vars(caching).values():
    if hasattr(thing, "_locator_classes"):
        thing._locator_classes = []
import numba
try:
    numba.njit(cache=True)(lambda x: x)
except RuntimeError as error:
    assert "no locator available" in str(error)
else:
    raise AssertionError("test invalid: numba could cache")
"""


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def assert_runs(code, **environment):
    done = run(code, **environment)
    assert done.returncode == 0, done.stderr


def test_the_import_is_light():
    """The deterministic form of "under half a second": nothing heavy is loaded."""
    assert_runs("""
        import sys
        import napari_agglo
        heavy = {"numpy", "numba", "scipy", "skimage", "sklearn", "pandas", "matplotlib", "zarr"}
        assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
        import napari_agglo.cli
        assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
    """)


def test_the_hook_refuses():
    done = run(NO_GUI + "import qtpy")
    assert done.returncode != 0
    assert "refused: qtpy" in done.stderr


def test_import_and_pipeline_without_napari_qt_and_magicgui():
    assert_runs(NO_GUI + PIPELINE)


@pytest.mark.slow
@pytest.mark.compiled
def test_no_place_for_the_kernel_cache():
    # One kernel is enough, and all modules with kernels: compiling the whole pipeline takes long.
    assert_runs(
        NO_CACHE
        + """
import warnings
import numpy as np
import napari_agglo as agglo
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import napari_agglo.graph, napari_agglo.agglomeration, napari_agglo.superpixels
(warning,) = caught
assert warning.category is agglo.DataWarning and "NUMBA_CACHE_DIR" in str(warning.message)
assert agglo.split_vi(np.array([1, 1, 2, 2]), np.array([1, 1, 1, 1])) == (0.0, 1.0)
from napari_agglo.session import cache_folder, stages_to_compile
from napari_agglo.session._warm_up import STAGES
assert cache_folder() is None
assert stages_to_compile() == list(STAGES)
""",
        HOME="/nonexistent",
    )


def test_every_public_name_is_there():
    import napari_agglo as agglo

    for name in agglo.__all__:
        assert getattr(agglo, name) is not None
    assert set(agglo._HOME) <= set(agglo.__all__) == set(dir(agglo))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = agglo.nonsense


@pytest.mark.slow
@pytest.mark.compiled
def test_a_changed_helper_is_not_hidden_by_the_cache_of_its_callers(tmp_path):
    """Numba looks only at the file of a kernel; its helpers stand in other files."""
    package = tmp_path / "napari_agglo"
    (package / "_numba").mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(ROOT / "napari_agglo" / "errors.py", package)
    for file in ("__init__.py", "compiler.py"):
        shutil.copy(ROOT / "napari_agglo" / "_numba" / file, package / "_numba")
    helper = package / "helper.py"
    helper.write_text(
        "from napari_agglo._numba import inlined\n\n@inlined\ndef number():\n    return 1\n"
    )
    (package / "caller.py").write_text(
        "from napari_agglo._numba import kernel\nfrom napari_agglo.helper import number\n\n"
        "@kernel\ndef ask():\n    return number()\n"
    )
    code = (
        "from napari_agglo.caller import ask; answer = ask(); "
        "print(answer, sum(ask.stats.cache_hits.values()))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)

    def answer():
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert answer() == ["1", "0"]
    assert answer() == ["1", "1"], "test invalid: the cache is not used at all"
    helper.write_text(helper.read_text().replace("return 1", "return 22"))
    assert answer() == ["22", "0"]
