"""Inputs at s3:// and https://, from servers on this machine, and what is noticed of them."""

from __future__ import annotations

import shutil
import ssl
import subprocess

import numpy as np
import pytest
import tifffile
import zarr
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.volumes import open_volume


@pytest.fixture
def https(server, tmp_path):
    """Give the address of a server that has a certificate of its own."""
    from aiohttp import connector

    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key),
         "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    made, thread = server
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    made.socket = context.wrap_socket(made.socket, server_side=True)
    thread.start()
    url = f"https://127.0.0.1:{made.server_address[1]}/bucket"
    with refuses("source") as refused:  # nobody has vouched for the server
        open_volume(f"{url}/b.zarr")
    assert "certificate" in str(refused.value).lower()
    connector._SSL_CONTEXT_VERIFIED.load_verify_locations(str(certificate))
    return url


@pytest.fixture
def bucket(tmp_path):
    """Give the folder that is served, with a boundary map in chunks, one of which is absent."""
    folder = tmp_path / "served" / "bucket"
    boundary = agglo.sample("neuropil2d").cues["boundary"][:80, :100]
    zarr.create_array(str(folder / "b.zarr"), data=boundary, chunks=(40, 50))
    (folder / "b.zarr" / "c" / "1" / "1").unlink()
    tifffile.imwrite(folder / "mask.tif", np.ones(boundary.shape, np.uint8))
    return folder


def plan(folder, place):
    cue, mask = f"{place}/b.zarr", f"{place}/mask.tif"
    blocks.plan(folder, cue, mask=mask, block=(40, 100), threshold=0.2)


@pytest.mark.parametrize("protocol", ["https", "s3"])
def test_a_run_of_inputs_at_a_url(request, bucket, tmp_path, protocol):
    url = request.getfixturevalue(protocol)
    for place, folder in ((url, "remote"), (str(bucket), "local")):
        plan(tmp_path / folder, place)
        run = blocks.run(tmp_path / folder)
        assert run.is_complete
        assert run.absent == {"cues['boundary']": 1}
    remote, local = (blocks.open(tmp_path / name).labels[0][...] for name in ("remote", "local"))
    assert len(np.unique(local)) > 10, "test invalid"
    assert np.array_equal(remote, local)
    check_changes_are_noticed(url, bucket, tmp_path / "remote")


def check_changes_are_noticed(url, bucket, folder):
    """Change a chunk, or a file, and the input is refused until planned again."""
    chunk = bucket / "b.zarr" / "c" / "0" / "0"
    chunk.write_bytes((bucket / "b.zarr" / "c" / "0" / "1").read_bytes())
    with refuses("cues['boundary']", "plan again"):
        blocks.run(folder)
    if url.startswith("s3"):
        return
    plan(folder, url)
    assert blocks.run(folder).done["cut"] == 2
    mask = np.ones((80, 100), np.uint8)
    mask[:40] = 0
    tifffile.imwrite(bucket / "mask.tif", mask)
    with refuses("mask", "plan again"):
        blocks.run(folder)
    plan(folder, url)
    blocks.run(folder)
    labels = blocks.open(folder).labels[0][...]
    assert not labels[:40].any(), "the file that was fetched before is not used again"
    assert labels[40:].any()
