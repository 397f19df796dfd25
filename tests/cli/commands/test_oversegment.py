"""`oversegment`: a boundary map in, superpixels out; folders, stacks, refusals."""

from __future__ import annotations

import os
import re
import shutil

import numpy as np
import tifffile
from cli.commands.pipeline import read, same_partition

from napari_agglo.errors import Advice
from napari_agglo.volumes import open_volume


def test_oversegment(run, files):
    status, out, err = run("oversegment", "boundary.tif", "-o", "s.tif", "--min-size", "1")
    assert (status, err) == (0, "")
    superpixels = read("s.tif")
    assert superpixels.shape == (4, 6)
    assert out == f"s.tif: {superpixels.max()} superpixels\n"


def test_oversegment_with_everything(run, files):
    mask, seeds = np.ones((4, 6), np.uint8), np.zeros((4, 6), np.uint8)
    mask[0, 0] = 0
    seeds[0, 1], seeds[0, 5], seeds[3, 0], seeds[3, 5] = 1, 2, 3, 4
    tifffile.imwrite("mask.tif", mask)
    tifffile.imwrite("seeds.tif", seeds)
    options = "--range 0:255 --spacing 2,1 --sigma 0 --min-size 1 --mask mask.tif --seeds seeds.tif"
    status, _, err = run("oversegment", "boundary8.tif", "-o", "s.npz", *options.split())
    assert (status, err) == (0, "")
    superpixels = read("s.npz")
    assert superpixels[0, 0] == 0
    assert np.unique(superpixels).tolist() == [0, 1, 2, 3, 4]
    assert open_volume("s.npz").spacing == (2, 1)


def test_oversegment_each_of_a_folder(run, files):
    os.mkdir("maps")
    shutil.copy("boundary.tif", "maps/a.tif")
    tifffile.imwrite("maps/b.tif", np.zeros((3, 3), np.float32))  # another size will do
    status, out, err = run("oversegment", "maps", "--each", "-o", "out")
    assert (status, err) == (0, "")
    assert sorted(os.listdir("out")) == ["a.tif", "b.tif"]
    assert read("out/a.tif").shape == (4, 6)
    assert re.search(r"^out/b.tif: 1 ", out, re.MULTILINE)


def test_oversegment_a_folder_as_a_stack(run, files):
    os.mkdir("planes")
    for plane in range(3):
        tifffile.imwrite(f"planes/{plane}.tif", np.zeros((3, 4), np.float32))
    assert run("oversegment", "planes", "--per-plane", "-o", "s.tif")[0] == 0
    assert same_partition(read("s.tif"), np.repeat([1, 2, 3], 12).reshape(3, 3, 4))


def test_oversegment_refuses(refused, files):
    message = refused("oversegment", "boundary8.tif", "-o", "s.tif")
    assert message.argument == "boundary"
    assert [one.value for one in message.remedies] == [(0, 255), (255, 0)]
    assert all(words in message for words in ("boundary8.tif", "--range 0:255", "--range 255:0"))
    message = refused("oversegment", "boundary.tif", "-o", "s.jpg")
    assert (message.argument, message.remedies) == ("-o", (Advice("add .tif"),))
    message = refused("oversegment", "boundary.tif", "--each", "-o", "out")
    assert message.argument == "BOUNDARY"
    assert all(words in message for words in ("boundary.tif", "--each", '"maps/*.tif"'))
    assert not os.path.exists("s.tif")
    assert not os.path.exists("out")
