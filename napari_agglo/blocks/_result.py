"""Results of a block-wise run, opened lazily; and the status of a run, read from its markers."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari_agglo._progress import ProgressCallback, check_progress
from napari_agglo.agglomeration import MergeTree
from napari_agglo.blocks._chunk_census import (
    FEW,
    LostChunks,
    absent_files,
    damaged_chunks,
    lost_chunks,
    number_of_chunks,
)
from napari_agglo.blocks._plan import Plan, read_plan
from napari_agglo.blocks._run_files import (
    LABELS,
    PRECOMPUTED,
    SUPERPIXELS,
    Job,
    Redo,
    Task,
    own_levels,
)
from napari_agglo.blocks._stages import save_whole_graph, stages_of
from napari_agglo.blocks._task_markers import locked, read_marker, write_marker, writing
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session import Session
from napari_agglo.volumes import open_levels

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class StageStatus:
    """Tasks of a stage.

    Attributes
    ----------
    name : str
        The stage.
    done, tasks, failed : int
        Tasks that are done, all of them, and those that failed.
    seconds : float
        Time of the tasks that are done.
    """

    name: str
    done: int
    tasks: int
    failed: int
    seconds: float


@dataclass(frozen=True)
class Status:
    """Status of a run, from the files in its folder.

    Attributes
    ----------
    folder : Path
        The results folder.
    stages : tuple of StageStatus
        In the order of the run.
    absent : dict of str to int
        Chunks of each input that were not in its store.
    disagreement : float
        Share of the faces between blocks at which the floods of the two blocks differ: that of a
        halo that is large enough is 0, or nearly.
    lost : tuple of LostChunks, optional
        Chunks of results that finished tasks wrote and that are not there; None if they were not
        counted. The next run writes them again.
    damaged : tuple of LostChunks
        Chunks of the finest levels of results that cannot be decoded, as far as they were read:
        ``run(stage=..., block=...)`` with each of their tasks writes them again.
    decoded : (int, int), optional
        Chunks that were read to find these, and all; None if none was.
    """

    folder: Path
    stages: tuple[StageStatus, ...]
    absent: dict[str, int]
    disagreement: float = 0.0
    lost: tuple[LostChunks, ...] | None = None
    damaged: tuple[LostChunks, ...] = ()
    decoded: tuple[int, int] | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all tasks are done, and no chunk of theirs is known to be lost or damaged."""
        if self.lost or self.damaged:
            return False
        return all(stage.done == stage.tasks for stage in self.stages)

    @property
    def next_stage(self) -> str | None:
        """The first stage that is not finished, or that has to write a lost chunk again."""
        again = {stage for one in (*(self.lost or ()), *self.damaged) for stage, _ in one.tasks}
        return next((s.name for s in self.stages if s.done < s.tasks or s.name in again), None)

    def absent_files(self) -> dict[str, list[str]]:
        """Return the files of some absent chunks of each input on disk.

        Returns
        -------
        dict of str to list of str
            Up to three paths by the name of the input; none where they are not known, as at a URL.
        """
        job = Job(self.folder, read_plan(self.folder))
        return {name: absent_files(job, name) for name in self.absent}


def status(folder: str | os.PathLike[str], *, check: bool | None = None) -> Status:
    """Read the status of a run; it may be running, on this machine or on others.

    Parameters
    ----------
    folder : path
        A results folder.
    check : bool, optional
        Whether to count chunks of results that are lost, and to decode those of the finest levels,
        some thousands at most; by default they are counted if they are 100,000 or fewer.

    Returns
    -------
    Status
    """
    place = Path(folder)
    job = Job(place, read_plan(place))
    stages = []
    absent: dict[str, int] = {}
    faces = differ = 0
    finished: set[Task] = set()
    logs = [path.name for path in (place / "failures").glob("*.log")]
    for stage in stages_of(job.plan):
        marked = [read_marker(job, stage.name, index) for index in range(stage.tasks)]
        notes = [one for one in marked if one is not None]
        finished |= {(stage.name, k) for k, one in enumerate(marked) if one is not None}
        here: dict[str, int] = {}
        for note in notes:
            for name, number in note.get("absent", {}).items():
                here[name] = here.get(name, 0) + number
            faces, differ = faces + note.get("faces", 0), differ + note.get("differ", 0)
        for name, number in here.items():  # several stages may read one input
            absent[name] = max(absent.get(name, 0), number)
        stages.append(
            StageStatus(
                stage.name,
                len(notes),
                stage.tasks,
                sum(name.rpartition("-")[0] == stage.name for name in logs),
                sum(float(note.get("seconds", 0.0)) for note in notes),
            )
        )
    lost = None
    if check or (check is None and number_of_chunks(job.plan) <= FEW):
        lost = lost_chunks(job, finished.__contains__)
    share = differ / max(faces, 1)
    if not check:
        return Status(place, tuple(stages), absent, share, lost)
    damaged, decoded = damaged_chunks(job, finished.__contains__)
    return Status(place, tuple(stages), absent, share, lost, damaged, decoded)


@dataclass(frozen=True, eq=False)
class Result:
    """Results of a block-wise run; nothing is read before it is asked for, and no volume whole.

    Attributes
    ----------
    folder : Path
        The results folder.
    plan : Plan
        Inputs and settings.
    """

    folder: Path
    plan: Plan

    @property
    def _job(self) -> Job:
        return Job(self.folder, self.plan)

    @cached_property
    def graph(self) -> RegionGraph:
        """The graph; its tables are memory-mapped, its superpixels stay on disk.

        That of a hierarchical run is made of the tables of its blocks when it is first asked for.
        """
        if self.plan.hierarchical:
            self._make_graph()
        graph: RegionGraph = self._get("graph", self._job.graph)
        return graph

    @cached_property
    def tree(self) -> MergeTree:
        """The merge tree, with the superpixels of the graph."""
        tree: MergeTree = self._get("tree", self._job.tree)
        if self.plan.hierarchical:
            return tree
        return replace(tree, superpixels=self.graph.superpixels)

    def _make_graph(self) -> None:
        job = self._job
        if self.plan.approximate:
            raise InvalidInput(
                f"{self.folder} has merges that a learned policy made within groups of blocks, and "
                "a graph of the whole would give others",
                argument="folder",
                remedy="use its tree and labels, or plan again without `hierarchical`",
            )
        if read_marker(job, "tree", 0) is None or read_marker(job, "whole", 0) is not None:
            return  # not ready, or there
        try:
            with locked(self.folder, None), writing(self.folder):
                notes = save_whole_graph(job)
                write_marker(job, "whole", 0, notes | {"files": job.written})
        except Redo as error:
            raise InvalidInput(
                f"{self.folder} is a hierarchical run, whose graph is made of the tables of its "
                f"blocks, and one of them cannot be read ({error})",
                argument="folder",
                remedy="plan in another folder, without `hierarchical` if its graph fits",
            ) from error

    @property
    def policy(self) -> Policy | str:
        """The policy that the tree was made with."""
        return self._job.policy()

    @property
    def superpixels(self) -> list[Any]:
        """The superpixels, from the finest level to the coarsest, as arrays on disk."""
        if self.plan.superpixels is not None:
            return [level.data for level in open_levels(self.plan.superpixels.path)]
        return self._levels("superpixels", SUPERPIXELS)

    @property
    def labels(self) -> list[Any]:
        """The labels at the threshold of the plan, from the finest level to the coarsest."""
        return self._levels("labels", LABELS)

    @property
    def precomputed_path(self) -> Path:
        """Path of the labels for Neuroglancer, where the plan has them."""
        path = self.folder / PRECOMPUTED
        if not path.is_dir():
            raise _unfinished(self.folder, "precomputed-0")
        return path

    @property
    def copies(self) -> list[str]:
        """URLs of the copies of the labels, where the plan has a place for them."""
        notes = read_marker(self._job, "publish", 0) if self.plan.copy_to else {}
        if notes is None:
            raise _unfinished(self.folder, "publish")
        return list(notes.get("urls", ()))

    @property
    def superpixels_path(self) -> Path:
        """Path of the superpixels, as a session can refer to them."""
        if self.plan.superpixels is not None:
            return Path(self.plan.superpixels.path)
        return self.folder / SUPERPIXELS

    @property
    def curve(self) -> pd.DataFrame:
        """Errors at every threshold, where the plan has a gold standard."""
        import pandas as pd

        path = self.folder / "curve.csv"
        if not path.is_file():
            raise _unfinished(self.folder, "evaluate")
        return pd.read_csv(path)

    @property
    def image_path(self) -> str | None:
        """Path of the image that a pixel classifier was applied to, if there is one."""
        return None if self.plan.image is None else self.plan.image.path

    def create_session(
        self,
        path: str | os.PathLike[str],
        *,
        image: str | os.PathLike[str] | None = None,
        progress: ProgressCallback | None = None,
    ) -> Session:
        """Make a proofreading session of the result, and open it; no volume is read or copied.

        The session refers to the superpixels, the cues and the gold standard in their files. A cut
        through a superpixel reads the box of it.

        Parameters
        ----------
        path : path
            ``NAME.agglo``, which must not exist.
        image : path, optional
            The image to show; by default that of the pixel classifier, if there was one.
        progress : callable, optional
            Called with the progress so far; raise `Cancelled` in it to stop, and nothing is made.

        Returns
        -------
        Session
            At the threshold of the plan.
        """
        check_progress(progress)
        graph = self.graph
        tree = replace(self.tree, superpixels=graph.superpixels)
        names = (*self.plan.cues, *self.plan.predicted)
        sources: dict[str, Any] = {f"cue {name}": self._job.cue_path(name) for name in names}
        shown = self.image_path if image is None else os.fspath(image)
        if shown is not None:
            sources["image"] = shown
        gold = None if self.plan.gold is None else self.plan.gold.path
        session = Session.create(
            path, graph, self.policy, tree=tree, gold=gold, source=self.superpixels_path,
            sources=sources, progress=progress,
        )  # fmt: skip
        session.threshold = self.plan.threshold
        if gold is not None:
            with suppress(Redo):  # the tables may have been removed: the session counts again
                session.errors.keep(self._job.overlaps())
        return session

    def _levels(self, stage: str, name: str) -> list[Any]:
        path = self.folder / name
        if not path.is_dir():
            raise _unfinished(self.folder, stage)
        return list(own_levels(self._job, name))

    def _get(self, stage: str, make: Any) -> Any:
        try:
            return make()
        except Redo as error:
            raise _unfinished(self.folder, stage) from error


def _unfinished(folder: Path, stage: str) -> InvalidInput:
    return InvalidInput(
        f"{folder} has no result of the stage {stage} yet",
        argument="folder",
        remedy=f"finish it: napari-agglo blocks run {folder}",
    )


def open_result(folder: str | os.PathLike[str]) -> Result:
    """Open the results of a block-wise run, lazily.

    Parameters
    ----------
    folder : path
        A results folder.

    Returns
    -------
    Result
        With `graph`, `tree`, `superpixels` and `labels`, all on disk until they are used.
    """
    place = Path(folder).resolve()
    return Result(place, read_plan(place))
