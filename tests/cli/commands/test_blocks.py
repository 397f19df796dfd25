"""`napari-agglo blocks`: plan, run in threads and in parts, status."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest
import tifffile
import zarr

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.errors import Install
from napari_agglo.volumes import open_volume

pytestmark = pytest.mark.compiled


def test_absent_chunks_are_named(run, tmp_path):
    boundary = agglo.sample("neuropil2d").cues["boundary"][:100, :120]
    zarr.create_array(str(tmp_path / "b.zarr"), data=boundary, chunks=(50, 60))
    (tmp_path / "b.zarr" / "c" / "1" / "1").unlink()
    words = ("blocks", "plan", tmp_path / "r", "--cues", tmp_path / "b.zarr", "--block", "100")
    assert run(*words)[0] == 0
    for action in ("run", "status"):
        status, out, err = run("blocks", action, tmp_path / "r", "--json")
        assert status == 0
        assert json.loads(out)["absent"] == {"cues['boundary']": 1}
        assert "1 chunk of cues['boundary']" in err
    names = json.loads(out)["absent_files"]["cues['boundary']"]
    assert [name.endswith(("b.zarr/c/1/1", "b.zarr\\c/1/1")) for name in names] == [True]
    assert names[0] in err


def test_without_dask_the_extra_is_named(run, refused, tmp_path, monkeypatch):
    boundary = agglo.sample("neuropil2d").cues["boundary"][:100, :120]
    zarr.create_array(str(tmp_path / "b.zarr"), data=boundary, chunks=(50, 60))
    folder = tmp_path / "r"
    words = ("blocks", "plan", folder, "--cues", tmp_path / "b.zarr", "--block", "100")
    assert run(*words)[0] == 0
    for module, extra, more in (
        ("dask.threaded", "blocks", ["--workers", "2"]),
        ("distributed", "cluster", ["--client", "local:1"]),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        message = refused("blocks", "run", folder, "-q", *more)
        assert message.remedies == (Install(f'"napari-agglo[{extra}]"'),)


def test_lost_chunks_of_results_are_named_and_written_again(run, tmp_path):
    boundary = agglo.sample("neuropil2d").cues["boundary"][:100, :120]
    zarr.create_array(str(tmp_path / "b.zarr"), data=boundary, chunks=(50, 60))
    folder = tmp_path / "r"
    words = ("blocks", "plan", folder, "--cues", tmp_path / "b.zarr", "--block", "50,60",
             "--chunks", "25,30", "--precomputed")  # fmt: skip
    assert run(*words)[0] == 0
    _, out, _ = run("blocks", "status", folder)
    assert out.splitlines()[-1] == "next: cut"
    assert run("blocks", "run", folder, "-q")[0] == 0
    _, out, err = run("blocks", "status", folder)
    assert (out.splitlines()[-1], err) == ("complete", "")
    result = blocks.open(folder)
    before = result.labels[0][...]
    (scale,) = [path for path in (folder / "labels.precomputed").iterdir() if path.is_dir()][:1]
    lost = {
        "labels.ome.zarr": folder / "labels.ome.zarr" / "0" / "c" / "3" / "0",
        "superpixels.ome.zarr": folder / "superpixels.ome.zarr" / "0" / "c" / "0" / "1",
        "labels.precomputed": sorted(scale.iterdir())[0],
    }
    for store, path in lost.items():
        content = path.read_bytes()
        path.unlink()
        _, out, err = run("blocks", "status", folder, "--json")
        told = json.loads(out)
        assert (told["complete"], told["lost"]) == (False, {store: 1})
        assert str(path.relative_to(folder)) in err
        path.write_bytes(b"")
        assert not blocks.status(folder).is_complete, "an empty file is lost too"
        assert blocks.status(folder, check=False).is_complete, "not looked for"
        assert run("blocks", "run", folder, "-q")[0] == 0
        assert path.read_bytes() == content
        assert json.loads(run("blocks", "status", folder, "--check", "--json")[1])["lost"] == {}
    np.testing.assert_array_equal(blocks.open(folder).labels[0][...], before)


def test_a_store_that_is_lost_as_a_whole_is_made_again(run, tmp_path):
    boundary = agglo.sample("neuropil2d").cues["boundary"][:100, :120]
    zarr.create_array(str(tmp_path / "b.zarr"), data=boundary, chunks=(50, 60))
    plan = blocks.plan(tmp_path / "r", str(tmp_path / "b.zarr"), block=50, precomputed=True)
    assert plan.precomputed
    blocks.run(tmp_path / "r")
    before = blocks.open(tmp_path / "r").labels[0][...]
    for store in ("labels.ome.zarr", "labels.precomputed"):
        shutil.rmtree(tmp_path / "r" / store)
        state = blocks.status(tmp_path / "r")
        assert [one.store for one in state.lost] == [store]
        assert blocks.run(tmp_path / "r").is_complete
        assert blocks.status(tmp_path / "r").lost == ()
    np.testing.assert_array_equal(blocks.open(tmp_path / "r").labels[0][...], before)


def test_the_story_of_a_run(run, refused, tmp_path):
    boundary = agglo.sample("neuropil2d").cues["boundary"][:100, :120]
    tifffile.imwrite(tmp_path / "b.tif", boundary)
    folder = tmp_path / "result"
    words = ("blocks", "plan", folder, "--cues", tmp_path / "b.tif", "--memory", "2GB")
    status, out, _ = run(*words, "--dry-run", "--json")
    assert status == 0
    plan = json.loads(out)
    assert (plan["voxels"], plan["blocks"]) == (12000, 1)
    assert plan["peak memory"] >= plan["reduction memory"] > 0
    assert not folder.exists(), "a dry run writes nothing"
    message = refused("blocks", "run", folder)
    assert (message.argument, "napari-agglo blocks plan" in message) == ("folder", True)
    assert run(*words, "--block", "64,50", "--threshold", "0.3")[0] == 0
    status, out, _ = run("blocks", "run", folder, "--part", "2/2", "--json")
    assert json.loads(out)["done"] == {"cut": 3}
    status, out, _ = run("blocks", "run", folder, "-q")
    assert (status, out) == (0, "")
    status, out, _ = run("blocks", "status", folder, "--json")
    assert json.loads(out)["complete"]
    assert run("blocks", "status", folder)[1].splitlines()[1].split()[:2] == ["cut", "6/6"]
    result = blocks.open(folder)
    superpixels = agglo.oversegment(boundary)
    assert sum(agglo.split_vi(result.superpixels[0][...], superpixels)) == 0
    assert np.array_equal(result.labels[0][...], result.tree.segment(0.3))


def test_a_graph_that_does_not_fit_is_refused_before_the_run(run, refused, tmp_path, monkeypatch):
    monkeypatch.setattr("napari_agglo.blocks._budget.BASE", 1000)
    monkeypatch.setattr("napari_agglo.blocks._budget.block_bytes", lambda plan, block: 1000)
    boundary = agglo.sample("neuropil2d").cues["boundary"][:100, :120]
    tifffile.imwrite(tmp_path / "b.tif", boundary)
    words = ("blocks", "plan", tmp_path / "r", "--cues", tmp_path / "b.tif", "--block", "40",
             "--workers", "1")  # fmt: skip
    _, out, _ = run(*words, "--dry-run", "--json")
    plan = json.loads(out)
    assert plan["superpixels"] == agglo.oversegment(boundary).max()
    assert plan["superpixels"] < plan["boundaries"]
    small = ("--memory", f"{plan['graph memory'] // 2}B")
    message = refused(*words, *small)
    assert (message.argument, "--force" in message, "--hierarchical" in message) == (
        "memory", True, True,
    )  # fmt: skip
    assert not (tmp_path / "r").exists()
    assert run(*words, *small, "--force")[0] == 0
    assert (tmp_path / "r" / "plan.json").exists()


def test_labels_are_copied_to_a_url(run, refused, tmp_path):
    tifffile.imwrite(tmp_path / "b.tif", agglo.sample("neuropil2d").cues["boundary"][:40, :40])
    folder, url = tmp_path / "r", f"memory://{tmp_path.name}/cells"
    words = ("blocks", "plan", folder, "--cues", tmp_path / "b.tif", "--threshold", "0.3")
    message = refused(*words, "--copy-to", "https://example.org/cells")
    assert (message.argument, "s3://" in message) == ("copy_to", True)
    status, out, _ = run(*words, "--copy-to", url, "--json")
    assert (status, json.loads(out)["copy to"]) == (0, url)
    assert run("blocks", "run", folder, "-q")[0] == 0
    stages = json.loads(run("blocks", "status", folder, "--json")[1])["stages"]
    assert [(one["name"], one["done"]) for one in stages[-2:]] == [("copy", 1), ("publish", 1)]
    copied = open_volume(f"{url}/labels.ome.zarr").load()
    assert np.array_equal(copied, blocks.open(folder).labels[0][...])


def test_the_dashboard_of_a_client_is_named(run, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    tifffile.imwrite(tmp_path / "b.tif", agglo.sample("neuropil2d").cues["boundary"][:40, :40])
    assert run("blocks", "plan", tmp_path / "r", "--cues", tmp_path / "b.tif")[0] == 0
    assert run("blocks", "run", tmp_path / "r", "-q")[0] == 0
    closed = []

    class Client:
        """A client of a scheduler that has a dashboard; nothing is left for its workers."""

        dashboard_link = "http://127.0.0.1:8787/status"

        def __init__(self, address, **options):
            self.address = address

        def close(self):
            closed.append(self.address)

    monkeypatch.setattr(distributed, "Client", Client)
    words = ("--client", "tcp://127.0.0.1:8786", "--stage", "labels")  # which is asked for again
    status, _, messages = run("blocks", "run", tmp_path / "r", *words)
    assert status == 0
    assert "dashboard: http://127.0.0.1:8787/status" in messages
    assert closed == ["tcp://127.0.0.1:8786"]


def test_no_more_processes_are_started_than_the_budget_allows(run, refused, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    tifffile.imwrite(tmp_path / "b.tif", agglo.sample("neuropil2d").cues["boundary"][:40, :40])
    words = ("--cues", tmp_path / "b.tif", "--memory", "2GB")
    assert run("blocks", "plan", tmp_path / "r", *words)[0] == 0
    assert run("blocks", "run", tmp_path / "r", "-q")[0] == 0
    started = []

    class Cluster:
        """A cluster, or a client of one, that starts nothing."""

        dashboard_link = ""

        def __init__(self, *cluster, **options):
            started.extend(options.values())

        def close(self):
            pass

    monkeypatch.setattr(distributed, "LocalCluster", Cluster)
    monkeypatch.setattr(distributed, "Client", Cluster)
    monkeypatch.setattr(blocks.Status, "is_complete", False)  # which would start none
    client = ("blocks", "run", tmp_path / "r", "--client", "local:3")
    _, _, messages = run(*client)
    assert (started[0], "processes" in messages) == (3, False)
    # Three processes take 350 MB each beside their blocks.
    monkeypatch.setattr("napari_agglo.blocks._budget.block_bytes", lambda plan, block: 400_000_000)
    started.clear()
    _, _, messages = run(*client)
    assert (started[0], "2 of 3 processes are started" in messages) == (2, True)
    assert "--memory 2.6GB" in messages
    assert "--workers" in messages
    # Five leave nothing for any block, however small.
    started.clear()
    messages = run(*client[:-1], "local:5")[2]
    assert (started[0], "--memory 4.1GB" in messages, "--workers" in messages) == (2, True, False)
    monkeypatch.setattr("napari_agglo.blocks._budget.block_bytes", lambda plan, block: 10**10)
    message = refused(*client)
    assert (message.argument, "10.7 GB" in message) == ("client", True)


def test_the_plan_says_whose_memory_the_budget_is(run, refused, tmp_path):
    tifffile.imwrite(tmp_path / "b.tif", np.zeros((20, 20), np.float32))
    words = ("blocks", "plan", tmp_path / "r", "--cues", tmp_path / "b.tif", "--dry-run")
    text = run(*words)[1]
    assert "all processes on this machine together" in text
    assert "each\nworker process on another machine" in text
    message = refused(*words, "--memory", "0.5GB")
    assert message.argument == "memory"
    assert all(words in message for words in ("0.7GB", "500,000,000", "4GB")), message
    assert "add --memory" not in message, "it is given"
    assert "0.7GB" in refused(*words, "--memory", "0.7")
    assert run(*words[:-1], "-q")[1] == ""


@pytest.mark.parametrize(
    ("option", "argument", "named"),
    [
        (("--memory", "much"), None, ["--memory", "'much'", "4GB"]),
        (("--block", "0,5"), None, ["--block", "'0,5'"]),
        (("--policy", "median"), "policy", ["--policy mean"]),
        (("--gold", "missing.zarr"), "source", ["missing.zarr"]),
    ],
)
def test_refusals(refused, tmp_path, option, argument, named):
    tifffile.imwrite(tmp_path / "b.tif", np.zeros((20, 20), np.float32))
    message = refused("blocks", "plan", tmp_path / "r", "--cues", tmp_path / "b.tif", *option)
    assert message.argument == argument
    assert all(words in message for words in named), message


def test_a_finished_run_starts_no_processes(run, tmp_path, monkeypatch):
    tifffile.imwrite(tmp_path / "b.tif", np.zeros((20, 20), np.float32))
    words = ("blocks", "run", tmp_path / "r", "--json")
    assert run("blocks", "plan", tmp_path / "r", "--cues", tmp_path / "b.tif")[0] == 0
    first = json.loads(run(*words)[1])
    status, out, _ = run(*words, "--client", "local:2")
    again = json.loads(out)
    assert (status, again["done"], again["complete"]) == (0, {}, True)
    assert again["done_in_all"] == first["done_in_all"] != {}
    record = json.loads((tmp_path / "r.json").read_text())
    assert any(name.endswith(".zarr") for name in record["outputs"])
    assert "dask" in record["versions"]
