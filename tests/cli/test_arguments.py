from __future__ import annotations

from refusals import refuses

from napari_agglo.cli import _arguments as arguments


def test_a_drive_or_an_equals_sign_in_a_path():
    assert arguments.named_file(r"C:\a b\m.h5:stack") == ("boundary", r"C:\a b\m.h5:stack")
    assert arguments.named_file("mito=a=b.tif") == ("mito", "a=b.tif")
    assert arguments.named_file("./x=1/b.tif") == ("boundary", "./x=1/b.tif")


def test_two_cues_of_one_name():
    with refuses("cues", "name them, e.g. boundary=A mitochondria=B"):
        arguments.graph_files("s", [("boundary", "a"), ("boundary", "b")])


def test_a_range_for_all_and_one_for_some():
    pairs = [(None, (0.0, 255.0)), ("mito", (1.0, 0.0))]
    cues = ["boundary", "mito"]
    assert arguments.cue_ranges(pairs, cues) == {"boundary": (0.0, 255.0), "mito": (1.0, 0.0)}
    assert arguments.cue_ranges([], cues) is None
    with refuses("ranges", "name one of these, or none for all"):
        arguments.cue_ranges([("mtio", (0.0, 1.0))], cues)


def test_policies():
    assert arguments.check_policy("mean") == "mean"
    assert arguments.check_policy("p.npz") == "p.npz"
    with refuses("policy", "give a Python function as MODULE:FUNCTION"):
        arguments.check_policy("median")
