"""`napari-agglo demo`: the whole pipeline on an embedded sample, in napari or to files."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_agglo._progress import part_of, report
from napari_agglo.cli._arguments import add_json, add_output, add_value
from napari_agglo.cli._commands.sample import UNIT
from napari_agglo.cli._files import output_folder
from napari_agglo.cli._terminal import Console, json_text, table
from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from napari_agglo.agglomeration import MergeTree
    from napari_agglo.graph import RegionGraph
    from napari_agglo.samples import Sample

NAME = "demo"
SUMMARY = "open the embedded sample in napari, or run the pipeline on it without a display"
DESCRIPTION = (
    "With a display: open napari with the embedded sample and the guided dock.\n"
    "Without one, or with --headless: train flat and agglo on a sample of another seed, compare\n"
    "them with the mean on this one, which they have not seen, and write superpixels.tif,\n"
    "labels.tif (of agglo at 0.5), policy.npz, tree.csv, curves.csv, picture.png, report.html,\n"
    "movie.mp4 (mean, flat and agglo side by side; movie.gif without ffmpeg) and summary.json."
)
EXAMPLE = "napari-agglo demo -o demo-output"
DEFAULT_OUTPUT = "demo-output"
SAMPLE = "neuropil3d"
WINDOW_SAMPLE = "neuropil2d"  # a click on Train takes seconds, in 3-D minutes
_TRAINING_SEED, _TEST_SEED = 1, 0
_FRAMES, _PANEL = 36, 240  # of the movie
_MIN_SIZE = {"neuropil3d": 1000, "neuropil2d": 50}  # of a superpixel: a training takes seconds
_POLICIES = ("mean", "flat", "agglo")
_SECONDS = 60  # without a display, with compiled kernels


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    text = f"folder to write to (default: {DEFAULT_OUTPUT})"
    add_output(parser, "DIR", text, default=DEFAULT_OUTPUT)
    text = "open no window and write results, as without a display"
    parser.add_argument("--headless", action="store_true", help=text)
    text = f"embedded sample (default: {WINDOW_SAMPLE} in a window, {SAMPLE} without one)"
    add_value(parser, "--sample", "KIND", text)
    add_json(parser, "the summary")


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Open napari if there is a display; otherwise run the pipeline and write its results."""
    from napari_agglo.samples import SAMPLES

    console.options["kind"] = "--sample"
    window = not arguments.headless and has_display()
    if arguments.sample is None:
        arguments.sample = WINDOW_SAMPLE if window else SAMPLE
    known = arguments.sample in SAMPLES  # otherwise the pipeline reports it
    window = window and known
    if known and console.verbosity >= 0 and not arguments.json:
        print(expectation(window), flush=True)
    if window:
        arguments.provenance = False  # nothing is written
        open_window(arguments.sample)
    else:
        run_headless(arguments, console)


def expectation(window: bool) -> str:
    """Return a sentence about the expected time, the first time and later."""
    from napari_agglo.session import NOT_KEPT, cache_folder, seconds_to_compile, stages_to_compile

    needed = {"merge", "evaluate"} if window else {"merge", "evaluate", "learn"}
    first = seconds_to_compile(needed.intersection(stages_to_compile()))
    later, rest = ("a few seconds", 5) if window else (f"about {_SECONDS} s", _SECONDS)
    if not first:
        return f"This takes {later}."
    if cache_folder() is None:
        return f"This takes about {first + rest} s. {NOT_KEPT}"
    return f"The first time takes about {first + rest} s, to compile kernels; later {later}."


def has_display() -> bool:
    """Return whether a window can be opened: there is a screen, napari and a Qt binding."""
    bindings = ("PyQt6", "PySide6", "PyQt5", "PySide2")
    if find_spec("napari") is None or not any(find_spec(name) for name in bindings):
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_window(sample: str) -> None:
    """Open napari in a process of its own: the command line knows nothing of windows."""
    print(f"Opening napari with the sample {sample} and the Agglo dock. Close the window to end.")
    ended = subprocess.run([sys.executable, "-m", "napari_agglo.widgets", sample], check=False)
    if ended.returncode:
        raise InvalidInput(
            f"The window could not be opened, or closed with an error (status {ended.returncode})",
            argument="headless",
            remedy="add --headless to run without one",
        )


class _Clock:
    """Seconds spent in each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


# The work of the demo, in seconds on one core, in the order in which it is done; see summary.json.
_VOLUME = (("sample", 10.0), ("superpixels", 1.5), ("graph", 0.5))
_WORK = (
    *_VOLUME, *_VOLUME, ("train flat", 1.0), ("train agglo", 5.0),
    *(("merge", 0.5), ("evaluate", 1.0)) * 3,
    ("write files", 8.0), ("report", 7.0), ("movie", 5.0),
)  # fmt: skip


class _Parts:
    """One progress for all parts of the demo, each with its share of the work."""

    def __init__(self, progress: Any) -> None:
        self._progress = progress
        self._left = list(_WORK)
        self._done = 0.0

    def __call__(self, name: str) -> Any:
        """Return the callback of the next part of that name."""
        total = sum(work for _, work in _WORK)
        while self._left:
            part, work = self._left.pop(0)
            begin, self._done = self._done, self._done + work
            if part == name:
                return part_of(self._progress, begin / total, self._done / total, name)
        return None


def _report(
    drawn: Sample,
    trees: dict[str, MergeTree],
    policies: dict[str, Any],
    best: dict[str, float],
    progress: Any,
) -> str:
    """Return the report of all policies as a page."""
    from napari_agglo.policy import policy_record
    from napari_agglo.report import examine, html_report

    findings: list[Any] = []
    each = 0.7 / len(trees)  # of the work; the rest is that on the page
    for k, (name, tree) in enumerate(trees.items()):
        findings.append(
            examine(
                tree, drawn.gold, policy=name, image=drawn.name, backdrop=drawn.image,
                spacing=drawn.spacing, plane=findings[0].plane if findings else None, worst=6,
                boundaries=drawn.gold.ndim == 2,
                progress=part_of(progress, each * k, each * (k + 1)),
            )
        )  # fmt: skip
    records = {
        name: record
        for name, policy in policies.items()
        if name != "mean" and (record := policy_record(policy)) is not None
    }
    settings = {"sample": drawn.name, "seed": _TEST_SEED, "training seed": _TRAINING_SEED}
    title = f"{drawn.name}: policies on a sample that none was trained on"
    return html_report(
        findings,
        title=title,
        best={drawn.name: best},
        records=records,
        settings=settings,
        progress=part_of(progress, 0.7, 1.0),
    )


def run_headless(arguments: argparse.Namespace, console: Console) -> None:
    """Train on one sample, compare policies on another, and write the results."""
    from napari_agglo.agglomeration import agglomerate
    from napari_agglo.evaluate import best_point, vi_curve
    from napari_agglo.learning import train
    from napari_agglo.movie import write_movie
    from napari_agglo.volumes import replacing, write_labels

    clock = _Clock()
    with output_folder(arguments.output) as folder, console.progress() as whole:
        part = _Parts(whole)
        training, _, training_graph = _volume(arguments.sample, _TRAINING_SEED, clock, part)
        drawn, superpixels, graph = _volume(arguments.sample, _TEST_SEED, clock, part)
        policies: dict[str, Any] = {"mean": "mean"}
        for name in _POLICIES[1:]:
            with clock.stage(f"training of {name}"):
                policies[name] = train(
                    training_graph, training.gold, strategy=name, progress=part(f"train {name}")
                )
        trees, curves = {}, {}
        for name, policy in policies.items():
            with clock.stage("agglomeration"):
                trees[name] = agglomerate(graph, policy, progress=part("merge"))
            with clock.stage("evaluation"):
                curves[name] = vi_curve(trees[name], drawn.gold, progress=part("evaluate"))
        tree = trees["agglo"]
        labels = tree.segment(0.5)
        with clock.stage("files"):
            report(part("write files"), "write files", 0, 1)
            write_labels(folder / "superpixels.tif", superpixels, spacing=drawn.spacing, unit=UNIT)
            write_labels(folder / "labels.tif", labels, spacing=drawn.spacing, unit=UNIT)
            policies["agglo"].save(folder / "policy.npz")
            tree.to_csv(folder / "tree.csv")
            with replacing(folder / "curves.csv") as path:
                _joined(curves).to_csv(path, index=False)
            draw(folder / "picture.png", drawn, superpixels, labels, curves)
        best = best_point(graph, drawn.gold)
        with clock.stage("report"):
            page = _report(drawn, trees, policies, best, part("report"))
            (folder / "report.html").write_text(page, encoding="utf-8")
        film = "movie.gif" if find_spec("imageio_ffmpeg") is None else "movie.mp4"
        with clock.stage("movie"):
            write_movie(
                folder / film, {**trees, "gold": drawn.gold}, image=drawn.image,
                gold=drawn.gold, spacing=drawn.spacing, by="threshold", frames=_FRAMES,
                size=_PANEL, progress=part("movie"),
            )  # fmt: skip
        summary = _summary(arguments.sample, drawn.image.shape, curves, best["vi"], clock.seconds)
        (folder / "summary.json").write_text(json_text(summary, indent=2) + "\n")
    files = ", ".join(sorted(file.name for file in Path(arguments.output).iterdir()))
    console.result(
        f"{_text(summary)}\n\nResults: {Path(arguments.output).absolute()}\n  {files}", summary
    )


def _volume(
    kind: str, seed: int, clock: _Clock, part: _Parts
) -> tuple[Sample, NDArray[Any], RegionGraph]:
    """Return a sample, its superpixels and their graph."""
    from napari_agglo.graph import region_graph
    from napari_agglo.samples import sample
    from napari_agglo.superpixels import oversegment

    with clock.stage("samples"):
        report(part("sample"), "sample", 0, 1)
        drawn = sample(kind, seed=seed)
    min_size = _MIN_SIZE.get(kind)
    with clock.stage("superpixels"):
        superpixels = oversegment(
            drawn.cues["boundary"],
            spacing=drawn.spacing,
            min_size=min_size,
            progress=part("superpixels"),
        )
    with clock.stage("graphs"):
        graph = region_graph(
            superpixels, drawn.cues, spacing=drawn.spacing, unit=UNIT, progress=part("graph")
        )
    return drawn, superpixels, graph


def _joined(curves: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the curves of all policies as one table, with the policy as its first column."""
    import pandas as pd

    return pd.concat(curves, names=["policy"]).reset_index("policy")


def draw(
    path: Path,
    sample: Sample,
    superpixels: NDArray[Any],
    labels: NDArray[Any],
    curves: dict[str, pd.DataFrame],
) -> None:
    """Write the picture of one plane and both curves as PNG; it uses no state of pyplot."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from napari_agglo.compare import matched
    from napari_agglo.evaluate import state_at
    from napari_agglo.plots import grey, label_colours, plot_split_vi, plot_vi_by_threshold, tinted
    from napari_agglo.plots._raster_pictures import RGB, borders, enlarged, factors, outlined

    ndim = sample.gold.ndim
    planes = (sample.image, superpixels, matched(sample.gold, labels), sample.gold)
    image, over, segments, gold = (_middle(one, ndim) for one in planes)
    times = factors(gold.shape)
    backdrop = enlarged(grey(image), times)
    colours = label_colours(int(max(segments.max(), gold.max())) + 1)

    def coloured(plane: NDArray[Any]) -> NDArray[np.float64]:
        large = enlarged(plane, times)
        return outline(tinted(backdrop, colours[large], np.where(large > 0, 0.55, 0.0)), plane)

    def outline(
        picture: NDArray[np.float64], plane: NDArray[Any], colour: RGB = (1.0, 1.0, 1.0)
    ) -> NDArray[np.float64]:
        return outlined(picture, borders(enlarged(plane, times)), colour)

    figure = Figure(figsize=(15, 8.6), layout="constrained")
    FigureCanvasAgg(figure)
    halves: Any = figure.subfigures(2, 1)  # an array of two, or one figure, says the stub
    pictures_row, curves_row = halves
    segments_at = int(state_at(curves["agglo"], 0.5)["segments"])
    pictures = {
        "image": backdrop,
        f"{int(superpixels.max())} superpixels": outline(backdrop, over, (1.0, 0.7, 0.1)),
        f"agglo at 0.5: {segments_at} segments": coloured(segments),
        "gold standard": coloured(gold),
    }
    for axes, (title, picture) in zip(pictures_row.subplots(1, 4), pictures.items(), strict=True):
        axes.imshow(picture, interpolation="antialiased")
        axes.set_title(title, fontsize=11)
        axes.set_axis_off()
    pictures_row.supxlabel(
        "Agglo has learned from another sample. A segment has the colour of the gold segment that "
        "it covers best; split-off parts have another",
        fontsize=9,
        color="#555555",
    )
    by_threshold, split = curves_row.subplots(1, 2, width_ratios=[1.6, 1])
    plot_vi_by_threshold(curves, axes=by_threshold)
    plot_split_vi(curves, axes=split)
    figure.savefig(path, dpi=110, format="png")


def _middle(array: NDArray[Any], ndim: int) -> NDArray[Any]:
    """Return the middle plane of the first `ndim` axes; a colour axis after them stays."""
    for _ in range(ndim - 2):
        array = array[array.shape[0] // 2]
    return array


def _summary(
    name: str,
    shape: tuple[int, ...],
    curves: dict[str, pd.DataFrame],
    best: float,
    seconds: dict[str, float],
) -> dict[str, Any]:
    from napari_agglo.evaluate import minimum, state_at

    return {
        "sample": name,
        "shape": list(shape),
        "seed": _TEST_SEED,
        "training_seed": _TRAINING_SEED,
        "policies": {
            policy: {"at_half": state_at(curve, 0.5), "best": minimum(curve)}
            for policy, curve in curves.items()
        },
        "vi_best_possible": best,
        "seconds": seconds,
    }


def _text(summary: dict[str, Any]) -> str:
    rows: list[list[object]] = [
        [
            name,
            *(row["at_half"][column] for column in ("vi", "false_merge", "false_split")),
            row["best"]["vi"],
        ]
        for name, row in summary["policies"].items()
    ]
    rows.append(["best possible", "", "", "", summary["vi_best_possible"]])
    header = ["policy", "VI at 0.5", "false merge", "false split", "VI at best"]
    size = " x ".join(map(str, summary["shape"]))
    seconds = ", ".join(f"{stage} {s:.2f}" for stage, s in summary["seconds"].items())
    return (
        f"{summary['sample']}, {size}: errors in bits. Flat and agglo were trained on another "
        f"sample.\n\n{table(header, rows)}\n\n"
        f"Seconds: {seconds}; together {sum(summary['seconds'].values()):.1f}"
    )
