"""The example package, installed and used from outside: what docs/extending.md promises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = Path(__file__).parent / "example_package"


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """Install the example package beside the environment; return a function that runs Python."""
    site, work = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("work")
    source = tmp_path_factory.mktemp("source") / "example"
    _copy(PACKAGE, source)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    pip += ["--no-index", "--disable-pip-version-check", "--target", str(site), str(source)]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}

    def run(*words: str) -> str:
        return subprocess.run(
            [sys.executable, *words], check=True, capture_output=True, text=True, cwd=work,
            env=environment,
        ).stdout  # fmt: skip

    return run


def _copy(source: Path, target: Path) -> None:
    """Copy sources only: building leaves files beside them."""
    for path in [*source.rglob("*.py"), source / "pyproject.toml"]:
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())


SESSION = """
import numpy as np, napari_agglo as agglo
graph = agglo.region_graph(np.array([[1, 2, 3, 4, 5]]), np.zeros((1, 5)))
session = agglo.Session.create("{name}.agglo", graph)
session.threshold = 0.5
"""


def test_an_export_kind(outside):
    outside("-c", SESSION.format(name="a") + 'print(session.export("a.txt", "sizes"))')
    assert outside("-c", 'print(open("a.txt").read(), end="")') == "1 5\n"
    command = ("-m", "napari_agglo", "export")
    assert "Sizes of segments (.txt)" in outside(*command, "--kinds")
    sizes = ("a.agglo", "sizes", "-o", "b.txt")
    outside(*command, *sizes, "--threshold", "0", "--option", "least=6")
    assert outside("-c", 'print(open("b.txt").read(), end="")') == ""


def test_a_cut_method(outside):
    program = SESSION.format(name="b") + (
        'print([part.tolist() for part in session.preview(1, [[1], [5]], "nearest").parts])\n'
        'session.cut(1, [[1], [5]], "nearest")\n'
        "print(session.labels().tolist())\n"
    )
    parts, labels = outside("-c", program).splitlines()
    assert parts == "[[1, 2, 3], [4, 5]]"
    assert len(set(eval(labels)[0])) == 2
