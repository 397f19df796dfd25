"""The window on a run of ten gigavoxels: wall times and peak memory; see docs/scale.md.

    python -m benchmarks.bench_blocks window FOLDER           made there, nearly all of it absent
    python -m benchmarks.bench_blocks window FOLDER --name N  the run FOLDER/result-N instead

The volume has 1024 x 4096 x 2560 voxels. One corner has tissue of the sample, with superpixels,
graph and tree of a block-wise run on it; the rest is absent chunks. The run is dropped on a real
window of napari in a process of its own, on a virtual display if there is none: opened, seen in
another plane, moved through thresholds, merged, cut through a superpixel, turned to 3-D, compared
with gold, of which every voxel is read, as no run has counted overlaps. Pictures of the window are
kept in FOLDER.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr

WHOLE, CHUNKS = (1024, 4096, 2560), (64, 128, 128)
TISSUE = (64, 512, 512)
LEVELS = 6


def sparse_run(folder: Path) -> Path:
    """Make the run, unless it is there; return its folder."""
    from benchmarks.bench_blocks import TILE, mirrored, tile
    from napari_agglo import blocks

    result = folder / "sparse.blocks"
    if (result / "tree" / "priorities.npy").exists() and (folder / "gold.zarr").exists():
        return result
    folder.mkdir(parents=True, exist_ok=True)
    arrays = tile(TILE)
    values = mirrored(arrays["boundary"], tuple(slice(0, n) for n in TISSUE))
    zarr.create_array(str(folder / "tissue.zarr"), data=values, chunks=CHUNKS, overwrite=True)
    small = folder / "result-tissue"
    options: dict[str, Any] = {"ranges": (0, 255), "threshold": 0.3, "statistics": "mean"}
    blocks.plan(small, str(folder / "tissue.zarr"), **options)
    blocks.run(small)
    superpixels = blocks.open(small).superpixels[0][...]
    corner = tuple(slice(n) for n in TISSUE)
    gold = mirrored(arrays["gold"].astype(np.uint32), tuple(slice(0, n) for n in TISSUE))
    for name, part in (("boundary", values), ("gold", gold)):
        array = zarr.create_array(
            str(folder / f"{name}.zarr"), shape=WHOLE, chunks=CHUNKS, dtype=part.dtype,
            overwrite=True,
        )  # fmt: skip
        array[corner] = part
    _write_levels(folder / "superpixels.ome.zarr", superpixels)
    blocks.plan(
        result, str(folder / "boundary.zarr"), superpixels=str(folder / "superpixels.ome.zarr"),
        gold=str(folder / "gold.zarr"), block=(256, 512, 512), **options,
    )  # fmt: skip
    for part in ("graph", "tree", "table"):
        shutil.copytree(small / part, result / part, dirs_exist_ok=True)
    return result


def _write_levels(path: Path, superpixels: Any) -> None:
    group = zarr.create_group(str(path), overwrite=True)
    datasets = []
    for level in range(LEVELS):
        shape = tuple(-(-n // 2**level) for n in WHOLE)
        array = group.create_array(str(level), shape=shape, chunks=CHUNKS, dtype=superpixels.dtype)
        part = superpixels[(slice(None, None, 2**level),) * 3]
        array[tuple(slice(n) for n in part.shape)] = part
        scale = [{"type": "scale", "scale": [2.0**level] * 3}]
        datasets.append({"path": str(level), "coordinateTransformations": scale})
    axes = [{"name": name, "type": "space"} for name in "zyx"]
    group.attrs["ome"] = {
        "version": "0.5",
        "multiscales": [{"axes": axes, "datasets": datasets}],
    }


def window(folder: Path, run: Path) -> dict[str, Any]:
    """Open a run in a window, in a process of its own; return its times and its peak memory."""
    from benchmarks.bench_blocks import measured

    # Otherwise the dock would compile the kernels, at a priority that a busy machine never serves.
    subprocess.run([sys.executable, "-m", "napari_agglo", "warm", "-q"], check=True)
    shutil.rmtree(run.with_suffix(".agglo"), ignore_errors=True)
    out = folder / "window-steps.json"
    command = [sys.executable, "-m", "benchmarks.blocks_window", str(run), str(out)]
    if sys.platform.startswith("linux") and not os.environ.get("DISPLAY"):
        command = ["xvfb-run", "-a", "-s", "-screen 0 1280x800x24", *command]
    with measured() as whole:
        subprocess.run(command, check=True)
    steps: dict[str, Any] = json.loads(out.read_text())
    out.unlink()
    return steps | {"all_processes_gb": whole["peak_gb"], "load": round(os.getloadavg()[0], 1)}


class _Steps:
    """Steps in a window: each with its seconds on the clock and the memory after it."""

    def __init__(self, viewer: Any, pictures: Path) -> None:
        self.rows: list[dict[str, Any]] = []
        self._viewer, self._pictures = viewer, pictures

    def do(self, name: str, work: Callable[[], object], picture: str = "") -> None:
        """Do a step, wait until the window is idle, and keep its figures."""
        from benchmarks.bench_blocks import _cpu, resident
        from benchmarks.bench_window import drawn

        clock, cpu = time.monotonic(), _cpu()
        work()
        self.settle()
        self.rows.append({
            "step": name, "seconds": round(time.monotonic() - clock, 2),
            "cpu": round(_cpu() - cpu, 2), "resident_gb": round(resident(os.getpid()) / 1e9, 2),
        })  # fmt: skip
        print(self.rows[-1], flush=True)
        if picture:
            drawn()
            self._viewer.screenshot(str(self._pictures / f"{picture}.png"), canvas_only=False)

    def settle(self) -> None:
        """Handle events until no job runs and nothing is left to load."""
        from benchmarks.bench_window import drawn
        from napari_agglo.widgets._project import Project
        from napari_agglo.widgets._qt import per_viewer

        project = per_viewer(self._viewer, Project)
        idle = 0
        while idle < 10:
            drawn()
            time.sleep(0.005)
            loading = any(not layer.loaded for layer in self._viewer.layers)
            busy = project.jobs.running() or project.worker.pending or loading
            idle = 0 if busy else idle + 1


def steps(run: Path, out: Path) -> None:
    """Go through the steps in this process."""
    import napari

    from benchmarks.bench_blocks import Peak
    from benchmarks.bench_window import drawn
    from napari_agglo.widgets import EvaluateWidget
    from napari_agglo.widgets._napari import camera
    from napari_agglo.widgets._project import Project
    from napari_agglo.widgets._qt import per_viewer

    watch = Peak(os.getpid())
    watch.start()
    viewer = napari.Viewer()
    viewer.window.resize(1280, 800)
    drawn()
    step = _Steps(viewer, out.parent)
    project = per_viewer(viewer, Project)

    def opened() -> None:
        viewer.open(str(run / "plan.json"), plugin="napari-agglo")
        while project.session is None:
            drawn()
            time.sleep(0.005)

    step.do("an empty window", lambda: None)
    step.do("the run is dropped, its session made and opened", opened)
    session = project.session
    assert session is not None
    graph = session.graph
    largest = int(graph.sizes[1:].argmax()) + 1
    low, high = graph.boxes[largest]
    centre = [(a + b) / 2 for a, b in zip(low.tolist(), high.tolist(), strict=True)]

    def seen() -> None:
        viewer.dims.set_point(0, centre[0])
        camera(viewer).center = (0, TISSUE[1] / 2, TISSUE[2] / 2)
        camera(viewer).zoom = 1.2

    step.do("another plane, at full resolution", seen, "window-plane")
    for share in (0.2, 0.4, 0.3):
        step.do(f"the slider at {share}", lambda t=share: setattr(project, "threshold", t))
    segment = session.segments.at(_inside(graph, largest)[0])
    near = int(session.segments.neighbours(segment)[0])
    step.do("a merge", lambda: project.has_edited(session.merge(segment, near)))
    step.do("its undo", lambda: project.has_edited(session.undo()))
    points = _inside(graph, largest)
    two = [[points[0]], [points[-1]]]
    of = session.segments.at(points[0])
    step.do("a cut through a superpixel", lambda: project.has_edited(session.cut(of, points=two)),
            "window-cut")  # fmt: skip
    step.do("3-D", lambda: (setattr(viewer.dims, "ndisplay", 3), viewer.reset_view()), "window-3d")
    step.do("2-D again", lambda: setattr(viewer.dims, "ndisplay", 2))
    if project.gold is not None:

        def compared() -> None:
            dock = EvaluateWidget(viewer)
            viewer.window.add_dock_widget(dock, name="Evaluate")
            while dock.comparison.numbers is None:
                drawn()
                time.sleep(0.005)

        step.do("errors against gold", compared, "window-errors")
    step.do("the session is closed", project.close_session)
    watch.stop = True
    image = graph.superpixels.image
    out.write_text(json.dumps({
        "shape": image.shape, "superpixels": graph.n_regions, "boundaries": graph.n_boundaries,
        "peak_gb": round(watch.bytes / 1e9, 2), "steps": step.rows,
    }))  # fmt: skip
    project.close()
    viewer.close()


def _inside(graph: Any, superpixel: int) -> list[tuple[int, ...]]:
    """Return the voxels of a superpixel, in the order of their coordinates."""
    low, high = graph.boxes[superpixel].tolist()
    box = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
    found = np.argwhere(graph.superpixels.image[box] == superpixel) + low
    return [tuple(map(int, point)) for point in found]


if __name__ == "__main__":
    steps(Path(sys.argv[1]), Path(sys.argv[2]))
