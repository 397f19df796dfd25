"""Frames of a movie: the states of all trees, synchronised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, check_progress, report
from napari_agglo.agglomeration import BEFORE, MergeTree, is_before, threshold_text
from napari_agglo.errors import InvalidInput, SetOption, check_choice, check_whole, is_number
from napari_agglo.evaluate import merge_curve
from napari_agglo.movie._draw_frame import compose, draw_panel
from napari_agglo.movie._panels import Scene, StillPanel, TreePanel, scene, split_panels
from napari_agglo.volumes import DenseLabels

By = Literal["merges", "threshold"]


@dataclass(frozen=True, eq=False)
class Steps:
    """The states of a movie.

    Attributes
    ----------
    merges : ndarray of int64, shape (frames, trees)
        Merges done in each frame of each tree.
    thresholds : ndarray of float64, shape (frames, trees)
        The threshold of each: that of the frame, or the least at which these merges are done.
    """

    merges: NDArray[np.int64]
    thresholds: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.merges)


def steps(
    trees: Sequence[MergeTree],
    by: By = "merges",
    frames: int = 120,
    *,
    start: float | None = None,
    stop: float | None = None,
) -> Steps:
    """Choose the states of the frames.

    Parameters
    ----------
    trees : sequence of MergeTree
        One or more.
    by : {"merges", "threshold"}
        The same number of merges in all trees, or the same threshold.
    frames : int
        Number of frames, 2 or more.
    start, stop : float, optional
        First and last number of merges, or threshold. By default from the superpixels to the end.

    Returns
    -------
    Steps
        The number of merges and the threshold of each frame and tree.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[1, 2, 3]]), np.array([[0.0, 0.2, 0.6]]))
    >>> states = steps([agglo.agglomerate(graph)], frames=3)
    >>> states.merges.tolist(), states.thresholds.round(3).tolist()
    ([[0], [1], [2]], [[-inf], [0.1], [0.4]])
    """
    _check(by, frames, start, stop)
    if by == "merges":
        most = max(tree.n_merges for tree in trees)
        done = np.rint(_even(start, stop, 0, most, frames)).astype(np.int64)
        merges = np.stack([np.clip(done, 0, tree.n_merges) for tree in trees], axis=1)
        heights = [np.concatenate([[-np.inf], tree.heights]) for tree in trees]
        thresholds = np.stack([h[m] for h, m in zip(heights, merges.T, strict=True)], axis=1)
        return Steps(merges, thresholds)
    ends = [end for tree in trees for end in tree.heights[[0, -1]].tolist() if tree.n_merges]
    at = _even(start, stop, min([0.0, *ends]), max(ends, default=1.0), frames)
    # A threshold of one tree may be out of reach of another, of which it shows the end.
    merges = np.stack([np.searchsorted(tree.heights, at, side="right") for tree in trees], axis=1)
    return Steps(merges, np.repeat(at[:, None], len(trees), axis=1))


def _even(
    start: float | None, stop: float | None, first: float, last: float, frames: int
) -> NDArray[np.float64]:
    begin = first if start is None else float(start)
    end = max(last, begin) if stop is None else float(stop)
    return np.linspace(begin, end, frames)


def _check(by: Any, frames: Any, start: Any, stop: Any) -> None:
    check_choice("by", by, get_args(By))
    check_whole("frames", frames, 2)
    for name, value in (("start", start), ("stop", stop)):
        if value is not None and not (is_number(value) and np.isfinite(value)):
            raise InvalidInput(
                f"`{name}` must be a number of {by}, got {value!r}",
                argument=name,
                remedy="leave it out to show all states",
            )
        if value is not None and by == "merges" and value < 0:
            raise InvalidInput(
                f"`{name}` must be 0 merges or more, got {value!r}",
                argument=name,
                remedy=SetOption(name, 0),
            )
    if start is not None and stop is not None and start > stop:
        raise InvalidInput(
            f"`start` must not exceed `stop`, got {start!r} and {stop!r}",
            argument="start",
            remedy="swap them",
        )


@dataclass(frozen=True, eq=False)
class Movie:
    """Contents of a movie; each iteration over it yields the frames from the first on.

    Parameters
    ----------
    trees : mapping of str to MergeTree
        The agglomerations by the names of their panels.
    stills : mapping of str to DenseLabels
        The label images that stay as they are.
    order : sequence of str
        The names of the panels from left to right.
    scene : Scene
        The plane, its image and its size.
    steps : Steps
        The state of each frame.
    errors : mapping of str to ndarray
        The VI of each frame by panel; empty without a gold standard.
    """

    trees: Mapping[str, MergeTree]
    stills: Mapping[str, DenseLabels]
    order: Sequence[str]
    scene: Scene
    steps: Steps
    errors: Mapping[str, NDArray[np.float64]]  # VI of each tree after each merge, if there is gold

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return self.frames()

    def frames(self, progress: ProgressCallback | None = None) -> Iterator[NDArray[np.uint8]]:
        """Yield the frames as RGB; `progress` is called for each, and may cancel.

        Parameters
        ----------
        progress : callable, optional
            Called after each frame; it may raise `Cancelled`.

        Yields
        ------
        ndarray of uint8, shape (rows, columns, 3)
            A frame, in RGB.
        """
        first = next(iter(self.trees.values()))
        sizes = _sizes(first)
        moving = {name: TreePanel(tree, self.scene, sizes) for name, tree in self.trees.items()}
        still = {
            name: StillPanel(labels, first, self.scene, progress)
            for name, labels in self.stills.items()
        }
        for k in range(len(self)):
            report(progress, "frames", k, len(self))
            yield self._frame(k, moving, still)
        report(progress, "frames", len(self), len(self))

    def _frame(
        self, k: int, moving: Mapping[str, TreePanel], still: Mapping[str, StillPanel]
    ) -> NDArray[np.uint8]:
        at = dict(zip(moving, self.steps.merges[k].tolist(), strict=True))
        thresholds = dict(zip(moving, self.steps.thresholds[k].tolist(), strict=True))
        tables = {name: panel.table(at[name]) for name, panel in moving.items()}
        reference = next(iter(tables.values()))
        matched: dict[str, NDArray[np.uint32]] = {}
        for name, panel in moving.items():
            matched[name] = panel.matched(tables[name], reference, list(matched.values())[1:])
        beside = list(matched.values())[1:]
        pictures, captions = [], []
        for name in self.order:
            if name in still:
                labels, lit = still[name].labels(reference, beside), None
                details = _count(still[name].n_segments)
            else:
                labels = moving[name].labels(matched[name])
                lit = moving[name].flashing(at[name], tables[name])
                details = self._details(name, at[name], thresholds[name])
            pictures.append(draw_panel(self.scene.backdrop, labels, lit))
            captions.append((name, details))
        return compose(pictures, captions, k / max(len(self) - 1, 1))

    def _details(self, name: str, merges: int, threshold: float) -> str:
        tree = self.trees[name]
        words = [_threshold_words(tree, merges, threshold), _count(tree.n_superpixels - merges)]
        if name in self.errors:
            words.append(f"VI {self.errors[name][merges]:.3f}")
        return "   ".join(words)


# With the values that a control offers.
FrameCount = Annotated[int, {"min": 2, "max": 2000}]
Place = Annotated[float | None, {"max": 1e9}]
Side = Annotated[int, {"min": 100, "max": 4000}]


def movie(
    panels: Mapping[str, Any],
    *,
    image: Any = None,
    gold: Any = None,
    plane: Sequence[int] | None = None,
    by: By = "merges",
    frames: FrameCount = 120,
    start: Place = None,
    stop: Place = None,
    spacing: Sequence[float] | None = None,
    size: Side = 480,
    progress: ProgressCallback | None = None,
) -> Movie:
    """Make a movie of agglomerations, side by side and synchronised.

    Segments that overlap most have one colour in all panels, and keep it while they grow. Merged
    segments flash.

    Parameters
    ----------
    panels : mapping of str to MergeTree or label image
        Name of each of one to four panels, of the same superpixels; colours are those of the first
        tree. A label image, such as the gold standard, stays as it is.
    image : array, optional
        Image to draw on, of the shape of the superpixels, in grey or colours.
    gold : array of int, optional
        A gold standard: captions then have the VI of each frame.
    plane : sequence of int, optional
        Index of a plane of a volume along all axes but the last two; by default the middle.
    by : {"merges", "threshold"}
        All trees have the same number of merges in a frame, or the same threshold.
    frames : int
        Number of frames, 2 or more.
    start, stop : float, optional
        First and last number of merges, or threshold; by default all.
    spacing : sequence of float, optional
        Spacing of the superpixels: rows and columns are drawn in proportion.
    size : int
        Approximate number of pixels of the longer side of a panel.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    Movie
        The movie; frames are drawn when it is iterated over.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> superpixels = np.repeat(np.arange(1, 5)[None], 4, axis=0)
    >>> graph = agglo.region_graph(superpixels, np.random.default_rng(0).random((4, 4)))
    >>> film = movie({"mean": agglo.agglomerate(graph)}, frames=4, size=64)
    >>> len(film), next(iter(film)).shape
    (4, (130, 80, 3))
    """
    check_whole("size", size, 16, 4096)
    check_progress(progress)
    trees, stills = split_panels(panels)
    first = next(iter(trees.values()))
    view = scene(first, image, plane, spacing, int(size))
    chosen = steps(list(trees.values()), by, frames, start=start, stop=stop)
    errors = {}
    if gold is not None:
        for name, tree in trees.items():
            errors[name] = merge_curve(tree, gold, progress=progress)["vi"].to_numpy(float)
    return Movie(trees, stills, [str(name) for name in panels], view, chosen, errors)


def _threshold_words(tree: MergeTree, merges: int, threshold: float) -> str:
    """Return a threshold with the digits that tell its state from the next.

    It has three decimals or more, so that the text beside it stands still in most frames.
    """
    if merges == 0 or is_before(threshold):
        return BEFORE
    low = float(tree.heights[merges - 1])
    above = int(np.searchsorted(tree.heights, low, side="right"))
    high = float(tree.heights[above]) if above < tree.n_merges else np.inf
    texts = (f"{threshold:.{digits}f}" for digits in range(3, 17))
    tells = (text for text in texts if low <= float(text) < high)
    return f"threshold {next(tells, threshold_text(threshold))}"


def _sizes(tree: MergeTree) -> NDArray[np.int64]:
    if tree.sizes is not None:
        return tree.sizes
    image = tree.superpixels.image.reshape(-1)
    return np.bincount(image, minlength=tree.n_superpixels + 1).astype(np.int64)


def _count(n: int) -> str:
    return f"{n:,} segment{'' if n == 1 else 's'}"
