"""A run with all stages, whose results other runs must have; a server of objects."""

from __future__ import annotations

import http.server
import threading
from types import SimpleNamespace

import fsspec
import pytest
from block_runs import STAGES, content, plan_all, write_inputs
from object_server import Objects

from napari_agglo import blocks


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """Give the folder of inputs, the folder of a complete run, and the content of its files."""
    where = tmp_path_factory.mktemp("undisturbed")
    write_inputs(where)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("napari_agglo.volumes._ome_zarr_metadata._SMALL", 500)
        plan_all(where, where / "result")
    run = blocks.run(where / "result")
    assert run.is_complete
    assert set(run.done) == STAGES
    return SimpleNamespace(where=where, folder=where / "result", content=content(where / "result"))


@pytest.fixture
def server(tmp_path):
    """Serve a folder; give a server that has not begun."""
    handler = type("Here", (Objects,), {"root": tmp_path / "served"})
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    yield made, thread
    made.shutdown()
    made.server_close()


@pytest.fixture
def s3(server, monkeypatch):
    """Give the address of a bucket, as `FSSPEC_S3_ENDPOINT_URL` and `FSSPEC_S3_ANON` set it."""
    pytest.importorskip("s3fs")
    made, thread = server
    thread.start()
    endpoint = f"http://127.0.0.1:{made.server_address[1]}"
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": endpoint, "anon": True})
    return "s3://bucket"
