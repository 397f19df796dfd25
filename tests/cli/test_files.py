from __future__ import annotations

import os

import pytest
from refusals import refuses

from napari_agglo.cli._files import check_label_output, output_folder


def test_a_folder_appears_whole(tmp_path):
    with output_folder(tmp_path / "out") as folder:
        (folder / "a").write_text("1")
        assert not (tmp_path / "out").exists()
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out" / "a").read_text() == "1"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupted_run_leaves_nothing(tmp_path, error):
    def interrupted():
        with output_folder(tmp_path / "out") as folder:
            (folder / "a").write_text("half")
            raise error

    with pytest.raises(error):
        interrupted()
    assert os.listdir(tmp_path) == []


def test_only_files_of_the_same_name_are_replaced(tmp_path):
    (tmp_path / "out" / "z.zarr").mkdir(parents=True)
    (tmp_path / "out" / "mine").write_text("keep")
    with output_folder(tmp_path / "out") as folder:
        (folder / "z.zarr").mkdir()
        (folder / "z.zarr" / "0").write_text("new")
    assert sorted(os.listdir(tmp_path / "out")) == ["mine", "z.zarr"]
    assert (tmp_path / "out" / "z.zarr" / "0").read_text() == "new"


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "out").write_text("mine")
    with refuses("-o", "name a folder"), output_folder(tmp_path / "out"):
        pass


def test_names_that_labels_can_have(tmp_path):
    for name in ("a.tif", "a.TIFF", "a.ome.zarr", "a.h5:seg", "a.npz"):
        check_label_output(str(tmp_path / name))
    with refuses("-o", "add .tif"):
        check_label_output(str(tmp_path / "a.jpg"))
    with refuses("-o", "make it first"):
        check_label_output(str(tmp_path / "no" / "a.tif"))
