"""The window: wall time of a tick of the slider, an edit and a training in real napari.

``python -m benchmarks window`` measures on 512 x 512 x 256 voxels with 120k superpixels, and on a
lazily opened zarr of 1024^3. Without a display it starts itself again on a virtual one, with
software GL, where drawing is slow.

``python -m benchmarks.bench_window stalls`` measures the longest turns of the event loop alone, and
with ``--profile`` prints for each of them the functions that take the most time, and the shares of
this package, of napari, of vispy and of Qt, and keeps a table of them for ``--write``.
``python -m benchmarks.bench_window strokes`` measures strokes of the pixel classifier alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import napari_agglo as agglo
from benchmarks import volumes
from benchmarks.bench_session import learned
from benchmarks.results import Table, below, keep_text, line, load
from benchmarks.turn_profile import Times, TurnProfile, shares

TICKS = 40
MOST = 15  # functions to list of a turn
ADDED = "add_layer"  # the part of a turn that does not count


def wall(work: Callable[[], object]) -> float:
    """Return the wall seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def add(table: Table, task: str, times: list[float], bound: float = 0, high: bool = False) -> None:
    """Add the median and the 95th percentile; the goal in ms is for one of them."""
    median, upper = np.percentile(times, [50, 95])
    goals = below(float(upper if high else median), bound, "ms") if bound else ()
    table.add(f"{task} (wall)", median, f"95 %: {1e3 * upper:.2f} ms", goals=goals)


def drawn() -> None:
    """Process all pending events, frames included."""
    from qtpy.QtWidgets import QApplication

    for _ in range(3):
        QApplication.processEvents()


def drawn_again() -> None:
    """Draw a frame without a change of the labels."""
    import napari

    viewer = napari.current_viewer()
    assert viewer is not None
    layer = viewer.layers[-1]
    layer.opacity = 0.71 if layer.opacity == 0.7 else 0.7
    drawn()


class Watch:
    """The longest turn of the event loop, in CPU seconds of the main thread.

    Only the time in which napari adds layers is left out, and told apart. The longest frame of the
    canvas, with software GL, is a part of the turn, and told too. CPU time is judged, because the
    wall time of a turn on a busy machine is that of the other programs as well. With `profile`, the
    functions of the longest turn are listed, and turns take longer.
    """

    def __init__(self, profile: bool = False) -> None:
        from napari.components import LayerList
        from qtpy.QtCore import Qt, QTimer
        from vispy.scene import SceneCanvas

        self.own = {ADDED: 0.0, "frame": 0.0}  # of napari, in this turn
        self._inside = ""
        self._clear()
        self._last, self._last_wall = time.thread_time(), time.perf_counter()
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._timer.start(2)
        parts = [(LayerList, "insert", ADDED), (SceneCanvas, "_draw_scene", "frame")]
        self._former = [(owner, name, getattr(owner, name)) for owner, name, _ in parts]
        apart = {former.__code__: part for (*_, part), (*_, former) in
                 zip(parts, self._former, strict=True)}  # fmt: skip
        self.profile = TurnProfile(apart) if profile else None
        self.turns: list[str] = []  # rows of the table of profiles
        for (owner, name, part), (*_, former) in zip(parts, self._former, strict=True):
            setattr(owner, name, self._timed(former, part))
        if self.profile is not None:
            self.profile.start()

    def _timed(self, work: Callable[..., Any], part: str) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            if self._inside:
                return work(*arguments, **options)
            self._inside, start = part, time.thread_time()
            try:
                return work(*arguments, **options)
            finally:
                self.own[part] += time.thread_time() - start
                self._inside = ""

        return timed

    def _clear(self) -> None:
        self.longest = self.wall = 0.0
        self.times: Times = {}  # of the longest turn
        self.most = dict.fromkeys(self.own, 0.0)

    def _tick(self) -> None:
        now, wall_now = time.thread_time(), time.perf_counter()
        times = {} if self.profile is None else self.profile.cut()
        took = now - self._last - self.own[ADDED]
        if took > self.longest:
            self.longest = took
            self.times = {key: one for key, one in times.items() if key[0] != ADDED}
        self.wall = max(self.wall, wall_now - self._last_wall)
        self.most = {part: max(most, self.own[part]) for part, most in self.most.items()}
        self.own = dict.fromkeys(self.own, 0.0)
        self._last, self._last_wall = now, wall_now

    def note(self, table: Table, task: str, work: Callable[[], object], idle: Any) -> None:
        """Do some work, handle events until `idle`, and add the longest turn to the table."""
        from qtpy.QtWidgets import QApplication

        QApplication.processEvents()
        self._tick()
        self._clear()
        work()
        ready = 0
        while ready < 100:  # turns, for what is drawn afterwards
            QApplication.processEvents()
            time.sleep(0.002)
            ready += 1 if idle() else -ready
        took = self.longest
        own = [f"{part} {1e3 * most:.0f} ms" for part, most in self.most.items() if most]
        rate = ", ".join([f"wall {1e3 * self.wall:.0f} ms", *(f"napari's {one}" for one in own)])
        table.add(f"longest turn of the event loop: {task}", took, rate,
                  goals=below(took, 100, "ms"))  # fmt: skip
        if self.profile is not None:
            print_turn(self.times)
            self.turns.append(line([task, *turn_cells(self.times)]))

    def stop(self) -> None:
        self._timer.stop()
        if self.profile is not None:
            self.profile.stop()
        for owner, name, former in self._former:
            setattr(owner, name, former)


def print_turn(times: Times) -> None:
    """Print the shares of the libraries in a turn, and the functions that take the most time."""
    whole = sum(times.values()) or 1.0
    parts = (f"{owner} {100 * one / whole:.0f} %" for owner, one in shares(times).items())
    print(f"    {1e3 * whole:.0f} ms under the profile: {'; '.join(parts)}")
    for (owner, name), one in sorted(times.items(), key=lambda item: -item[1])[:MOST]:
        print(f"    {1e3 * one:7.1f} ms  {100 * one / whole:3.0f} %  {owner}: {name}")


def turn_cells(times: Times) -> tuple[str, str]:
    """Return the shares of the libraries in a turn, and its three longest functions."""
    whole = sum(times.values()) or 1.0
    parts = ((owner, round(100 * one / whole)) for owner, one in shares(times).items())
    longest = sorted(times.items(), key=lambda item: -item[1])[:3]
    return (
        ", ".join(f"{owner} {percent} %" for owner, percent in parts if percent),
        ", ".join(
            f"`{_last_names(name) or owner}` {100 * one / whole:.0f} %"
            for (owner, name), one in longest
        ),
    )


def _last_names(name: str) -> str:
    """Return the last two names of each dotted name, so that a table fits on a page."""
    return " ".join(".".join(word.split(".")[-2:]) for word in name.split())


def stalls(table: Table, viewer: Any, folder: Path, profile: bool = False) -> None:
    """Go through the steps on the 2-D sample: the longest turn of the event loop in each."""
    from napari_agglo.widgets._project import Project
    from napari_agglo.widgets._qt import per_viewer
    from napari_agglo.widgets.proofread._open_session import create_session, open_session

    docks: list[Any] = []

    def open_dock() -> None:
        docks.append(viewer.window.add_plugin_dock_widget("napari-agglo", "Agglo")[1])

    def is_built() -> bool:
        return docks[0].complete and is_idle()

    def is_idle() -> bool:
        return not project.jobs.running() and not project.worker.pending

    viewer.open_sample("napari-agglo", "neuropil2d")
    project = per_viewer(viewer, Project)
    drawn()
    watch, path = Watch(profile), folder / "stalls.agglo"
    watch.note(table, "opening the dock", open_dock, is_built)
    steps = docks[0].guide.steps
    watch.note(table, "training", steps["train"].run.button.click, is_idle)
    watch.note(table, "building", steps["hierarchy"].run.button.click, is_idle)
    watch.note(table, "starting a session", lambda: create_session(viewer, path), is_idle)
    watch.note(table, "closing it", project.close_session, is_idle)
    for layer in list(viewer.layers):
        viewer.layers.remove(layer)
    watch.note(table, "opening it again", lambda: open_session(viewer, path), is_idle)
    watch.stop()
    if profile:
        header = line(["turn", "shares", "most of it"]) + "\n|---|---|---|"
        keep_text("turns", "\n".join([header, *watch.turns]))
    project.close_session()
    for layer in list(viewer.layers):
        viewer.layers.remove(layer)


def strokes(table: Table, viewer: Any, side: int = 512) -> None:
    """Paint, and wait until the probabilities of the plane are on the screen, by few trees and all.

    The wait of 60 ms after a movement of the brush is a part of it. CPU seconds are those of the
    whole process in that time, both threads of the classifier included.
    """
    from napari_agglo.widgets._qt import per_viewer
    from napari_agglo.widgets.data._paint_classes import Painter
    from napari_agglo.widgets.data._selection import Selection

    image = np.random.default_rng(0).random((side, side), np.float32)
    layer = viewer.add_image(image, name="bench")
    per_viewer(viewer, Selection).choose("image", layer)
    painter = per_viewer(viewer, Painter)
    painter.start()
    times, busy, whole = [], [], []
    for k in range(14):
        began, cpu = time.perf_counter(), time.process_time()
        columns = np.arange(10, 110)
        for number in (1, 2):
            rows = np.full(100, 4 * k + 2 * number)
            painter.strokes.data_setitem((rows, columns), number)
        while painter.is_awaited:
            drawn()
            time.sleep(0.001)
        drawn()
        times.append(time.perf_counter() - began)
        busy.append(time.process_time() - cpu)
        while painter.is_pending:
            drawn()
            time.sleep(0.001)
        drawn()
        whole.append(time.perf_counter() - began)
    what = f"a plane of {side} x {side}"
    add(table, f"stroke until it is drawn, {what}", times[4:], 500)
    table.add(f"the same, CPU of all threads, {what}", float(np.median(busy[4:])))
    table.add(f"stroke until all trees have drawn it, {what}", float(np.median(whole[4:])))
    for one in [*painter.preview().values(), painter.strokes, layer]:
        viewer.layers.remove(one)


def ticks(table: Table, viewer: Any, project: Any, thresholds: Any, what: str) -> None:
    """Move the slider: our time on top of napari's own refresh, in 2-D; all of it, in 3-D."""
    from napari_agglo.widgets._qt import per_viewer
    from napari_agglo.widgets._scene import Scene

    scene = per_viewer(viewer, Scene)
    layer = scene.segmentation
    assert layer is not None
    ours, own, whole = [], [], []
    for threshold in thresholds:
        took = wall(lambda t=threshold: setattr(project, "threshold", float(t)))
        whole.append(took + wall(drawn))
        own.append(wall(lambda: layer.refresh(thumbnail=False, highlight=False, extent=False)))
        ours.append(took - own[-1])
        drawn()
    add(table, f"tick in 2-D, on top of napari's refresh, {what}", ours[3:], 10)
    add(table, f"napari's refresh of the layer, {what}", own[3:])
    add(table, f"tick in 2-D until it is drawn, {what}", whole[3:])
    viewer.dims.ndisplay = 3
    drawn()
    times = [
        wall(lambda t=t: (setattr(project, "threshold", float(t)), drawn()))
        for t in thresholds[::4]
    ]
    add(table, f"tick in 3-D until it is drawn, {what}", times[2:], 250)
    times = [wall(lambda: (layer.refresh(), drawn())) for _ in range(6)]
    add(table, f"napari's refresh in 3-D until it is drawn, {what}", times[1:])
    viewer.dims.ndisplay = 2
    drawn()


def editing(table: Table, project: Any, session: agglo.Session, what: str) -> None:
    """Merge and undo, until the change is on the screen."""
    rng = np.random.default_rng(0)
    ids = session.segments.ids()
    times = []
    for _ in range(TICKS):
        a = int(rng.choice(ids))
        near = session.segments.neighbours(a)
        if len(near):
            b = int(near[0])
            project.threshold = session.threshold
            times.append(wall(lambda a=a, b=b: (project.has_edited(session.merge(a, b)), drawn())))
            times.append(wall(lambda: (project.has_edited(session.undo()), drawn())))
    add(table, f"edit until it is drawn, 2-D, {what}", times[4:], 50)
    frames = [wall(drawn_again) for _ in range(TICKS)]
    add(table, f"a frame in which nothing has changed, 2-D, {what}", frames[4:])


def lateness(table: Table, project: Any, graph: Any, gold: Any) -> None:
    """Measure the lateness of a timer of 5 ms while a training runs in a worker."""
    from qtpy.QtCore import Qt, QTimer
    from qtpy.QtWidgets import QApplication

    late: list[float] = []
    last = [time.perf_counter()]

    def tick() -> None:
        now = time.perf_counter()
        late.append(max(0.0, now - last[0] - 0.005))
        last[0] = now

    timer = QTimer()
    timer.setTimerType(Qt.TimerType.PreciseTimer)
    timer.setInterval(5)
    timer.timeout.connect(tick)
    project.jobs.start(
        "bench",
        "Training",
        lambda progress: agglo.train(graph, gold, epochs=2, progress=progress),
        lambda _: None,
    )
    timer.start()
    last[0] = time.perf_counter()
    while project.jobs["bench"] is not None:
        QApplication.processEvents()
        time.sleep(0.0005)
    timer.stop()
    task = f"lateness of the event loop while training ({len(late)} ticks)"
    add(table, task, late, 20, high=True)


def large(table: Table, viewer: Any, folder: Path, side: int) -> None:
    """Move the slider and step through a volume that is read from disk plane by plane."""
    import zarr
    from napari.layers import Labels

    from napari_agglo.widgets._colours import segment_colours
    from napari_agglo.widgets._lut_array import LutArray

    n = 64
    block = np.arange(n**3, dtype=np.uint32).reshape(n, n, n) // 512 + 1
    store = zarr.create_array(
        str(folder / "large.zarr"), shape=(side,) * 3, chunks=(n,) * 3, dtype="uint32"
    )
    per = int(block.max())
    for z in range(0, side, n):
        slab = np.empty((n, side, side), np.uint32)
        for y in range(0, side, n):
            for x in range(0, side, n):
                k = (z * side * side // n + y * side + x) // n // n
                slab[:, y : y + n, x : x + n] = block + per * (k % 200)
        store[z : z + n] = slab
    rng = np.random.default_rng(0)
    lazy = LutArray(zarr.open_array(str(folder / "large.zarr"), mode="r"), np.zeros(1, np.uint32))
    tables = [rng.integers(1, 5000, per * 201 + 1).astype(np.uint32) for _ in range(8)]
    lazy.table.values = tables[0]
    layer = Labels(lazy, colormap=segment_colours(), name="large")
    layer.editable = False
    viewer.add_layer(layer)
    drawn()
    what = f"{side}^3 zarr"
    times = []
    for k in range(TICKS):
        lazy.table.values = tables[k % len(tables)]
        times.append(wall(lambda: layer.refresh(thumbnail=False, highlight=False, extent=False)))
        drawn()
    add(table, f"tick in 2-D, napari's refresh included, {what}", times[3:])
    times = []
    for z in range(5, side, side // 12):
        times.append(wall(lambda z=z: (viewer.dims.set_point(0, z), drawn())))
    add(table, f"step to a plane not read before, {what}", times[1:])
    viewer.layers.remove(layer)


def needs_display() -> bool:
    """Return whether a virtual display is needed."""
    return sys.platform.startswith("linux") and not os.environ.get("DISPLAY")


ON_DISPLAY = ("xvfb-run", "-a", "-s", "-screen 0 1280x800x24", sys.executable, "-m")


def run(table: Table, small: bool = False) -> None:
    """Measure all of the above in one window."""
    if needs_display():
        with tempfile.TemporaryDirectory() as results:
            command = [*ON_DISPLAY, "benchmarks", "window", "-o", results, *(["--small"] * small)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            for row in load(Path(results), "window")[0].rows:
                table.add(row.task, row.seconds, row.rate, goals=row.goals)
        return
    # Otherwise the dock would compile the kernels, at a priority that a busy machine never serves.
    subprocess.run([sys.executable, "-m", "napari_agglo", "warm", "-q"], check=True)
    import napari

    from napari_agglo.widgets._dataset import Dataset, Placement
    from napari_agglo.widgets._project import Built, Project, Regions, Trained
    from napari_agglo.widgets._qt import per_viewer
    from napari_agglo.widgets._scene import Scene

    viewer = napari.Viewer()
    viewer.window.resize(1280, 800)
    drawn()
    folder = Path(tempfile.mkdtemp(prefix="bench-window-"))
    stalls(table, viewer, folder)
    strokes(table, viewer)
    project, scene = per_viewer(viewer, Project), per_viewer(viewer, Scene)
    while project.jobs.running():
        drawn()
    shape = (64, 128, 128) if small else (256, 512, 512)
    superpixels, boundary = volumes.tiled(shape)
    dataset = Dataset(
        "bench", Placement.plain(3), cues={"boundary": boundary}, superpixels=superpixels
    )
    graph = dataset.graph()
    policy = learned()
    tree = agglo.agglomerate(graph, policy)
    project.regions = Regions(dataset, graph)
    project.trained = Trained(policy)
    project.built = Built(tree, project.regions, policy)
    viewer.dims.set_point(0, shape[0] // 2)
    drawn()
    what = f"{graph.n_regions:,} superpixels"
    thresholds = np.quantile(tree.heights, np.linspace(0.3, 0.98, TICKS))
    try:
        ticks(table, viewer, project, thresholds, what)
        session = agglo.Session.create(folder / "a.agglo", graph, policy)
        project.set_session(session, project.built)
        project.threshold = 0.5
        while project.jobs.running():
            drawn()
        editing(table, project, session, what)
        project.close_session()
        small = volumes.tiled((64, 160, 160))
        lesson = agglo.region_graph(*small)
        coarse = agglo.agglomerate(lesson)
        gold = coarse.segment(float(np.quantile(coarse.heights, 0.95)))
        lateness(table, project, lesson, gold)
        scene.isolate(False)
        for layer in list(viewer.layers):
            layer.visible = False
        large(table, viewer, folder, 256 if small else 1024)
    finally:
        project.close()
        viewer.close()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Measure the longest turns of the event loop alone, or strokes alone."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("part", choices=["stalls", "strokes"])
    parser.add_argument("--profile", action="store_true", help="list the functions of each turn")
    options = parser.parse_args()
    if needs_display():
        module = "benchmarks.bench_window"
        raise SystemExit(subprocess.call([*ON_DISPLAY, module, *sys.argv[1:]]))
    subprocess.run([sys.executable, "-m", "napari_agglo", "warm", "-q"], check=True)
    import napari

    from napari_agglo.widgets._project import Project
    from napari_agglo.widgets._qt import per_viewer

    viewer = napari.Viewer()
    viewer.window.resize(1280, 800)
    drawn()
    with tempfile.TemporaryDirectory(prefix="bench-window-") as folder:
        if options.part == "strokes":
            strokes(Table(), viewer)
        else:
            stalls(Table(), viewer, Path(folder), options.profile)
        per_viewer(viewer, Project).close()
        viewer.close()


if __name__ == "__main__":
    main()
