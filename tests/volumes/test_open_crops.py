"""Crops of files: ranges along axes, their place, and ranges that are not there."""

from __future__ import annotations

import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest
import tifffile
import zarr
from refusals import refuses

from napari_agglo.volumes import open_volume, write_labels


def test_ranges_along_axes_open_a_crop_with_its_place(tmp_path: Path) -> None:
    values = np.arange(4 * 6 * 8, dtype=np.uint8).reshape(4, 6, 8)
    zarr.create_array(str(tmp_path / "a.zarr"), data=values, chunks=(2, 2, 3))
    np.save(tmp_path / "a.npy", values)
    tifffile.imwrite(tmp_path / "a.tif", values, compression="zlib", photometric="minisblack")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["stack"] = values
    expected = values[1:, 2:5, :-3]
    for name in ("a.zarr", "a.npy", "a.tif", "a.h5"):
        for key in ("z=1:,y=2:5,x=:-3", "0=1:4,1=-4:-1,2=0:5"):
            crop = open_volume(f"{tmp_path / name}:{key}")
            assert crop.origin == (1.0, 2.0, 0.0), (name, key)
            np.testing.assert_array_equal(crop.load(), expected)
            np.testing.assert_array_equal(crop.data[1, -1:, ::2], expected[1, -1:, ::2])
    assert open_volume(tmp_path / "a.zarr").origin is None
    plane = open_volume(f"{tmp_path / 'a.zarr'}:0=2,y=1:3")  # y and x of what is left
    np.testing.assert_array_equal(plane.load(), values[2, 1:3])


def test_a_crop_adds_its_start_to_the_place_of_its_file(tmp_path: Path) -> None:
    labels = np.arange(1, 49, dtype=np.uint16).reshape(6, 8)
    for name in ("a.ome.zarr", "a.h5"):
        write_labels(tmp_path / name, labels, spacing=(2.0, 4.0), origin=(10, 0))
        whole = open_volume(tmp_path / name)
        crop = open_volume(f"{tmp_path / name}:{'y' if 'zarr' in name else 0}=2:4")
        assert (whole.origin, crop.origin) == ((10.0, 0.0), (12.0, 0.0))
        assert crop.spacing == whole.spacing == (2.0, 4.0)
    write_labels(tmp_path / "b.ome.zarr", crop, levels=2)
    assert open_volume(tmp_path / "b.ome.zarr").origin == (12.0, 0.0)
    write_labels(tmp_path / "c.ome.zarr", labels, origin=(0, 0))  # 0 is a place too
    assert open_volume(tmp_path / "c.ome.zarr").origin == (0.0, 0.0)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("y=0:7", "y=0:6"),  # the length of the axis
        ("y=-7:", "y=0:6"),
        ("y=3:3", "y=0:6"),
        ("y=5:2", "y=0:6"),
        ("depth=0:2", "z, y, x"),
        ("c=0:2", "z, y, x"),
        ("5=0:2", "0 to 2"),
    ],
)
def test_ranges_that_are_not_there_are_refused(tmp_path: Path, key: str, said: str) -> None:
    zarr.create_array(str(tmp_path / "a.zarr"), data=np.zeros((4, 6, 8), np.uint8))
    with refuses("source", said):
        open_volume(f"{tmp_path / 'a.zarr'}:{key}")


def test_a_crop_can_be_pickled_and_read_in_another_process(tmp_path: Path) -> None:
    zarr.create_array(str(tmp_path / "a.zarr"), data=np.arange(48).reshape(6, 8), chunks=(4, 4))
    crop = open_volume(f"{tmp_path / 'a.zarr'}:y=1:4,x=2:")
    again = pickle.loads(pickle.dumps(crop))
    assert again.origin == (1.0, 2.0)
    np.testing.assert_array_equal(again.load(), np.arange(48).reshape(6, 8)[1:4, 2:])


@pytest.mark.parametrize(
    ("attributes", "spacing", "unit", "origin"),
    [
        ({"resolution": [40, 4, 4], "offset": [80, 0, 400]}, (0.04, 0.004, 0.004), "micrometer",
         (2, 0, 100)),
        ({"voxel_size": [4, 4, 4], "units": ["um", "nm", "nm"]}, (4, 0.004, 0.004), "micrometer",
         None),
        ({"voxel_size": [4, 4, 4], "units": ["", "", ""]}, (4, 4, 4), None, None),
        ({"resolution": [40, 4, 4], "element_size_um": [3, 2, 1]}, (3, 2, 1), "micrometer", None),
        ({"resolution": [40, 0, 4]}, None, None, None),
        ({"resolution": 300}, None, None, None),
        ({"resolution": [4, 4, 4], "units": ["nm"]}, None, None, None),
    ],
)  # fmt: skip
def test_the_size_of_voxels_of_daisy_and_volara(
    tmp_path: Path, attributes: dict[str, object], spacing: object, unit: str, origin: object
) -> None:
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    group.create_array("raw", data=np.zeros((4, 6, 8), np.uint8), attributes=attributes)
    group.create_array("channels", data=np.zeros((2, 4, 6, 8), np.uint8), attributes=attributes)
    for key in ("raw", "channels,0=1"):
        volume = open_volume(f"{tmp_path / 'a.zarr'}:{key}")
        assert (volume.spacing, volume.unit) == (spacing, unit)
    assert open_volume(f"{tmp_path / 'a.zarr'}:raw").origin == origin
