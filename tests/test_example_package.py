"""The example package, installed and used from outside: what docs/extending.md promises."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

from napari_agglo import Session, load_policy
from napari_agglo.cli import main
from napari_agglo.errors import DataWarning, Install
from napari_agglo.session import NotSaved, SessionDamaged

ROOT = Path(__file__).parents[1]
PACKAGE = Path(__file__).parent / "example_package"


RUNNER = """
import contextlib, io, json, sys, traceback
for line in sys.stdin:
    printed, error = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(json.loads(line), {})
        except BaseException:
            error = traceback.format_exc()
    print(json.dumps([printed.getvalue(), error]), flush=True)
"""


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """Install the example package beside the environment; return a function that runs Python.

    One process runs all programs, each with names of its own: to start one takes seconds.
    """
    site, work = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("work")
    install(PACKAGE, site)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)])}
    with subprocess.Popen(
        [sys.executable, "-c", RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=work, env=environment,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None

        def run(program: str) -> str:
            print(json.dumps(program), file=process.stdin, flush=True)
            printed, error = json.loads(process.stdout.readline())
            assert not error, error
            return printed

        yield run
        process.stdin.close()
    assert process.returncode == 0


def install(source: Path, site: Path) -> None:
    """Do what pip does with a package of Python files: copy it, and write its metadata."""
    project = tomllib.loads((source / "pyproject.toml").read_text())
    for name in project["tool"]["setuptools"]["packages"]:
        shutil.copytree(source / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    about = project["project"]
    info = site / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    info.mkdir()
    name = f"Name: {about['name']}\nVersion: {about['version']}\n"
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\n{name}")
    groups = [
        "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())])
        for group, entries in about["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n\n".join(groups))


SESSION = """
import numpy as np, napari_agglo as agglo
from napari_agglo.cli import main
graph = agglo.region_graph(np.array([[1, 2, 3, 4, 5]]), np.zeros((1, 5)))
session = agglo.Session.create("{name}.agglo", graph)
session.threshold = 0.5
"""


def test_an_export_kind(outside):
    program = SESSION.format(name="a") + (
        'session.export("a.txt", "sizes")\n'
        "session.close()\n"
        'assert open("a.txt").read() == "1 5\\n"\n'
        'assert main(["export", "--kinds"]) == 0\n'
        'sizes = ["export", "a.agglo", "sizes", "-o", "b.txt", "--threshold", "0"]\n'
        'assert main([*sizes, "--option", "least=6"]) == 0\n'
        'assert open("b.txt").read() == ""\n'
    )
    assert "Sizes of segments (.txt)" in outside(program)


def test_a_cut_method(outside):
    program = SESSION.format(name="b") + (
        'print([part.tolist() for part in session.preview(1, [[1], [5]], "nearest").parts])\n'
        'session.cut(1, [[1], [5]], "nearest")\n'
        "print(session.labels().tolist())\n"
    )
    parts, labels = outside(program).splitlines()
    assert parts == "[[1, 2, 3], [4, 5]]"
    assert len(set(eval(labels)[0])) == 2


GRAPH = """
import numpy as np, napari_agglo as agglo
from napari_agglo.cli import main
labels = np.arange(1, 26).reshape(5, 5).repeat(2, 0).repeat(2, 1)
cue = np.random.default_rng(0).random(labels.shape)
graph = agglo.region_graph(labels, cue, bins=4)
"""


def test_a_policy(outside):
    program = GRAPH + (
        'tree = agglo.agglomerate(graph, "cautious")\n'
        'session = agglo.Session.create("c.agglo", graph, "cautious", tree=tree)\n'
        "session.close()\n"
        'print(agglo.Session.open("c.agglo").policy.step, tree.n_merges)\n'
        'np.save("labels.npy", labels); np.save("cue.npy", cue)\n'
        'segment = ["segment", "--superpixels", "labels.npy", "--cues", "boundary=cue.npy"]\n'
        'segment += ["--threshold", "0.5", "-q"]\n'
        'for policy in ("cautious", "agglo_example.policies:by_area"):\n'
        '    assert main([*segment, "-o", policy[:5] + ".npy", "--policy", policy]) == 0\n'
        '    assert np.load(policy[:5] + ".npy").shape == (10, 10)\n'
    )
    assert outside(program) == "0.01 24\n"


MISSING = """
gold = (labels > 12) + 1
policy = {policy}
with agglo.Session.create({path!r}, graph, policy, gold=gold) as session:
    session.threshold = session.history.unedited_tree.thresholds()[8]
    first = int(session.segments.ids()[0])
    session.merge(first, int(session.segments.neighbours(first)[0]))
    np.save({path!r} + ".npy", session.labels())
"""
CUT = """
with agglo.Session.open({path!r}) as session:
    ids, sizes = np.unique(session.labels(), return_counts=True)
    largest = ids[sizes.argmax()]
    inside = np.unique(labels[session.labels() == largest])
    session.cut(int(largest), [[int(inside[0])], [int(inside[-1])]], "nearest")
    np.save({path!r} + ".npy", session.labels())
    shutil.copytree({path!r}, {path!r} + "-crashed", ignore=shutil.ignore_patterns("*.lock"))
"""


@pytest.mark.parametrize(
    "policy",
    ["'cautious'", "agglo.train(graph, gold, strategy='flat', preset='minimal+sizes')"],
)
def test_a_session_can_be_read_without_the_package_of_its_policy(outside, tmp_path, policy):
    path = tmp_path / "m.agglo"
    outside(GRAPH + MISSING.format(policy=policy, path=str(path)))
    with pytest.warns(DataWarning, match="read-only") as told:
        session = Session.open(path)
    assert told[0].message.remedy == Install("agglo-example")
    with session:
        assert session.read_only
        assert np.array_equal(session.labels(), np.load(f"{path}.npy"))
        assert session.errors.vi > 0
        for name in ("labels.tif", "regions.csv", "edits.csv", "graphml.graphml"):
            session.export(tmp_path / name, name.partition(".")[0])
        lower = session.history.unedited_tree.thresholds()[3]
        session.threshold = lower
        assert len(session.segments) > 3
        with refuses("path", Install("agglo-example"), kind=NotSaved):
            session.undo()
        with refuses("path", Install("agglo-example"), kind=NotSaved):
            session.merge(*session.segments.ids()[:2])
        with refuses("policy", Install("agglo-example")):  # merges above the edit are not known
            session.look(threshold=np.inf)
        with refuses("policy", Install("agglo-example")):
            session.threshold = 1.0
        assert session.threshold == lower
        assert len(session.segments) > 3
        assert "opens read-only" in str(Session.recover(path))
    assert main(["export", str(path), "labels", "-o", str(tmp_path / "b.tif"), "-q"]) == 0
    undone = f"with agglo.Session.open({str(path)!r}) as session: print(session.undo())"
    assert "undone: merged" in outside(GRAPH + undone)


def test_a_session_with_a_cut_can_be_read_without_the_package_of_its_policy(outside, tmp_path):
    path = tmp_path / "n.agglo"
    program = MISSING.format(policy="'cautious'", path=str(path)) + CUT.format(path=str(path))
    outside(f"{GRAPH}import shutil\n{program}")
    with pytest.warns(DataWarning, match="read-only"):
        session = Session.open(path)
    with session:
        assert np.array_equal(session.labels(), np.load(f"{path}.npy"))
    # A process that ended before it closed the session left no snapshot after the cut.
    with (
        pytest.warns(DataWarning, match="read-only"),
        refuses("path", Install("agglo-example"), kind=SessionDamaged),
    ):
        Session.open(f"{path}-crashed")


def test_a_feature_block(outside, tmp_path):
    path = str(tmp_path / "p.npz")
    program = GRAPH + (
        "gold = (labels > 12) + 1\n"
        'policy = agglo.train(graph, gold, strategy="flat", preset="minimal+sizes")\n'
        f"again = agglo.load_policy(policy.save({path!r}))\n"
        "print(again.features.names[-1], agglo.agglomerate(graph, again).n_merges)\n"
    )
    assert outside(program) == "sizes/ratio 24\n"
    with refuses("path", Install("agglo-example")):
        load_policy(path)


def test_a_function_named_by_an_entry_point_is_a_policy(outside):
    program = GRAPH + (
        "from agglo_example.policies import by_area\n"
        'tree = agglo.agglomerate(graph, "area")\n'
        "assert (tree.priorities == agglo.agglomerate(graph, by_area).priorities).all()\n"
        'agglo.Session.create("f.agglo", graph, "area").close()\n'
        'with agglo.Session.open("f.agglo") as session:\n'
        "    print(session.policy.name, session.read_only)\n"
    )
    assert outside(program) == "area False\n"


def test_a_way_to_choose_segments(outside):
    program = GRAPH + (
        "from napari_agglo.partition import build_tree\n"
        'tree = build_tree(graph, "mean", "squared", power=3.0)\n'
        "print((tree.priorities == agglo.agglomerate(graph).priorities ** 3).all())\n"
        'np.save("labels.npy", labels); np.save("cue.npy", cue)\n'
        'segment = ["segment", "--superpixels", "labels.npy", "--cues", "boundary=cue.npy", "-q"]\n'
        'assert main([*segment, "-o", "squared.npy", "--method", "squared"]) == 0\n'
    )
    assert outside(program) == "True\n"


def test_plugins_are_listed(outside):
    words = json.loads(outside("from napari_agglo.cli import main; main(['plugins', '--json'])"))
    names = {(one["group"].partition(".")[2], one["name"]) for one in words["plugins"]}
    assert names >= {
        ("policies", "cautious"), ("policies", "area"), ("features", "sizes"),
        ("exports", "sizes"), ("cuts", "nearest"), ("partitions", "squared"),
    }  # fmt: skip
    example = [one for one in words["plugins"] if one["package"] == "agglo-example"]
    assert [one["problem"] for one in example] == [""] * 6
